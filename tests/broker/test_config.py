"""What is read of a broker's and a topic's configuration: names, defaults of the release, least values."""

import pytest

from kaudit.broker.config import BrokerConfig, TopicLimits, config_number, runs_kraft, topic_config, unread_names
from kaudit.broker.releases.profile import profile_for
from kaudit.formats.log.codecs import Codec

DAY, HOUR = 86_400_000, 3_600_000
LATEST = profile_for("3.9.1")
NUMBERS = {
    "transaction.max.timeout.ms": ("transaction_max_timeout_ms", 900_000, 1),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": ("transaction_check_ms", 10_000, 1),
    "transactional.id.expiration.ms": ("transactional_id_expiration_ms", 7 * DAY, 1),
    "transaction.remove.expired.transaction.cleanup.interval.ms": ("transactional_id_check_ms", HOUR, 1),
    "producer.id.expiration.check.interval.ms": ("producer_id_check_ms", 600_000, 1),
    "log.initial.task.delay.ms": ("first_checkpoint_ms", 30_000, 0),
    "log.flush.start.offset.checkpoint.interval.ms": ("log_start_checkpoint_ms", 60_000, 1),
}
"""By name: the field, Kafka's default (its documentation of 3.9), the least value that is taken as it is."""


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_a_broker(name):
    field, default, least = NUMBERS[name]
    assert getattr(BrokerConfig.of({}, LATEST), field) == default
    for value, read in ((5, 5), (least, least), (least - 1, least), (-7, least)):
        assert getattr(BrokerConfig.of({name: str(value)}, LATEST), field) == read
    with pytest.raises(ValueError, match="to be a number, not 'soon'"):
        BrokerConfig.of({name: "soon"}, LATEST)


@pytest.mark.parametrize(
    ("version", "name", "default"),
    [
        ("3.9.1", "producer.id.expiration.ms", DAY),
        ("2.8.2", "transactional.id.expiration.ms", 7 * DAY),
    ],
)
def test_when_a_producer_id_expires(version, name, default):
    """KIP-854: a configuration of its own, and a day instead of a week."""
    profile = profile_for(version)
    assert BrokerConfig.of({}, profile).producer_id_expiration_ms == default
    assert BrokerConfig.of({name: "777"}, profile).producer_id_expiration_ms == 777
    has_own = name.startswith("producer")
    check = BrokerConfig.of({"producer.id.expiration.check.interval.ms": "5"}, profile).producer_id_check_ms
    assert check == (5 if has_own else 600_000)


@pytest.mark.parametrize(("value", "verifies"), [(None, True), ("true", True), ("false", False)])
def test_whether_transactions_are_verified(value, verifies):
    config = {} if value is None else {"transaction.partition.verification.enable": value}
    assert BrokerConfig.of(config, LATEST).verifies is verifies


@pytest.mark.parametrize(
    ("config", "kraft"),
    [
        ({"process.roles": "broker"}, True),
        ({"zookeeper.connect": "zk:2181"}, False),
        ({"process.roles": "broker", "zookeeper.connect": "zk:2181"}, True),
    ],
)
def test_whether_there_is_a_zookeeper(config, kraft):
    for version in ("2.8.2", "3.9.1", "4.0.0"):
        assert runs_kraft(config, profile_for(version)) is kraft
        assert runs_kraft({}, profile_for(version)) is profile_for(version).kraft


def test_names_that_nothing_reads_with_the_one_that_may_be_meant():
    read = frozenset({"segment.bytes", "cleanup.policy"})
    found = unread_names(["segment.bytes", "segment.byte", "segment.ms", "clean.policy"], read)
    assert found == {"segment.byte": "segment.bytes", "segment.ms": None, "clean.policy": "cleanup.policy"}
    assert config_number({}, "x", None) is None
    assert config_number({"x": "-5"}, "x", None) == -5


DEFAULTS = TopicLimits(1_048_588, 1 << 30)


@pytest.mark.parametrize(
    ("config", "limits"),
    [
        ({}, DEFAULTS),
        ({"max.message.bytes": "5"}, TopicLimits(5, 1 << 30)),
        ({"segment.bytes": "6"}, TopicLimits(1_048_588, 6)),
        ({"cleanup.policy": "delete"}, DEFAULTS),
        ({"cleanup.policy": "compact"}, TopicLimits(compacted=True, deletes=False)),
        ({"cleanup.policy": "compact,delete"}, TopicLimits(compacted=True, deletes=True)),
        ({"message.timestamp.type": "LogAppendTime"}, TopicLimits(log_append_time=True)),
        ({"message.timestamp.type": "CreateTime"}, DEFAULTS),
        ({"message.timestamp.difference.max.ms": "7"}, TopicLimits(ahead_ms=7, behind_ms=7)),
        ({"message.timestamp.after.max.ms": "8"}, TopicLimits(ahead_ms=8)),
        ({"message.timestamp.before.max.ms": "9"}, TopicLimits(behind_ms=9)),
        (
            {"message.timestamp.difference.max.ms": "7", "message.timestamp.before.max.ms": "9"},
            TopicLimits(ahead_ms=7, behind_ms=9),
        ),
        ({"compression.type": "producer"}, DEFAULTS),
        ({"compression.type": "uncompressed"}, TopicLimits(codec=Codec.NONE)),
        ({"compression.type": "gzip"}, TopicLimits(codec=Codec.GZIP)),
        ({"compression.type": "snappy"}, TopicLimits(codec=Codec.SNAPPY)),
        ({"compression.type": "lz4"}, TopicLimits(codec=Codec.LZ4)),
        ({"compression.type": "zstd"}, TopicLimits(codec=Codec.ZSTD)),
    ],
)
def test_a_topics_configuration(config, limits):
    assert TopicLimits.of(config, LATEST) == limits


def test_from_4_0_on_a_timestamp_is_at_most_an_hour_ahead():
    """KIP-1030."""
    assert TopicLimits.of({}, profile_for("4.0.0")).ahead_ms == HOUR
    assert TopicLimits.of({"message.timestamp.after.max.ms": "8"}, profile_for("4.0.0")).ahead_ms == 8


def test_the_brokers_own_names_count_where_the_topic_says_nothing():
    broker = {"log.segment.bytes": "6", "message.max.bytes": "5", "log.cleanup.policy": "compact", "log.dirs": "/data"}
    assert topic_config({}, broker) == {"segment.bytes": "6", "max.message.bytes": "5", "cleanup.policy": "compact"}
    assert topic_config({"segment.bytes": "7"}, broker)["segment.bytes"] == "7"
    assert topic_config({"segment.ms": "7"}, {}) == {"segment.ms": "7"}
