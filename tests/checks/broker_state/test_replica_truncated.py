"""Replicas that cut off the end of their logs, by lines of brokers' logs."""

import pytest

from kaudit.checks.broker_state.logged_losses import replica_truncated
from kaudit.formats.application_log.patterns import read_patterns
from kaudit.model.impact import Act
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import line, reported

FETCHER = "kafka.server.ReplicaFetcherThread"


def fetcher(text: str, second: float = 0, level: str = "WARN") -> str:
    return line(f"[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] {text}", second, level, FETCHER)


@pytest.mark.parametrize(
    ("text", "severity", "says"),
    [
        (
            "Truncating t-0 to offset 41 below high watermark 42",
            Severity.ERROR,
            "a replica of t-0 cut its log off below its high",
        ),
        (
            "Truncate fully and reset fetch offset for partition t-0 from 7 to the current leader's start offset 90",
            Severity.WARNING,
            "a replica of t-0 gave up its log",
        ),
        ("Partition t-0 marked as failed", Severity.WARNING, "a replica of t-0 stopped replicating"),
    ],
)
def test_what_is_cut_off(tmp_path, text, severity, says):
    (found,) = reported(replica_truncated, tmp_path, server=[fetcher(text)])
    assert (found.severity, found.topic, found.partition) == (severity, "t", 0)
    assert found.message.startswith(says)
    assert "every replica" in (found.evidence.to_be_certain or "")


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
EXAMPLES = {
    pattern.id: (origin, pattern.example)
    for program, origin in (("server", "server"), *((name, "client") for name in ("java", "franz-go", "librdkafka")))
    for pattern in read_patterns(program)
}


LOSSES = [
    ("truncation-not-allowed", E, "orders-0 has records that its leader does not have, and its broker stopped"),
    ("fetched-damaged-records", E, "orders-0 gets damaged records from its leader"),
    ("fetched-not-appended", W, "orders-0 no longer follows its leader"),
    ("fetched-not-appended-storage", W, "orders-0 no longer follows its leader"),
    ("fetched-not-appended-old", W, "orders-0 no longer follows its leader"),
    ("fetch-offset-mismatch", W, "orders-0 no longer follows its leader"),
    ("truncation-failed", W, "orders-0 no longer follows its leader"),
    ("truncation-failed-unexpectedly", W, "orders-0 no longer follows its leader"),
    ("segments-deleted-below-start", E, "orders-0 lost all its segments"),
    ("segments-deleted-in-recovery", W, "orders-0 lost whole segments"),
    ("logs-not-loaded", E, " could not be loaded, and its broker does not start"),
    ("duplicate-log-directories", E, "orders-3 could not be loaded, and its broker does not start"),
    ("log-marked-stray", W, "orders-1 was set aside as stray"),
    ("quorum-truncated-committed", E, " was to cut off committed records of the metadata"),
    ("metadata-truncated-committed", E, " was to cut off committed records of the metadata"),
    ("consumer-truncation", E, "orders-0 was cut off below what a consumer had read"),
    ("consumer-truncation-diverged", E, "orders-0 was cut off below what a consumer had read"),
    ("consumer-truncation-thrown", E, "orders-0 was cut off below what a consumer had read"),
    ("consumer-data-loss", E, "orders-0 was cut off below what a consumer had read"),
    ("consumer-log-truncation", E, "orders-0 was cut off below what a consumer had read"),
    ("consumer-log-truncation-unknown", E, "orders-0 was cut off below what a consumer had read"),
    ("quorum-truncated", N, "replicas cut their logs off"),
    ("fetch-offset-out-of-range", N, "replicas of orders-0 cut their logs off"),
    ("truncated-epoch-below-all", N, "replicas of orders-0 cut their logs off"),
]


@pytest.mark.parametrize(("pattern", "severity", "says"), LOSSES, ids=[one[0] for one in LOSSES])
def test_lines_that_tell_of_a_loss(tmp_path, pattern, severity, says):
    origin, example = EXAMPLES[pattern]
    head = [] if example.startswith("[") else [fetcher("Error", level="ERROR")]
    (found,) = reported(replica_truncated, tmp_path, **{origin: [*head, example]})
    assert found.severity is severity
    assert says in found.message


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        ("fetched-not-appended", "markPartitionFailed"),
        ("truncation-failed", "markPartitionFailed"),
        ("log-marked-stray", "-stray"),
        ("segments-deleted-in-recovery", "LogLoader.recoverLog"),
        ("consumer-record-invalid", "check.crcs"),
        ("consumer-data-loss", "KIP-320"),
        ("quorum-truncated-committed", "KIP-595"),
        ("fetch-offset-out-of-range", "KIP-101"),
    ],
)
def test_each_kind_of_line_has_its_own_rule(tmp_path, pattern, rule):
    origin, example = EXAMPLES[pattern]
    head = [] if example.startswith("[") else [fetcher("Error", level="ERROR")]
    (found,) = reported(replica_truncated, tmp_path, **{origin: [*head, example]})
    shown = found.evidence.rule or ""
    assert rule in shown
    assert ("KIP-101" in shown) is (rule == "KIP-101")


