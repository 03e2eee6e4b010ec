"""What real clients wrote when a broker refused something: `python -m tests.client_logs.record` made the recordings.

What a client's log says is told by words that are looked for here, case by case, independently of kaudit's tables.
"""

import re
from pathlib import Path

import pytest

from kaudit.model.application_logs import LogEventKind
from tests.client_logs.recordings import Section, recordings, sections

_EPOCH = r"old epoch|Invalid_?ProducerEpoch|INVALID_PRODUCER_EPOCH"
_FENCED = r"[Ff]enced|newer producer|PRODUCER_FENCED"
WORDS = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": r"(?i)out.?of.?order",
    "DUPLICATE_SEQUENCE_NUMBER": r"(?i)duplicate.?sequence",
    "UNKNOWN_PRODUCER_ID": r"UnknownProducerId|UNKNOWN_PRODUCER_ID|producer metadata",
    "INVALID_PRODUCER_EPOCH": rf"{_EPOCH}|{_FENCED}",
    "INVALID_RECORD": r"InvalidRecord|INVALID_RECORD|validat",
    "MESSAGE_TOO_LARGE": r"TooLarge|TOO_LARGE|too large|larger than",
    "NOT_ENOUGH_REPLICAS": r"NotEnoughReplicas|NOT_ENOUGH|fewer in-sync|insufficient",
    "NOT_LEADER_OR_FOLLOWER": r"NotLeader|NOT_LEADER|not the leader",
    "REQUEST_TIMED_OUT": r"(?i)timed.?out|timeout|NETWORK_EXCEPTION",
    "TRANSACTION_ABORTABLE": r"Abortable|ABORTABLE|code[ =:]+120|120\?|error with the transaction",
    "INVALID_PRODUCER_ID_MAPPING": r"Invalid(?:Pid|ProducerId)Mapping|not currently assigned|ID_MAPPING",
    "INVALID_TXN_STATE": r"InvalidTxnState|INVALID_TXN_STATE|in an invalid state",
    "PRODUCER_FENCED": rf"{_FENCED}|code 90|Error code = 90",
}
"""How any client says what the broker answered."""
SAME = {
    "INVALID_PRODUCER_EPOCH": {"PRODUCER_FENCED"},
    "REQUEST_TIMED_OUT": {"_MSG_TIMED_OUT", "NETWORK_EXCEPTION"},
    "TRANSACTION_ABORTABLE": {"UNKNOWN_SERVER_ERROR"},  # of clients older than the error
}
"""What a client says of an answer in other words: a transactional producer with an old epoch is fenced."""
REFUSALS = {
    LogEventKind.OUT_OF_ORDER_SEQUENCE: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    LogEventKind.DUPLICATE_SEQUENCE: "DUPLICATE_SEQUENCE_NUMBER",
    LogEventKind.UNKNOWN_PRODUCER_ID: "UNKNOWN_PRODUCER_ID",
    LogEventKind.INVALID_PRODUCER_EPOCH: "INVALID_PRODUCER_EPOCH",
    LogEventKind.FENCED_PRODUCER: "PRODUCER_FENCED",
    LogEventKind.INVALID_TXN_STATE: "INVALID_TXN_STATE",
    LogEventKind.INVALID_PRODUCER_ID_MAPPING: "INVALID_PRODUCER_ID_MAPPING",
    LogEventKind.RECORD_REJECTED: "INVALID_RECORD",
}
WITHOUT_DATES = {"default", "kgo", "zerolog-console", "slf4j-simple", "logback-default", "basic", "stderr", "node"}
"""Layouts that leave out the day, or the time altogether, of some of their lines."""
_LATER = r"Future exception was never retrieved"
"""asyncio tells of an error of the case before when its future is collected."""


def check(section: Section) -> None:
    """What the client says is an event."""
    events, counts = section.events()
    told = {event.error for event in events if event.error}
    error = section.case.error
    accepted = {error} | SAME.get(error, set())
    said = re.search(WORDS[error], section.text) is not None
    assert bool(told & accepted) if said else error not in told, (section.name, told)
    if not re.search(_LATER, section.text):
        refusals = {REFUSALS[event.event] for event in events if event.event in REFUSALS}
        assert refusals <= accepted
        assert {event.error for event in events if event.event in REFUSALS} <= accepted
    assert {event.client for event in events} <= {section.client}
    if section.layout not in WITHOUT_DATES:
        assert all(event.timestamp_ms is not None for event in events)
    assert all(event.topic in (None, "sales") and event.partition in (None, 0) for event in events)
    # below an error Node prints its members, a line each
    members = len(re.findall(r"^(?:  |\})", section.text, re.MULTILINE)) if section.layout == "node" else 0
    assert counts.unknown_lines - members <= 4  # what the runtime writes in between


CLIENTS = ("java", "librdkafka", "franz-go", "sarama", "kafkajs", "kafka-python", "aiokafka")
"""Clients of kaudit's that cannot be had, see docs/log-messages.md, have no recordings."""


@pytest.mark.parametrize("recording", recordings(), ids=lambda path: path.name.removesuffix(".log.xz"))
def test_what_the_client_says_is_an_event(recording: Path) -> None:
    clients = set()
    for section in sections(recording):
        check(section)
        clients.add(section.client)
    assert clients <= set(CLIENTS)


def test_every_client_has_a_recording() -> None:
    assert {section.client for recording in recordings() for section in sections(recording)} == set(CLIENTS)
