"""Checks of transactions from facts: evidence, commands, and how sure each is."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.texts import duration
from kaudit.checks.transactions.illegal_state_transition import illegal_state_transition
from kaudit.checks.transactions.marker_outcomes import coordinator_disagrees, torn_transaction
from kaudit.checks.transactions.open_transactions import (
    hanging_transaction,
    late_transactional_write,
    open_transaction,
)
from kaudit.checks.transactions.txnindex_mismatch import txnindex_mismatch
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import (
    CoordinatorEntry,
    CoordinatorView,
    TopicPartitions,
    TransactionStatus,
    TransactionValue,
)
from kaudit.model.impact import Impact
from kaudit.model.side_files import MissingAbortedTxn, TransactionIndexMismatch, WrongAbortedTxn
from kaudit.model.transactions import IllegalTransition, MismatchedMarker, OpenTransaction
from tests.checks.facts import CONTEXT, commands_of, reported, summary
from tests.checks.findings import cost_of

MINUTE = 60_000
AT = 1_700_000_000_000
HERE = "--topic orders --partition 0"
TIMELINE = f"kaudit timeline /logs {HERE} --producer-id 7"


def opened(first: int = 40, producer_id: int = 7, **fields: Any) -> OpenTransaction:
    """A transaction of epoch 4 that began behind a marker of its own epoch, at offset 30."""
    known: dict[str, Any] = {
        "stable_offset": first,
        "first_timestamp": AT,
        "last_timestamp": AT + 10,
        "records": 3,
        "position": 700,
        "segment": 1,
        "coordinator_epoch": 5,
        "began_after_marker": True,
        "marker_offset": 30,
        "marker_timestamp": AT - 1,
    }
    return OpenTransaction(producer_id=producer_id, producer_epoch=4, first_offset=first, **(known | fields))


def state(status=TransactionStatus.ONGOING, **fields: Any) -> TransactionValue:
    """The state of producer 7 at epoch 4 with this partition, begun at AT and last changed 5 ms later."""
    known: dict[str, Any] = {
        "producer_epoch": 4,
        "timeout_ms": MINUTE,
        "partitions": (TopicPartitions("orders", (0,)),),
        "last_update_timestamp": AT + 5,
        "start_timestamp": AT,
    }
    return TransactionValue(version=0, producer_id=7, status=status, status_id=int(status), **(known | fields))


def context(value: TransactionValue | None = None, *, now=AT + MINUTE, **fields: Any):
    """The partition's context, with this state of transactional id t if any."""
    view = CoordinatorView() if value is None else CoordinatorView({7: CoordinatorEntry("t", value, 9)}, True, True)
    return replace(CONTEXT, coordinator=view, clock=given_clock(now), log_end_offset=100, **fields)


DECIDED = "decided by its coordinator, but its marker is not in this log yet"
COMPLETE = state(TransactionStatus.COMPLETE_COMMIT, last_update_timestamp=AT)


def test_all_that_is_known_of_an_open_transaction():
    (found,) = reported(open_transaction, opened(), context=context(state()))
    assert (*summary(found), found.producer_id, found.producer_epoch) == ("note", "certain", 40, None, 7, 4)
    assert (found.segment, found.position) == (CONTEXT.segments[1], 700)
    assert found.absent["last_offset"] == "the transaction has no end"
    assert cost_of(found) == Impact(last_stable_offset=40, offsets_invisible=60, invisible_since_timestamp=AT)
    evidence = dict(found.evidence)
    assert evidence.pop("rule")
    assert evidence == {
        "first_timestamp": AT,
        "last_timestamp": AT + 10,
        "now_timestamp": AT + MINUTE,
        "records": 3,
        "offsets_held_back": 60,
        "coordinator": "ongoing",
        "coordinator_says": "__transaction_state has 't' at Ongoing, epoch 4",
        "coordinator_state": "Ongoing",
        "transactional_id": "t",
        "coordinator_epoch": 5,
        "previous_marker_offset": 30,
        "previous_marker_timestamp": AT - 1,
        "clock": "given",
        "idle_ms": MINUTE - 10,
        "commit_acknowledged": "no",
        "aborted_at_timestamp": AT + MINUTE,
        "remarks": {
            "abort": "its coordinator does it at 2023-11-14 22:14:20 UTC; it destroys 3 records from offset 40 on",
        },
    }
    assert [each.innocent for each in found.explanations] == [True, False]
    assert list(found.next) == [
        "# Kafka 3.0 or later",
        "kafka-transactions.sh --bootstrap-server HOST:9092 describe --transactional-id t",
        f"{TIMELINE} --now 2023-11-14T22:14:20.000Z",
    ]


