"""Batches that logs say were refused: what is missing, who and where, and whether the logs show that it was mended."""

import re
from pathlib import Path

import pytest

from kaudit.audits.log_events.incidents import CONSEQUENCES
from kaudit.checks.broker_state.log_meanings import MEANINGS
from kaudit.checks.broker_state.logged_refusals import batches_refused
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.checks.broker_state.lines import (
    all_findings,
    append_error,
    initialized,
    line,
    out_of_order,
    reported,
    sender,
)
from tests.logs import Log, data
from tests.unpacked import extracted


def test_the_line_of_a_public_report_says_what_is_missing(tmp_path):
    # aio-libs/aiokafka#1017
    (found,) = reported(batches_refused, tmp_path, server=[out_of_order(158, 155)])
    assert found.severity is Severity.ERROR
    assert found.message == (
        "the broker refused batches of producer 29003 in merchants-0 as out of order: sequence 158 came where 156 was due, "
        "156..157 are missing; 1 line, 2026-08-18 10:00:00.000"
    )
    assert (found.topic, found.partition, found.producer_id, found.offset) == ("merchants", 0, 29003, 1641969)
    evidence = found.evidence.to_dict()
    assert [evidence[name] for name in ("first_missing_sequence", "last_missing_sequence", "lines")] == [156, 157, 1]
    assert (found.evidence.to_be_certain or "").startswith("copy the directory merchants-0 of broker 2")
    assert list(found.next) == [
        f"kaudit scan --server-log {tmp_path}/server.log merchants-0",
        "kaudit explain OUT_OF_ORDER_SEQUENCE_NUMBER",
    ]
    assert "Out of order sequence number" in str(found.evidence.log_events[0].text)


@pytest.mark.parametrize(
    ("base", "last", "text"),
    [
        (51, 49, "sequence 51 came where 50 was due, 50 is missing"),  # IBM/sarama#2915
        (0, 29, "sequence 0 came where 30 was due;"),  # AutoMQ/automq#509
        (12, 29, "sequence 12 came where 30 was due;"),
        (1, 2**31 - 1, "sequence 1 came where 0 was due, 0 is missing"),
        (0, 2**31 - 3, "sequence 0 came where 2147483646 was due, 2147483646..2147483647 are missing"),
    ],
)
def test_sequences_go_round_and_may_come_too_late(tmp_path, base, last, text):
    (found,) = reported(batches_refused, tmp_path, server=[out_of_order(base, last)])
    assert text in found.message


def test_a_new_epoch_begins_at_sequence_0(tmp_path):
    refused = append_error(
        "t-0",
        "OutOfOrderSequenceException: Invalid sequence number for new epoch of producer 7 at offset 9 in partition t-0: 3 "
        "(request epoch), 5 (seq. number), 2 (current producer epoch)",
    )
    (found,) = reported(batches_refused, tmp_path, server=[refused])
    assert "sequence 5 came where 0 was due, 0..4 are missing" in found.message


def test_lines_about_one_producer_are_one_finding_with_their_span(tmp_path):
    lines = [out_of_order(158, 155, second) for second in (0, 10, 75)]
    (found,) = reported(batches_refused, tmp_path, server=lines)
    assert found.message.endswith("; 3 lines, 2026-08-18 10:00:00.000 to 2026-08-18 10:01:15.000")
    assert found.evidence.log_events_count == 3
    assert [event.line for event in found.evidence.log_events] == [1, 5]


def test_lines_about_one_producer_are_one_incident(tmp_path):
    lines = [
        out_of_order(158, 155, partition="a-0"),
        out_of_order(9, 5, partition="b-1"),
        out_of_order(9, 5, producer_id=8),
        initialized("app", 29003, 0, 5),
        line(
            "[TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId app due to timeout",
            9,
            logger="kafka.coordinator.transaction.TransactionCoordinator",
        ),
    ]
    found = all_findings(tmp_path, server=lines[:3] + lines[4:])
    assert sorted((one.code, one.incident is None) for one in found) == [
        ("KA810", False),
        ("KA810", False),
        ("KA810", True),
        ("KA813", True),
    ]
    joined = all_findings(tmp_path, server=lines)
    assert len({one.incident for one in joined if one.producer_id == 29003}) == 1
    assert [one.code for one in joined if one.incident is None] == ["KA810"]


