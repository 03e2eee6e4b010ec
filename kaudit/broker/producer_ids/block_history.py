"""Blocks of producer ids: how large they are, and the history of those granted, from every source that records them."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.errors import WireError
from kaudit.formats.zookeeper.pid_block import AnswerLine, BadLine, PidBlockLine, parse_pid_block
from kaudit.formats.zookeeper.transaction_log import ZnodeChange, ZnodeEvent
from kaudit.model.producer_ids import BlockEntry, EntryKind

BLOCK_SIZE = 1000
FIRST_BLOCK_START = 0
MAX_PRODUCER_ID = 2**63 - 1
MIN_INT64 = -(2**63)
NO_BROKER = -1
"""Written for the broker by the controller when it takes the counter over from, or back to, ZooKeeper."""

NO_BROKER_EPOCH = -1
"""The broker epoch of the one ProducerIdsRecord that a migration from ZooKeeper writes."""

LAST_CONTINUABLE_END = MAX_PRODUCER_ID - BLOCK_SIZE
"""A block that ends beyond this cannot be followed by another: every allocator calls it exhausted."""


class BlockHistory(Struct, frozen=True):
    """Entries from old to new. `observed_until_ms`: a later grant could not be in it; None when that is unknown.

    `end_place` is where its source ends: an offset, a transaction, a line.
    """

    entries: tuple[BlockEntry, ...] = ()
    observed_until_ms: int | None = None
    end_place: str = ""


class ProducerIdsRecord(Struct, frozen=True):
    """A record of `__cluster_metadata`: `next_producer_id` is the first id after the block just granted."""

    offset: int
    timestamp: int | None
    broker_id: int
    broker_epoch: int
    next_producer_id: int


def combine(histories: Sequence[BlockHistory]) -> BlockHistory:
    """Join histories of one cluster into one timeline.

    ZooKeeper's entries keep the order of their zxids, the controller's that of their offsets, and the two are merged by
    time. An entry of neither is dropped when one of those has the same grant, else placed by time, then by znode
    version, else at the end. `observed_until_ms` is the latest known, `end_place` that of its history.
    """
    entries = [entry for history in histories for entry in history.entries]
    by_zxid = {(entry.zxid, entry.version): entry for entry in reversed(entries) if entry.zxid is not None}
    by_offset = {entry.offset: entry for entry in reversed(entries) if entry.offset is not None}
    merged = _merge(
        sorted(by_zxid.values(), key=lambda entry: entry.zxid or 0),
        sorted(by_offset.values(), key=lambda entry: entry.offset or 0),
        _time,
    )
    known = {(entry.kind, entry.start, entry.end) for entry in merged}
    loose = [
        entry
        for entry in entries
        if entry.zxid is None and entry.offset is None and (entry.kind, entry.start, entry.end) not in known
    ]
    merged = _merge(merged, [entry for entry in loose if entry.at_ms is not None], _time)
    merged = _merge(merged, [entry for entry in loose if entry.at_ms is None], _version)
    ends = [(each.observed_until_ms, each.end_place) for each in histories if each.observed_until_ms is not None]
    return BlockHistory(tuple(merged), *max(ends, default=(None, "")))


def _time(entry: BlockEntry) -> int | None:
    return entry.at_ms


def _version(entry: BlockEntry) -> int | None:
    return entry.version


def _merge(one: list[BlockEntry], other: list[BlockEntry], key: Callable[[BlockEntry], int | None]) -> list[BlockEntry]:
    """Merge two lists by `key`, each keeping its own order; those of `other` without a key come last."""
    merged: list[BlockEntry] = []
    taken = 0
    for entry in other:
        limit = key(entry)
        while taken < len(one) and (limit is None or (key(one[taken]) or 0) <= limit):
            merged.append(one[taken])
            taken += 1
        merged.append(entry)
    return [*merged, *one[taken:]]


def from_znode(
    changes: Iterable[tuple[ZnodeChange, str]], observed_until_ms: int | None = None, last_zxid: int | None = None
) -> BlockHistory:
    """Build the history of one znode from its changes, each with the name of the file, by rising zxid."""
    entries = []
    for change, source in changes:
        kind = EntryKind.DELETED if change.event is ZnodeEvent.DELETED else EntryKind.EMPTY
        entry = BlockEntry(
            kind,
            source,
            version=change.version,
            zxid=change.zxid,
            at_ms=change.time_ms,
            position=change.position,
        )
        entries.append(_with_value(entry, change.data))
    return BlockHistory(tuple(entries), observed_until_ms, "" if last_zxid is None else f"transaction {last_zxid:#x}")


def from_lines(lines: Iterable[PidBlockLine], source: str) -> tuple[BlockHistory, list[BadLine]]:
    """Build a history from saved lines, in their order; values seen twice in a row are one. Lists the bad lines.

    It ends with the newest time of a line: what was granted later, nobody had seen.
    """
    entries: list[BlockEntry] = []
    seen: tuple[int | None, str] = (None, "")
    bad: list[BadLine] = []
    for line in lines:
        if isinstance(line, BadLine):
            bad.append(line)
            continue
        where = f"{source}:{line.number}"
        if line.seen_ms is not None and (seen[0] is None or line.seen_ms >= seen[0]):
            seen = line.seen_ms, f"line {line.number}"
        if isinstance(line, AnswerLine):
            end = line.start + line.length - 1
            entry = BlockEntry(EntryKind.GRANTED, where, line.start, end, line.broker, at_ms=line.at_ms)
        else:
            entry = BlockEntry(EntryKind.EMPTY, where, version=line.version, zxid=line.mzxid, at_ms=line.at_ms)
            entry = _with_value(entry, line.data)
        if not entries or _sight(entries[-1]) != _sight(entry):
            entries.append(entry)
    return BlockHistory(tuple(entries), *seen), bad


def from_records(
    records: Iterable[ProducerIdsRecord],
    source: str,
    observed_until_ms: int | None = None,
    last_offset: int | None = None,
) -> BlockHistory:
    """Build a history from the ProducerIdsRecords of `__cluster_metadata`, in offset order.

    `observed_until_ms` and `last_offset` are of the log's last batch of any kind.
    """
    entries = []
    for record in records:
        start, kind = record.next_producer_id - BLOCK_SIZE, EntryKind.GRANTED
        if record.broker_epoch == NO_BROKER_EPOCH:
            # The migration only says where to go on; what the znode's last block was only the znode says.
            start, kind = record.next_producer_id, EntryKind.RESERVED
        entries.append(
            BlockEntry(
                kind,
                source,
                start,
                start + BLOCK_SIZE - 1,
                record.broker_id,
                record.broker_epoch,
                offset=record.offset,
                at_ms=record.timestamp,
            )
        )
    return BlockHistory(tuple(entries), observed_until_ms, "" if last_offset is None else f"offset {last_offset}")


def _with_value(entry: BlockEntry, data: bytes | None) -> BlockEntry:
    """Complete the entry of a znode that exists with what its value says."""
    if not data:
        return entry
    try:
        value = parse_pid_block(data)
    except WireError as error:
        return replace(entry, kind=EntryKind.UNREADABLE, oddities=(str(error),))
    kind = EntryKind.RESERVED if value.broker == NO_BROKER else EntryKind.GRANTED
    return replace(entry, kind=kind, start=value.start, end=value.end, broker=value.broker, oddities=value.oddities)


_sight = attrgetter("kind", "start", "end", "broker", "version", "zxid")
"""What identifies a write: lines in which all of it is equal saw the same one."""
