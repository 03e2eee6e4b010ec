"""Batches that brokers say they refused, and whether they reached the log later."""

from collections.abc import Iterable, Mapping, Sequence

from kaudit.model.application_logs import LogEvent, LogEventKind, RefusedBatches
from kaudit.model.logged_incidents import Outcome

MAX_LISTED = 1000
_REFUSALS = (LogEventKind.OUT_OF_ORDER_SEQUENCE, LogEventKind.UNKNOWN_PRODUCER_ID, LogEventKind.INVALID_TXN_STATE)
_FENCED = (LogEventKind.INVALID_PRODUCER_EPOCH, LogEventKind.FENCED_PRODUCER)
_ORDER = (Outcome.NEVER_LANDED, Outcome.UNKNOWN, Outcome.SUPERSEDED, Outcome.LANDED, Outcome.FENCED)
States = Mapping[tuple[str, int], Mapping[int, tuple[int, int]]]
"""By topic and partition: the last epoch and sequence of producer ids."""


def refused_batches(events: Iterable[LogEvent], states: States) -> tuple[Sequence[RefusedBatches], int]:
    """Return the batches that server logs say were refused, those that never landed first, and how many more there are."""
    groups: dict[tuple[str, int, int, int | None, LogEventKind], list[LogEvent]] = {}
    for event in events:
        if event.origin != "server" or event.event not in (*_REFUSALS, *_FENCED):
            continue
        if event.topic is None or event.partition is None or event.producer_id is None:
            continue
        key = (event.topic, event.partition, event.producer_id, event.producer_epoch, event.event)
        groups.setdefault(key, []).append(event)
    found = [_refused(group, states) for group in groups.values()]
    found.sort(
        key=lambda one: (
            _ORDER.index(Outcome(one.outcome)),
            one.topic,
            one.partition,
            one.producer_id,
            one.path,
            one.line,
        )
    )
    return found[:MAX_LISTED], len(found[MAX_LISTED:])


def _refused(events: Sequence[LogEvent], states: States) -> RefusedBatches:
    first = events[0]
    assert first.topic is not None
    assert first.partition is not None
    assert first.producer_id is not None
    sequences = [event.base_sequence for event in events if event.base_sequence is not None]
    return RefusedBatches(
        first.topic,
        first.partition,
        first.producer_id,
        first.producer_epoch,
        first.event.value,
        len(events),
        min(sequences, default=None),
        max(sequences, default=None),
        outcome_in_log(first, max(sequences, default=None), states.get((first.topic, first.partition))).value,
        first.path,
        first.line,
        first.text.partition("\n")[0],
    )


def outcome_in_log(event: LogEvent, sequence: int | None, states: Mapping[int, tuple[int, int]] | None) -> Outcome:
    """Return what became of refused batches up to base sequence `sequence`, by what the partition's log holds of producers."""
    if event.event in _FENCED:
        return Outcome.FENCED
    if states is None:
        return Outcome.UNKNOWN  # the partition was not read
    epoch, last = states.get(event.producer_id or 0, (-1, -1))
    if event.producer_epoch is not None and epoch > event.producer_epoch:
        return Outcome.SUPERSEDED
    # lines of brokers before 2.8 name no epoch, and each begins at sequence 0 again
    if sequence is None or (event.producer_epoch is None and epoch > 0):
        return Outcome.UNKNOWN
    landed = last >= sequence and epoch >= (event.producer_epoch or 0)
    return Outcome.LANDED if landed else Outcome.NEVER_LANDED
