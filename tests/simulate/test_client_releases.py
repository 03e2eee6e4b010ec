"""The table of clients, held to what the sources of their releases say; the configuration each refuses, to its own words."""

import pytest

from kaudit.broker.releases.table import rows_of
from kaudit.broker.releases.version import RELEASES, Version
from kaudit.simulate.producer.client_profile import OTHER_CLIENTS, UnknownClientError, client_for
from kaudit.simulate.producer.client_switches import ClientSwitches
from kaudit.simulate.producer.config import negotiate_versions
from kaudit.simulate.producer.recovery import RECOVERIES
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.scenario.tables import ScenarioError

FOREVER = 2**31 - 1
SCENARIO = """
[[topics]]
name = "orders"
[[producers]]
name = "shop"
client = "{client}"
config = {{ {config} }}
"""


def config_of(client, config="", more=""):
    return parse_scenario(SCENARIO.format(client=client, config=config) + more, "test").producers[0].config


@pytest.mark.parametrize(
    ("client", "acks", "idempotent", "retries", "linger", "delivery_timeout", "max_in_flight"),
    [
        ("java 0.11.0.3", 1, False, 0, 0, None, 5),
        ("java 1.1.1", 1, False, 0, 0, None, 5),
        ("java 2.0.1", 1, False, 0, 0, None, 5),
        ("java 2.1.0", 1, False, FOREVER, 0, 120_000, 5),
        ("java 2.8.2", 1, False, FOREVER, 0, 120_000, 5),
        ("java 3.0.0", -1, False, FOREVER, 0, 120_000, 5),
        ("java 3.0.1", -1, True, FOREVER, 0, 120_000, 5),
        ("java 3.1.0", -1, False, FOREVER, 0, 120_000, 5),
        ("java 3.2.0", -1, True, FOREVER, 0, 120_000, 5),
        ("java 3.9.1", -1, True, FOREVER, 0, 120_000, 5),
        ("java 4.0.0", -1, True, FOREVER, 5, 120_000, 5),
        ("librdkafka 1.4.4", -1, False, 2, 0, 300_000, 100),
        ("librdkafka 2.14.1", -1, False, FOREVER, 5, 300_000, 100),
        ("franz-go 1.19.0", -1, True, FOREVER, 0, FOREVER, 1),
        ("franz-go 1.21.5", -1, True, FOREVER, 10, FOREVER, 1),
    ],
)
def test_what_a_producer_does_without_configuration(
    client, acks, idempotent, retries, linger, delivery_timeout, max_in_flight
):
    """Source: ProducerConfig of these releases; rdkafka_conf.c; config.go."""
    config = config_of(client)
    assert (config.acks, config.idempotent, config.retries) == (acks, idempotent, retries)
    assert (config.linger_ms, config.delivery_timeout_ms, config.max_in_flight) == (
        linger,
        delivery_timeout,
        max_in_flight,
    )


@pytest.mark.parametrize("client", ["java 0.11.0.3", "java 2.0.1", "java 2.6.3", "librdkafka 1.4.4"])
def test_idempotence_brings_acks_and_retries_with_it(client):
    config = config_of(client, '"enable.idempotence" = true')
    assert (config.acks, config.retries) == (-1, FOREVER)
    assert config.max_in_flight == (1 if "0.11" in client else 5)


@pytest.mark.parametrize(
    "client", ["java 3.0.1", "java 3.9.1", "librdkafka 1.0.0", "librdkafka 2.14.1", "franz-go 1.0.0", "franz-go 1.21.5"]
)
def test_a_transactional_id_brings_idempotence_with_it(client):
    """Of librdkafka it is off by default: rd_kafka_conf_finalize switches it on, and refuses what contradicts it then."""
    config = config_of(client, '"transactional.id" = "t"', "transaction = {}")
    assert (config.idempotent, config.acks, config.retries) == (True, -1, FOREVER)
    with pytest.raises(ScenarioError, match="expected all in order to use the idempotent producer"):
        config_of(client, '"transactional.id" = "t", acks = "1"', "transaction = {}")


def test_a_default_delivery_timeout_is_raised_to_what_it_has_to_cover():
    """Source: KafkaProducer.configureDeliveryTimeout."""
    assert config_of("java 2.4.1", '"linger.ms" = 100000, "request.timeout.ms" = 40000').delivery_timeout_ms == 140_000


