"""Structures written down once, and what is derived from them: offsets, `struct` formats, numpy's types."""

from typing import NamedTuple

import numpy as np
import pytest

from kaudit.formats.log.batch_header import plausible_length
from kaudit.formats.wire_format import WireFormat
from kaudit.model.schema import Int8, Int16, Int32, Int64, UInt32


class Row(NamedTuple):
    first: Int8
    second: Int16
    third: Int32
    fourth: UInt32
    fifth: Int64


ROW = WireFormat(Row)
STORED = bytes([1, 0, 2, 0, 0, 0, 3, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 5])


def test_fields_lie_one_behind_the_other():
    assert (ROW.size, ROW.names) == (len(STORED), ("first", "second", "third", "fourth", "fifth"))
    assert [(own.name, own.offset, own.size) for own in ROW.fields] == [
        ("first", 0, 1), ("second", 1, 2), ("third", 3, 4), ("fourth", 7, 4), ("fifth", 11, 8),
    ]  # fmt: skip
    assert [ROW.end(name) for name in ROW.names] == [1, 3, 7, 11, 19]
    assert np.frombuffer(STORED, np.dtype(ROW.descr)).tolist() == [(1, 2, 3, 2**32 - 1, 5)]


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ((), (1, 2, 3, 2**32 - 1, 5)),
        (("second",), (2,)),
        (("first", "third", "fifth"), (1, 3, 5)),
        (("third", "fourth"), (3, 2**32 - 1)),
    ],
)
def test_some_fields_pass_over_those_between_them(names, values):
    assert ROW.struct(*names).unpack_from(STORED, ROW.offset(names[0]) if names else 0) == values


def test_fields_from_one_to_another():
    assert ROW.struct_between("second", "fourth").unpack_from(STORED, 1) == (2, 3, 2**32 - 1)
    assert ROW.struct_between("first", "first").size == 1
    assert ROW.struct_between("fourth", "fifth").unpack_from(STORED, 7) == (2**32 - 1, 5)


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 14), (2, 49), (3, None), (-1, None)])
def test_the_least_length_of_each_magic(magic, least):
    """A header of 61 bytes, of which 12 do not count; LegacyRecord.RECORD_OVERHEAD_V0."""
    if least is None:
        assert not plausible_length(magic, 1000)
    else:
        assert (plausible_length(magic, least - 1), plausible_length(magic, least)) == (False, True)
