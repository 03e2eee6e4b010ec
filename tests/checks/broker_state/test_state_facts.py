"""KA801, KA802 and KA803 from facts: what makes brokers forget a producer, and what they cannot load."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.checks.broker_state.forgotten_producers import state_evicted, state_expired
from kaudit.checks.broker_state.recovery_fatal import recovery_fatal
from kaudit.model.audit_clock import given_clock
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import EvictedProducer, IdleProducer
from kaudit.model.producer_state import ProducerAuditState
from kaudit.model.transactions import EmptyMarker
from tests.checks.facts import CONTEXT, TIMELINE, appended, batch, reported, summary, versions

DAY = 86_400_000
SECOND = CONTEXT.segments[1]


OLD = versions("2.0.0", "2.3.1")


@pytest.mark.parametrize(
    ("again", "repeated", "severity", "kind", "then"),
    [
        (None, False, "note", "idle", "it has not written since"),
        (95, False, "note", "restarted", "at offset 95 it starts again at sequence 0"),
        (0, False, "note", "restarted", "at offset 0 it starts again at sequence 0"),
        (95, True, "warning", "repeated", "the batch at offset 95 repeats one that was deleted"),
    ],
)
def test_a_producer_that_was_forgotten_with_its_data(again, repeated, severity, kind, then):
    evicted = EvictedProducer(7, 3, 40, 12, 1, 700, again, repeated)
    (found,) = reported(state_evicted, evicted, context=OLD)
    assert found.message == (
        f"producer 7 was forgotten when its last batch, at offset 40, fell below the log start: {then}"
    )
    assert (*summary(found), found.producer_id, found.producer_epoch) == (severity, "certain", 40, 40, 7, 3)
    assert (found.segment, found.position) == (SECOND, 700)
    evidence: Any = found.evidence
    assert (evidence["class"], evidence["last_sequence"], evidence["next_offset"]) == (kind, 12, again)
    assert [each.innocent for each in found.explanations] == [not repeated]
    assert list(found.next) == [TIMELINE]
    assert reported(state_evicted, evicted, context=versions("2.3.1", "2.4.0")) == []


def observed(kind, silence, *, remembered=True, known=0, producer_id=7):
    """An observation at offset 50, so long after the producer's newest batch or marker."""
    state = ProducerAuditState(epoch=1, last_sequence=4, last_timestamp=known) if remembered else None
    at = batch(50, 5, 2, 50)._replace(max_timestamp=max(known, 0) + silence)
    return Observation(kind, producer_id, 1, at, None, False, state)


EFFECTS = [
    ObservationKind.EXACT_DUPLICATE, ObservationKind.SAME_SEQUENCES, ObservationKind.BEHIND_WINDOW, ObservationKind.OVERLAP,
    ObservationKind.INSIDE, ObservationKind.SEQUENCE_RESTART, ObservationKind.UNKNOWN_START, ObservationKind.AFTER_MARKER,
    ObservationKind.STALE_BATCH, ObservationKind.BUMP_NONZERO,
]  # fmt: skip
WEEK = versions("3.0.0", "3.9.0")
"""Brokers before 3.4 remember seven days, newer ones one: what all of them had forgotten counts."""


OF_MARKERS = {ObservationKind.STALE_MARKER, ObservationKind.COORDINATOR_EPOCH_REGRESSION, ObservationKind.TIMEOUT_ABORT}


@pytest.mark.parametrize(
    "kind", sorted(set(ObservationKind) - OF_MARKERS - {ObservationKind.CONTINUED_AFTER_SILENCE}, key=str)
)
@pytest.mark.parametrize("silence", [7 * DAY - 1, 7 * DAY])
@pytest.mark.parametrize("proven", [False, True])
def test_what_only_a_broker_without_the_producers_state_lets_happen(kind, silence, proven):
    seen = observed(kind, silence)
    found = reported(state_expired, seen, context=appended(seen, WEEK, since_ms=7 * DAY if proven else 7 * DAY - 1))
    assert len(found) == (kind in EFFECTS and (proven or silence == 7 * DAY))
    for each in found:
        sure = ("warning", "likely" if proven else "possible")
        assert (*summary(each), each.evidence["class"]) == (*sure, 50, 51, "forgotten")
        assert each.message.startswith(
            f"the broker {'had' if proven else 'may have'} forgotten producer 7 when it received the batch at offset 50, "
            f"7.0 days after the one before{'' if proven else ' by timestamps of clients alone'}: see KA"
        )
        assert (each.evidence["silence_ms"], each.evidence["limit_ms"]) == (7 * DAY, 7 * DAY)
        assert "forgotten 7 days after" in str(each.evidence["rule"])
        assert [cause.innocent for cause in each.explanations] == [False, False] + [False] * (not proven)


@pytest.mark.parametrize(
    ("remembered", "known", "is_reported"), [(True, 0, True), (True, -1, False), (False, 0, False)]
)
def test_a_silence_needs_two_times(remembered, known, is_reported):
    one = observed(ObservationKind.EXACT_DUPLICATE, 99 * DAY, remembered=remembered, known=known)
    assert len(reported(state_expired, one, context=WEEK)) == is_reported
    without = replace(one, batch=None, marker=EndTxnMarker(50, 7, 1, 0, 1, 99 * DAY, 0, 50, 0, 78, 1, 0))
    assert reported(state_expired, without, context=WEEK) == []


