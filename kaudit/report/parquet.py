"""`--output-format parquet -o DIR`: tables as Parquet, the whole directory or nothing."""

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kaudit.report.tables import COLUMNS, Row, Tables

MANIFEST = "manifest.json"
"""Written last: a directory that has it is whole."""
PART = "part-00000.parquet"


def is_replaceable(directory: Path) -> bool:
    """Tell whether a directory may be replaced: it is empty, or an earlier result of kaudit."""
    return not any(directory.iterdir()) or (directory / MANIFEST).is_file()


@contextmanager
def replaced(directory: Path) -> Iterator[Path]:
    """Give a new directory beside `directory`, and put it there at once if nothing was raised: the whole of it or nothing.

    Raises:
        OSError: something cannot be written; `directory` is as before.

    """
    partial = directory.with_name(f".kaudit-{secrets.token_hex(4)}.partial")
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
    import pyarrow.parquet  # noqa: PLC0415 - an extra

    with replaced(directory) as partial:
        for name, rows in tables.rows.items():
            (partial / name).mkdir()
            pyarrow.parquet.write_table(_table(COLUMNS[name], rows), partial / name / PART, compression="zstd")
        text = json.dumps(tables.manifest, sort_keys=True, indent=2, allow_nan=False) + "\n"
        (partial / MANIFEST).write_text(text, encoding="utf-8")


def _table(columns: Mapping[str, str], rows: Sequence[Row]) -> Any:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types = {"bool": pa.bool_(), "timestamp": pa.timestamp("ms", tz="UTC")}
    schema = pa.schema([(name, types.get(kind) or getattr(pa, kind)()) for name, kind in columns.items()])
    held = {
        name: pa.array([_known(row.get(name), kind) for row in rows], schema.field(name).type)
        for name, kind in columns.items()
    }
    return pa.table(held, schema=schema)


def _known(value: object, kind: str) -> object:
    """A time of -1 is none: the row has null there."""
    return None if kind == "timestamp" and isinstance(value, int) and value < 0 else value
