"""Epoch bumps of idempotent producers after which the client sent again what was in the log already.

A client that raises its epoch numbers its batches in flight anew, from 0, and sends them again: their headers change, their
records do not (Kafka's ProducerBatch.resetProducerState). If they had been appended, the tail of the old epoch stands again
at the head of the new one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kaudit.audits.repeats.producer_batches import ProducerBatches
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import RepeatedEpoch
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.record_content import contents_of
from kaudit.source.layout import PartitionDirectory

MAX_BUMPS = 100
"""Bumps of one partition looked into; each reads some of the log again."""


def repeated_epochs(
    observations: Sequence[Observation], directory: PartitionDirectory, open_source: OpenSource
) -> tuple[list[RepeatedEpoch], int]:
    """Return the bumps after which the tail of the old epoch stands again, and how many bumps were not looked into.

    Only bumps outside transactions: what a transaction wrote and aborted is written again by right.
    """
    bumps = [found for found in observations if found.kind is ObservationKind.CLIENT_BUMP and not found.explained]
    repeated = []
    for bump in bumps[:MAX_BUMPS]:
        try:
            found = _compare(bump, directory, open_source)
        except OSError:
            continue  # reported by the audit itself
        repeated += [] if found is None else [found]
    return repeated, max(len(bumps) - MAX_BUMPS, 0)


def one_for_each_bump(found: Iterable[RepeatedEpoch]) -> list[RepeatedEpoch]:
    """Return of those about the same bump the one with the most records, in offset order."""
    most: dict[tuple[int, int], RepeatedEpoch] = {}
    for repeated in found:
        key = repeated.producer_id, repeated.producer_epoch
        if key not in most or repeated.records > most[key].records:
            most[key] = repeated
    return sorted(most.values(), key=lambda repeated: repeated.first_offset)


def _compare(bump: Observation, directory: PartitionDirectory, open_source: OpenSource) -> RepeatedEpoch | None:
    state, first = bump.remembered, bump.batch
    if state is None or state.last is None or first is None:
        return None
    reader = ProducerBatches(directory, open_source)
    tail = reader.before(state.last, bump.producer_id, state.epoch)
    head = reader.after(first, bump.producer_id, bump.producer_epoch)
    start, length = _longest(tail.keys, head.keys)
    if not length:
        return None
    copied, again = tail.batches[start : start + length], head.batches[:length]
    same_times = tail.times[start : start + length] == head.times[:length]
    if same_times:
        sides = list(zip(tail.keys, tail.times, strict=True)), list(zip(head.keys, head.times, strict=True))
        distinct = unlike_others(*sides, length)
    else:
        distinct = unlike_others(tail.keys, head.keys, length)
    if not distinct or (distinct == 1 and not same_times):
        return None  # what is common around is no evidence, and one batch without its time may be chance
    if distinct == 1:
        distinct = max(len({content for batch in copied for content in contents_of(batch, directory, open_source)}), 1)
    return RepeatedEpoch(
        producer_id=bump.producer_id,
        producer_epoch=bump.producer_epoch,
        previous_epoch=state.epoch,
        first_offset=again[0].base_offset,
        last_offset=again[-1].last_offset,
        copied_first=copied[0].base_offset,
        copied_last=copied[-1].last_offset,
        copied=copied,
        again=again,
        records=sum(batch.record_count for batch in again),
        distinct=distinct,
        same_times=same_times,
        to_the_end=start + length == len(tail.keys) or length == len(head.keys),
    )


def _longest(tail: Sequence[object], head: Sequence[object]) -> tuple[int, int]:
    """Where in `tail` the longest beginning of `head` is found, and how long it is; the latest of several."""
    best = 0, 0
    for start in range(len(tail)):
        length = 0
        while length < len(head) and start + length < len(tail) and tail[start + length] == head[length]:
            length += 1
        if length and length >= best[1]:
            best = start, length
    return best


def unlike_others(tail: Sequence[object], head: Sequence[object], length: int) -> int:
    """Return how many of the first `length` of `head` are found once on either side: what is common around proves nothing."""
    before, after = Counter(tail), Counter(head)
    return sum(before[one] == after[one] == 1 for one in head[:length])