@pytest.mark.parametrize(
    ("here", "silence", "noted"),
    [
        (WEEK, 7 * DAY, True),
        (WEEK, 7 * DAY - 1, False),
        (versions("3.4.0", "3.9.0"), DAY, True),
        (versions("2.0.0", "2.4.1"), 7 * DAY, False),
        (versions("2.4.1", "2.5.0"), 7 * DAY, True),
    ],
)
@pytest.mark.parametrize("proven", [False, True])
def test_a_producer_that_continued(here, silence, noted, proven):
    seen = observed(ObservationKind.CONTINUED_AFTER_SILENCE, silence)
    found = reported(state_expired, seen, context=appended(seen, here) if proven else here)
    assert [(*summary(each), each.evidence["class"]) for each in found] == (
        [("note", "certain" if proven else "possible", 50, 51, "went-on")] if noted else []
    )
    for each in found:
        assert ("by timestamps of clients alone: brokers may have forgotten it" in each.message) is not proven
        assert [cause.innocent for cause in each.explanations] == [True]


@pytest.mark.parametrize("segment", [1, None])
@pytest.mark.parametrize("idle", [7 * DAY, 7 * DAY - 1])
def test_a_producer_that_is_forgotten_by_now(segment, idle):
    producer = IdleProducer(7, 3, 40, 9 * DAY, segment, None if segment is None else 700)
    here = replace(WEEK, clock=given_clock(9 * DAY + idle))
    found = reported(state_expired, producer, context=here)
    assert len(found) == (idle == 7 * DAY)
    for each in found:
        assert each.message == "brokers have forgotten producer 7: its newest record is 7.0 days older than the log"
        assert (*summary(each), each.producer_epoch) == ("note", "certain", 40, 40, 3)
        assert (each.segment, each.position) == ((SECOND, 700) if segment else (None, None))
        assert ("position" in each.absent) is (segment is None)
        evidence: Any = each.evidence
        assert [evidence[name] for name in ("class", "last_timestamp", "now_timestamp", "limit_ms")] == [
            "idle", 9 * DAY, 9 * DAY + idle, 7 * DAY,
        ]  # fmt: skip
        assert [cause.innocent for cause in each.explanations] == [True, False]
        assert list(each.next) == [f"{TIMELINE} --now 1970-01-17T00:00:00.000Z"]


def test_who_was_reported_for_an_effect_is_not_noted_as_idle_again():
    here = replace(WEEK, clock=given_clock(30 * DAY))
    idle = [IdleProducer(producer_id, 0, 40, 1000, 0, 0) for producer_id in (7, 8)]
    for kind in (ObservationKind.EXACT_DUPLICATE, ObservationKind.CONTINUED_AFTER_SILENCE):
        found = reported(state_expired, observed(kind, 7 * DAY), *idle, context=here)
        assert [each.producer_id for each in found] == [7, 8]
    # too short a silence is no effect
    found = reported(state_expired, observed(ObservationKind.EXACT_DUPLICATE, DAY), *idle, context=here)
    assert [(each.producer_id, each.evidence["class"]) for each in found] == [(7, "idle"), (8, "idle")]


# What brokers cannot load

MARKER = EndTxnMarker(50, 7, 1, 4, 0, 9000, 0, 50, 700, 78, 1, 1)


def fatal(kind, *, marker):
    state = ProducerAuditState(
        epoch=2,
        last_sequence=4,
        coordinator_epoch=5,
        rebuilt_epoch=2,
        rebuilt_coordinator_epoch=5,
        txn_first_offset=30,
    )
    return Observation(kind, 7, 1, None if marker else batch(50, 5, 2, 50), MARKER if marker else None, False, state)


@pytest.mark.parametrize(
    ("kind", "marker", "who", "code"),
    [
        (ObservationKind.OUTSIDE_TRANSACTION, False, "no broker", "KA303"),
        (ObservationKind.STALE_MARKER, True, "brokers up to 2.4.0", "KA201"),
        (ObservationKind.COORDINATOR_EPOCH_REGRESSION, True, "brokers up to 2.4.0", "KA205"),
        (ObservationKind.STALE_BATCH, False, None, None),
        (ObservationKind.TIMEOUT_ABORT, True, None, None),
    ],
)
@pytest.mark.parametrize(
    ("least", "most", "severity"),
    [("2.0.0", "2.4.0", "error"), ("2.4.0", "2.4.1", "note"), ("2.4.1", "2.5.0", None)],
)
def test_what_stops_a_broker(kind, marker, who, code, least, most, severity):
    found = reported(recovery_fatal, fatal(kind, marker=marker), context=versions(least, most))
    if who == "no broker":
        severity = "error"
    if who is None or severity is None:
        assert found == []
        return
    (one,) = found
    what = "marker" if marker else "batch"
    can = "can" if who == "no broker" else "cannot"
    assert one.message == f"{who} {can} load this log: the {what} of producer 7 at offset 50 stops them ({code})"
    assert (*summary(one), one.evidence["class"]) == (severity, "certain", 50, 50 if marker else 51, code)
    assert list(one.next) == [f"kaudit explain {code}", TIMELINE]
    assert [each.innocent for each in one.explanations] == [False]


@pytest.mark.parametrize(
    ("least", "most", "severity"),
    [("1.0.0", "2.0.0", "error"), ("2.0.0", "2.0.1", "note"), ("2.0.1", "2.5.0", None)],
)
def test_a_marker_that_was_emptied(least, most, severity):
    found = reported(recovery_fatal, EmptyMarker(50, 7, 1, 1, 700, 3), context=versions(least, most))
    assert [summary(each) for each in found] == ([] if severity is None else [(severity, "certain", 50, 50)])
    for each in found:
        assert each.message == (
            "brokers up to 2.0.0 cannot load this log: the marker at offset 50 was emptied by the log cleaner (3 such)"
        )
        assert (each.evidence["class"], each.evidence["markers"]) == ("empty-marker", 3)
        assert (each.segment, each.position, each.producer_id, each.producer_epoch) == (SECOND, 700, 7, 1)
        assert [cause.innocent for cause in each.explanations] == [True]
        assert list(each.next) == [TIMELINE]
