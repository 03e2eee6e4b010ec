"""What server logs say of their broker: its release and configuration, and when it ran."""

import pytest
from msgspec.structs import replace

from kaudit.model.application_logs import LogEventKind
from kaudit.replay.reconstruction.broker_logs import BrokerSettings, broker_logs, kept
from tests.audits.log_events.made import event


def settings(text):
    read = BrokerSettings()
    read.read(line.encode() for line in text.splitlines())
    return read


def test_the_release_is_the_last_that_started():
    read = settings(
        "INFO Kafka version : 0.11.0.3 (x)\nINFO Kafka version: 2.8.2 (org.apache.kafka.common.utils.AppInfoParser)"
    )
    assert read.version == "2.8.2"


def test_the_configuration_is_what_decides_about_answers_as_the_broker_printed_it_last():
    read = settings(
        "[2026-11-22 17:51:51,213] INFO KafkaConfig values: \n"
        "\tadvertised.host.name = null\n"
        "\tlog.cleanup.policy = [delete]\n"
        "\tprocess.roles = []\n"
        "\ttransactional.id.expiration.ms = 4000\n"
        "\tzookeeper.clientCnxnSocket = null\n"
        "\tzookeeper.connect = 127.0.0.1:2181\n"
        " (kafka.server.KafkaConfig)\n"
        "\ttransactional.id.expiration.ms = 1\n"
        "[2026-11-22 17:51:52,213] INFO KafkaConfig values: \n"
        "\ttransactional.id.expiration.ms = 9000\n"
    )
    assert read.config == {
        "log.cleanup.policy": "delete",
        "transactional.id.expiration.ms": "9000",
        "zookeeper.connect": "127.0.0.1:2181",
    }


@pytest.mark.parametrize(
    "line",
    [
        "INFO Created log for partition [orders,0] in /d with properties {max.message.bytes -> 300, cleanup.policy -> [compact]}.",
        "INFO Created log for partition orders-0 in /d/orders-0 with properties {cleanup.policy=compact, max.message.bytes=300}",
        'INFO Created log for partition orders-0 in /d/orders-0 with properties {cleanup.policy="compact", max.message.bytes=300}',
    ],
)
def test_topics_are_configured_as_their_logs_were_created(line):
    assert settings(line).topics == {"orders": {"cleanup.policy": "compact", "max.message.bytes": "300"}}


@pytest.mark.parametrize("policy", ["[compact, delete]", '"compact,delete"'])
def test_a_topic_may_have_two_policies(policy):
    line = f"INFO Created log for partition orders-0 in /d/orders-0 with properties {{cleanup.policy={policy}, max.message.bytes=300}}"
    assert settings(line).topics == {"orders": {"cleanup.policy": "compact,delete", "max.message.bytes": "300"}}


def process(*steps):
    """Events of one broker: `starting`, `started`, `stopped`, or a refusal."""
    kinds = {"starting": LogEventKind.STARTED, "started": LogEventKind.STARTED, "stopped": LogEventKind.STOPPED}
    made = []
    for line, step in enumerate(steps, 1):
        kind = kinds.get(step, LogEventKind.OUT_OF_ORDER_SEQUENCE)
        made.append(event(kind, line=line, timestamp_ms=1_000 * line))
    patterns = [f"{step}-zk" for step in steps]
    return [replace(one, pattern=pattern) for one, pattern in zip(made, patterns, strict=True)]


@pytest.mark.parametrize(
    ("steps", "lives"),
    [
        # a clean stop, then kill -9
        (("starting", "started", "refused", "stopped", "starting", "started", "refused", "starting", "started"),
         [(1, 2, 4, 4), (5, 6, None, 7), (8, 9, None, 9)]),
        # a log that begins in the middle of a life
        (("refused", "stopped", "starting", "started"), [(None, None, 2, 2), (3, 4, None, 4)]),
        (("refused", "starting", "started"), [(None, None, None, 1), (2, 3, None, 3)]),
        # releases, or levels, that write one of both lines
        (("started", "refused", "started"), [(1, 1, None, 2), (3, 3, None, 3)]),
        # it ended while it loaded its logs
        (("starting", "starting", "started"), [(1, None, None, 1), (2, 3, None, 3)]),
        ((), []),
    ],
)  # fmt: skip
def test_the_lives_of_a_broker(steps, lives):
    logs = broker_logs(process(*steps))
    runs = logs[0].runs if logs else []
    found = [
        tuple(None if one is None else one.line for one in (run.started, run.up, run.stopped, run.last)) for run in runs
    ]
    assert found == lives


def test_a_start_ends_the_life_before():
    (log,) = broker_logs(process("starting", "started", "refused", "starting", "started"))
    first, second = log.runs
    assert second.started is not None
    assert log.restart(second.started) == (first, second)
    assert first.started is not None
    assert log.restart(first.started) is None
    assert log.ended_before(3_500) is first
    assert log.ended_before(2_500) is None
    assert log.ended_before(9_000) is None  # still running, as far as the log shows


def test_only_what_attempts_follow_from_is_kept_without_its_text():
    refused, shrunk = event(), event(LogEventKind.ISR_SHRUNK)
    (one,) = kept([replace(refused, text="ERROR ..."), shrunk])
    assert one == refused
