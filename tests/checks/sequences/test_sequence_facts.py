"""Checks of sequences from facts: explanations, severities by version, and the batches shown beside them."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.checks.check import Evidence
from kaudit.checks.observations import LackingEvidence, ObservationEvidence
from kaudit.checks.sequences.duplicates import duplicate_batch, old_duplicate, overlapping_batch
from kaudit.checks.sequences.first_sequences import sequence_restart, unknown_start
from kaudit.checks.sequences.sequence_gap import sequence_gap
from kaudit.checks.sequences.sequence_observations import sequence_observations
from kaudit.checks.sequences.sequence_step_mismatch import sequence_step_mismatch
from kaudit.model.impact import Impact
from kaudit.model.observation import ObservationKind
from kaudit.model.producer_patterns import StepMismatch
from kaudit.model.producer_state import OUTSIDE_REPORTED
from tests.checks.facts import CONTEXT, TIMELINE, appended, batch, gap, reported, seen, state, summary, versions

DAY = 86_400_000

OUT_OF_ORDER = [
    (ObservationKind.EXACT_DUPLICATE, duplicate_batch, "error", "certain", 0, 1),
    (ObservationKind.SAME_SEQUENCES, duplicate_batch, "warning", "likely", 1, 2),
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
@pytest.mark.parametrize("proven", [False, True])
def test_how_a_broker_lost_the_state_that_should_have_refused_it(
    kind, check, severity, confidence, before, behind, leader_epoch, silence, causes, proven
):
    at = batch(50, 3, 3, 50, leader_epoch=leader_epoch)._replace(max_timestamp=1000 + silence)
    one = seen(kind, at)
    (found,) = reported(check, one, context=appended(one) if proven else CONTEXT)
    by = "" if proven else ", by timestamps of clients alone"
    causes = [(text + by if "hours" in text else text,) for (text,) in causes]
    assert summary(found) == (severity, confidence, 50, 52)
    assert found.message.startswith("the batch at offset 50 (sequences 3..5) ")
    proven = kind is not ObservationKind.SAME_SEQUENCES
    assert found.impact == Impact(records_duplicated=3 if proven else 0, records_duplicated_at_most=3)
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
    one = replace(gap(7, batch(43, 3, 3, 43), batch(50, 9, 1, 50, leader_epoch=leader_epoch), 3, 1), explained=False)
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
    at = batch(50, 3, 3, 50)._replace(max_timestamp=1000 + 9 * DAY)  # a client's, which shows nothing
    kind = ObservationKind.UNKNOWN_START if remembered is None else ObservationKind.AFTER_MARKER
    one = seen(kind, at, remembered=remembered)
    (found,) = reported(unknown_start, one, context=appended(one, versions(least, most), since_ms=1000 + silence))
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
    one = seen(
        ObservationKind.SEQUENCE_RESTART, batch(50, 0, 2, 50), times_go_back=back, remembered=state(start_crc=77)
    )
    (found,) = reported(sequence_restart, one, context=versions(least, most))
    assert summary(found) == (severity, "likely", 50, 51)
    assert found.message == (
        "the batch at offset 50 (sequences 0..1) starts again at sequence 0 after 5, in the same epoch and with different records"
    )
    assert found.evidence["times_go_back"] is back
    assert [each.innocent for each in found.explanations] == [True] * (severity == "note") + [False, False]


def test_sequence_0_where_the_log_has_none_before_is_not_called_again():
    one = seen(ObservationKind.SEQUENCE_RESTART, batch(50, 0, 2, 50), remembered=state())
    (found,) = reported(sequence_restart, one)
    assert found.message == (
        "the batch at offset 50 (sequences 0..1) starts at sequence 0 after 5, in the same epoch, of which the log holds no earlier "
        "batch at sequence 0"
    )


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
    equal = replace(chain[0], producer_id=7)  # another observation that says the same
    assert sequence_observations(Evidence([StepMismatch(chain), *chain, equal]), ObservationKind.GAP) == [equal]


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
    evidence: Any = ObservationEvidence(
        rule="r", observation=seen(ObservationKind.GAP, remembered=before, is_transactional=transactional)
    ).to_dict()
    assert evidence["previous"]["is_transactional"] is previous
    assert evidence["offending"]["is_transactional"] is transactional


def test_the_state_and_the_batches_around_an_observation():
    following = batch(60, 6, 1, 60)
    one = seen(ObservationKind.GAP, following=following, following_epoch=2, remembered=state(coordinator_epoch=0))
    evidence: Any = LackingEvidence(rule="the rule", observation=one, missing_sequences=3, missing_offsets=0)
    assert (evidence["rule"], evidence["class"], evidence["missing_sequences"]) == ("the rule", "gap", 3)
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
    zero: Any = ObservationEvidence(
        rule="r", observation=seen(ObservationKind.GAP, remembered=state(last_sequence=0, txn_first_offset=0))
    ).to_dict()
    assert (zero["remembered"]["last_sequence"], zero["remembered"]["current_txn_start_offset"]) == (0, 0)
    assert (zero["previous"]["producer_epoch"], "next" in zero) == (1, False)
    none: Any = ObservationEvidence(
        rule="r", observation=seen(ObservationKind.GAP, remembered=state(last_sequence=-1, last_timestamp=-1))
    ).to_dict()
    # a marker has raised the epoch since: that of the batch is not kept
    assert (none["previous"]["producer_epoch"], none["remembered"]["last_sequence"]) == (None, None)
    assert none["remembered"]["coordinator_epoch"] is None
    for unknown in (None, state(last=None)):
        assert "previous" not in ObservationEvidence(
            rule="r", observation=seen(ObservationKind.GAP, remembered=unknown)
        )
    assert "remembered" not in ObservationEvidence(rule="r", observation=seen(ObservationKind.GAP, remembered=None))
