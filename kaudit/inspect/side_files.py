"""Side files as rows: indexes, producer snapshots, checkpoints and the small text files."""

import json
from collections.abc import Callable, Iterator

from kaudit.broker.partition.log_loading import file_verdict
from kaudit.broker.releases.version import Version
from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.sidefiles.checkpoints import (
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from kaudit.formats.sidefiles.indexes import parse_offset_index, parse_time_index
from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER, parse_producer_snapshot
from kaudit.formats.sidefiles.transaction_index import parse_transaction_index
from kaudit.inspect.file_kinds import FileKind, LogFile
from kaudit.inspect.row_filter import Row
from kaudit.source.schemes import filesystem

MAX_SIDE_FILE = 1 << 30
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


def _row(kind: str, file: LogFile) -> Row:
    return {
        "row": kind,
        "topic": file.topic,
        "partition": file.partition,
        "replica": file.replica,
        "segment": file.segment,
        "file": file.path.name,
    }


def _damage(file: LogFile, damage: Damage) -> Row:
    return _row("damage", file) | {
        "position": damage.position,
        "end": damage.end,
        "size": damage.end - damage.position,
        "kind": damage.reason.value,
        "detail": damage.detail,
    }


def _index(data: bytes, file: LogFile) -> Iterator[Row]:
    index = parse_offset_index(data)
    base = file.base_offset or 0
    rows = zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True)
    for number, (relative, position) in enumerate(rows):
        yield _row("index", file) | {
            "position": number * 8,
            "offset": base + relative,
            "relative_offset": relative,
            "log_position": position,
        }
    yield from (_damage(file, damage) for damage in index.damage)


def _timeindex(data: bytes, file: LogFile) -> Iterator[Row]:
    index = parse_time_index(data)
    base = file.base_offset or 0
    rows = zip(index.timestamps.tolist(), index.relative_offsets.tolist(), strict=True)
    for number, (timestamp, relative) in enumerate(rows):
        yield _row("timeindex", file) | {
            "position": number * 12,
            "timestamp": _null(timestamp),
            "offset": base + relative,
            "relative_offset": relative,
        }
    yield from (_damage(file, damage) for damage in index.damage)


def _txnindex(data: bytes, file: LogFile) -> Iterator[Row]:
    index = parse_transaction_index(data)
    for entry in index.rows:
        yield _row("txnindex", file) | {
            "position": entry.position,
            "producer_id": entry.producer_id,
            "first_offset": entry.first_offset,
            "last_offset": entry.last_offset,
            "last_stable_offset": entry.last_stable_offset,
        }
    yield from (_damage(file, damage) for damage in index.damage)


def _snapshot(data: bytes, file: LogFile) -> Iterator[Row]:
    for number, entry in enumerate(parse_producer_snapshot(data).entries()):
        yield _row("snapshot", file) | {
            "position": HEADER.size + number * ENTRY.size,
            "snapshot_offset": file.base_offset,
            "producer_id": entry.producer_id,
            "producer_epoch": _null(entry.producer_epoch),
            "last_sequence": _null(entry.last_sequence),
            "last_offset": _null(entry.last_offset),
            "offset_delta": entry.offset_delta,
            "timestamp": _null(entry.timestamp),
            "coordinator_epoch": _null(entry.coordinator_epoch),
            "current_txn_start_offset": _null(entry.current_txn_first_offset),
        }


def _checkpoint(data: bytes, file: LogFile) -> Iterator[Row]:
    checkpoint = parse_offset_checkpoint(data)
    for entry in checkpoint.rows:
        yield _row("checkpoint", file) | {"topic": entry.topic, "partition": entry.partition, "offset": entry.offset}
    yield from (_damage(file, damage) for damage in checkpoint.damage)


def _leader_epochs(data: bytes, file: LogFile) -> Iterator[Row]:
    checkpoint = parse_leader_epoch_checkpoint(data)
    for entry in checkpoint.rows:
        yield _row("leader_epoch", file) | {"leader_epoch": entry.epoch, "offset": entry.start_offset}
    yield from (_damage(file, damage) for damage in checkpoint.damage)


def _meta_properties(data: bytes, file: LogFile) -> Iterator[Row]:
    meta = parse_meta_properties(data)
    yield _row("meta_properties", file) | {
        "version": meta.version,
        "node_id": meta.node_id,
        "cluster_id": meta.cluster_id,
        "directory_id": meta.directory_id,
        "others": dict(meta.others),
    }


def _partition_metadata(data: bytes, file: LogFile) -> Iterator[Row]:
    metadata = parse_partition_metadata(data)
    yield _row("partition_metadata", file) | {"version": metadata.version, "topic_id": metadata.topic_id}


def _clean_shutdown(data: bytes, file: LogFile) -> Iterator[Row]:
    yield _row("clean_shutdown", file) | {"broker_epoch": parse_clean_shutdown(data)}


def _quorum_state(data: bytes, file: LogFile) -> Iterator[Row]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise WireError(0, Reason.TEXT, f"{data[:40]!r} is no JSON") from None
    yield _row("quorum_state", file) | {"content": content}


def _null(value: int) -> int | None:
    return None if value == -1 else value


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
