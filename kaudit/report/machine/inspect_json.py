"""Rows of `kaudit inspect` as JSON lines or one JSON document, written as they come."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kaudit import __version__

Row = Mapping[str, object]

# Made once: json.dumps makes an encoder for every row. Rows are fresh trees, nothing in them is circular.
_encoded = json.JSONEncoder(sort_keys=True, allow_nan=False, check_circular=False).encode


def jsonl(rows: Iterable[Row]) -> Iterator[str]:
    """One row a line, keys sorted; times are ms since the epoch, int64 exact."""
    for row in rows:
        yield _encoded(row) + "\n"


def document(rows: Iterable[Row], inputs: Sequence[str]) -> Iterator[str]:
    """One kaudit.inspect/1 document with sorted keys, valid also without any row."""
    yield f'{{\n  "inputs": {json.dumps(list(inputs))},\n  "rows": ['
    separator = "\n    "
    for row in rows:
        yield separator + _encoded(row)
        separator = ",\n    "
    tool = json.dumps({"name": "kaudit", "version": __version__})
    yield f'\n  ],\n  "schema": "kaudit.inspect/1",\n  "tool": {tool}\n}}\n'
