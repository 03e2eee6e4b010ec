"""What became of refused batches: by the last epoch and sequence that the log has of the producer."""

import pytest

from kaudit.audits.log_events.refused import MAX_LISTED, refused_batches
from kaudit.model.application_logs import LogEvent, LogEventKind, RefusedBatches

KIND = LogEventKind


def refused(sequence: int | None = 5, epoch: int | None = 1, kind: KIND = KIND.OUT_OF_ORDER_SEQUENCE, **more: object):
    stated: dict[str, object] = {
        "origin": "server",
        "path": "server.log",
        "line": 3,
        "pattern": "p",
        "text": "refused\n\tat it",
        "topic": "orders",
        "partition": 2,
        "producer_id": 7,
        "producer_epoch": epoch,
        "base_sequence": sequence,
    }
    return LogEvent(event=kind, **(stated | more))  # type: ignore[arg-type]


def outcome(event: LogEvent, *last: tuple[int, int]) -> str:
    """`last`: the producer's epoch and sequence at the end of the log; none if it wrote nothing there."""
    (found,), _ = refused_batches([event], {("orders", 2): dict.fromkeys([7], last[0]) if last else {}})
    return found.outcome


@pytest.mark.parametrize(
    ("epoch", "sequence", "last", "expected"),
    [
        (1, 5, (1, 4), "never-landed"),
        (1, 5, (1, 5), "landed"),
        (1, 5, (1, 6), "landed"),
        (1, 5, (0, 6), "never-landed"),  # that sequence is of an older epoch
        (1, 5, (2, 0), "superseded"),
        (1, None, (2, 0), "superseded"),
        (1, None, (1, 9), "unknown"),
        (0, 0, (0, 0), "landed"),
        (None, 5, (0, 4), "never-landed"),
        (None, 5, (0, 5), "landed"),
        (None, 5, (1, 4), "unknown"),  # the higher epoch may have begun at 0 again
        (None, 5, (1, 5), "unknown"),
    ],
)
def test_by_the_producers_last_batch(epoch, sequence, last, expected):
    assert outcome(refused(sequence, epoch), last) == expected


def test_a_producer_that_wrote_nothing_never_landed():
    assert outcome(refused(0, 0)) == "never-landed"
    assert outcome(refused(0, None)) == "never-landed"


def test_a_partition_that_was_not_read_says_nothing():
    found, more = refused_batches([refused()], {("orders", 1): {7: (1, 9)}, ("other", 2): {7: (1, 9)}})
    assert ([one.outcome for one in found], more) == (["unknown"], 0)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (KIND.OUT_OF_ORDER_SEQUENCE, "landed"),
        (KIND.UNKNOWN_PRODUCER_ID, "landed"),
        (KIND.INVALID_TXN_STATE, "landed"),
        (KIND.INVALID_PRODUCER_EPOCH, "fenced"),
        (KIND.FENCED_PRODUCER, "fenced"),
    ],
)
def test_who_was_fenced_was_meant_to_be(kind, expected):
    assert outcome(refused(kind=kind), (1, 5)) == expected


@pytest.mark.parametrize(
    "more", [{"origin": "client"}, {"topic": None}, {"partition": None}, {"producer_id": None}], ids=str
)
def test_lines_that_do_not_say_what_was_refused_are_left_out(more):
    assert refused_batches([refused(**more)], {}) == ([], 0)
    assert refused_batches([refused(kind=KIND.DUPLICATE_SEQUENCE)], {}) == ([], 0)
    others = [refused(kind=kind) for kind in KIND if "SEQUENCE" not in kind.name and "PRODUCER" not in kind.name]
    assert {one.event for one in refused_batches(others, {})[0]} <= {KIND.INVALID_TXN_STATE.value}


def test_the_lines_of_one_producer_epoch_and_reason_are_one_row():
    lines = [
        *(refused(6, line=3), refused(4, line=8), refused(None, line=9), refused(5, line=10)),
        refused(9, epoch=2, line=11, text="other"),
        refused(2, line=12, kind=KIND.UNKNOWN_PRODUCER_ID),
    ]
    found, more = refused_batches(lines, {("orders", 2): {7: (1, 5)}})
    assert more == 0
    reason = KIND.OUT_OF_ORDER_SEQUENCE.value
    assert found == [
        # the highest refused, 6, is not there
        RefusedBatches("orders", 2, 7, 1, reason, 4, 4, 6, "never-landed", "server.log", 3, "refused"),
        RefusedBatches("orders", 2, 7, 2, reason, 1, 9, 9, "never-landed", "server.log", 11, "other"),
        RefusedBatches("orders", 2, 7, 1, "unknown_producer_id", 1, 2, 2, "landed", "server.log", 12, "refused"),
    ]


def test_what_never_landed_comes_first_then_by_place_and_line():
    states = {("a", 0): {1: (0, 9), 2: (3, 0)}, ("b", 0): {}, ("b", 1): {}}
    places = [("a", 0, 1), ("b", 1, 4), ("b", 0, 5), ("b", 0, 4), ("a", 0, 2), ("c", 0, 1)]
    lines = [
        refused(5, 0, topic=topic, partition=partition, producer_id=producer_id)
        for topic, partition, producer_id in places
    ]
    lines.append(refused(5, 0, kind=KIND.FENCED_PRODUCER, topic="a", partition=0, producer_id=1))
    lines += [
        refused(5, epoch, topic="b", partition=0, producer_id=4, path=path, line=line)
        for epoch, path, line in ((1, "b.log", 1), (2, "a.log", 9), (3, "a.log", 8))
    ]
    found, _ = refused_batches(lines, states)
    assert [(one.outcome, one.topic, one.partition, one.producer_id, one.path, one.line) for one in found] == [
        ("never-landed", "b", 0, 4, "a.log", 8),
        ("never-landed", "b", 0, 4, "a.log", 9),
        ("never-landed", "b", 0, 4, "b.log", 1),
        ("never-landed", "b", 0, 4, "server.log", 3),
        ("never-landed", "b", 0, 5, "server.log", 3),
        ("never-landed", "b", 1, 4, "server.log", 3),
        ("unknown", "c", 0, 1, "server.log", 3),
        ("superseded", "a", 0, 2, "server.log", 3),
        ("landed", "a", 0, 1, "server.log", 3),
        ("fenced", "a", 0, 1, "server.log", 3),
    ]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_thousand_are_listed(more):
    found, left = refused_batches((refused(producer_id=number) for number in range(MAX_LISTED + more)), {})
    assert (len(found), left) == (min(1000 + more, 1000), max(more, 0))
