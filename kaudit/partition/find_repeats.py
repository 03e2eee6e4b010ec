"""Second pass over parts of a partition, right after it was read: repeated records, and producer ids with two writers.

Clients that advance their sequence by another rule than the number of records.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.audits.repeats.non_idempotent_repeats import without_equal_records
from kaudit.audits.repeats.restarts import with_bumps
from kaudit.audits.sequences.rescan import Questions, rescan
from kaudit.deferred import Deferred
from kaudit.model.grouping import grouped
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import InterleavedWriters, SharedProducerId, StepMismatch, sequence_step
from kaudit.model.sequence import next_sequence
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.failed_reads import FailedReads
from kaudit.source.layout import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kaudit.audits.repeats import identities, regrouped, session_copies
    from kaudit.broker.producer_ids import interleaved_writers
else:
    interleaved_writers = Deferred("kaudit.broker.producer_ids.interleaved_writers")
    identities = Deferred("kaudit.audits.repeats.identities")
    regrouped = Deferred("kaudit.audits.repeats.regrouped")
    session_copies = Deferred("kaudit.audits.repeats.session_copies")

_MIN_STEPS = 3
"""Gaps or overlaps of one pattern that show a client's bug."""
_STEPS = frozenset({ObservationKind.GAP, ObservationKind.OVERLAP, ObservationKind.INSIDE})


def step_mismatches(observations: Iterable[Observation]) -> list[StepMismatch]:
    """Find chains of neighbouring gaps and overlaps of a producer that follow one pattern; `observations` in offset order."""
    chains: dict[tuple[int, int], list[_Chain]] = {}
    for observation in observations:
        if observation.explained or observation.kind not in _STEPS:
            continue
        if observation.remembered is None or observation.remembered.last is None:
            continue
        known = chains.setdefault((observation.producer_id, observation.producer_epoch), [])
        if not known or not known[-1].extend(observation):
            known.append(_Chain(observation))
    return [
        StepMismatch(chain.observations)
        for known in chains.values()
        for chain in known
        if len(chain.observations) >= _MIN_STEPS
    ]


class _Chain:
    """Neighbouring steps: all move the base sequence equally far, or equally far beyond the batch before."""

    def __init__(self, observation: Observation) -> None:
        self.observations = [observation]
        self._moved, records = sequence_step(observation)
        self._beyond = self._moved - records
        self._equally_far = self._equally_beyond = True

    def extend(self, observation: Observation) -> bool:
        """Add the step if it continues the pattern, and return whether it does."""
        assert observation.remembered is not None
        assert observation.remembered.last is not None
        if observation.remembered.last.base_offset != self.observations[-1].offset:
            return False
        moved, records = sequence_step(observation)
        equally_far = self._equally_far and moved == self._moved
        equally_beyond = self._equally_beyond and moved - records == self._beyond
        if not equally_far and not equally_beyond:
            return False
        self.observations.append(observation)
        self._equally_far, self._equally_beyond = equally_far, equally_beyond
        return True


MAX_SUSPECTS = 200
"""Producer ids of one partition read again."""
_ANOMALIES = frozenset(
    {
        ObservationKind.EXACT_DUPLICATE,
        ObservationKind.SAME_SEQUENCES,
        ObservationKind.BEHIND_WINDOW,
        ObservationKind.OVERLAP,
        ObservationKind.INSIDE,
        ObservationKind.GAP,
        ObservationKind.SEQUENCE_RESTART,
    }
)
"""Observations that a second writer's batches cause."""


def find_repeats(partition: PartitionAudit, open_source: OpenSource, most_bytes: int | None = None) -> None:
    """Read again the places where records may be repeated or two writers shared a producer id; keep the confirmed ones.

    Where records are decoded, all of the log before a session is searched for its first record, or at most so many bytes.
    """
    directory, reads = partition.directory, FailedReads(open_source)
    partition.repeats = without_equal_records(partition.repeats, directory, reads)
    if copies := partition.repeats.repeated:
        again, at_most = regrouped.regrouped_records(copies, directory, reads)
        partition.repeats = replace(partition.repeats, regrouped=again, at_most=at_most)
    restarts = partition.restarts
    if not partition.coverage_gaps and directory.topic not in INTERNAL_TOPICS:
        restarts, partition.bumps_not_compared = with_bumps(restarts, partition.observations)
    if restarts:
        reader = identities.TopicIdentities(None, reads).reader(directory)
        counts = partition.counts
        found = session_copies.compare_restarts(
            restarts,
            directory,
            reads,
            reader,
            most_bytes if partition.decoded else 0,
            largest_batch=0 if counts.compressed else counts.largest_batch,
            tails=partition.tails[: 0 if partition.unlisted else None],
            damages=partition.damages,
        )
        partition.repeated_sessions, partition.repeated_epochs, partition.restarts_not_exhausted = found
    partition.restarts_compared = 0 if partition.decoded else len(partition.restarts)
    partition.restarts, partition.tails = (), partition.tails[:0]
    if partition.observations:
        partition.shared = shared_producer_ids(partition, reads)
    partition.failed_reads = [*partition.failed_reads, *reads.unreadable]