def test_what_is_not_known_of_it():
    first = opened(coordinator_epoch=-1, marker_offset=-1, first_timestamp=-1)
    (found,) = reported(open_transaction, first, context=replace(context(), log_end_offset=None))
    assert commands_of(found)[0] == f"kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging {HERE}"
    assert cost_of(found) == Impact(last_stable_offset=40)
    assert (found.severity.value, found.evidence["coordinator"]) == ("warning", "unknown")
    unknown = (
        "offsets_held_back",
        "coordinator_state",
        "transactional_id",
        "coordinator_epoch",
        "previous_marker_offset",
    )
    assert [found.evidence[name] for name in unknown] == [None] * 5
    zero = opened(coordinator_epoch=0, marker_offset=0, first_timestamp=0)
    (found,) = reported(open_transaction, zero, context=context())
    assert [found.evidence[name] for name in unknown[3:]] == [0, 0]
    assert found.impact.invisible_since_timestamp == 0


def test_only_the_oldest_of_several_is_the_last_stable_offset():
    later, oldest = opened(50, 8), opened(40)
    second, first = reported(open_transaction, later, oldest, context=context())
    assert first.impact.offsets_invisible == 60
    assert cost_of(second) == Impact()
    assert "broker" not in first.evidence
    assert second.evidence["broker"] == (
        "the last stable offset already stays at 40, where a transaction of producer 7 is open too"
    )


@pytest.mark.parametrize(
    ("value", "now", "severity", "text"),
    [
        (state(), AT + MINUTE, "note", "ongoing within its timeout"),
        (state(), AT + MINUTE + 1, "warning", "ongoing beyond its timeout of 60.0 s"),
        # begun at the epoch itself is known, before it is not: then its last change counts
        (state(start_timestamp=0), MINUTE, "note", "ongoing within its timeout"),
        (state(start_timestamp=0), MINUTE + 1, "warning", "ongoing beyond its timeout of 60.0 s"),
        (state(start_timestamp=-1), AT + MINUTE + 5, "note", "ongoing within its timeout"),
        (state(start_timestamp=-1), AT + MINUTE + 6, "warning", "ongoing beyond its timeout of 60.0 s"),
        (state(TransactionStatus.PREPARE_ABORT), AT + 1, "note", DECIDED),
        (state(TransactionStatus.PREPARE_ABORT), AT + 5 + 9_999, "note", DECIDED),
        (state(TransactionStatus.PREPARE_COMMIT), AT + 5 + 9_999, "note", DECIDED),
        (state(TransactionStatus.PREPARE_COMMIT), AT + 5 + 10_000, "warning", DECIDED),
        (None, AT + 1, "warning", "open at the end of the log"),
    ],
)  # fmt: skip
def test_how_far_it_is(value, now, severity, text):
    (found,) = reported(open_transaction, opened(last_timestamp=now - 3000), context=context(value, now=now))
    whose = "" if value is None else "transactional id 't', "
    assert (found.severity.value, found.message) == (
        severity,
        f"the transaction of producer 7 that starts at offset 40 is {text} ({whose}3 records, idle for 3.0 s)",
    )


