"""Pasted lines: whose they are, what they say, and the errors that they name."""

import pytest

from kaudit.explanations.catalogue import meanings
from kaudit.explanations.lines import LONGEST, read_pasted
from kaudit.formats.application_log.patterns import PROGRAMS, read_patterns
from kaudit.model.application_logs import LogEventKind

BROKER = (
    "[2026-01-05 10:00:00,123] ERROR [ReplicaManager broker=2] Error processing append operation on partition orders-3 "
    "(kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 4001 at offset 812 "
    "in partition orders-3: 25 (incoming seq. number), 19 (current end sequence number)\n"
)


def test_a_refusal_says_what_is_missing():
    pasted = read_pasted(BROKER.encode())
    [event] = pasted.events
    assert (event.event, event.origin, event.producer_id, event.topic, event.partition) == (
        LogEventKind.OUT_OF_ORDER_SEQUENCE, "server", 4001, "orders", 3,
    )  # fmt: skip
    [finding] = pasted.findings
    assert (finding.code, finding.topic, finding.partition, finding.producer_id) == ("KA810", "orders", 3, 4001)
    said = finding.evidence.to_dict()
    assert (said["expected_sequence"], said["refused_sequence"]) == (20, 25)
    assert (said["first_missing_sequence"], said["last_missing_sequence"]) == (20, 24)
    assert pasted.others == []


def test_lines_about_one_producer_are_one_incident():
    later = BROKER.replace("10:00:00", "10:00:09")
    [finding] = read_pasted((BROKER + later).encode()).findings
    assert "2 lines" in finding.message


def test_commands_name_no_file_that_is_not_there():
    [finding] = read_pasted(BROKER.encode()).findings
    assert all(" - " not in command and "./-" not in command for command in finding.next)
    assert "kaudit scan orders-3" in finding.next


def test_events_that_cost_nothing_are_told_by_themselves():
    line = b"[2026-01-05 10:00:00,123] INFO [TransactionCoordinator id=1] Initialized transactionalId t-1 with producerId 4 and producer epoch 7 on partition __transaction_state-3 (kafka.coordinator.transaction.TransactionCoordinator)\n"
    pasted = read_pasted(line)
    assert pasted.findings == []
    assert len(pasted.others) == len(pasted.events) == 1


def examples():
    return [(program, pattern) for programs in PROGRAMS.values() for program in programs for pattern in read_patterns(program)]  # fmt: skip


def test_the_example_of_every_message_is_an_event_and_its_words_decide_whose_it_is():
    wrong = []
    for program, pattern in examples():
        events = read_pasted(pattern.example.encode()).events
        assert events, pattern.id
        assert all(str(event.event) in meanings() for event in events), pattern.id
        if events[0].pattern != pattern.id and (events[0].origin == "server") != (program == "server"):
            wrong.append((program, pattern.id))
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("my job died with org.acme.Wrapper: org.apache.kafka.common.errors.InvalidTxnStateException: whatever", ["INVALID_TXN_STATE"]),
        ("%3|1|FAIL| whatever KafkaError{code=_MSG_TIMED_OUT,val=-192}", ["_MSG_TIMED_OUT"]),
        ("produce failed, error code: 47", ["INVALID_PRODUCER_EPOCH"]),
        ("Service call failed. error=KafkaError (Message production error: Fatal (Local: Fatal error)) id=5", ["_FATAL"]),
        ("flush: Local: Purged in queue", ["_PURGE_QUEUE"]),
        ('{"msg":"x","err":"kerr.InvalidProducerEpoch","errorCode":47}', ["INVALID_PRODUCER_EPOCH"]),
        ("ErrOutOfOrderSequenceNumber and ErrDuplicateSequenceNumber", ["OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER"]),
        ("nothing of Kafka in here at all, but 45 words", []),
        ("java.lang.NullPointerException: x", []),
    ],
)  # fmt: skip
def test_errors_are_found_in_lines_of_any_program(line, names):
    pasted = read_pasted(line.encode())
    assert [*(event.error for event in pasted.events), *(error.name for error in pasted.errors)] == names


def test_every_class_of_events_has_a_meaning():
    assert set(meanings()) == {str(kind) for kind in LogEventKind}
    assert all(text[0].islower() and not text.endswith(".") for text in meanings().values())


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\x00\xff\x1b[31m", b"x" * 3_000_000, b"Exception " * 200_000])
def test_hostile_texts_are_read_as_far_as_they_may_be(data):
    pasted = read_pasted(data)
    assert (pasted.events, pasted.errors) == ([], [])
    assert pasted.cut == (len(data) > LONGEST)
