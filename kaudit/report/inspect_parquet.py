"""Rows of `kaudit inspect` as Parquet: a table for each kind of row, written as the rows come, the whole directory or none.

Columns are the same for every log: integers int64 (crc, too, is never negative), times ms since the epoch as in the other
formats (logs hold times no calendar reaches), null where the row has null. What has no column of its own stands in `more`.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kaudit import __version__
from kaudit.report.parquet import MANIFEST, PART, replaced

Row = Mapping[str, object]
SCHEMA = "kaudit.inspect-tables/1"
_BLOCK_ROWS = 1 << 15
"""Rows held of each kind before they are written: a row group."""

_TEXT = "string"
_BYTES = "bytes"
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "broker", "topic", "replica", "segment", "file", "codec", "timestamp_type", "control_type", "kind", "detail", "status",
            "leftover", "transactional_id", "group", "committed_topic", "metadata", "protocol_type", "protocol", "leader",
            "name", "feature", "cluster_id", "directory_id", "topic_id", "control", "field", "hex", "meaning", "error",
        ),
        _TEXT,
    ),
    **dict.fromkeys(
        ("crc_valid", "is_transactional", "is_control", "tombstone", "resynchronised", "truncated", "here"), "bool"
    ),
    "key": _BYTES,
    "value": _BYTES,
    "headers": "headers",
    "partitions": "partitions",
    "members": "strings",
}  # fmt: skip
_PLACE = ("topic", "partition", "replica", "segment")
_RECORD = (
    *_PLACE,
    "position",
    "offset",
    "timestamp",
    "timestamp_type",
    "producer_id",
    "producer_epoch",
    "leader_epoch",
)
_SIDE = (*_PLACE, "file", "position", "line")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "batch": (
        *_PLACE, "position", "size", "base_offset", "last_offset", "last_offset_delta", "record_count", "leader_epoch",
        "magic", "crc", "crc_valid", "codec", "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional",
        "is_control", "control_type", "coordinator_epoch", "producer_id", "producer_epoch", "base_sequence",
        "last_sequence", "delete_horizon_ms",
    ),
    "record": (*_RECORD, "sequence", "is_transactional", "key", "value", "headers", "size", "crc_valid", "line", "control"),
    "marker": (*_RECORD, "control_type", "coordinator_epoch", "version", "value_version", "line"),
    "control": (*_RECORD, "control_type", "type_id", "key", "value", "headers", "size"),
    "txn_state": (
        *_RECORD, "size", "transactional_id", "tombstone", "version", "transaction_timeout_ms", "status", "partitions",
        "last_update_timestamp", "start_timestamp", "previous_producer_id", "next_producer_id",
        "client_transaction_version", "next_producer_epoch", "error",
    ),
    "offset_commit": (
        *_RECORD, "size", "group", "committed_topic", "committed_partition", "tombstone", "committed_offset",
        "committed_leader_epoch", "metadata", "commit_timestamp",
    ),
    "group_metadata": (
        *_RECORD, "size", "group", "tombstone", "generation", "protocol_type", "protocol", "leader", "members",
    ),
    "metadata": (
        *_RECORD, "size", "api_key", "name", "version", "feature", "feature_level", "broker_id", "broker_epoch",
        "next_producer_id",
    ),
    "index": (*_SIDE, "offset", "relative_offset", "log_position"),
    "timeindex": (*_SIDE, "timestamp", "offset", "relative_offset"),
    "txnindex": (*_SIDE, "producer_id", "first_offset", "last_offset", "last_stable_offset"),
    "snapshot": (
        *_SIDE, "snapshot_offset", "producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta",
        "timestamp", "coordinator_epoch", "current_txn_start_offset",
    ),
    "checkpoint": (*_SIDE, "offset"),
    "leader_epoch": (*_SIDE, "leader_epoch", "offset"),
    "meta_properties": (*_SIDE, "version", "node_id", "cluster_id", "directory_id"),
    "partition_metadata": (*_SIDE, "version", "topic_id"),
    "clean_shutdown": (*_SIDE, "broker_epoch"),
    "quorum_state": _SIDE,
    "field": (*_PLACE, "position", "length", "field", "hex", "value_number", "meaning", "here"),
    "file": (
        "file", "kind", "leftover", "topic", "partition", "replica", "size", "status", "detail", "first_offset",
        "last_offset", "entries",
    ),
    "damage": (*_SIDE, "end", "size", "kind", "detail", "resynchronised", "base_offset",
        "first_missing_offset", "last_missing_offset", "broker"),
}  # fmt: skip
"""Tables and their columns; every table ends with `more`."""


def write_inspect_tables(rows: Iterable[Row], directory: Path, inputs: Iterable[str]) -> None:
    """Write all rows; an earlier result of kaudit in `directory` is replaced once all of them are there.

    Raises:
        OSError: something cannot be written; `directory` is as before.

    """
    with replaced(directory) as partial:
        tables = _Tables(partial)
        for row in rows:
            tables.take(row)
        counts = tables.close()
        manifest = {
            "schema": SCHEMA,
            "tool": {"name": "kaudit", "version": __version__},
            "inputs": list(inputs),
            "tables": {name: {"path": f"{name}/{PART}", "rows": counts[name]} for name in COLUMNS},
        }
        text = json.dumps(manifest, sort_keys=True, indent=2, allow_nan=False) + "\n"
        (partial / MANIFEST).write_text(text, encoding="utf-8")


class _Tables:
    """Writers by kind of row; every table is there, also without rows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, list[Row]] = {name: [] for name in COLUMNS}
        self._writers: dict[str, Any] = {}
        self._counts = dict.fromkeys(COLUMNS, 0)

    def take(self, row: Row) -> None:
        kind = str(row["row"])
        held = self._held[kind]
        held.append(row)
        if len(held) >= _BLOCK_ROWS:
            self._flush(kind)

    def close(self) -> dict[str, int]:
        for kind in COLUMNS:
            self._flush(kind)
        for writer in self._writers.values():
            writer.close()
        return self._counts

    def _flush(self, kind: str) -> None:
        import pyarrow.parquet  # noqa: PLC0415 - an extra

        table = _table(kind, self._held[kind])
        if kind not in self._writers:
            (self._directory / kind).mkdir()
            path = self._directory / kind / PART
            self._writers[kind] = pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd")
        if len(self._held[kind]) or not self._counts[kind]:
            self._writers[kind].write_table(table)
        self._counts[kind] += len(self._held[kind])
        self._held[kind] = []


