"""From what one source says of the blocks of producer ids to a history."""

from collections.abc import Iterable
from operator import attrgetter

from msgspec.structs import replace

from kaudit.broker.producer_ids.block_history import BlockHistory, ProducerIdsRecord
from kaudit.broker.producer_ids.blocks import BLOCK_SIZE, NO_BROKER, NO_BROKER_EPOCH
from kaudit.formats.errors import WireError
from kaudit.formats.zookeeper.pid_block import AnswerLine, BadLine, PidBlockLine, parse_pid_block
from kaudit.formats.zookeeper.znode import ZnodeChange, ZnodeEvent
from kaudit.model.producer_ids import BlockEntry, EntryKind


def from_znode(changes: Iterable[tuple[ZnodeChange, str]], observed_until_ms: int | None = None) -> BlockHistory:
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
    return BlockHistory(tuple(entries), observed_until_ms)


def from_lines(lines: Iterable[PidBlockLine], source: str) -> tuple[BlockHistory, list[BadLine]]:
    """Build a history from saved lines, in their order; values seen twice in a row are one. Lists the bad lines."""
    entries: list[BlockEntry] = []
    bad: list[BadLine] = []
    for line in lines:
        if isinstance(line, BadLine):
            bad.append(line)
            continue
        where = f"{source}:{line.number}"
        if isinstance(line, AnswerLine):
            end = line.start + line.length - 1
            entry = BlockEntry(EntryKind.GRANTED, where, line.start, end, line.broker, at_ms=line.at_ms)
        else:
            entry = BlockEntry(EntryKind.EMPTY, where, version=line.version, zxid=line.mzxid, at_ms=line.at_ms)
            entry = _with_value(entry, line.data)
        if not entries or _sight(entries[-1]) != _sight(entry):
            entries.append(entry)
    return BlockHistory(tuple(entries)), bad


def from_records(
    records: Iterable[ProducerIdsRecord], source: str, observed_until_ms: int | None = None
) -> BlockHistory:
    """Build a history from the ProducerIdsRecords of `__cluster_metadata`, in offset order.

    `observed_until_ms` is the time of the log's last batch of any kind.
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
    return BlockHistory(tuple(entries), observed_until_ms)


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
