"""Rows of `kaudit inspect` and `kaudit dedup`, written as they come: JSON lines, one JSON document, or Parquet.

Parquet has a table for each kind of row, the whole directory or none. Its columns are the same for every log: integers int64
(crc, too, is never negative), times ms since the epoch as in the other formats (logs hold times no calendar reaches), null where
the row has null. A field without a column of its own is in `more`, as JSON.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaudit import __version__
from kaudit.model.table_columns import DUPLICATE_COLUMNS, DUPLICATE_TABLES, Column
from kaudit.report.machine.parquet import MANIFEST, PART, PartFiles, replaced
from kaudit.source.inspect_columns import INSPECT_COLUMNS, INSPECT_TABLES

Row = Mapping[str, object]
_BLOCK_ROWS = 1 << 15
"""Rows held of each kind before they are written: a row group."""


class Tables(Struct, frozen=True):
    """The kinds of rows a command has, and their columns."""

    schema: str
    columns: Mapping[str, Column]
    kinds: Mapping[str, Sequence[str]]


INSPECTED = Tables("kaudit.inspect-tables/1", INSPECT_COLUMNS, INSPECT_TABLES)
DUPLICATES = Tables("kaudit.dedup-tables/1", DUPLICATE_COLUMNS, DUPLICATE_TABLES)


def write_row_tables(tables: Tables, rows: Iterable[Row], directory: Path, inputs: Iterable[str]) -> None:
    """Write all rows; an earlier result of kaudit in `directory` is replaced once all of them are there.

    Raises:
        OSError: something cannot be written; `directory` is as before.

    """
    with replaced(directory) as partial:
        counts = _write(tables, rows, partial)
        manifest = {
            "schema": tables.schema,
            "tool": {"name": "kaudit", "version": __version__},
            "inputs": list(inputs),
            "tables": {name: {"path": f"{name}/{PART}", "rows": counts[name]} for name in tables.kinds},
        }
        text = json.dumps(manifest, sort_keys=True, indent=2, allow_nan=False) + "\n"
        (partial / MANIFEST).write_text(text, encoding="utf-8")


def _write(tables: Tables, rows: Iterable[Row], directory: Path) -> dict[str, int]:
    """Write a table for each kind of row, also for those without rows; return how many rows each has."""
    with ExitStack() as stack:
        schemas = {kind: _schema(tables, kind) for kind in tables.kinds}
        files = {
            kind: stack.enter_context(PartFiles(schema, directory / kind, math.inf)) for kind, schema in schemas.items()
        }
        held: dict[str, list[Row]] = {kind: [] for kind in tables.kinds}
        for row in rows:
            kind = str(row["row"])
            held[kind].append(row)
            if len(held[kind]) >= _BLOCK_ROWS:
                files[kind].write(_table(kind, held.pop(kind), schemas[kind]))
                held[kind] = []
        for kind, rest in held.items():
            if rest:
                files[kind].write(_table(kind, rest, schemas[kind]))
            files[kind].finish()
        return {kind: part.rows for kind, part in files.items()}


def _schema(tables: Tables, kind: str) -> Any:  # noqa: ANN401 - pyarrow has no types
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
    columns = [(name, types[tables.columns[name].type]) for name in tables.kinds[kind]]
    return pa.schema([*columns, ("more", pa.string())])


def _table(kind: str, rows: list[Row], schema: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415 - an extra

    named = [_renamed(row) for row in rows] if kind == "field" else rows
    known = {"row", *schema.names}
    held = [{**row, "more": _more(row, known)} for row in named]
    return pa.Table.from_pylist(held, schema=schema)


def _renamed(row: Row) -> Row:
    """A header field's value is a number: the column of bytes has that name elsewhere."""
    return {("value_number" if name == "value" else name): value for name, value in row.items()}


def _more(row: Row, known: set[str]) -> str | None:
    others = {name: value for name, value in row.items() if name not in known and value is not None}
    return json.dumps(others, sort_keys=True, allow_nan=False) if others else None


# Made once: json.dumps makes an encoder for every row. Rows are fresh trees, nothing in them is circular.
_encoded = json.JSONEncoder(sort_keys=True, allow_nan=False, check_circular=False).encode


def rows_jsonl(rows: Iterable[Row]) -> Iterator[str]:
    """One row a line, keys sorted; times are ms since the epoch, int64 exact."""
    for row in rows:
        yield _encoded(row) + "\n"


def rows_document(rows: Iterable[Row], inputs: Sequence[str]) -> Iterator[str]:
    """One kaudit.inspect/1 rows_document with sorted keys, valid also without any row."""
    yield f'{{\n  "inputs": {json.dumps(list(inputs))},\n  "rows": ['
    separator = "\n    "
    for row in rows:
        yield separator + _encoded(row)
        separator = ",\n    "
    tool = json.dumps({"name": "kaudit", "version": __version__})
    yield f'\n  ],\n  "schema": "kaudit.inspect/1",\n  "tool": {tool}\n}}\n'
