"""Results about producer ids and the blocks they were allocated from."""

from enum import StrEnum

from msgspec import Struct

BlockRange = tuple[int, int]
"""First and last id of a block, inclusive."""


class EntryKind(StrEnum):
    """The kind of an entry in the history of blocks."""

    GRANTED = "granted"  # a broker got the block
    RESERVED = "reserved"  # the controller moved the counter to `start`; nobody got the block
    EMPTY = "empty"  # the znode was created without a value: the next block is the first
    DELETED = "deleted"  # the znode is gone
    UNREADABLE = "unreadable"  # a value no broker can continue from


class BlockEntry(Struct, frozen=True):
    """One change of the allocator's state.

    `start`..`end` (int64, inclusive) is the block, both None unless granted or reserved. `version` is the znode's
    version, `zxid` ZooKeeper's transaction, `offset` the record's in `__cluster_metadata`; each None where the source
    does not know it, as `at_ms` (ms since 1970), `broker` and `broker_epoch`. `source` names the file or line,
    `position` the byte in it. `oddities` are sentences about a value no broker would have written this way.
    """

    kind: EntryKind
    source: str
    start: int | None = None
    end: int | None = None
    broker: int | None = None
    broker_epoch: int | None = None
    version: int | None = None
    zxid: int | None = None
    offset: int | None = None
    at_ms: int | None = None
    position: int | None = None
    oddities: tuple[str, ...] = ()


class RegressionCause(StrEnum):
    """What set the counter back, as far as the history shows."""

    MIGRATION = "migration"  # KAFKA-15552: the migration to KRaft copied the block in use instead of the next
    RECREATED = "recreated"  # the znode was deleted and began again
    SAME_BLOCK = "same-block"  # one block went to two brokers: the conditional update did not hold
    SET_BACK = "set-back"  # the znode holds an older value: restored or edited


class BlockOverlap(Struct, frozen=True):
    """Ids `first`..`last` (inclusive) granted by `earlier` and, once more, by `later`."""

    earlier: BlockEntry
    later: BlockEntry
    first: int
    last: int


class SharedBlock(Struct, frozen=True):
    """Ids granted twice and which of them the logs show. At most ten of `seen_count` are in `seen`.

    `cause` is what set the counter back before the second grant, None when the history does not show it.
    """

    overlap: BlockOverlap
    cause: RegressionCause | None
    seen_count: int
    seen: tuple[int, ...]


class MalformedBlock(Struct, frozen=True):
    """A value that no broker writes. `defects` are sentences, at least one."""

    entry: BlockEntry
    defects: tuple[str, ...]


class NearEnd(Struct, frozen=True):
    """The ids run out. `entry` is the last block, `ids_left` may still be granted after it.

    `days_left` is the time they last at the observed rate, None without one. `exhausted`: the next broker that needs a
    block gets none; the one that holds the last of 0.11 to 2.8 goes on with negative ids.
    """

    entry: BlockEntry
    ids_left: int
    days_left: float | None
    exhausted: bool


class UnallocatedReason(StrEnum):
    """Where an id lies that is in no known block."""

    NEGATIVE = "negative"  # no allocator grants it; an exhausted one overflows into it
    BEYOND = "beyond"  # after the last block known
    BEFORE = "before"  # before the first block known
    BETWEEN = "between"  # between two known blocks


class Unallocated(Struct, frozen=True):
    """A producer id no known block holds. `nearest_below` is the grant with the highest end below it, if any.

    `proven`: the history is complete, so no block can have held it. `after_history`: its first batch may be younger
    than all the history could show, so a later grant may hold it; None when either time is unknown.
    """

    producer_id: int
    reason: UnallocatedReason
    nearest_below: BlockEntry | None
    proven: bool
    after_history: bool | None


class FirstBatch(Struct, frozen=True):
    """The first batch (or marker) of a producer id in a partition; `timestamp` in ms since 1970, `by_broker`: a broker wrote it."""

    offset: int
    last_offset: int
    timestamp: int
    producer_epoch: int
    position: int
    segment: int
    by_broker: bool = False


class UnallocatedId(Struct, frozen=True, tag=True):
    """An id that no block holds, in the partition where it appears first; `partitions` is in how many it appears.

    `next_block` is the block the next broker will get, `history` names the sources of the blocks. `by_client`: that it was in
    use before the history ends is known from its client's timestamp alone.
    """

    found: Unallocated
    first: FirstBatch
    partitions: int
    next_block: BlockRange | None
    history: str
    by_client: bool = False


class ProducerIdStatistics(Struct, frozen=True, tag=True):
    """The producer ids of one partition replica: how many, their batches, and the time they cover (ms since 1970)."""

    producers: int
    batches: int
    first_timestamp: int
    last_timestamp: int
