"""Rows as dtypes: which columns a class has, what rows begin with, and that tuples come back as they went in."""

from typing import Annotated, NamedTuple

import numpy as np
import pytest

from kaudit.model.columns import Columns, joined, no_rows
from kaudit.model.dtypes import default_rows, dtype_of, load, store
from kaudit.model.schema import AtMost, Bool, Int8, Int16, Int64, UInt32


class Point(NamedTuple):
    x: Int16
    y: UInt32


class Shape(NamedTuple):
    number: Int64 = 7
    closed: Bool = True
    centre: Point | None = None
    corners: Annotated[tuple[Point, ...], AtMost(3)] = ()


class Name(NamedTuple):
    letter: Int8


def test_columns():
    point = np.dtype([("x", "<i2"), ("y", "<u4")])
    assert dtype_of(Point) == point
    assert dtype_of(Shape, Name) == np.dtype(
        [("number", "<i8"), ("closed", "?"), ("has_centre", "?"), ("centre", point), ("corners_count", "i1"),
         ("corners", point, (3,)), ("letter", "i1")]
    )  # fmt: skip


def test_rows_begin_as_their_classes_say():
    rows = default_rows(Shape, Name)
    assert load(Shape, rows) == [Shape()]
    assert load(Name, rows) == [Name(0)]
    assert len(default_rows(Name)) == 1


SHAPES = [
    Shape(1, False, Point(-2, 2**32 - 1), (Point(1, 2), Point(3, 4), Point(5, 6))),
    Shape(2**62, True, None, (Point(7, 8),)),
    Shape(-3, False, Point(0, 0), ()),
    Shape(),
]


@pytest.mark.parametrize("places", [[0, 1, 2, 3], [3, 1, 4, 0]])
def test_tuples_come_back(places):
    rows = np.zeros(5, dtype=dtype_of(Name, Shape))
    rows["letter"] = 9
    store(rows, places, SHAPES)
    assert load(Shape, rows[places]) == SHAPES
    assert rows["letter"].tolist() == [9] * 5
    (untouched,) = {*range(5)} - {*places}
    assert load(Shape, rows[[untouched]]) == [Shape(0, False, None, ())]
    # written over
    store(rows, places[:1], [SHAPES[3]])
    assert load(Shape, rows[places[:1]]) == [Shape()]


def columns(number=4):
    return Columns(dtype_of(Point), number, {"x": np.arange(number), "y": 5})


def test_one_row_is_a_mapping():
    row = columns()[2]
    assert (dict(row), len(row), list(row)) == ({"x": 2, "y": 5}, 2, ["x", "y"])
    assert [columns()[index]["x"] for index in (0, 3, -1, -4)] == [0, 3, 3, 0]


def test_a_field_beyond_the_rows_is_an_error():
    part = columns()[1:3]
    assert [part.value("x", index) for index in (0, 1)] == [1, 2]
    assert part.value("y", 1) == 5
    with pytest.raises(IndexError):
        part.value("x", 2)
    with pytest.raises(IndexError):
        columns().value("x", 4)


def test_a_number_all_rows_have_stays_one_where_all_parts_agree():
    other = Columns(dtype_of(Point), 2, {"x": np.array([8, 9]), "y": 6})
    assert joined([columns(), columns(2)]).constant("y") == 5
    assert joined([columns(), columns(2)]).constant("x") is None
    assert joined([columns(2), other]).constant("y") is None
    assert joined([columns(2), other]).tolist() == [(0, 5), (1, 5), (8, 6), (9, 6)]
    made = Columns(dtype_of(Point), 2, {"x": np.array([8, 9]), "y": np.array([5, 5])})
    assert joined([columns(2), made]).tolist() == [(0, 5), (1, 5), (8, 5), (9, 5)]
    same = columns()
    assert joined([same]) is same


def test_slices_of_slices():
    rows = columns(10)
    assert rows[2:8][1:4].tolist() == [(3, 5), (4, 5), (5, 5)]
    assert rows[2:8][::2].tolist() == [(2, 5), (4, 5), (6, 5)]
    assert rows[8:2].tolist() == rows[5:5].tolist() == []
    assert len(rows[8:2]) == 0
    assert rows[2:8][-2]["x"] == 6
    assert rows[2:5].plus(10, "y").tolist() == [(2, 15), (3, 15), (4, 15)]
    assert rows[2:4].replaced("x", np.array([1, 0])).tolist() == [(1, 5), (0, 5)]
    assert rows[2:8].rows(np.array([5, 0])).tolist() == [(7, 5), (2, 5)]
    assert [row["x"] for row in rows[7:]] == [7, 8, 9]
    assert no_rows(dtype_of(Point)).constant("x") == 0