def _table(kind: str, rows: list[Row]) -> Any:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415 - an extra

    shown = pa.struct(
        [("text", pa.string()), ("encoding", pa.string()), ("size", pa.int64()), ("truncated", pa.bool_())]
    )
    types = {
        "bool": pa.bool_(),
        _TEXT: pa.string(),
        _BYTES: shown,
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", shown)])),
        "partitions": pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int64()))])),
        "strings": pa.list_(pa.string()),
    }
    columns = COLUMNS[kind]
    schema = pa.schema(
        [
            *((name, types[_TYPES[name]] if name in _TYPES else pa.int64()) for name in columns),
            ("more", pa.string()),
        ]
    )
    named = [_renamed(row) for row in rows] if kind == "field" else rows
    held = {name: pa.array([row.get(name) for row in named], schema.field(name).type) for name in columns}
    known = {"row", *columns}
    held["more"] = pa.array([_more(row, known) for row in named], pa.string())
    return pa.table(held, schema=schema)


def _renamed(row: Row) -> Row:
    """A header field's value is a number: the column of bytes has that name elsewhere."""
    return {("value_number" if name == "value" else name): value for name, value in row.items()}


def _more(row: Row, known: set[str]) -> str | None:
    others = {name: value for name, value in row.items() if name not in known and value is not None}
    return json.dumps(others, sort_keys=True, allow_nan=False) if others else None
