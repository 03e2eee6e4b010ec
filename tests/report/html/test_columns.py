"""Packed columns: what goes in comes out, by a decoder that shares no code with the encoder."""

import zlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.report.html.columns import TABLES, pack
from tests.html.page_reader import decode
from tests.html.synthetic import tables

_INT64 = st.integers(-(2**63), 2**63 - 1)


def _decoded(held):
    packed, data = pack(held)
    return decode(msgspec.to_builtins(packed), zlib.decompress(data))


@pytest.mark.parametrize(("producers", "runs"), [(1, 0), (1, 1), (7, 500)])
def test_columns_are_read_back(producers, runs):
    held = tables(producers, runs)

    assert _decoded(held) == {
        name: {field: columns[field].tolist() for field in columns} for name, columns in held.items()
    }


@given(st.data())
def test_any_numbers_are_read_back(data):
    held = {
        name: {field: np.array(data.draw(st.lists(_INT64, min_size=3, max_size=3)), dtype=np.int64) for field in fields}
        for name, fields in TABLES.items()
    }

    assert _decoded(held) == {
        name: {field: columns[field].tolist() for field in columns} for name, columns in held.items()
    }


def test_an_unbroken_producer_costs_no_sequences_and_no_records():
    packed, _ = pack(tables(1, 100))
    widths = {field.name: field.width for field in packed["runs"].fields}

    assert widths["last_sequence"] == widths["records"] == widths["lane"] == 0
