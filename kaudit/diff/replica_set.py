"""All replicas of one partition side by side: what they agree on, where they part, what would become of it."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from kaudit.broker.partition.truncation import truncation_offset
from kaudit.diff.compare import PairCompare
from kaudit.diff.replica_reader import Columns, ReplicaReader, batch_at
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint
from kaudit.model.epoch_entry import EpochEntry
from kaudit.model.replicas import Difference, OffsetRange, PartitionComparison, Relation, ReplicaBatch
from kaudit.source.layout import ALWAYS_COMPACTED

_NO_BOUND = 2**63 - 1
_GRAVITY = (Relation.IDENTICAL, Relation.BEHIND, Relation.DIVERGED)

Pair = tuple[str, str]


class Parting(Struct, frozen=True):
    """Where two replicas first differ: the batch each holds there, None where it was read too long ago."""

    offset: int
    batches: Mapping[str, ReplicaBatch]


def read_side_by_side(
    readers: Mapping[str, ReplicaReader], *, compacted: bool
) -> tuple[dict[Pair, Parting], dict[str, ReplicaBatch]]:
    """Read all replicas to their ends; return where each pair parts, and the last batch all of them agreed on.

    Memory is a window a replica: a window ends where the first of the replicas' buffers does.
    """
    names = list(readers)
    pairs = {pair: PairCompare(compacted) for pair in combinations(names, 2)}
    parted: dict[Pair, Parting] = {}
    last: dict[str, ReplicaBatch] = {}
    while True:
        for reader in readers.values():
            reader.fill()
        running = [reader for reader in readers.values() if not reader.ended]
        if not running and not any(len(reader.pending["base_offset"]) for reader in readers.values()):
            return parted, last
        until = min((int(reader.pending["last_offset"][-1]) for reader in running), default=_NO_BOUND)
        windows = {name: reader.take(until) for name, reader in readers.items()}
        for pair, compare in pairs.items():
            if pair in parted:
                continue
            left, right = windows[pair[0]], windows[pair[1]]
            conflict = compare.feed(left, right)
            if conflict is not None:
                found = {
                    name: batch_at(rows, index)
                    for name, rows, index in zip(pair, (left, right), (conflict.left, conflict.right), strict=True)
                    if index is not None
                }
                parted[pair] = Parting(conflict.offset, found)
        _note_last(last, windows, parted)


def _note_last(last: dict[str, ReplicaBatch], windows: Mapping[str, Columns], parted: Mapping[Pair, Parting]) -> None:
    """Keep the last batch of each replica below every parting, for display."""
    first = min((parting.offset for parting in parted.values()), default=_NO_BOUND)
    for name, rows in windows.items():
        below = int((rows["last_offset"] < first).sum())
        if below:
            last[name] = batch_at(rows, below - 1)


def compare_partition(  # noqa: PLR0914 - one pass over the windows
    readers: Mapping[str, ReplicaReader],
    checkpoints: Mapping[str, LeaderEpochCheckpoint],
    missing_on: Sequence[str],
    *,
    says_compacted: bool,
) -> tuple[PartitionComparison, dict[str, ReplicaBatch]]:
    """Compare the replicas of one partition; `checkpoints` are their leader-epoch-checkpoints, those that parse.

    The batches returned are each replica's last before the first difference.
    """
    directories = [reader.directory for reader in readers.values()]
    topic, partition = directories[0].topic, directories[0].partition
    compacted = says_compacted or topic in ALWAYS_COMPACTED
    compacted = compacted or any(directory.first_dirty_offset is not None for directory in directories)
    parted, last = read_side_by_side(readers, compacted=compacted)
    ends = {name: reader.end_offset for name, reader in readers.items()}
    epochs = {
        name: merged_epochs(reader.leader_epochs, checkpoints.get(name), ends[name]) for name, reader in readers.items()
    }
    reference = max(readers, key=lambda name: (_last_epoch(epochs[name]), ends[name], -list(readers).index(name)))
    agreed = {pair: _agreed(pair, parted, ends) for pair in combinations(readers, 2)}
    relations = {
        name: Relation.DIVERGED
        # longer than the reference: a newer leader began where that one ends, without what is beyond
        if _pair(name, reference, parted) or ends[name] > ends[reference]
        else Relation.BEHIND
        if ends[name] < ends[reference]
        else Relation.IDENTICAL
        for name in readers
        if name != reference
    }
    relation = max(relations.values(), key=_GRAVITY.index, default=Relation.MISSING)
    if parted:
        relation = Relation.DIVERGED
    difference = None
    if parted:
        first = min(parting.offset for parting in parted.values())
        batches: dict[str, ReplicaBatch] = {}
        for parting in parted.values():
            if parting.offset == first:
                batches.update(parting.batches)
        difference = Difference(first, {name: batches[name] for name in readers if name in batches})
    common = min([*agreed.values(), *([] if agreed else ends.values())])
    return (
        PartitionComparison(
            topic=topic,
            partition=partition,
            relation=relation,
            reference=reference if len(readers) > 1 else None,
            relations=relations,
            missing_on=list(missing_on),
            common_end_offset=common if len(readers) > 1 else None,
            first_difference=difference,
            leader_epochs=epochs,
            truncation_offsets={
                name: truncation_offset(epochs[name], ends[name], epochs[reference], ends[reference])
                for name in relations
            },
            only_on=_only_on(readers, agreed, ends),
            start_offsets={name: reader.first_offset for name, reader in readers.items()},
            end_offsets=ends,
        ),
        last,
    )


def merged_epochs(
    batches: Sequence[EpochEntry], checkpoint: LeaderEpochCheckpoint | None, end_offset: int
) -> list[EpochEntry]:
    """Return what a broker's epoch cache holds: the checkpoint's entries, then epochs of batches that came after it.

    The checkpoint of a running broker may be older than its log; without one (or if it breaks off) the batches say. An
    entry at `end_offset`, the log's end, is a leader that has written nothing yet; one beyond it was copied later than the
    log, or the log has lost its end: brokers drop it (`LeaderEpochFileCache.truncateFromEnd`).
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


def _pair(name: str, other: str, parted: Mapping[Pair, Parting]) -> Parting | None:
    return parted.get((name, other)) or parted.get((other, name))


def _agreed(pair: Pair, parted: Mapping[Pair, Parting], ends: Mapping[str, int]) -> int:
    """Offset up to which two replicas hold the same."""
    parting = parted.get(pair)
    return parting.offset if parting is not None else min(ends[pair[0]], ends[pair[1]])


def _only_on(
    readers: Mapping[str, ReplicaReader], agreed: Mapping[Pair, int], ends: Mapping[str, int]
) -> dict[str, OffsetRange]:
    """What each replica holds at its end that no other one holds the same."""
    found: dict[str, OffsetRange] = {}
    for name, reader in readers.items():
        shared = max((offset for pair, offset in agreed.items() if name in pair), default=reader.first_offset)
        if shared is not None and shared < ends[name] and reader.first_offset is not None:
            found[name] = OffsetRange(max(shared, reader.first_offset), ends[name] - 1)
    return found
