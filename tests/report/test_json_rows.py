"""Rows as JSON are what the standard library writes, whatever is in them."""

import json

import pytest

from kaudit.report.json_rows import rows_document, rows_jsonl

ROWS: list[dict[str, object]] = [
    {"b": 1, "a": "orders", "c": None, "d": True, "e": False, "f": -(2**63)},
    {"control": "".join(map(chr, range(32))) + '"\\/<>&\x7f', "quote": "'"},
    {"name": "zażółć", "astral": "\U0001f600", "byte": "\udcff"},
    {"share": 1e16, "small": 1e-07, "half": 0.5},
    {"list": [1, "é", {"z": None, "a": []}], "object": {}},
    {"large": 2**64 + 1, "unsigned": 2**64 - 1},
    {},
]


@pytest.mark.parametrize("row", ROWS)
def test_a_row(row):
    assert list(rows_jsonl([row])) == [json.dumps(row, sort_keys=True) + "\n"]
    assert json.dumps(row, sort_keys=True) in "".join(rows_document("kaudit.test/1", [row]))
