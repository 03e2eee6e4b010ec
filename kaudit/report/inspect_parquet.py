"""Rows of `kaudit inspect` as Parquet: a table for each kind of row, written as the rows come, the whole directory or none.

Columns are the same for every log: integers int64 (crc, too, is never negative), times ms since the epoch as in the other
formats (logs hold times no calendar reaches), null where the row has null. A field without a column of its own is in `more`, as JSON.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kaudit import __version__
from kaudit.model.table_columns import INSPECT_COLUMNS, INSPECT_TABLES
from kaudit.report.parquet import MANIFEST, PART, replaced

Row = Mapping[str, object]
SCHEMA = "kaudit.inspect-tables/1"
_BLOCK_ROWS = 1 << 15
"""Rows held of each kind before they are written: a row group."""


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
            "tables": {name: {"path": f"{name}/{PART}", "rows": counts[name]} for name in INSPECT_TABLES},
        }
        text = json.dumps(manifest, sort_keys=True, indent=2, allow_nan=False) + "\n"
        (partial / MANIFEST).write_text(text, encoding="utf-8")


class _Tables:
    """Writers by kind of row; every table is there, also without rows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, list[Row]] = {name: [] for name in INSPECT_TABLES}
        self._writers: dict[str, Any] = {}
        self._counts = dict.fromkeys(INSPECT_TABLES, 0)

    def take(self, row: Row) -> None:
        kind = str(row["row"])
        held = self._held[kind]
        held.append(row)
        if len(held) >= _BLOCK_ROWS:
            self._flush(kind)

    def close(self) -> dict[str, int]:
        for kind in INSPECT_TABLES:
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
        "int64": pa.int64(),
        "string": pa.string(),
        "bytes": shown,
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", shown)])),
        "partitions": pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int64()))])),
        "strings": pa.list_(pa.string()),
    }
    columns = INSPECT_TABLES[kind]
    schema = pa.schema(
        [
            *((name, types[INSPECT_COLUMNS[name].type]) for name in columns),
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
