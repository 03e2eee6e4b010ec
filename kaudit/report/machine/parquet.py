"""Tables as Parquet, the whole directory or nothing: of `--output-format parquet`, and rows of commands that list rows.

Rows of inspect, dedup and transactions have a table for each kind of row. Its columns are the same for every log: integers int64 (crc, too, is
never negative), times ms since the epoch as in the other formats (logs hold times no calendar reaches), null where the row has
null. A field without a column of its own is in `more`, as JSON. Importing this module needs pyarrow, an extra.
"""

import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet
from msgspec import Struct

from kaudit.model.json_record import document_head
from kaudit.model.table_columns import (
    DUPLICATE_COLUMNS,
    DUPLICATE_TABLES,
    GROUP_COLUMNS,
    GROUP_TABLES,
    TRANSACTION_COLUMNS,
    TRANSACTION_TABLES,
    Column,
    schema_of,
)
from kaudit.report.render_options import MANIFEST, Row, Tables
from kaudit.source.inspect_columns import INSPECT_COLUMNS, INSPECT_TABLES

_FILE_ROWS = 5_000_000
"""Approximate rows of one file of a large table: a fraction of a GiB; readers share files among their tasks."""
_GROUP_ROWS = 1 << 17
"""Rows of one row group: some MiB. Partitions with few rows share a group, or the footer would be larger than the rows."""
_PART = "part-00000.parquet"


@contextmanager
def _replaced(directory: Path) -> Iterator[Path]:
    """Yield a new directory beside `directory`, and move it there in one step if nothing was raised.

    Raises:
        OSError: something cannot be written; `directory` is as before.

    """
    partial = directory.with_name(f".kaudit-{os.urandom(4).hex()}.partial")
    partial.mkdir()
    try:
        yield partial
        if directory.exists():
            before = directory.with_name(f"{partial.name}.old")
            directory.rename(before)
            partial.rename(directory)
            shutil.rmtree(before)
        else:
            partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_tables(tables: Tables, directory: Path) -> None:
    """Write all tables beside `directory`, then move them there at once; an earlier result is replaced.

    Raises:
        OSError: something cannot be written; `directory` is as before.

    """
    with _replaced(directory) as partial:
        counts = {name: len(rows) for name, rows in tables.rows.items()}
        for name, rows in tables.rows.items():
            with PartFiles(arrow_schema(name), partial / name) as files:
                files.write(to_table(name, rows))
                files.finish()
        counts |= _write_pieces(tables, partial)
        text = json.dumps({**tables.manifest, "rows": counts}, sort_keys=True, indent=2, allow_nan=False) + "\n"
        (partial / MANIFEST).write_text(text, encoding="utf-8")


def _write_pieces(tables: Tables, partial: Path) -> dict[str, int]:
    parts = {name: PartFiles(arrow_schema(name), partial / name) for name in tables.streamed}
    try:
        for name, data in tables.pieces:
            parts[name].write(pa.ipc.open_stream(data).read_all())
        for part in parts.values():
            part.finish()
    finally:
        for part in parts.values():
            part.close()
    return {name: part.rows for name, part in parts.items()}


