"""Rows of `kaudit inspect` as JSON lines or one JSON document, written as they come."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kaudit import __version__

Row = Mapping[str, object]


def jsonl(rows: Iterable[Row]) -> Iterator[str]:
    """One row a line, keys sorted; times are ms since the epoch, int64 exact."""
    for row in rows:
        yield json.dumps(row, sort_keys=True, allow_nan=False) + "\n"


def document(rows: Iterable[Row], inputs: Sequence[str]) -> Iterator[str]:
    """One kaudit.inspect/1 document with sorted keys, valid also without any row."""
    yield f'{{\n  "inputs": {json.dumps(list(inputs))},\n  "rows": ['
    separator = "\n    "
    for row in rows:
        yield separator + json.dumps(row, sort_keys=True, allow_nan=False)
        separator = ",\n    "
    tool = json.dumps({"name": "kaudit", "version": __version__})
    yield f'\n  ],\n  "schema": "kaudit.inspect/1",\n  "tool": {tool}\n}}\n'