def test_what_every_follower_does_is_one_note_for_a_broker(tmp_path):
    lines = [
        line(
            f"[UnifiedLog partition=t-{number}, dir=/data] Truncating to offset 9",
            number,
            logger="kafka.log.UnifiedLog",
        )
        for number in range(9)
    ]
    (found,) = reported(replica_truncated, tmp_path, server=lines)
    assert (found.severity, found.topic) == (Severity.NOTE, None)
    assert found.message.startswith("replicas cut their logs off where they differed from their leaders'; 9 lines")


def test_a_truncation_without_effect_is_silent(tmp_path):
    text = "[UnifiedLog partition=t-0, dir=/data] Truncating to 9 has no effect as the largest offset in the log is 8"
    assert not reported(replica_truncated, tmp_path, server=[line(text, logger="kafka.log.UnifiedLog")])


def failed(directory: str, partitions: str, second: float) -> list[str]:
    """What a broker of 2.7 logs when a directory of its fails (KIP-112): ReplicaManager and LogManager, handleLogDirFailure."""
    manager = "[ReplicaManager broker=1]"
    gone = f"because they are in the failed log directory {directory}."
    checkpoint = f"{directory}/replication-offset-checkpoint"
    return [
        line(
            f"Error while writing to checkpoint file {checkpoint}", second, "ERROR", "kafka.server.LogDirFailureChannel"
        ),
        "java.io.FileNotFoundException: " + checkpoint + ".tmp (No space left on device)",
        line(f"{manager} Stopping serving replicas in dir {directory}", second, "WARN"),
        line(
            f"{manager} Broker 1 stopped fetcher for partitions {partitions} and stopped moving logs for partitions  {gone}",
            second,
            "WARN",
        ),
        line(f"Stopping serving logs in dir {directory}", second + 0.1, "WARN", "kafka.log.LogManager"),
    ]


def stopped(directories: str, second: float) -> str:
    return line(
        f"Shutdown broker because all log dirs in {directories} have failed", second, "ERROR", "kafka.log.LogManager"
    )


def test_a_log_directory_that_failed(tmp_path):
    lines = [*failed("/data/d1", "a-0,b-1,c-2,d-3", 60), stopped("/data/d1", 61)]
    (found,) = reported(replica_truncated, tmp_path, server=lines)
    assert (found.severity, found.topic) == (Severity.ERROR, None)
    assert found.message == (
        "log directory /data/d1 of broker 1 failed: a-0, b-1, c-2 and 1 more went offline there, and the broker stopped: it has no "
        "other; 5 lines, 2026-08-18 10:01:00.000 to 2026-08-18 10:01:01.000"
    )
    (caution,) = found.impact.cautions
    assert (caution.act, caution.target) == (Act.RESTART, "log directory /data/d1")


def test_a_log_directory_without_partitions_whose_lines_lost_a_space(tmp_path):
    """confluentinc/kafka-images#132, as its report has the lines."""
    lines = [each.replace("partitions  and", "partitions and") for each in failed("/data/d1", "", 60)]
    (found,) = reported(replica_truncated, tmp_path, server=lines)
    assert found.message.startswith("log directory /data/d1 of broker 1 failed; 4 lines")


def test_each_directory_is_one_finding_and_the_broker_may_go_on_or_start_again(tmp_path):
    lines = [*failed("/data/d1", "a-0", 0), *failed("/data/d2", "", 90)]
    first, second = reported(replica_truncated, tmp_path, server=lines)
    assert first.message.startswith("log directory /data/d1 of broker 1 failed: a-0 went offline there; 4 lines")
    assert second.message.startswith("log directory /data/d2 of broker 1 failed; 4 lines")
    started = line("[KafkaServer id=1] started", 60, logger="kafka.server.KafkaServer")
    lines = [*lines[:5], started, *lines[5:]]
    severities = {
        found.message.partition(" of broker")[0]: (found.severity, len(found.impact.cautions))
        for found in reported(replica_truncated, tmp_path, server=lines)
    }
    assert severities == {
        "log directory /data/d1": (Severity.WARNING, 0),
        "log directory /data/d2": (Severity.ERROR, 1),
    }


def test_a_line_about_a_failed_directory_that_breaks_off(tmp_path):
    text = line("Shutdown broker because all log dirs in have failed", 0, "ERROR", "kafka.log.LogManager")
    assert not reported(replica_truncated, tmp_path, server=[text])
    (found,) = reported(replica_truncated, tmp_path, server=[line("Stopping serving logs in dir  ", 0, "WARN")])
    assert found.message.startswith("log directory of an unknown path of a broker failed; 1 line")
