"""Entries of timelines, events of logs, producers and incidents in words: each by a table, on both sides of every bound."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kaudit.model.application_logs import ApplicationLogFile, LogClock, LogEventSummary, RefusedBatches
from kaudit.model.coordinator import ExpiredTransactionalId
from kaudit.model.damage import MissingCause
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.finding import KnownBug
from kaudit.model.producer_listing import ProducerState
from kaudit.model.timeline import NONE, EventEntry, MissingEntry
from kaudit.report.console import Console
from kaudit.report.text.finding_block import bugs_of, known_bug_text, with_known_bugs
from kaudit.report.text.formatting import blocks_of, expired_text, partition_text
from kaudit.report.text.history_cells import cells_of, event
from kaudit.report.text.incident_block import extent_text
from kaudit.report.text.log_events import event_text, log_section, refused_text, shortened
from kaudit.report.text.markdown import code, prose
from kaudit.report.text.text_rows import text_of_rows
from kaudit.results.incidents import AffectedPartition, Incident
from kaudit.results.incidents import describe as incident_of
from tests.scan_results import BLOCKS, MORNING, marker, old_duplicate, place, producer, run
from tests.timelines import Timeline, histories

REFUSALS = {
    "out_of_order_sequence", "invalid_producer_epoch", "fenced_producer", "unknown_producer_id", "invalid_txn_state",
    "transaction_coordinator_fenced", "record_rejected",
}  # fmt: skip


def logged(name="retry", origin="server", **more):
    fields = {"offset": None, "placed_by": "order", "timestamp": None, "producer_epoch": None, "text": ""}
    return EventEntry(**{**fields, "event": name, "origin": origin, "path": "/var/log/server.log", "line": 7, **more})


def missing(first=1, last=2, offsets=2, cause=MissingCause.UNKNOWN):
    return MissingEntry(first, last, offsets, cause)


def cells(entry):
    (made,) = cells_of(histories(Timeline("orders", 0, "", 1, None, [entry])))
    return made


def detail(entry, *before):
    """The details of an entry after these epochs, the producer's and the leader's."""
    epochs = [np.array([NONE if epoch is None else epoch]) for epoch in before or (None, None)]
    return text_of_rows(1, cells(entry).details(*epochs))


def describe(entry):
    return text_of_rows(1, cells(entry).descriptions())


@pytest.mark.parametrize(("entry", "text"), [
    (run(0, 1, 0, 1, 0), "data"), (run(0, 1, 0, 1, 0, transaction=(0, "open")), "txn data"), (marker(5, "COMMIT", 0), "COMMIT"),
    (marker(5, None, 0), "MARKER"), (missing(), "missing"), (logged(), "retry"),
    (logged("fenced_producer", "client"), "fenced_producer"), (logged("a\x1b"), "a\\x1b"),
    *((logged(name), f"refused: {name}") for name in sorted(REFUSALS)),
])  # fmt: skip
def test_kinds_of_entries(entry, text):
    assert event(entry) == text_of_rows(1, cells(entry).columns()[1]) == text
    assert (isinstance(entry, EventEntry) and entry.is_refusal) is text.startswith("refused")


@pytest.mark.parametrize(("entry", "shown", "numbers"), [
    (run(7, 9, 3, 5, 0), "7..9", "3..5"), (run(7, 7, 3, 3, 0), "7", "3"), (marker(5, "COMMIT", 0), "5", "-"),
    (missing(1, 2), "1..2", "-"), (logged(offset=4, base_sequence=8), "4", "8"),
    (logged(), "-", "-"),
])  # fmt: skip
def test_offsets_and_sequences(entry, shown, numbers):
    columns = cells(entry).columns()
    assert (text_of_rows(1, columns[0]), text_of_rows(1, columns[3])) == (shown, numbers)


FIRST = None, None
AFTER = 3, 4
"""The epoch and the leader epoch of what came before."""


@pytest.mark.parametrize(("entry", "before", "text"), [
    (missing(offsets=1, cause=MissingCause.COMPACTION), FIRST, "1 offset not in the log: compaction"),
    (missing(offsets=2000), FIRST, "2,000 offsets not in the log: unknown"),
    (logged(placed_by="offset"), FIRST, "server.log:7"),
    (logged(placed_by="time"), FIRST, "server.log:7, placed by time"),
    (logged(placed_by="offset", expected_sequence=0), FIRST, "server.log:7, the broker has 0"),
    (logged(placed_by="time", expected_epoch=4), FIRST, "server.log:7, the broker has epoch 4, placed by time"),
    (marker(5, "COMMIT", 0), FIRST, "coordinator epoch 3"),
    (marker(5, "COMMIT", 0, coordinator_epoch=0), FIRST, "coordinator epoch 0"),
    (marker(5, "COMMIT", 0, coordinator_epoch=None), FIRST, ""),
    (marker(5, "ABORT", 0, epoch=4), AFTER, "fences epoch 3, coordinator epoch 3"),
    (marker(5, "ABORT", 0, epoch=3), AFTER, "coordinator epoch 3"),
    (marker(5, "ABORT", 0, epoch=2), AFTER, "coordinator epoch 3"),
])  # fmt: skip
def test_details(entry, before, text):
    assert detail(entry, *before) == text


def described(epoch=None, leader_epoch=None, **more):
    return detail(run(5, 9, 5, 9, 0, producer_epoch=3, **more), epoch, leader_epoch)


def test_details_of_runs():
    assert described(max_timestamp=MORNING).startswith("5 batches")
    assert described(max_timestamp=MORNING, transaction=(5, "open")).startswith("open since offset 5, 5 batches")
    assert described(max_timestamp=MORNING, transaction=(5, "aborted")).startswith("aborted, 5 batches")
    assert described(*AFTER, max_timestamp=MORNING).startswith("5 batches")
    assert described(0, 4, max_timestamp=MORNING).startswith("fences epoch 0, 5 batches")


@pytest.mark.parametrize(("more", "amount"), [
    ({"batches": 1}, "1 batch"), ({"batches": 2000}, "2,000 batches"),
    ({"records": 5}, "5 batches"), ({"records": 4}, "5 batches, 4 of 5 records left"), ({"records": 0}, "5 batches, 0 of 5 records left"),
    ({"records": 3, "first_sequence": 2**31 - 2, "last_sequence": 1}, "5 batches, 3 of 4 records left"),
    ({"records": 3, "first_sequence": 9, "last_sequence": 9}, "5 batches, 3 of 1 records left"),
    ({"records": 3, "first_sequence": 9, "last_sequence": 8}, "5 batches"),
    ({"max_timestamp": MORNING + 49}, "5 batches"), ({"max_timestamp": MORNING + 50}, "5 batches in 0.1 s"),
    ({"max_timestamp": MORNING + 2000}, "5 batches in 2.0 s"), ({"min_timestamp": -1, "max_timestamp": 5000}, "5 batches"),
    ({"min_timestamp": 0, "max_timestamp": 5000}, "5 batches in 5.0 s"),
])  # fmt: skip
def test_how_much_a_run_is(more, amount):
    assert detail(run(5, 9, 5, 9, 0)._replace(**{"max_timestamp": MORNING, **more})) == amount


def test_a_whole_entry():
    assert describe(run(5, 9, 5, 9, 0, producer_epoch=3)).startswith(
        "data, offset 5..9, epoch 3, sequence 5..9, 2023-11-14T22:13:20.000Z..2023-11-14T22:13:20.900Z, 5 batches in 0.9 s"
    )
    assert describe(marker(5, "COMMIT", 1)) == (
        "COMMIT, offset 5, epoch 0, 2023-11-14T22:13:21.000Z, coordinator epoch 3"
    )
    unknown = marker(5, "COMMIT", 1, timestamp=-1, coordinator_epoch=None)
    assert describe(unknown) == "COMMIT, offset 5, epoch 0"
    assert describe(missing(1, 2)) == "missing, offset 1..2, 2 offsets not in the log: unknown"


@pytest.mark.parametrize(("more", "text"), [
    ({"timestamp": 0}, "server.log:7 1970-01-01 00:00:00.000: said"), ({"timestamp": None}, "server.log:7: said"), ({}, "server.log:7: said"),
])  # fmt: skip
def test_a_line_of_a_log(more, text):
    assert event_text(EventEvidence(path="/var/log/server.log", line=7, text="said", **more)) == text


def test_long_lines_are_cut():
    longest = next(length for length in range(2000) if shortened("x" * length) != "x" * length) - 1
    assert 100 <= longest <= 1024
    assert shortened("x" * longest) == "x" * longest
    assert shortened("x" * (longest + 1)) == "x" * longest + "…"


def refused(outcome="never-landed", attempts=1, **more):
    made = RefusedBatches("t", 0, 7, 2, "fenced_producer", attempts, 3, 5, outcome, "/var/log/server.log", 12, "text")
    return replace(made, **more)


@pytest.mark.parametrize(("more", "text"), [
    ({}, "t-0 producer 7 epoch 2: 1 line fenced_producer, base sequence 3..5 (server.log:12)"),
    ({"attempts": 2, "producer_epoch": None}, "t-0 producer 7 epoch -: 2 lines fenced_producer, base sequence 3..5 (server.log:12)"),
    ({"producer_epoch": 0, "first_sequence": None}, "t-0 producer 7 epoch 0: 1 line fenced_producer (server.log:12)"),
    ({"last_sequence": 3, "topic": "\x1b"}, "\\x1b-0 producer 7 epoch 2: 1 line fenced_producer, base sequence 3 (server.log:12)"),
])  # fmt: skip
def test_what_was_refused(more, text):
    assert refused_text(refused(**more)) == text


def test_the_section_of_logs():
    files = [ApplicationLogFile("a", "server", 10, 0, 4), ApplicationLogFile("b", "client", 990, 0, 4)]
    assert log_section(None, Console()) == []
    assert log_section(LogEventSummary(files, {"retry": 5, "started": 3}), Console()) == [
        "Logs of brokers and clients:",
        "  2 files, 1,000 lines, 8 events",
    ]
    unknown = [replace(files[0], unknown_lines=1000), replace(files[1], unknown_lines=5)]
    lines = log_section(LogEventSummary(unknown, {}, refused=[refused("landed", 2), refused()]), Console())
    assert lines[1] == "  2 files, 1,000 lines, 0 events, 1,005 lines not understood"
    assert lines[2].startswith("  refused, never in the log: t-0 producer 7")
    assert lines[3].startswith("  refused attempts: ")
    assert "2 " in lines[3]
    only = log_section(LogEventSummary(files, {}, refused=[refused()] * 2), Console())
    assert [line[:28] for line in only[2:]] == ["  refused, never in the log:"] * 2
    many = log_section(LogEventSummary(files, {}, refused=[refused()] * 500), Console())
    assert many[-1] == f"  refused, never in the log: {500 - (len(many) - 3)} more (--output-format json lists them)"
    clocks = [LogClock("/var/log/kafka", -5, 5, 0, None, 3, 3), LogClock("x", 0, 0, 2000, None, 3, 3)]
    assert log_section(LogEventSummary(files, {}, clocks), Console())[2:] == [
        "  kafka: the log clock is that of the batches, to 1.0 s",
        "  x: the log clock is 2.0 s behind the batches",
    ]
    exact = log_section(LogEventSummary(files, {}, refused=[refused()] * (len(many) - 3)), Console())
    assert "more (" not in exact[-1]


def bug(name, seen, fixed="3.6.0"):
    return KnownBug(name, "title", "broker 2.0.0", fixed, "likely", ("a", "b", "c")[:seen], ("a", "b", "c"))


def test_known_bugs():
    assert known_bug_text(bug("KAFKA-1", 2)) == "looks like KAFKA-1, fixed in 3.6.0: 2 of 3 traits seen"
    assert known_bug_text(bug("KAFKA-1", 0, "")) == "looks like KAFKA-1, no fix known: 0 of 3 traits seen"
    one, two, other = bug("KAFKA-1", 1), bug("KAFKA-1", 2), bug("KAFKA-2", 1)
    findings = [old_duplicate(known_bugs=bugs) for bugs in ((one, other), (two,), (one,))]
    assert bugs_of(findings) == [two, other]
    assert with_known_bugs("text", []) == "text"
    assert with_known_bugs("text", [two]) == "text. It looks like KAFKA-1, fixed in 3.6.0: 2 of 3 traits seen"


@pytest.mark.parametrize(("text", "span"), [
    ("a", "`a`"), ("a|b", "`a\\|b`"), ("a`b", "`` a`b ``"), ("a``b", "``` a``b ```"), ("\x1b", "`\\x1b`"), ("", "``"),
])  # fmt: skip
def test_code_spans(text, span):
    assert code(text) == span


def test_prose_holds_no_markup():
    assert prose("a *b* <c> @d & [e](f) #g|h~i_j`k\\") == (
        "a \\*b\\* &lt;c&gt; &#64;d &amp; \\[e\\](f) \\#g\\|h\\~i\\_j\\`k\\\\"
    )


@pytest.mark.parametrize(("state", "text"), [
    (ProducerState(0, -1, -1, 0, -1, -1), "epoch 0, no sequence"),
    (ProducerState(4, 0, 7, 0, 0, 0), "epoch 4, last sequence 0 at offset 7, coordinator epoch 0, transaction open since offset 0"),
])  # fmt: skip
def test_a_producer_in_a_partition(state, text):
    part = place("orders", 3, 5, 9, batches=1, records=2000, first_epoch=2, last_epoch=4, state=state)
    assert partition_text(part) == (
        "orders-3 (1) @ 5..9: 1 batch, 2,000 records, epoch 2..4, 2023-11-14 22:13:20 to 2023-11-15 23:13:20; "
        f"a broker remembers {text}"
    )
    assert partition_text(replace(part, replica="")).startswith("orders-3 @ 5..9: ")


def test_blocks_and_expiry():
    assert blocks_of(producer(5000)) == "block unknown"
    assert blocks_of(producer(1000)) == "block 1000..1999 of broker 2 and block 1000..1999 of broker 3"
    assert blocks_of(producer(1000, grants=[replace(BLOCKS[0], broker=None)])) == "block 0..999"
    expired = ExpiredTransactionalId("pay\x1b", 0, 4, MORNING, MORNING + 1000, 17, 9, 0)
    assert expired_text(expired) == (
        "pay\\x1b: producer id 0 epoch 4, last updated 2023-11-14 22:13:20; expired 2023-11-14 22:13:21 UTC "
        "(__transaction_state-17@9); then producer id 0"
    )
    gone = ExpiredTransactionalId("pay", None, None, None, MORNING, 17, 9)
    assert expired_text(gone) == (
        "pay: its earlier producer id is no longer in the log; expired 2023-11-14 22:13:20 UTC "
        "(__transaction_state-17@9); not seen since"
    )


def incident(**more) -> Incident:
    nothing: dict[str, Any] = {
        "partitions": [],
        "producer_ids": [],
        "transactional_ids": [],
        "replicas": [],
        "first_timestamp": None,
        "last_timestamp": None,
    }
    return replace(incident_of([old_duplicate()]), **{**nothing, **more})


DAY = 86_400_000


@pytest.mark.parametrize(("more", "text"), [
    ({}, "location unknown"), ({"replicas": ["1"]}, "location unknown"), ({"replicas": ["1", "2"]}, "on replicas 1, 2"),
    ({"replicas": ["1", "2", "3", "4"]}, "on replicas 1, 2, 3 and 1 more"),
    ({"partitions": [AffectedPartition("t", 0, None, None)]}, "t-0"),
    ({"partitions": [AffectedPartition("t", 0, 0, 9)]}, "t-0 @ offset 0..9"),
    ({"partitions": [AffectedPartition("t", number, 5, 9) for number in range(3)]}, "t-0, t-1, t-2"),
    ({"partitions": [AffectedPartition("t", number, 5, 9) for number in range(1004)]}, "t-0, t-1, t-2 and 1,001 more"),
    ({"producer_ids": [7]}, "producer 7"), ({"producer_ids": [7, 8]}, "producers 7, 8"),
    ({"transactional_ids": ["a"]}, "transactional id a"), ({"transactional_ids": ["a", "\x1b"]}, "transactional ids a, \\x1b"),
    ({"first_timestamp": 0, "last_timestamp": 999}, "1970-01-01 00:00:00 UTC"),
    ({"first_timestamp": 0, "last_timestamp": 1000}, "1970-01-01 00:00:00 to 00:00:01 UTC"),
    ({"first_timestamp": 0, "last_timestamp": DAY}, "1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC"),
])  # fmt: skip
def test_where_an_incident_is(more, text):
    assert extent_text(incident(**more)) == text