def test_a_later_line_shows_that_a_batch_arrived(tmp_path):
    # the broker has reached 170 by then, so it has 158
    found = reported(batches_refused, tmp_path, server=[out_of_order(158, 155), out_of_order(180, 170, 1)])
    assert [(one.severity, one.evidence.to_dict()["outcome"]) for one in found] == [(Severity.ERROR, "unknown")]
    client = [
        sender(
            "The broker returned org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker received an out of "
            "order sequence number. for topic-partition t-0 with producerId 6, epoch 0, and sequence number 3",
            0,
            "ERROR",
        ),
        sender("Incremented producer epoch, current producer ID and epoch are now (producerId=6, epoch=1)", 1, "INFO"),
    ]
    (mended,) = reported(batches_refused, tmp_path, client=client)
    assert (mended.severity, mended.evidence.to_dict()["outcome"]) == (Severity.NOTE, "superseded")
    assert [cause.innocent for cause in mended.explanations if cause.cause.startswith("the log shows")] == [True]


def test_what_a_client_gives_up_afterwards_is_not_mended(tmp_path):
    client = [
        sender(
            "The broker returned org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker received an out of "
            "order sequence number. for topic-partition t-0 with producerId 6, epoch 0, and sequence number 3",
            0,
            "ERROR",
        ),
        sender("Incremented producer epoch, current producer ID and epoch are now (producerId=6, epoch=1)", 1, "INFO"),
        sender("Expiring 3 record(s) for t-0:120005 ms has passed since batch creation", 2, "ERROR"),
    ]
    (found,) = reported(batches_refused, tmp_path, client=client)
    assert found.severity is Severity.ERROR


def test_too_few_replicas_are_mended_when_they_are_back(tmp_path):
    # confluentinc/librdkafka#3444
    refused = append_error(
        "t2-1",
        "NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy the min.isr requirement of 2 "
        "for partition t2-1",
    )
    back = line("[Partition t2-1 broker=0] Expanding ISR from 0 to 0,1", 5, logger="kafka.cluster.Partition")
    (alone,) = reported(batches_refused, tmp_path, server=[refused])
    assert (alone.severity, alone.evidence.kind) == (Severity.ERROR, "NOT_ENOUGH_REPLICAS")
    assert alone.message.startswith("the broker refused batches in t2-1 for want of replicas in sync")
    (mended,) = reported(batches_refused, tmp_path, server=[refused, back])
    assert mended.severity is Severity.NOTE


def test_ordinary_retries_are_silent(tmp_path):
    client = [
        sender(
            "Got error produce response with correlation id 5 on topic-partition t-0, retrying (2 attempts left). Error: "
            "NOT_LEADER_OR_FOLLOWER"
        ),
        sender(
            "Got error produce response with correlation id 6 on topic-partition t-0, retrying (2 attempts left). Error: "
            "REQUEST_TIMED_OUT"
        ),
    ]
    server = [append_error("t-0", "NotLeaderOrFollowerException: Leader not local for partition t-0 on broker 2")]
    assert not [one for one in all_findings(tmp_path, server=server, client=client) if one.code >= "KA810"]


@pytest.mark.parametrize(("landed", "severity"), [(True, None), (False, Severity.ERROR)])
def test_the_log_of_the_partition_decides_where_it_is_there(tmp_path, landed, severity):
    log = Log()
    for sequence in range(8 if landed else 3):
        log.append(data(7, 0, sequence))
    refused = out_of_order(6, 2, producer_id=7, partition="orders-0")
    found = reported(batches_refused, tmp_path, server=[refused], log=log)
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    for one in found:
        assert "they are not in the partition's log" in one.message
        assert one.next[0] == (
            f"kaudit timeline {tmp_path}/orders-0 --topic orders --partition 0 --producer-id 7 --server-log {tmp_path}/server.log"
        )


