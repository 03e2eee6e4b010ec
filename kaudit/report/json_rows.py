"""Rows of `kaudit inspect`, `dedup`, `groups` and `transactions` as JSON lines or one JSON document, written as they come."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from kaudit.model.json_record import document_head
from kaudit.report.render_options import Row

# Made once: json.dumps makes an encoder for every row. Rows are fresh trees, nothing in them is circular.
_encoded = json.JSONEncoder(sort_keys=True, allow_nan=False, check_circular=False).encode
_compact = msgspec.json.Encoder(order="sorted").encode
Fields = Mapping[str, object]


_FLAT = frozenset((int, str, bool, type(None)))


def _row(row: Row) -> str:
    """Return what `_encoded` does: of a row of numbers and texts in ASCII in less than half the time."""
    if not _FLAT.issuperset(map(type, row.values())):
        return _encoded(row)
    try:
        text = msgspec.json.format(_compact(row), indent=0)
    except (UnicodeEncodeError, OverflowError):  # of bytes of a path that are no UTF-8, of numbers beyond 64 bits
        return _encoded(row)
    return text.decode() if text.isascii() and b"\x7f" not in text else _encoded(row)


def rows_jsonl(rows: Iterable[Row], summary: Callable[[], Fields] | None = None) -> Iterator[str]:
    """Yield one row a line, keys sorted, and a row of what `summary` returns when all have been read.

    Times are ms since the epoch, int64 exact.
    """
    for row in rows:
        yield _row(row) + "\n"
    if summary is not None:
        yield _encoded({"row": "summary", **summary()}) + "\n"


def rows_document(
    schema: str, rows: Iterable[Row], after: Callable[[], Fields] = dict, before: Fields | None = None
) -> Iterator[str]:
    """Yield one document: the fields `before`, the rows, then inputs and all else that `after` returns when all rows have been read.

    It is valid without any row too.
    """
    yield "{\n" + "".join(f"{_member(*field)},\n" for field in (before or {}).items()) + '  "rows": ['
    separator = "\n    "
    for row in rows:
        yield separator + _row(row)
        separator = ",\n    "
    fields = sorted({**document_head(schema), **after()}.items(), key=lambda field: (field[0] != "inputs", field[0]))
    yield "\n  ],\n" + ",\n".join(_member(*field) for field in fields) + "\n}\n"


def _member(name: str, value: object) -> str:
    return f'  "{name}": {_encoded(value)}'