def test_only_what_is_overdue_is_to_be_terminated():
    """The id is whatever a client made up: it is quoted for a shell."""
    entry = CoordinatorEntry("t;rm -rf $HOME", state(), 9)
    view = CoordinatorView({7: entry}, True, True)
    tool = "kafka-transactions.sh --bootstrap-server HOST:9092"
    describe = f"{tool} describe --transactional-id 't;rm -rf $HOME'"
    for now, commands in (
        (AT + MINUTE, [describe]),
        (AT + MINUTE + 1, [describe, f"{tool} forceTerminateTransaction --transactionalId 't;rm -rf $HOME'"]),
    ):
        at_a_time = replace(CONTEXT, coordinator=view, clock=given_clock(now), log_end_offset=100)
        (found,) = reported(open_transaction, opened(last_timestamp=AT), context=at_a_time)
        assert commands_of(found)[:-1] == commands


def test_a_batch_from_the_future_is_not_idle():
    (found,) = reported(open_transaction, opened(last_timestamp=AT + 5), context=context(now=AT))
    assert found.message.endswith("(3 records, idle for 0.0 s)")


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0.0 s"), (119_999, "120.0 s"), (120_000, "2 min"), (7_199_999, "120 min"), (7_200_000, "2 h"),
        (172_799_999, "48 h"), (172_800_000, "2 days"), (20 * 86_400_000, "20 days"), (150_000, "2 min"),
    ],
)  # fmt: skip
def test_durations_in_the_largest_unit_of_which_there_are_two(milliseconds, text):
    assert duration(milliseconds) == text


# Hanging


@pytest.mark.parametrize(
    ("log_dirs", "now", "fields", "hangs"),
    [
        pytest.param({"/other"}, AT + 10_004, {}, False, id="copied-before-it-ended"),
        pytest.param({"/other"}, AT + 10_005, {}, True, id="too-long-ago"),
        pytest.param({"/other", "/logs"}, AT + 9, {}, True, id="this-copy-knows-of-the-end"),
        pytest.param({"/other"}, AT + 9, {"first_timestamp": AT + 6}, True, id="written-after-the-end"),
        pytest.param({"/other"}, AT + 9, {"marker_timestamp": AT}, True, id="its-marker-is-here"),
    ],
)
def test_logs_of_two_brokers_that_are_copied_while_a_transaction_ends(log_dirs, now, fields, hangs):
    here = context(state(TransactionStatus.COMPLETE_ABORT), now=now)
    entry = replace(here.coordinator.entries[7], log_dirs=frozenset(log_dirs))
    here = replace(here, coordinator=replace(here.coordinator, entries={7: entry}))
    found = reported(hanging_transaction if hangs else open_transaction, opened(**fields), context=here)
    assert [each.severity.value for each in found] == ["error" if hangs else "note"]
    if not hangs:
        assert found[0].evidence["commit_acknowledged"] == "no"


@pytest.mark.parametrize(
    ("value", "idle_ms", "hangs"),
    [
        (None, 20 * MINUTE, "likely"),
        (None, 20 * MINUTE - 1, None),
        (state(), 90 * MINUTE, None),
        (state(TransactionStatus.PREPARE_COMMIT), 90 * MINUTE, None),
        (COMPLETE, 0, "certain"),
    ],
)
def test_which_hang(value, idle_ms, hangs):
    here = context(value, now=AT + 10 + idle_ms)
    hanging = reported(hanging_transaction, opened(), context=here)
    assert [each.confidence.value for each in hanging] == ([] if hangs is None else [hangs])
    assert len(reported(open_transaction, opened(), context=here)) == (hangs is None)
    late = reported(late_transactional_write, opened(), context=here)
    assert [each.severity.value for each in late] == (
        [] if hangs is None else ["error" if hangs == "certain" else "warning"]
    )
    assert reported(late_transactional_write, opened(began_after_marker=False), context=here) == []
    for each in hanging:
        reason = (
            "__transaction_state has 't' at CompleteCommit, epoch 4"
            if hangs == "certain"
            else "idle for 20 min, __transaction_state is not among the inputs"
        )
        assert each.message == f"the transaction of producer 7 that starts at offset 40 will never end: {reason}"
        # by its coordinator it hangs at any time
        assert ("--now" in each.next[-1]) is (hangs == "likely")
    for each in late:
        assert each.message == "the batch at offset 40 of producer 7 came after its transaction had ended at offset 30"
        assert list(each.next) == list(hanging[0].next)