def test_a_finding_from_the_bytes_wins_with_the_lines_as_its_evidence(tmp_path):
    log = Log()
    log.append(data(7, 0, 0))
    log.append(data(7, 0, 4))
    refused = out_of_order(9, 4, producer_id=7, partition="orders-0")
    found = [one for one in all_findings(tmp_path, server=[refused], log=log) if one.producer_id == 7]
    assert [(one.code, one.evidence.log_events_count) for one in found] == [("KA104", 1)]


def test_every_error_that_is_reported_has_a_meaning():
    assert set(MEANINGS) == set(CONSEQUENCES)


@pytest.mark.parametrize(("epochs", "severity"), [(2, Severity.NOTE), (3, Severity.WARNING)])
def test_a_producer_that_raises_its_epoch_again_and_again_does_not_recover(tmp_path, epochs, severity):
    # recorded during an interrupted upgrade: 59 epochs in 160 s, and 5,227 of 9,000 records are nowhere
    server = [
        append_error(
            "up-0",
            f"OutOfOrderSequenceException: Invalid sequence number for new epoch of producer 4000 at offset 1533 in partition up-0: "
            f"{epoch} (request epoch), 42 (seq. number), {epoch - 1} (current producer epoch)",
            epoch,
        )
        for epoch in range(1, epochs + 1)
    ]
    client = [
        sender(
            "Incremented producer epoch, current producer ID and epoch are now (producerId=4000, epoch=9)", 50, "INFO"
        )
    ]
    (found,) = reported(batches_refused, tmp_path, server=server, client=client)
    assert found.severity is severity
    assert "; it went on under a new epoch or id; " in found.message


def answered(error: str, second: float, partition: str = "t-0") -> str:
    return sender(
        f"Got error produce response with correlation id 4 on topic-partition {partition}, retrying (9 attempts left). Error: {error}",
        second,
    )


NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
FATAL = (
    "%0|1659595801.132|FATAL|rdkafka#producer-1| [thrd:b:9092/bootst]: Fatal error: Broker: Broker received an out of order sequence "
    "number: ProduceRequest for t [0] with 9 message(s) failed due to sequence desynchronization with broker 2 (PID{Id:155002,Epoch:0}, "
    "base seq 110234700, idemp state change 52807639ms ago, last partition error NOT_LEADER_FOR_PARTITION (actions Refresh)"
)


@pytest.mark.parametrize(
    ("before", "refused", "line"),
    [
        ([answered(NOT_LEADER, 0)], answered("OUT_OF_ORDER_SEQUENCE_NUMBER", 0.13), 1),  # AutoMQ/automq#584
        ([answered(NOT_LEADER, 0, "t-1")], answered("OUT_OF_ORDER_SEQUENCE_NUMBER", 0.13), None),
        ([answered(NOT_LEADER, 0)], answered("OUT_OF_ORDER_SEQUENCE_NUMBER", 121), None),
        ([answered("REQUEST_TIMED_OUT", 0)], answered("OUT_OF_ORDER_SEQUENCE_NUMBER", 0.13), None),
        ([], FATAL, 1),  # confluentinc/confluent-kafka-go#830
    ],
    ids=["before", "elsewhere", "long-before", "other-error", "librdkafka"],
)
def test_a_broker_that_was_not_the_leader_just_before_is_the_likeliest_cause(tmp_path, before, refused, line):
    (found,) = reported(batches_refused, tmp_path, client=[*before, refused])
    first = found.explanations[0]
    assert (first.cause.startswith("a batch before had come to a broker that was not yet")) == (line is not None)
    assert list(first.speaks_for) == ([] if line is None else [f"client.log:{line}"])


