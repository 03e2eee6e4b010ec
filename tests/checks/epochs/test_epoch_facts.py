"""Checks of epochs from facts: markers, bumps, and what speaks for each cause."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.checks.epochs.epoch_bumps import bump_at_leader_change, epoch_nearly_exhausted, fencing
from kaudit.checks.epochs.stale_epochs import coordinator_epoch_regression, stale_epoch
from kaudit.model.impact import Impact
from kaudit.model.leader_epochs import HeldRecords, LeaderChange, OtherCopies
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import RepeatedEpoch
from tests.checks.facts import CONTEXT, TIMELINE, batch, reported, seen, state, summary, versions


def marker(epoch=1, coordinator_epoch=4, kind=0):
    return EndTxnMarker(50, 7, epoch, coordinator_epoch, kind, 9000, 0, 50, 700, 78, 1, 1)


def test_markers_of_older_epochs():
    one = Observation(ObservationKind.STALE_MARKER, 7, 1, None, marker(), True, state(epoch=3))
    (found,) = reported(stale_epoch, one)
    assert found.message == ("the end marker at offset 50 has epoch 1, but producer 7 had already moved on to epoch 3")
    assert (*summary(found), found.position, found.segment) == ("error", "certain", 50, 50, 700, CONTEXT.segments[1])
    assert found.evidence["offending"] == {
        "offset": 50, "timestamp": 9000, "producer_id": 7, "producer_epoch": 1, "coordinator_epoch": 4, "type": "ABORT",
        "position": 700,
    }  # fmt: skip
    (found,) = reported(stale_epoch, seen(ObservationKind.STALE_BATCH, remembered=state(epoch=3)))
    assert found.message.startswith("the batch at offset 50 has epoch 1")
    older = Observation(
        ObservationKind.COORDINATOR_EPOCH_REGRESSION, 7, 1, None, marker(kind=1), True, state(coordinator_epoch=5)
    )
    (found,) = reported(coordinator_epoch_regression, older)
    assert found.message == "the marker at offset 50 has coordinator epoch 4, after one with 5"
    assert (*summary(found)[:2], found.evidence["offending"]["type"]) == ("warning", "likely", "COMMIT")  # type: ignore[index]
    assert [each.innocent for each in found.explanations] == [False, False, True]


@pytest.mark.parametrize(("transactional", "severity"), [(False, "warning"), (True, "note")])
def test_epochs_that_run_out(transactional, severity):
    one = replace(seen(ObservationKind.NEARLY_EXHAUSTED, is_transactional=transactional), producer_epoch=32000)
    (found,) = reported(epoch_nearly_exhausted, one)
    assert (found.severity.value, found.message) == (severity, "producer 7 is at epoch 32000, 767 below the maximum")


@pytest.mark.parametrize(
    ("kind", "where", "compares"),
    [
        (
            ObservationKind.RESTART_BUMP,
            "rose from 0 to 1 at offset 50: the transactional producer was initialised again",
            False,
        ),
        (ObservationKind.CLIENT_BUMP, "rose from 0 to 1 at offset 50: the client raised", True),
        (ObservationKind.TIMEOUT_ABORT, "rose to 1 at offset 50: the coordinator aborted", False),
    ],
)
def test_a_raised_epoch(kind, where, compares):
    (found,) = reported(fencing, seen(kind, remembered=state(epoch=0)))
    assert where in found.message
    assert list(found.next) == [
        *["kaudit scan /logs --topic orders --partition 0 --depth records"] * compares,
        TIMELINE,
    ]
    by_abort = kind is ObservationKind.TIMEOUT_ABORT
    assert ((found.file, found.segment, found.position) == (None, None, None)) is by_abort
    assert bool(found.absent) is by_abort


@pytest.mark.parametrize(("offset", "where"), [(0, "at offset 0"), (-1, "at the end of the log")])
def test_where_an_abort_raised_it(offset, where):
    one = Observation(ObservationKind.TIMEOUT_ABORT, 7, 1, None, marker()._replace(offset=offset), True, state(epoch=0))
    (found,) = reported(fencing, one)
    assert f"rose to 1 {where}: " in found.message


@pytest.mark.parametrize(
    ("least", "transactional", "noted"), [("4.0.0", True, False), ("4.0.0", False, True), ("3.9.1", True, True)]
)
def test_where_every_transaction_raises_it(least, transactional, noted):
    one = seen(ObservationKind.RESTART_BUMP, is_transactional=transactional)
    assert len(reported(fencing, one, context=versions(least, "4.2.0"))) == noted


HELD = [HeldRecords(f"b{number}", f"/b{number}/orders-0", 60, 69, 9 * number, 1, 0) for number in (1, 2)]


@pytest.mark.parametrize("others", [0, 1, 2])
@pytest.mark.parametrize("continued", [0, 1, 2])
@pytest.mark.parametrize("held", [[], HELD])
def test_a_bump_where_the_leader_changed(others, continued, held):
    at = batch(50, 0, 2, 50, leader_epoch=3)
    bumps = [
        replace(seen(ObservationKind.CLIENT_BUMP, at, remembered=state(epoch=0)), producer_id=7 + number)
        for number in range(1 + others)
    ]
    copies = [OtherCopies(epoch, 60, ["b1", "b2"], held) for epoch in (0, 3, 4)]
    found, *rest = reported(bump_at_leader_change, LeaderChange(3, 48, bumps, continued), *copies)
    assert len(rest) == others
    assert summary(found) == ("warning", "likely" if held else "possible", 50, 51)
    assert found.message.startswith(
        "after the leader changed (leader epoch 0 to 3) producer 7 started again at sequence 0, in epoch 1, at offset 50"
    )
    evidence: Any = found.evidence
    assert (evidence["others_that_bumped"], evidence["others_in_sequence"]) == (others, continued)
    assert (evidence["leader_epoch"], evidence["leader_epoch_start_offset"]) == (3, 48)
    assert (evidence["previous_leader_epoch"], [one["copy"] for one in evidence["held_by"]]) == (
        0,
        ["b1", "b2"][: len(held)],
    )
    assert "to offset 48 when" in evidence["broker"]
    assert found.impact == Impact(records_lost_at_least=0, records_lost_at_most=18 if held else None)
    bumped = ["", "1 other producer raised its epoch at", "2 other producers raised their epoch at"][others]
    went_on = ["", "1 other producer went on in sequence", "2 other producers went on in sequence"][continued]
    cut, innocent = found.explanations
    assert [each.innocent for each in (cut, innocent)] == [False, True]
    assert cut.speaks_for[0] == "leader epoch 0 before it, 3 at it"
    assert [text.startswith(bumped) for text in cut.speaks_for[1 + len(held) :]] == [True] * bool(others)
    assert [text.startswith(went_on) for text in cut.speaks_against] == [True] * bool(continued)
    assert list(innocent.speaks_for) == list(cut.speaks_against)
    assert list(innocent.speaks_against) == list(cut.speaks_for[1:])
    diff = ["kaudit diff /b1/orders-0 /logs/orders-0"] if held else []
    assert list(found.next) == [*diff, "kaudit scan /logs --topic orders --partition 0 --depth records", TIMELINE]
    assert [text for text in cut.speaks_for if "holds" in text] == [
        f"b{number} holds {9 * number} records at offsets 60..69 under leader epoch 1, which are not here"
        for number in (1, 2)[: len(held)]
    ]


def test_who_wrote_the_old_epochs_tail_again_did_not_lose_it():
    bumps = [
        replace(
            seen(ObservationKind.CLIENT_BUMP, batch(50 + number, 0, 1, 50), remembered=state(epoch=0)),
            producer_id=number,
        )
        for number in (7, 8)
    ]
    again = RepeatedEpoch(7, 1, 0, 50, 50, 43, 45, [batch(43, 3, 3, 43)], [batch(50, 0, 1, 50)], 1, 1, True, True)
    other = RepeatedEpoch(8, 2, 0, 50, 50, 43, 45, [batch(43, 3, 3, 43)], [batch(50, 0, 1, 50)], 1, 1, True, True)
    facts = [LeaderChange(3, 48, bumps, 0), again, other]
    (found,) = reported(bump_at_leader_change, *facts)
    assert (found.producer_id, found.evidence["others_that_bumped"]) == (8, 0)
    assert reported(fencing, *facts, *bumps) == []
    assert [each.producer_id for each in reported(fencing, again, *bumps)] == [8]
    elsewhere = [replace(bumps[0], batch=batch(90, 0, 1, 90)), replace(bumps[1], producer_id=9)]
    assert [each.producer_id for each in reported(fencing, LeaderChange(3, 48, bumps, 0), *elsewhere)] == [7, 9]