@pytest.mark.parametrize("after_marker", [True, False])
def test_a_late_write_speaks_for_it(after_marker):
    (found,) = reported(hanging_transaction, opened(began_after_marker=after_marker), context=context(COMPLETE))
    ended = ("the marker at offset 30 ended this producer's transaction in the same epoch",)
    assert found.explanations[0].speaks_for == (ended if after_marker else ())


@pytest.mark.parametrize(
    ("first", "marker", "updated", "reported_late", "older"),
    [
        (AT, AT - 1, AT, True, False),  # the coordinator's state is no newer than the write
        (AT, AT - 1, AT + 1, False, None),  # it is: the marker it decided on is what is missing
        (AT, AT, AT + 1, True, True),  # older than the marker: late, whatever came then
        (AT, AT + 1, AT + 1, True, True),
    ],
)
def test_a_marker_that_is_missing_is_no_late_write(first, marker, updated, reported_late, older):
    here = context(replace(COMPLETE, last_update_timestamp=updated))
    late = reported(late_transactional_write, opened(first_timestamp=first, marker_timestamp=marker), context=here)
    assert len(late) == reported_late
    for each in late:
        assert each.explanations[0].speaks_for == (("its timestamp is older than the marker's",) if older else ())
        assert summary(each)[:2] == ("error", "certain")


def test_a_producer_that_the_coordinator_does_not_know_was_late_at_any_time():
    nobody = replace(context(), coordinator=CoordinatorView({}, True, True))
    (found,) = reported(late_transactional_write, opened(), context=nobody)
    assert summary(found)[:2] == ("error", "certain")


@pytest.mark.parametrize(
    ("least", "most", "offset", "producer"),
    [("2.8.2", "3.0.0", True, True), ("2.5.0", "2.8.2", False, True), ("3.0.0", "3.9.1", True, False)],
)
@pytest.mark.parametrize(("epoch", "given"), [(5, 5), (0, 0), (-1, 0)])
def test_how_a_broker_aborts_it(least, most, offset, producer, epoch, given):
    """kafka-transactions.sh: a broker describes its producers from 3.0 on (KIP-664)."""
    here = replace(context(COMPLETE), versions=VersionRange(Version.parse(least), Version.parse(most)))
    (found,) = reported(hanging_transaction, opened(coordinator_epoch=epoch), context=here)
    abort = f"kafka-transactions.sh --bootstrap-server HOST:9092 abort {HERE}"
    by_producer = f"{abort} --producer-id 7 --producer-epoch 4 --coordinator-epoch {given}"
    assert commands_of(found) == [
        *([f"{abort} --start-offset 40"] if offset else []),
        *([by_producer] if producer else []),
        TIMELINE,
    ]


# What coordinators decided