FAILED = "[ReplicaManager broker=2] Error processing append operation on partition orders-1"


def test_a_refusal_whose_reason_is_not_among_the_lines(tmp_path):
    lines = [line(FAILED, second, "ERROR") for second in (0, 3)]
    (found,) = reported(batches_refused, tmp_path, server=[*lines, line("[ReplicaManager broker=2] Stopped", 4)])
    assert (found.severity, found.topic, found.partition, found.producer_id) == (Severity.ERROR, "orders", 1, None)
    assert found.message == (
        "the broker refused batches in orders-1, and no line says why; 2 lines, 2026-08-18 10:00:00.000 to 2026-08-18 10:00:03.000"
    )
    certain = str(found.evidence.to_dict()["to_be_certain"])
    assert certain.startswith(
        f"get the lines after line 1 of {tmp_path}/server.log: they say why; and copy the directory"
    )
    assert list(found.next) == [f"kaudit scan --server-log {tmp_path}/server.log orders-1"]


def test_an_exception_that_is_none_of_the_protocol_is_named(tmp_path):
    lines = [
        line(FAILED, 0, "ERROR"),
        "java.lang.IndexOutOfBoundsException",
        "\tat java.base/java.nio.Buffer.get(Buffer.java:5)",
    ]
    (found,) = reported(batches_refused, tmp_path, server=lines)
    assert found.message.startswith("the broker refused batches in orders-1 with IndexOutOfBoundsException; 1 line")


def test_a_reason_that_a_collector_made_an_entry_of_is_the_refusal(tmp_path):
    """journald and Fluent Bit may keep each line of an exception apart, under a time of its own."""
    lines = out_of_order(158, 155, partition="orders-1").splitlines()
    split = [f"2026-08-18T10:00:00.{number:03}Z {text}" for number, text in enumerate(lines)]
    split[1] = f"2026-08-18T10:00:00.001Z [2026-08-18 10:00:00,001] ERROR {lines[1]}"
    (found,) = reported(batches_refused, tmp_path, server=split)
    assert (found.producer_id, found.evidence.kind) == (29003, "OUT_OF_ORDER_SEQUENCE_NUMBER")


RECORDED = Path(__file__).parents[2] / "data" / "server-logs" / "min-isr-4.1.1.tar.xz"


@pytest.mark.parametrize(
    ("given", "outcomes"), [("lines", ["mended"]), ("refusals", ["unknown"]), ("directory", ["mended"])]
)
def test_a_coordinator_that_wrote_again_was_refused_for_a_while(tmp_path, given, outcomes):
    """Two brokers, min.insync.replicas 2: one was stopped and started, and each second a transactional id was initialised."""
    extracted(RECORDED, tmp_path)
    log = tmp_path / "server.log"
    if given != "lines":
        # without the lines that show it, and with a time in UTC before each, as kubectl gives: only the directory does
        lines = log.read_text().splitlines(keepends=True)
        refused = max(at for at, text in enumerate(lines) if "append operation" in text)
        heads = [re.match(r"\[(\S+) (\S+),(\d+)\]", text) for text in lines[: refused + 1]]
        times = ["T".join(head.group(1, 2)) + f".{head[3]}Z " for head in heads if head is not None]
        log.write_text("".join(times[0] + text for text in lines[: refused + 2]))
    partitions = [str(tmp_path / "__transaction_state-0")] if given == "directory" else []
    found = scan(ScanOptions(partitions, server_logs=[str(log)]), SilentProgress()).findings
    own = [one for one in found if one.code == "KA810"]
    assert [one.evidence.to_dict()["outcome"] for one in own] == outcomes
    assert {one.severity for one in own} == {Severity.NOTE if outcomes == ["mended"] else Severity.ERROR}
    assert {(one.topic, one.partition) for one in own} == {("__transaction_state", 0)}
