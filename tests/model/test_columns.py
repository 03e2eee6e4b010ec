"""Columns beside the structured array of the same rows."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.model.columns import Columns, joined, no_rows
from kaudit.reading.rows import BOUNDARY_BATCH

COUNT = 40
INDEXES = st.lists(st.integers(-COUNT, COUNT - 1), max_size=60)
CUTS = st.integers(-COUNT - 2, COUNT + 2) | st.none()


def random_rows(seed=0, count=COUNT):
    return (
        np.random.default_rng(seed)
        .integers(0, 256, (count, BOUNDARY_BATCH.itemsize), dtype=np.uint8)
        .view(BOUNDARY_BATCH)[:, 0]
    )


NAMES = BOUNDARY_BATCH.names or ()


def columns_of(rows):
    return Columns(BOUNDARY_BATCH, len(rows), {name: rows[name] for name in NAMES})


@given(INDEXES)
def test_rows_at_indexes(indexes):
    rows = random_rows()
    columns, chosen = columns_of(rows), np.array(indexes, dtype=np.intp)
    expected = rows[chosen].tolist()
    assert columns[indexes].tolist() == columns[chosen].tolist() == columns.rows(chosen).tolist() == expected
    assert [columns.item(index) for index in indexes] == expected
    assert [tuple(columns[index].values()) for index in indexes] == expected


@given(CUTS, CUTS)
def test_a_slice(first, last):
    rows = random_rows()
    part = columns_of(rows)[first:last]
    assert part.tolist() == rows[first:last].tolist()
    assert len(part) == len(rows[first:last])


@given(st.lists(st.booleans(), min_size=COUNT, max_size=COUNT))
def test_rows_of_a_mask(mask):
    rows = random_rows()
    assert columns_of(rows)[np.array(mask)].tolist() == rows[np.array(mask)].tolist()


@pytest.mark.parametrize("counts", [(0,), (3,), (0, 5), (4, 0, 7)])
def test_parts_are_joined(counts):
    parts = [random_rows(number, count) for number, count in enumerate(counts)]
    assert joined([columns_of(part) for part in parts]).tolist() == np.concatenate(parts).tolist()


def test_adding_to_a_column_leaves_those_that_share_it_alone():
    shared = np.arange(3)
    rows = Columns(BOUNDARY_BATCH, 3, dict.fromkeys(NAMES, 7) | {"base_offset": shared, "present_before": shared})
    moved = rows.plus(10, "present_before")
    assert moved["present_before"].tolist() == [10, 11, 12]
    assert moved["base_offset"].tolist() == rows["present_before"].tolist() == shared.tolist() == [0, 1, 2]
    assert moved["size"].tolist() == [7, 7, 7]


def test_columns_have_the_types_of_their_fields_and_survive_pickling():
    columns = columns_of(random_rows())
    assert all(columns[name].dtype == BOUNDARY_BATCH[name] for name in NAMES)
    again = pickle.loads(pickle.dumps(columns, pickle.HIGHEST_PROTOCOL))
    assert again.dtype == BOUNDARY_BATCH
    assert again.tolist() == columns.tolist()


def test_a_shared_column_is_pickled_once():
    column = np.arange(1000, dtype=np.int64)
    shared = Columns(BOUNDARY_BATCH, 1000, dict.fromkeys(NAMES, 0) | {"base_offset": column, "last_offset": column})
    apart = Columns(
        BOUNDARY_BATCH,
        1000,
        dict.fromkeys(NAMES, 0) | {"base_offset": column, "last_offset": column.copy()},
    )
    assert len(pickle.dumps(shared)) < len(pickle.dumps(apart)) - 8 * 900


def test_no_rows():
    assert no_rows(BOUNDARY_BATCH).tolist() == []
    assert list(no_rows(BOUNDARY_BATCH)) == []
    assert no_rows(BOUNDARY_BATCH)[:5].tolist() == no_rows(BOUNDARY_BATCH)[[]].tolist() == []


def test_a_column_is_made_once_when_it_is_asked_for():
    made = []

    def make():
        made.append(True)
        return np.arange(4)

    rows = Columns(BOUNDARY_BATCH, 4, dict.fromkeys(NAMES, 1) | {"size": make})
    assert rows["crc"].tolist() == [1, 1, 1, 1]
    assert rows.plus(1, "crc")[1:]["crc"].tolist() == [2, 2, 2]
    assert rows[1:][2]["crc"] == rows[3]["crc"] == 1
    assert made == []
    assert rows[2:]["size"].tolist() == [2, 3]
    assert rows["size"].tolist() == rows.settled()["size"].tolist() == [0, 1, 2, 3]
    only = rows.settled(rows.dtype[["size"]])
    assert (only.dtype.names, only.tolist()) == (("size",), [(0,), (1,), (2,), (3,)])
    assert made == [True]
    assert rows["size"].dtype == BOUNDARY_BATCH["size"]


@pytest.mark.parametrize(
    "take",
    [Columns.tolist, lambda rows: rows.settled().tolist(), lambda rows: pickle.loads(pickle.dumps(rows)).tolist()],
)
def test_columns_yet_to_be_made_are_made_by_who_takes_all(take):
    rows = random_rows()
    columns = Columns(BOUNDARY_BATCH, COUNT, {name: partial(rows.__getitem__, name) for name in NAMES})
    assert take(columns) == rows.tolist()
    assert columns[5:9].settled().tolist() == rows[5:9].tolist()
