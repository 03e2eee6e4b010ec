"""Rows of `kaudit inspect` and `kaudit dedup` as JSON lines or one JSON document, written as they come."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kaudit import __version__
from kaudit.report.render_options import Row

# Made once: json.dumps makes an encoder for every row. Rows are fresh trees, nothing in them is circular.
_encoded = json.JSONEncoder(sort_keys=True, allow_nan=False, check_circular=False).encode


def rows_jsonl(rows: Iterable[Row]) -> Iterator[str]:
    """Yield one row a line, keys sorted; times are ms since the epoch, int64 exact."""
    for row in rows:
        yield _encoded(row) + "\n"


def rows_document(
    before: Mapping[str, object], rows: Iterable[Row], after: Callable[[], Mapping[str, object]]
) -> Iterator[str]:
    """Yield one document with the fields `before`, `rows` and what `after` returns when all rows have been read.

    It is valid without any row too.
    """
    yield "{\n" + "".join(f"{_member(name, value)},\n" for name, value in before.items()) + '  "rows": ['
    separator = "\n    "
    for row in rows:
        yield separator + _encoded(row)
        separator = ",\n    "
    yield "\n  ],\n" + ",\n".join(_member(name, value) for name, value in after().items()) + "\n}\n"


def inspect_document(rows: Iterable[Row], inputs: Sequence[str]) -> Iterator[str]:
    """Yield the kaudit.inspect/1 document."""
    after = {"schema": "kaudit.inspect/1", "tool": {"name": "kaudit", "version": __version__}}
    return rows_document({"inputs": list(inputs)}, rows, lambda: after)


def _member(name: str, value: object) -> str:
    return f'  "{name}": {_encoded(value)}'
