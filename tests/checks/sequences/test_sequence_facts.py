"""Checks of sequences and epochs from facts: explanations, severities by version, and the batches shown beside them."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.check import Evidence
from kaudit.checks.epochs.bump_at_leader_change import bump_at_leader_change
from kaudit.checks.epochs.coordinator_epoch_regression import coordinator_epoch_regression
from kaudit.checks.epochs.epoch_nearly_exhausted import epoch_nearly_exhausted
from kaudit.checks.epochs.fencing import fencing
from kaudit.checks.epochs.stale_epoch import stale_epoch
from kaudit.checks.observations import classified_evidence, observation_evidence
from kaudit.checks.sequences.duplicate_batch import duplicate_batch
from kaudit.checks.sequences.old_duplicate import old_duplicate
from kaudit.checks.sequences.overlapping_batch import overlapping_batch
from kaudit.checks.sequences.sequence_gap import sequence_gap
from kaudit.checks.sequences.sequence_observations import sequence_observations
from kaudit.checks.sequences.sequence_restart import sequence_restart
from kaudit.checks.sequences.sequence_step_mismatch import sequence_step_mismatch
from kaudit.checks.sequences.unknown_start import unknown_start
from kaudit.model.impact import Impact
from kaudit.model.leader_change import LeaderChange
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.other_copies import HeldRecords, OtherCopies
from kaudit.model.producer_state import OUTSIDE_REPORTED, ProducerAuditState, RetainedBatch
from kaudit.model.repeats import RepeatedEpoch
from kaudit.model.sequence_patterns import StepMismatch
from tests.checks.facts import CONTEXT, batch, gap, reported, summary

DAY = 86_400_000
TIMELINE = "kaudit timeline /logs --topic orders --partition 0 --producer-id 7"
KNOWN = (RetainedBatch(40, 0, 2, 77), RetainedBatch(43, 3, 5, 78))


def state(**fields: Any) -> ProducerAuditState:
    known: dict[str, Any] = {
        "epoch": 1, "last_sequence": 5, "window": KNOWN, "last": batch(43, 3, 3, 43), "last_timestamp": 1000,
    }  # fmt: skip
    return ProducerAuditState(**(known | fields))


def seen(kind, at=None, *, remembered: ProducerAuditState | None = state(), **fields: Any) -> Observation:  # noqa: B008 - a tuple
    """An observation of producer 7, epoch 1: a batch of sequences 3..5 at offset 50 unless given."""
    at = at or batch(50, 3, 3, 50)
    known: dict[str, Any] = {"marker": None, "is_transactional": False, "original": KNOWN[1]} | fields
    return Observation(kind, 7, 1, batch=at, remembered=remembered, **known)


def versions(least, most):
    return replace(CONTEXT, versions=VersionRange(Version.parse(least), Version.parse(most)))


FORGOTTEN = "the broker forgot the idle producer"
OUT_OF_ORDER = [
    (ObservationKind.EXACT_DUPLICATE, duplicate_batch, "error", "certain", 0, 1),
    (ObservationKind.SAME_SEQUENCES, duplicate_batch, "warning", "likely", 1, 1),
    (ObservationKind.BEHIND_WINDOW, old_duplicate, "error", "certain", 0, 1),
    (ObservationKind.OVERLAP, overlapping_batch, "error", "certain", 2, 0),
    (ObservationKind.INSIDE, overlapping_batch, "error", "certain", 2, 0),
]
"""Kind, check, severity, confidence, and how many explanations stand before and behind those of lost state."""


@pytest.mark.parametrize(("kind", "check", "severity", "confidence", "before", "behind"), OUT_OF_ORDER)
@pytest.mark.parametrize(
    ("leader_epoch", "silence", "causes"),
    [
        (0, DAY - 1, []),
        (1, DAY - 1, [("leader epoch 0 before it, 1 at it",)]),
        (0, DAY, [("24 hours without a batch from it",)]),
        (1, 50 * 3_600_000 - 1, [("leader epoch 0 before it, 1 at it",), ("49 hours without a batch from it",)]),
    ],
)
def test_how_a_broker_lost_the_state_that_should_have_refused_it(
    kind, check, severity, confidence, before, behind, leader_epoch, silence, causes
):
    at = batch(50, 3, 3, 50, leader_epoch=leader_epoch)._replace(max_timestamp=1000 + silence)
    (found,) = reported(check, seen(kind, at))
    assert summary(found) == (severity, confidence, 50, 52)
    assert found.message.startswith("the batch at offset 50 (sequences 3..5) ")
    assert found.impact == Impact(records_duplicated=3)
    own = found.explanations[before : len(found.explanations) - behind]
    assert [each.speaks_for for each in own] == [*causes, ()]
    assert own[-1].cause.startswith("the broker lost the producer's state")
    assert list(found.next) == [TIMELINE]


@pytest.mark.parametrize(("sequence", "text"), [(3, "sequences 3..5"), (5, "sequence 5")])
def test_how_batches_are_named(sequence, text):
    (found,) = reported(overlapping_batch, seen(ObservationKind.INSIDE, batch(50, sequence, 6 - sequence, 50)))
    assert (
        found.message
        == f"the batch at offset 50 ({text}) overlaps earlier batches: sequences up to 5 had already been written"
    )


def test_a_window_that_is_empty_starts_nowhere():
    (found,) = reported(old_duplicate, seen(ObservationKind.BEHIND_WINDOW, remembered=state(window=())))
    assert found.evidence["window_first_sequence"] is None
    (found,) = reported(old_duplicate, seen(ObservationKind.BEHIND_WINDOW))
    assert found.evidence["window_first_sequence"] == 0


# Gaps


@pytest.mark.parametrize("leader_epoch", [0, 1])
@pytest.mark.parametrize("compacted", [False, True])
def test_why_sequences_are_missing(leader_epoch, compacted):
    one = gap(7, batch(43, 3, 3, 43), batch(50, 9, 1, 50, leader_epoch=leader_epoch), 3, 1)._replace(explained=False)
    (found,) = reported(sequence_gap, one, context=replace(CONTEXT, compacted=compacted))
    assert found.message == "sequences 6..8 of producer 7 missing before offset 50 (3 records)"
    assert summary(found) == (("warning", "possible") if leader_epoch else ("error", "certain")) + (50, 50)
    moved = [("leader epoch 0 before the gap, 1 after it",)] if leader_epoch else []
    assert [each.speaks_for for each in found.explanations if each.speaks_for] == moved
    assert [each.innocent for each in found.explanations] == [False] * (2 + leader_epoch) + [True] * (not compacted)
    at_least = 0 if leader_epoch else 2 if compacted else 3
    assert found.impact == Impact(records_lost_at_least=at_least, records_lost_at_most=3)


def test_one_missing_sequence_is_named_alone():
    (found,) = reported(sequence_gap, gap(7, batch(43, 3, 3, 43), batch(50, 7, 1, 50), 1, 0))
    assert found.message == "sequence 6 of producer 7 missing before offset 50 (1 record)"


# First batches and restarts


@pytest.mark.parametrize(
    ("least", "most", "remembered", "silence", "severity"),
    [
        ("2.4.1", "2.4.1", None, 0, "warning"),
        ("2.4.1", "2.5.0", None, 0, "note"),
        ("3.9.0", "3.9.0", None, 0, "note"),
        # a marker keeps the producer known: until it expires
        ("3.0.0", "3.3.2", state(), 7 * DAY - 1, "warning"),
        ("3.0.0", "3.3.2", state(), 7 * DAY, "note"),
        ("3.0.0", "3.9.0", state(), DAY - 1, "warning"),
        ("3.0.0", "3.9.0", state(), DAY, "note"),
        ("2.0.0", "2.4.1", state(), 9 * DAY, "warning"),
    ],
)
def test_a_first_sequence_that_brokers_may_take(least, most, remembered, silence, severity):
    at = batch(50, 3, 3, 50)._replace(max_timestamp=1000 + silence)
    kind = ObservationKind.UNKNOWN_START if remembered is None else ObservationKind.AFTER_MARKER
    (found,) = reported(unknown_start, seen(kind, at, remembered=remembered), context=versions(least, most))
    since = "" if remembered is None else " after only an end marker"
    assert found.message == (
        f"the batch at offset 50 (sequences 3..5) is the first of this producer{since}: sequences before 3 are not in the log"
    )
    assert summary(found) == (severity, "possible", 50, 52)
    assert [each.innocent for each in found.explanations] == [True, True, False]


@pytest.mark.parametrize(
    ("least", "most", "severity"),
    [("2.3.1", "2.4.0", "note"), ("2.4.0", "2.5.0", "warning"), ("2.0.0", "2.3.1", "note")],
)
@pytest.mark.parametrize("back", [False, True])
def test_a_restart_of_sequences(least, most, severity, back):
    one = seen(ObservationKind.SEQUENCE_RESTART, batch(50, 0, 2, 50), times_go_back=back)
    (found,) = reported(sequence_restart, one, context=versions(least, most))
    assert summary(found) == (severity, "likely", 50, 51)
    assert found.message == (
        "the batch at offset 50 (sequences 0..1) starts again at sequence 0 after 5, in the same epoch and with different records"
    )
    assert found.evidence["times_go_back"] is back
    assert [each.innocent for each in found.explanations] == [True] * (severity == "note") + [False, False]


# Clients that count their own way


def steps(*moves, start=0):
    """Observations of batches that begin `step` sequences behind the one before, which held `records`."""
    found, sequence = [], start
    for number, (step, records) in enumerate(moves):
        before = batch(10 * number, sequence, records, 0)
        sequence += step
        found.append(seen(ObservationKind.GAP, batch(10 * number + 10, sequence, 4, 0), remembered=state(last=before)))
    return found


@pytest.mark.parametrize(
    ("moves", "text"),
    [
        ([(4, 3), (6, 5), (2, 1)], "by 1 more than the number of records"),
        ([(3, 5), (2, 4), (6, 8)], "by 2 less than the number of records"),
        ([(1, 3), (1, 5), (1, 2)], "by 1 per batch, whatever its number of records"),
        ([(1, 3), (1, 3), (1, 3)], "by 1 per batch, whatever its number of records"),
        ([(7, 3), (7, 4), (7, 3)], "by 7 per batch, whatever its number of records"),
    ],
)
def test_by_how_much_a_client_advances(moves, text):
    chain = steps(*moves)
    (found,) = reported(sequence_step_mismatch, StepMismatch(chain), *chain)
    assert found.message == f"producer 7 advances its sequence {text}, 3 times in a row"
    assert summary(found) == ("error", "certain", 10, 13)
    assert (found.evidence["first_offset"], found.evidence["last_offset"], found.evidence["count"]) == (10, 33, 3)
    assert reported(sequence_gap, StepMismatch(chain), *chain) == []


def test_ten_steps_are_listed_and_others_stay():
    chain = steps(*[(4, 3)] * 12)
    (found,) = reported(sequence_step_mismatch, StepMismatch(chain))
    listed: Any = next(value for value in found.evidence.values() if isinstance(value, list))
    assert [step["offset"] for step in listed] == [10 * number for number in range(1, 11)]
    assert listed[0] == {"offset": 10, "step": 4, "records": 3}
    equal = chain[0]._replace(producer_id=7)  # another observation that says the same
    assert sequence_observations(Evidence([StepMismatch(chain), *chain, equal]), ObservationKind.GAP) == [equal]


# Epochs


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
    one = seen(ObservationKind.NEARLY_EXHAUSTED, is_transactional=transactional)._replace(producer_epoch=32000)
    (found,) = reported(epoch_nearly_exhausted, one)
    assert (found.severity.value, found.message) == (severity, "producer 7 is at epoch 32000, 767 below the maximum")


@pytest.mark.parametrize(
    ("kind", "where", "compares"),
    [
        (ObservationKind.RESTART_BUMP, "rose from 0 to 1 at offset 50: a new instance", False),
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
        seen(ObservationKind.CLIENT_BUMP, at, remembered=state(epoch=0))._replace(producer_id=7 + number)
        for number in range(1 + others)
    ]
    copies = [OtherCopies(epoch, 60, ["b1", "b2"], held) for epoch in (0, 3, 4)]
    found, *rest = reported(bump_at_leader_change, LeaderChange(3, 48, bumps, continued), *copies)
    assert len(rest) == others
    assert summary(found) == ("warning", "likely" if held else "possible", 50, 51)
    assert found.message.startswith(
        "the epoch of producer 7 rose from 0 to 1 at offset 50, its first batch under leader epoch 3 (0 before)"
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
        seen(ObservationKind.CLIENT_BUMP, batch(50 + number, 0, 1, 50), remembered=state(epoch=0))._replace(
            producer_id=number
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
    elsewhere = [bumps[0]._replace(batch=batch(90, 0, 1, 90)), bumps[1]._replace(producer_id=9)]
    assert [each.producer_id for each in reported(fencing, LeaderChange(3, 48, bumps, 0), *elsewhere)] == [7, 9]


# The batches shown


@pytest.mark.parametrize(
    ("transactional", "opened", "flags", "previous"),
    [
        (True, -1, 0, True),
        (False, -1, 0, False),
        (False, 30, 0, True),  # the first batch outside of an open transaction changes the flag
        (False, 30, OUTSIDE_REPORTED, False),
        (True, 30, OUTSIDE_REPORTED, True),
    ],
)
def test_whether_the_batch_before_was_transactional(transactional, opened, flags, previous):
    before = state(txn_first_offset=opened, flags=flags)
    evidence: Any = observation_evidence(
        seen(ObservationKind.GAP, remembered=before, is_transactional=transactional), "r"
    )
    assert evidence["previous"]["is_transactional"] is previous
    assert evidence["offending"]["is_transactional"] is transactional


def test_the_state_and_the_batches_around_an_observation():
    following = batch(60, 6, 1, 60)
    one = seen(ObservationKind.GAP, following=following, following_epoch=2, remembered=state(coordinator_epoch=0))
    evidence: Any = classified_evidence(one, "the rule", count=3)
    assert (evidence["rule"], evidence["class"], evidence["count"]) == ("the rule", "gap", 3)
    assert evidence["remembered"] == {
        "producer_epoch": 1,
        "last_sequence": 5,
        "window": [
            {"offset": 40, "base_sequence": 0, "last_sequence": 2},
            {"offset": 43, "base_sequence": 3, "last_sequence": 5},
        ],
        "coordinator_epoch": 0,
        "current_txn_start_offset": None,
    }
    assert (evidence["previous"]["offset"], evidence["previous"]["producer_epoch"]) == (43, 1)
    assert (evidence["next"]["offset"], evidence["next"]["producer_epoch"]) == (60, 2)
    assert "is_transactional" not in evidence["next"]
    zero: Any = observation_evidence(
        seen(ObservationKind.GAP, remembered=state(last_sequence=0, txn_first_offset=0)), "r"
    )
    assert (zero["remembered"]["last_sequence"], zero["remembered"]["current_txn_start_offset"]) == (0, 0)
    assert (zero["previous"]["producer_epoch"], "next" in zero) == (1, False)
    none: Any = observation_evidence(
        seen(ObservationKind.GAP, remembered=state(last_sequence=-1, last_timestamp=-1)), "r"
    )
    # a marker has raised the epoch since: that of the batch is not kept
    assert (none["previous"]["producer_epoch"], none["remembered"]["last_sequence"]) == (None, None)
    assert none["remembered"]["coordinator_epoch"] is None
    for unknown in (None, state(last=None)):
        assert "previous" not in observation_evidence(seen(ObservationKind.GAP, remembered=unknown), "r")
    assert "remembered" not in observation_evidence(seen(ObservationKind.GAP, remembered=None), "r")
