"""Side files as rows: indexes, producer snapshots, checkpoints and the small text files."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kaudit.broker.partition.log_loading import file_effect
from kaudit.broker.releases.version import Version
from kaudit.formats.dump_text.rows import DumpAbortedTransaction, DumpSnapshotEntry
from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint, MetaProperties, QuorumState
from kaudit.formats.sidefiles.indexes import AbortedTxn, OffsetIndex, TimeIndex
from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER, ProducerSnapshot
from kaudit.inspect.rows import LogFile, Row, fields_of, null
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
        yield row if row["row"] != "damage" else row | {"broker": file_effect(file.path.name, version)}


def _rows(file: LogFile) -> Iterator[Row]:
    data = filesystem(file.path).read_start(file.path, MAX_SIDE_FILE + 1)
    if len(data) > MAX_SIDE_FILE:
        yield _damage(file, Damage(0, len(data), Reason.LIMIT, f"more than {MAX_SIDE_FILE} bytes"))
        return
    if file.kind.parse is None:
        return
    try:
        parsed = file.kind.parse(data)
    except WireError as error:
        yield _damage(file, Damage(error.position, len(data), error.reason, error.detail))
        return
    yield from _ROWS.get(file.kind.name, _rows_of_parser)(parsed, file)
    for damage in getattr(parsed, "damage", ()):
        yield _damage(file, damage)


def _rows_of_parser(parsed: object, file: LogFile) -> Iterator[Row]:
    """Yield the parser's rows, or its one row: the attributes that the kind names as its columns."""
    for entry in getattr(parsed, "rows", (parsed,)):
        row = file.side_row(file.kind.name)
        if hasattr(entry, "position"):
            row["position"] = entry.position
        yield row | fields_of(entry, file.kind.columns)


def _damage(file: LogFile, damage: Damage) -> Row:
    size = damage.end - damage.position
    return file.side_row(
        "damage", kind=damage.reason.value, size=size, **fields_of(damage, ("position", "end", "detail"))
    )


def _index(index: OffsetIndex, file: LogFile) -> Iterator[Row]:
    base = file.base_offset
    assert base is not None  # an index is known by its name
    rows = zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True)
    for number, (relative, position) in enumerate(rows):
        yield file.side_row(
            "index", position=number * 8, offset=base + relative, relative_offset=relative, log_position=position
        )


def _timeindex(index: TimeIndex, file: LogFile) -> Iterator[Row]:
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


def _snapshot(snapshot: ProducerSnapshot, file: LogFile) -> Iterator[Row]:
    for number, entry in enumerate(snapshot.entries()):
        yield file.side_row(
            "snapshot",
            position=HEADER.size + number * ENTRY.size,
            timestamp=null(entry.timestamp),
            **snapshot_fields(entry, file),
        )


def _leader_epochs(checkpoint: LeaderEpochCheckpoint, file: LogFile) -> Iterator[Row]:
    for entry in checkpoint.rows:
        yield file.side_row("leader_epoch", leader_epoch=entry.epoch, offset=entry.start_offset)


def _meta_properties(meta: MetaProperties, file: LogFile) -> Iterator[Row]:
    yield file.side_row("meta_properties", others=dict(meta.others), **fields_of(meta, file.kind.columns))


def _clean_shutdown(broker_epoch: int | None, file: LogFile) -> Iterator[Row]:
    yield file.side_row("clean_shutdown", broker_epoch=broker_epoch)


def _quorum_state(state: QuorumState, file: LogFile) -> Iterator[Row]:
    yield file.side_row("quorum_state", content=state.content)


_ROWS: Mapping[str, Callable[[Any, LogFile], Iterator[Row]]] = {
    "index": _index,
    "timeindex": _timeindex,
    "snapshot": _snapshot,
    "leader_epoch": _leader_epochs,
    "meta_properties": _meta_properties,
    "clean_shutdown": _clean_shutdown,
    "quorum_state": _quorum_state,
}
"""Kinds whose rows are more than copies of attributes of what their parser returns."""