@pytest.mark.parametrize(
    ("agreeing", "more"),
    [
        ([], ""),
        (["a-0"], "; a-0 has COMMIT"),
        (["a-0", "b-1"], "; a-0, b-1 have COMMIT"),
        ([f"a-{number}" for number in range(25)], "; a-0, a-1, a-2 have COMMIT"),
    ],
)
def test_a_marker_other_than_decided(agreeing, more):
    marker = MismatchedMarker("t", 7, 4, 40, 700, 1, 0, 1, 12, agreeing)
    check, other = (torn_transaction, coordinator_disagrees)[:: 1 if agreeing else -1]
    assert reported(other, marker) == []
    (found,) = reported(check, marker)
    assert found.message == (
        f"the coordinator decided COMMIT for the transaction of 't', but its marker at offset 40 is ABORT{more}"
    )
    assert (*summary(found), found.producer_id, found.producer_epoch) == ("error", "certain", 40, 40, 7, 4)
    assert (found.segment, found.position) == (CONTEXT.segments[1], 700)
    evidence: Any = found.evidence
    assert (evidence["decided"], evidence["written"], evidence["decided_at_offset"]) == ("COMMIT", "ABORT", 12)
    assert (evidence["transactional_id"], evidence["agreeing"]) == ("t", agreeing[:20])
    assert list(found.next) == ["kaudit timeline /logs --producer-id 7"]


def test_states_that_cannot_follow():
    before, after = state(last_update_timestamp=AT), state(TransactionStatus.EMPTY, producer_epoch=3)
    (found,) = reported(illegal_state_transition, IllegalTransition("t", 11, before, 14, after, "Empty from Ongoing"))
    assert found.message == "transactional id 't' went to Empty from Ongoing"
    assert (*summary(found), found.producer_id, found.producer_epoch) == ("warning", "certain", 14, 14, 7, 3)
    evidence: Any = found.evidence
    assert (evidence["before_offset"], evidence["before_status"], evidence["after_status"]) == (11, "Ongoing", "Empty")
    assert (evidence["before_update_timestamp"], evidence["after_update_timestamp"]) == (AT, AT + 5)
    assert list(found.next) == ["kaudit inspect --records --offset 11..14 /logs/orders-0"]


# The index of aborted transactions

INDEX = "00000000000000000090.txnindex"


def missing(number: int) -> MissingAbortedTxn:
    return MissingAbortedTxn(7 + number, 10 * number, 10 * number + 3)


def wrong(number: int) -> WrongAbortedTxn:
    return WrongAbortedTxn(34 * number, 8, 100, 103, 104, f"reason {number}")


MISSING = "no row for 2 aborted, first that of producer 8 from offset 10 to 13"
WRONG = "2 wrong, first the row at byte 34: reason 1"


@pytest.mark.parametrize(
    ("wrongs", "gone", "torn", "text", "position"),
    [
        (0, 2, None, MISSING, None),
        (2, 0, None, WRONG, 34),
        (0, 0, (70, "2 bytes of a row"), "2 bytes of a row", 70),
        (25, 25, (90, "torn"), f"torn; {MISSING.replace('2', '25')}; {WRONG.replace('2', '25', 1)}", 90),
    ],
)  # fmt: skip
def test_an_index_of_aborted_transactions(wrongs, gone, torn, text, position):
    mismatch = TransactionIndexMismatch(
        INDEX, 1, [wrong(1 + number) for number in range(wrongs)], [missing(1 + number) for number in range(gone)], torn
    )
    (found,) = reported(txnindex_mismatch, mismatch, context=replace(CONTEXT, side_files=(INDEX,)))
    assert found.message == f"the transaction index does not match the log: {text}"
    assert (*summary(found), found.producer_id) == ("error", "certain", *((10, 13, 8) if gone else (None, None, None)))
    assert (found.segment, found.position, found.file) == (CONTEXT.segments[1], position, f"orders-0/{INDEX}")
    evidence: Any = found.evidence
    assert (evidence["wrong_rows"], evidence["missing_rows"]) == (wrongs, gone)
    assert [row["position"] for row in evidence["wrong"]] == [34 * number for number in range(1, min(wrongs, 20) + 1)]
    assert [row["first_offset"] for row in evidence["missing"]] == [
        10 * number for number in range(1, min(gone, 20) + 1)
    ]
    assert evidence["torn"] == (torn and torn[1])
    assert list(found.next) == [f"kaudit inspect /logs/orders-0/{INDEX}"]