@pytest.mark.parametrize(
    ("client", "config", "expected"),
    [
        ("java 2.0.1", '"enable.idempotence" = true, retries = 0', "config.retries: expected non-zero when"),
        ("java 3.9.1", '"enable.idempotence" = true, retries = 0', "config.retries: expected non-zero when"),
        ("java 2.0.1", '"enable.idempotence" = true, acks = "1"', "config.acks: expected all in order to use"),
        ("java 2.0.1", '"transactional.id" = "t", acks = "1"', "config.acks: expected all in order to use"),
        ("java 3.9.1", '"transactional.id" = "t", acks = "1"', "a transactional.id needs idempotence"),
        ("java 0.11.0.3", '"enable.idempotence" = true, "max.in.flight.requests.per.connection" = 5', "at most 1 to"),
        ("java 1.0.0", '"enable.idempotence" = true, "max.in.flight.requests.per.connection" = 6', "at most 5 to"),
        ("java 3.9.1", '"enable.idempotence" = true, "max.in.flight.requests.per.connection" = 6', "at most 5 to"),
        ("java 4.0.0", '"max.in.flight.requests.per.connection" = 6', "at most 5 to"),
        ("java 2.0.1", '"transactional.id" = "t", "enable.idempotence" = false', "cannot be set without idempotence"),
        ("java 3.9.1", '"transactional.id" = "t", "enable.idempotence" = false', "cannot be set without idempotence"),
        (
            "java 2.1.0",
            '"delivery.timeout.ms" = 29999',
            "equal to or larger than linger.ms + request.timeout.ms, 30000",
        ),
        ("java 2.0.1", '"delivery.timeout.ms" = 60000', "no such key: java 2.0.1 does not have it"),
        ("java 3.6.2", '"retry.backoff.max.ms" = 60000', "no such key: java 3.6.2 does not have it"),
        ("franz-go 1.21.5", 'acks = "1"', "config.acks: expected all in order to use"),
        ("java 3.9.1", '"enable.idempotence" = "yes"', "true or false, not 'yes'"),
    ],
)
def test_configuration_is_refused_as_the_client_refuses_it(client, config, expected):
    """Source: KafkaProducer.configureAcks and others, ProducerConfig.postProcessAndValidateIdempotenceConfigs."""
    with pytest.raises(ScenarioError) as refused:
        config_of(client, config)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("client", ["java 3.0.1", "java 3.2.0", "java 3.9.1", "java 4.2.0"])
@pytest.mark.parametrize("config", ['acks = "1"', "retries = 0", '"max.in.flight.requests.per.connection" = 6'])
def test_what_contradicts_idempotence_by_default_switches_it_off(client, config):
    """KAFKA-13598; since 4.0 more than five in flight are refused instead."""
    if "max.in.flight" in config and client == "java 4.2.0":
        with pytest.raises(ScenarioError):
            config_of(client, config)
    else:
        assert not config_of(client, config).idempotent


@pytest.mark.parametrize(
    ("client", "broker", "produce", "init", "add", "end", "version2"),
    [
        ("java 4.1.0", "4.2.0", 13, 5, 3, 5, True),
        ("java 4.0.0", "4.2.0", 12, 5, 3, 5, True),
        ("java 4.0.0", "3.9.1", 11, 5, 3, 4, False),
        ("java 3.9.1", "4.2.0", 11, 5, 3, 4, False),
        ("java 4.0.0", "2.8.2", 9, 4, 3, 3, False),
        ("java 2.0.1", "3.9.1", 6, 1, 1, 1, False),
        ("java 4.0.0", "0.11.0.0", 3, 0, 0, 0, False),
        ("librdkafka 2.14.1", "4.2.0", 10, 4, 0, 1, False),
    ],
)
def test_versions_are_the_newest_both_know(client, broker, produce, init, add, end, version2):
    """Source: validVersions of the requests' schemas in these releases."""
    versions = negotiate_versions(client_for(client), Version.parse(broker))
    assert (versions.produce, versions.init_producer_id) == (produce, init)
    assert (versions.add_partitions, versions.end_txn) == (add, end)
    assert versions.transaction_version2 is version2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("java 2.4", "java 2.4.1"),
        ("2.0", "java 2.0.1"),
        ("current", f"java {RELEASES[-1]}"),
        ("java 2.4.1", "java 2.4.1"),
    ],
)
def test_a_client_is_found_by_its_line_and_without_the_word_java(text, name):
    assert client_for(text).name == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jav 2.4.1", "did you mean java?"),
        ("sarama 1.40.0", "clients are java, librdkafka, franz-go"),
        ("java 9.9.9", "the nearest are java 4.3.1, java 4.4.0"),
        ("librdkafka 0.9.0", "a release of librdkafka from 1.0.0 on"),
        ("librdkafka new", "a release of librdkafka from 1.0.0 on"),
        ("", "the nearest are"),
    ],
)
def test_an_unknown_client_is_named_with_the_nearest(text, expected):
    with pytest.raises(UnknownClientError, match=expected.replace("?", r"\?")):
        client_for(text)


def test_every_change_is_of_a_known_release_changes_something_and_names_its_source():
    for name, row in rows_of(ClientSwitches).items():
        before = row.default
        for change in row.changes:
            assert all(version in RELEASES for version in change.since), name
            assert change.value != before, name
            assert change.source, name
            before = change.value


def test_other_clients_change_switches_that_exist_from_their_first_release_on():
    rows = rows_of(ClientSwitches)
    for library, client in OTHER_CLIENTS.items():
        assert Version.parse(client.like) in RELEASES, library
        for name, changes in client.changes.items():
            assert name in rows, name
            assert changes[0].releases == client.first, name


def test_every_recovery_in_the_table_can_be_played():
    named = {client_for(name).recovery for name in ("java 2.4.1", "java 2.5.0", "librdkafka 1.0.0", "franz-go 1.0.0")}
    assert named == set(RECOVERIES)