def shared_producer_ids(part: PartitionAudit, open_source: OpenSource) -> list[SharedProducerId]:
    """Return the ids of a partition whose batches are two chains; it is read again if its observations suggest that."""
    anomalies = [found for found in part.observations if not found.explained and found.kind in _ANOMALIES]
    chosen = _suspects(anomalies)
    if chosen and not (part.compacted or part.dropped_observations):  # no observation was left out
        back = _came_back(part.observations, chosen)
        chosen = {key: start for key, start in chosen.items() if key in back}
    if not chosen:
        return []
    seen = rescan(part.directory, open_source, Questions(chains=chosen))
    shared: list[SharedProducerId] = []
    for producer_id, epoch in chosen:
        writers = interleaved_writers.find_interleaved_writers(seen.chain(producer_id, epoch))
        if writers is None:
            continue
        own = _explained_by(writers, [found for found in anomalies if _key(found) == (producer_id, epoch)])
        if own and _is_likely(writers, log_append_time=part.counts.log_append_time > 0):
            shared.append(SharedProducerId(producer_id, epoch, writers, own, grants=0))
    return shared


def _key(observation: Observation) -> tuple[int, int]:
    return observation.producer_id, observation.producer_epoch


def _suspects(anomalies: Sequence[Observation]) -> Mapping[tuple[int, int], int]:
    """Choose the (producer id, epoch)s to read again: with as many anomalies as two writers make, at least.

    The value is the offset to read from. Clients that count wrongly look like two writers: they have their own check.
    """
    miscounted = {found.producer_id for chain in step_mismatches(anomalies) for found in chain.observations}
    counted = grouped((_key(found), found) for found in anomalies if found.producer_id not in miscounted)
    chosen = {key: _start(own[0]) for key, own in counted.items() if len(own) >= interleaved_writers.MIN_CHANGES}
    return dict(list(chosen.items())[:MAX_SUSPECTS])


def _came_back(
    observations: Iterable[Observation], chosen: Mapping[tuple[int, int], int]
) -> Container[tuple[int, int]]:
    """Return those of which a batch goes on where the sequences once left off, as one does when two writers take turns twice.

    Where the log changes from one chain to the other, the batch or the one before it is no producer's next one, and was observed.
    """
    left: dict[tuple[int, int], set[int]] = {key: set() for key in chosen}
    back = set()
    for found in observations:
        ends, batch = left.get(_key(found)), found.batch
        if ends is None or batch is None or found.kind is ObservationKind.EXACT_DUPLICATE:
            continue
        if batch.first_sequence in ends:
            back.add(_key(found))
        ends.add(next_sequence(batch.last_sequence))
        if found.remembered is not None:
            ends.add(next_sequence(found.remembered.last_sequence))
    return back


def _start(anomaly: Observation) -> int:
    """The offset of the oldest batch remembered: it is the first chain's, from before the second one began."""
    assert anomaly.remembered is not None
    window = anomaly.remembered.window
    return window[0].base_offset if window else anomaly.offset


def _is_likely(writers: InterleavedWriters, *, log_append_time: bool) -> bool:
    """Whether two writers explain it better than copies whose CRC the broker changed (LogAppendTime)."""
    return not log_append_time or 2 * writers.rewritten < writers.second.batches


def _explained_by(writers: InterleavedWriters, anomalies: Sequence[Observation]) -> list[Observation]:
    first = min(writers.first.first_offset, writers.second.first_offset)
    last = max(writers.first.last_offset, writers.second.last_offset)
    return [found for found in anomalies if first <= found.offset <= last]