class PartFiles:
    """A table's directory, its rows in files of about `file_rows`; at least one, so that readers find the schema."""

    def __init__(self, schema: Any, directory: Path, file_rows: float = _FILE_ROWS) -> None:  # noqa: ANN401 - as below
        self._schema = schema
        self._directory = directory
        self._file_rows = file_rows
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._number = 0
        self.rows = self._put_rows = 0
        directory.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def write(self, table: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        """Append rows. They are collected into row groups of _GROUP_ROWS."""
        if not table.num_rows:
            return  # after a full file it would begin one without rows
        self._waiting.append(table)
        self.rows += table.num_rows
        waiting = sum(held.num_rows for held in self._waiting)
        if waiting >= _GROUP_ROWS:
            self._put(waiting - waiting % _GROUP_ROWS)

    def _put(self, rows: int) -> None:
        held = pa.concat_tables(self._waiting)
        for start in range(0, max(rows, 1), _GROUP_ROWS):
            if self._writer is None:
                path = self._directory / f"part-{self._number:05d}.parquet"
                self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
                self._number += 1
            group = held.slice(start, _GROUP_ROWS).combine_chunks()
            self._writer.write_table(group, row_group_size=_GROUP_ROWS)
            self._put_rows += group.num_rows
            if self._put_rows >= self._number * self._file_rows:
                self._end_file()
        self._waiting = [held.slice(rows)] if rows < held.num_rows else []

    def finish(self) -> None:
        """Write the waiting rows; a table without rows has a file too."""
        if self._waiting or not self._number:
            self._waiting = self._waiting or [self._schema.empty_table()]
            self._put(sum(held.num_rows for held in self._waiting))
        self._end_file()

    def close(self) -> None:
        """Close the open file; waiting rows are dropped."""
        self._end_file()

    def _end_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def to_ipc(name: str, rows: Sequence[Row]) -> bytes:
    """Pack rows of the table `name` as an Arrow IPC stream."""
    return table_to_ipc(to_table(name, rows))


def columns_to_ipc(name: str, columns: Mapping[str, Any]) -> bytes:
    """Pack numpy columns of the table `name`, masked where null, as an Arrow IPC stream."""
    schema = arrow_schema(name)
    arrays = []
    for field in schema:
        values = columns[field.name]
        mask = values.mask if hasattr(values, "mask") else None
        arrays.append(pa.array(values.data if mask is not None else values, mask=mask).cast(field.type))
    return table_to_ipc(pa.table(arrays, schema=schema))


def table_to_ipc(table: Any) -> bytes:  # noqa: ANN401 - pyarrow has no types
    """Pack a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def arrow_schema(table: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the Arrow schema of a table."""
    types = {"bool": pa.bool_(), "timestamp": pa.timestamp("ms", tz="UTC")}
    return pa.schema([(name, types.get(kind) or getattr(pa, kind)()) for name, kind in schema_of(table).items()])


def to_table(table: str, rows: Sequence[Row]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return rows of a table of `kaudit.model.table_columns` as a `pyarrow.Table`."""
    schema = arrow_schema(table)
    held = {
        name: pa.array([_known(row.get(name), kind) for row in rows], schema.field(name).type)
        for name, kind in schema_of(table).items()
    }
    return pa.table(held, schema=schema)


def _known(value: object, kind: str) -> object:
    """Return a value, None for a time of -1."""
    return None if kind == "timestamp" and isinstance(value, int) and value < 0 else value


_BLOCK_ROWS = 1 << 15
"""Rows held of each kind before they are written: a row group."""


class _RowTables(Struct, frozen=True):
    """The kinds of rows a command has, and their columns."""

    schema: str
    columns: Mapping[str, Column]
    kinds: Mapping[str, Sequence[str]]


_ROW_TABLES = {
    "inspect": _RowTables("kaudit.inspect-tables/1", INSPECT_COLUMNS, INSPECT_TABLES),
    "dedup": _RowTables("kaudit.dedup-tables/1", DUPLICATE_COLUMNS, DUPLICATE_TABLES),
    "groups": _RowTables("kaudit.groups-tables/1", GROUP_COLUMNS, GROUP_TABLES),
    "transactions": _RowTables("kaudit.transactions-tables/1", TRANSACTION_COLUMNS, TRANSACTION_TABLES),
}


def write_row_tables(command: str, rows: Iterable[Row], directory: Path, inputs: Iterable[str]) -> None:
    """Write all rows of a command; an earlier result of kaudit in `directory` is replaced once all of them are there.

    Raises:
        OSError: something cannot be written; `directory` is as before.

    """
    tables = _ROW_TABLES[command]
    with _replaced(directory) as partial:
        counts = _write_rows(tables, rows, partial)
        manifest = {
            **document_head(tables.schema),
            "inputs": list(inputs),
            "tables": {name: {"path": f"{name}/{_PART}", "rows": counts[name]} for name in tables.kinds},
        }
        text = json.dumps(manifest, sort_keys=True, indent=2, allow_nan=False) + "\n"
        (partial / MANIFEST).write_text(text, encoding="utf-8")


def _write_rows(tables: _RowTables, rows: Iterable[Row], directory: Path) -> dict[str, int]:
    """Write a table for each kind of row, also for those without rows; return how many rows each has."""
    with ExitStack() as stack:
        schemas = {kind: _row_schema(tables, kind) for kind in tables.kinds}
        files = {
            kind: stack.enter_context(PartFiles(schema, directory / kind, math.inf)) for kind, schema in schemas.items()
        }
        held: dict[str, list[Row]] = {kind: [] for kind in tables.kinds}
        for row in rows:
            kind = str(row["row"])
            held[kind].append(row)
            if len(held[kind]) >= _BLOCK_ROWS:
                files[kind].write(_row_table(kind, held.pop(kind), schemas[kind]))
                held[kind] = []
        for kind, rest in held.items():
            if rest:
                files[kind].write(_row_table(kind, rest, schemas[kind]))
            files[kind].finish()
        return {kind: part.rows for kind, part in files.items()}


def _row_schema(tables: _RowTables, kind: str) -> Any:  # noqa: ANN401 - pyarrow has no types
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
        "json": pa.string(),
    }
    columns = [(name, types[tables.columns[name].type]) for name in tables.kinds[kind]]
    return pa.schema([*columns, ("more", pa.string())])


def _row_table(kind: str, rows: list[Row], schema: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    named = [_renamed(row) for row in rows] if kind == "field" else rows
    known = {"row", *schema.names}
    held = [{**_with_texts(row), "more": _more(row, known)} for row in named]
    return pa.Table.from_pylist(held, schema=schema)


def _with_texts(row: Row) -> Row:
    """Columns of JSON hold its text."""
    objects = ((name, row.get(name)) for name in ("identity", "content"))
    texts = {
        name: json.dumps(value, sort_keys=True, allow_nan=False) for name, value in objects if isinstance(value, dict)
    }
    return {**row, **texts}


def _renamed(row: Row) -> Row:
    """A header field's value is a number: the column of bytes has that name elsewhere."""
    return {("value_number" if name == "value" else name): value for name, value in row.items()}


def _more(row: Row, known: set[str]) -> str | None:
    others = {name: value for name, value in row.items() if name not in known and value is not None}
    return json.dumps(others, sort_keys=True, allow_nan=False) if others else None
