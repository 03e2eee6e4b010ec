"""All replicas of one partition side by side: where they agree and diverge, and what brokers would truncate."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, pairwise
from typing import TypeVar

from kaudit.audits.replicas.compare import Columns, PairCompare, batch_at
from kaudit.audits.replicas.gaps import Held, replica_gaps
from kaudit.audits.replicas.replica_reader import ReplicaReader
from kaudit.broker.partition.truncation import truncation_offset
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.replicas import (
    BrokerReplicas,
    CopyChange,
    Difference,
    OffsetRange,
    PartitionComparison,
    Relation,
    ReplicaBatch,
    ReplicaGap,
)
from kaudit.source.layout import ALWAYS_COMPACTED

_NO_BOUND = 2**63 - 1
_GRAVITY = (Relation.IDENTICAL, Relation.APPENDED, Relation.TRUNCATED, Relation.BEHIND, Relation.DIVERGED)

Pair = tuple[str, str]
_T = TypeVar("_T")


def read_side_by_side(
    readers: Mapping[str, ReplicaReader], agreeing: AbstractSet[str], *, compacted: bool
) -> tuple[dict[Pair, Difference], dict[str, ReplicaBatch]]:
    """Read all replicas to their ends; return where each pair diverges, and each replica's last batch before that.

    Divergence among the replicas `agreeing` decides on the last batch. Memory is one window per replica: a window ends where the
    first of the replicas' buffers ends.
    """
    names = list(readers)
    pairs = {pair: PairCompare(compacted) for pair in combinations(names, 2)}
    diverged: dict[Pair, Difference] = {}
    last: dict[str, ReplicaBatch] = {}
    while True:
        for reader in readers.values():
            reader.fill()
        running = [reader for reader in readers.values() if not reader.ended]
        if not running:
            return diverged, last
        until = min((int(reader.pending["last_offset"][-1]) for reader in running), default=_NO_BOUND)
        windows = {name: reader.take(until) for name, reader in readers.items()}
        for pair, compare in pairs.items():
            if pair in diverged:
                continue
            left, right = windows[pair[0]], windows[pair[1]]
            conflict = compare.feed(left, right)
            if conflict is not None:
                found = {
                    name: batch_at(rows, index)
                    for name, rows, index in zip(pair, (left, right), (conflict.left, conflict.right), strict=True)
                    if index is not None
                }
                diverged[pair] = Difference(conflict.offset, found)
        first = min((at.offset for pair, at in diverged.items() if {*pair} <= agreeing), default=_NO_BOUND)
        _note_last(last, windows, first)


def _note_last(last: dict[str, ReplicaBatch], windows: Mapping[str, Columns], first: int) -> None:
    """Keep the last batch of each replica below offset `first`, for display."""
    for name, rows in windows.items():
        below = int((rows["last_offset"] < first).sum())
        if below:
            last[name] = batch_at(rows, below - 1)


def compare_partition(  # noqa: PLR0913 - independent inputs
    readers: Mapping[str, ReplicaReader],
    checkpoints: Mapping[str, LeaderEpochCheckpoint],
    missing_on: Sequence[str],
    copies: Sequence[BrokerReplicas],
    *,
    says_compacted: bool,
    who_led: Callable[[], Mapping[int, int]] = dict,
) -> tuple[PartitionComparison, dict[str, ReplicaBatch]]:
    """Compare the copies of one partition; `checkpoints` are their leader-epoch-checkpoints, those that parse.

    `copies` are those of `readers` that are one broker's. The batches returned are each replica's last before the first
    difference of the replicas. `who_led` is asked for the broker that led under each leader epoch where a copy without a checkpoint
    does not show whether its broker led last.
    """
    directory = next(iter(readers.values())).directory
    compacted = says_compacted or _is_compacted(readers)
    earlier = {name for entry in copies for name in entry.replicas[:-1]}
    replicas = [name for name in readers if name not in earlier]
    diverged, last = read_side_by_side(readers, {*replicas}, compacted=compacted)
    ends = {name: reader.end_offset for name, reader in readers.items()}
    epochs = {
        name: merged_epochs(reader.leader_epochs, checkpoints.get(name), ends[name]) for name, reader in readers.items()
    }
    agreed = {pair: _agreed(pair, diverged, ends) for pair in combinations(readers, 2)}
    gaps = [] if compacted else _gaps(readers, agreed)
    changes = [
        copy_change(entry.broker_id, pair, _of_pair(pair, diverged), gaps, ends)
        for entry in copies
        for pair in pairwise(entry.replicas)
    ]
    if len({ends[name] for name in replicas}) > 1 and any(name not in checkpoints for name in replicas):
        epochs |= _of_newest_leader({name: readers[name] for name in replicas}, epochs, who_led())
    reference = max(replicas, key=lambda name: (_last_epoch(epochs[name]), ends[name], -replicas.index(name)))
    relations = _relations(replicas, reference, diverged, gaps, ends)
    divergences = [divergence for pair, divergence in diverged.items() if earlier.isdisjoint(pair)]
    common = [offset for pair, offset in agreed.items() if earlier.isdisjoint(pair)]
    common += [gap.first_offset for gap in gaps if gap.parts(replicas)]
    return (
        PartitionComparison(
            topic=directory.topic,
            partition=directory.partition,
            relation=Relation.DIVERGED
            if divergences or any(gap.parts(replicas) for gap in gaps)
            else max([*relations.values()] or [change.relation for change in changes], key=_GRAVITY.index, default=None)
            or Relation.MISSING,
            reference=reference if relations else None,
            relations=relations,
            missing_on=list(missing_on),
            common_end_offset=min(common or [change.common_end_offset for change in changes], default=None),
            first_difference=_difference(divergences, replicas),
            leader_epochs=epochs,
            truncation_offsets={
                name: truncation_offset(epochs[name], ends[name], epochs[reference], ends[reference])
                for name in relations
            },
            only_on=_only_on(readers, agreed, ends, copies),
            start_offsets={name: reader.first_offset for name, reader in readers.items()},
            end_offsets=ends,
            copy_changes=changes,
            gaps=gaps,
        ),
        last,
    )


def _of_newest_leader(
    readers: Mapping[str, ReplicaReader], epochs: Mapping[str, Sequence[EpochEntry]], leaders: Mapping[int, int]
) -> dict[str, list[EpochEntry]]:
    """Return the leader epochs of the copy whose broker led last, if it shows no batch of then: its epoch begins at its log's end."""
    newest = max(leaders, default=None)
    return {
        name: [*epochs[name], EpochEntry(newest, reader.end_offset)]
        for name, reader in readers.items()
        if newest is not None
        and reader.directory.identity is not None
        and reader.directory.identity.broker_id == leaders[newest]
        and _last_epoch(epochs[name]) < newest
    }


