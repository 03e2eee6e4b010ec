"""Side files as rows: indexes, producer snapshots, checkpoints and the small text files."""

import json
from collections.abc import Callable, Iterator

from kaudit.broker.partition.log_loading import file_verdict
from kaudit.broker.releases.version import Version
from kaudit.formats.dump_text.rows import DumpAbortedTransaction, DumpSnapshotEntry
from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.sidefiles.checkpoints import (
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from kaudit.formats.sidefiles.indexes import AbortedTxn, parse_offset_index, parse_time_index, parse_transaction_index
from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER, parse_producer_snapshot
from kaudit.inspect.file_kinds import FileKind, LogFile
from kaudit.inspect.rows import Row, fields_of, null
from kaudit.model.limits import INSPECTED_FILE_BYTES
from kaudit.model.side_files import SnapshotEntry
from kaudit.source.schemes import filesystem

MAX_SIDE_FILE = INSPECTED_FILE_BYTES
"""Larger than any broker makes them: producer.snapshots of 20 million ids, indexes of 1 GiB."""


def side_rows(file: LogFile, version: Version | None = None) -> Iterator[Row]:
    """Yield the rows of a side file and a damage row for each part that gave none, with what a broker makes of it.

    Raises OSError if it is unreadable.
    """
    for row in _rows(file):
        yield row if row["row"] != "damage" else row | {"broker": file_verdict(file.path.name, version)}


def _rows(file: LogFile) -> Iterator[Row]:
    data = filesystem(file.path).read_start(file.path, MAX_SIDE_FILE + 1)
    if len(data) > MAX_SIDE_FILE:
        yield _damage(file, Damage(0, len(data), Reason.LIMIT, f"more than {MAX_SIDE_FILE} bytes"))
        return
    decode = _DECODERS.get(file.kind)
    if decode is None:
        return
    try:
        yield from decode(data, file)
    except WireError as error:
        yield _damage(file, Damage(error.position, len(data), error.reason, error.detail))


def _damage(file: LogFile, damage: Damage) -> Row:
    size = damage.end - damage.position
    return file.side_row(
        "damage", kind=damage.reason.value, size=size, **fields_of(damage, ("position", "end", "detail"))
    )


def _index(data: bytes, file: LogFile) -> Iterator[Row]:
    index = parse_offset_index(data)
    base = file.base_offset
    assert base is not None  # an index is known by its name
    rows = zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True)
    for number, (relative, position) in enumerate(rows):
        yield file.side_row(
            "index", position=number * 8, offset=base + relative, relative_offset=relative, log_position=position
        )
    yield from (_damage(file, damage) for damage in index.damage)


def _timeindex(data: bytes, file: LogFile) -> Iterator[Row]:
    index = parse_time_index(data)
    base = file.base_offset
    assert base is not None  # an index is known by its name
    rows = zip(index.timestamps.tolist(), index.relative_offsets.tolist(), strict=True)
    for number, (timestamp, relative) in enumerate(rows):
        yield file.side_row(
            "timeindex",
            position=number * 12,
            timestamp=null(timestamp),
            offset=base + relative,
            relative_offset=relative,
        )
    yield from (_damage(file, damage) for damage in index.damage)


def aborted_fields(entry: AbortedTxn | DumpAbortedTransaction) -> Row:
    """Return the fields of one row of a .txnindex, whether read from the file or from a text of kafka-dump-log."""
    return fields_of(entry, ("producer_id", "first_offset", "last_offset", "last_stable_offset"))


def snapshot_fields(entry: SnapshotEntry | DumpSnapshotEntry, file: LogFile) -> Row:
    """Return the fields of one producer of a .snapshot, read from either; its timestamp is not among them."""
    own = fields_of(
        entry,
        ("producer_id", "offset_delta"),
        or_null=("producer_epoch", "last_sequence", "last_offset", "coordinator_epoch"),
    )
    start = null(entry.current_txn_first_offset)
    return {"snapshot_offset": file.base_offset, "current_txn_start_offset": start, **own}


def _txnindex(data: bytes, file: LogFile) -> Iterator[Row]:
    index = parse_transaction_index(data)
    for entry in index.rows:
        yield file.side_row("txnindex", position=entry.position, **aborted_fields(entry))
    yield from (_damage(file, damage) for damage in index.damage)


def _snapshot(data: bytes, file: LogFile) -> Iterator[Row]:
    for number, entry in enumerate(parse_producer_snapshot(data).entries()):
        yield file.side_row(
            "snapshot",
            position=HEADER.size + number * ENTRY.size,
            timestamp=null(entry.timestamp),
            **snapshot_fields(entry, file),
        )


def _checkpoint(data: bytes, file: LogFile) -> Iterator[Row]:
    checkpoint = parse_offset_checkpoint(data)
    for entry in checkpoint.rows:
        yield file.side_row("checkpoint") | fields_of(entry, ("topic", "partition", "offset"))
    yield from (_damage(file, damage) for damage in checkpoint.damage)


def _leader_epochs(data: bytes, file: LogFile) -> Iterator[Row]:
    checkpoint = parse_leader_epoch_checkpoint(data)
    for entry in checkpoint.rows:
        yield file.side_row("leader_epoch", leader_epoch=entry.epoch, offset=entry.start_offset)
    yield from (_damage(file, damage) for damage in checkpoint.damage)


def _meta_properties(data: bytes, file: LogFile) -> Iterator[Row]:
    meta = parse_meta_properties(data)
    own = fields_of(meta, ("version", "node_id", "cluster_id", "directory_id"))
    yield file.side_row("meta_properties", others=dict(meta.others), **own)


def _partition_metadata(data: bytes, file: LogFile) -> Iterator[Row]:
    metadata = parse_partition_metadata(data)
    yield file.side_row("partition_metadata", version=metadata.version, topic_id=metadata.topic_id)


def _clean_shutdown(data: bytes, file: LogFile) -> Iterator[Row]:
    yield file.side_row("clean_shutdown", broker_epoch=parse_clean_shutdown(data))


def _quorum_state(data: bytes, file: LogFile) -> Iterator[Row]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise WireError(0, Reason.TEXT, f"{data[:40]!r} is no JSON") from None
    yield file.side_row("quorum_state", content=content)


_DECODERS: dict[FileKind, Callable[[bytes, LogFile], Iterator[Row]]] = {
    FileKind.INDEX: _index,
    FileKind.TIMEINDEX: _timeindex,
    FileKind.TXNINDEX: _txnindex,
    FileKind.SNAPSHOT: _snapshot,
    FileKind.CHECKPOINT: _checkpoint,
    FileKind.LEADER_EPOCH: _leader_epochs,
    FileKind.META_PROPERTIES: _meta_properties,
    FileKind.PARTITION_METADATA: _partition_metadata,
    FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
    FileKind.QUORUM_STATE: _quorum_state,
}