def _is_compacted(readers: Mapping[str, ReplicaReader]) -> bool:
    directories = [reader.directory for reader in readers.values()]
    return any(entry.topic in ALWAYS_COMPACTED or entry.first_dirty_offset is not None for entry in directories)


def _gaps(readers: Mapping[str, ReplicaReader], agreed: Mapping[Pair, int]) -> list[ReplicaGap]:
    """Return what copies lack that others hold, unless a copy was compacted or not read to its end."""
    if any(reader.gaps.compacted or reader.unreadable for reader in readers.values()):
        return []
    copies = {name: Held(reader.first_offset, reader.end_offset, reader.gaps.gaps) for name, reader in readers.items()}
    return replica_gaps(copies, lambda name, other: _of_pair((name, other), agreed) or 0)


def _relations(
    replicas: Sequence[str],
    reference: str,
    diverged: Mapping[Pair, Difference],
    gaps: Sequence[ReplicaGap],
    ends: Mapping[str, int],
) -> dict[str, Relation]:
    """Return the relation of each other replica to the reference."""
    return {
        name: Relation.DIVERGED
        # longer than the reference: a newer leader began at the reference's end, without the rest
        if _of_pair((name, reference), diverged)
        or ends[name] > ends[reference]
        or any(gap.parts((name, reference)) for gap in gaps)
        else Relation.BEHIND
        if ends[name] < ends[reference]
        else Relation.IDENTICAL
        for name in replicas
        if name != reference
    }


def copy_change(
    broker_id: int, pair: Pair, divergence: Difference | None, gaps: Sequence[ReplicaGap], ends: Mapping[str, int]
) -> CopyChange:
    """Return how the log changed from the earlier copy (the first of `pair`) to the later one."""
    earlier, later = pair
    agreed = min(ends[earlier], ends[later]) if divergence is None else divergence.offset
    relation = Relation.APPENDED if agreed < ends[later] else Relation.IDENTICAL
    if any(gap.parts(pair) for gap in gaps):
        relation = Relation.DIVERGED
    truncated = OffsetRange(agreed, ends[earlier] - 1) if agreed < ends[earlier] else None
    return CopyChange(
        broker_id=broker_id,
        earlier=earlier,
        later=later,
        relation=relation if truncated is None else Relation.TRUNCATED,
        common_end_offset=agreed,
        truncated=truncated,
        first_difference=_difference([divergence], pair),
    )


def _difference(divergences: Iterable[Difference | None], names: Sequence[str]) -> Difference | None:
    """Return the first of these divergences, with the batches there in the order of `names`."""
    known = [divergence for divergence in divergences if divergence is not None]
    if not known:
        return None
    first = min(divergence.offset for divergence in known)
    batches: dict[str, ReplicaBatch] = {}
    for divergence in known:
        if divergence.offset == first:
            batches.update(divergence.batches)
    return Difference(first, {name: batches[name] for name in names if name in batches})


def merged_epochs(
    batches: Sequence[EpochEntry], checkpoint: LeaderEpochCheckpoint | None, end_offset: int
) -> list[EpochEntry]:
    """Return what a broker's epoch cache holds: the checkpoint's entries, then epochs of batches that came after it.

    The checkpoint of a running broker may be older than its log; without a checkpoint, or with a damaged one, the epochs of
    batches are used. An entry at `end_offset`, the log's end, is a leader that has written nothing yet. One beyond it was
    copied later than the log, or the log has lost its end: brokers drop it (`LeaderEpochFileCache.truncateFromEnd`).
    """
    known: list[EpochEntry] = []
    for row in checkpoint.rows if checkpoint is not None and not checkpoint.damage else ():
        if row.start_offset > end_offset:
            break
        if not known or (row.epoch > known[-1].epoch and row.start_offset >= known[-1].start_offset):
            known.append(EpochEntry(row.epoch, row.start_offset))
    newest = known[-1].epoch if known else -1
    return known + [row for row in batches if row.epoch > newest]


def _last_epoch(epochs: Sequence[EpochEntry]) -> int:
    return epochs[-1].epoch if epochs else -1


def _of_pair(pair: Pair, values: Mapping[Pair, _T]) -> _T | None:
    return values.get(pair, values.get((pair[1], pair[0])))


def _agreed(pair: Pair, diverged: Mapping[Pair, Difference], ends: Mapping[str, int]) -> int:
    """Return the offset up to which two replicas hold the same."""
    divergence = diverged.get(pair)
    return divergence.offset if divergence is not None else min(ends[pair[0]], ends[pair[1]])


def _only_on(
    readers: Mapping[str, ReplicaReader],
    agreed: Mapping[Pair, int],
    ends: Mapping[str, int],
    copies: Sequence[BrokerReplicas],
) -> dict[str, OffsetRange]:
    """Return the offsets at each replica's end that no other replica holds, for an earlier copy of a broker no newer copy.

    Offsets that several earlier copies hold are listed for the longest of them, of equally long ones for the last.
    """
    later = {name: entry.replicas[at + 1 :] for entry in copies for at, name in enumerate(entry.replicas[:-1])}
    replicas = [name for name in readers if name not in later]
    found: dict[str, OffsetRange] = {}
    for number, (name, reader) in enumerate(readers.items()):
        others = {*later.get(name, ()), *replicas} - {name}
        if name in later:
            others |= {
                other
                for place, other in enumerate(readers)
                if other in later and (ends[other], place) > (ends[name], number)
            }
        if not others:
            continue
        shared = max(offset for pair, offset in agreed.items() if name in pair and not others.isdisjoint(pair))
        if shared < ends[name] and reader.first_offset is not None:
            found[name] = OffsetRange(max(shared, reader.first_offset), ends[name] - 1)
    return found
