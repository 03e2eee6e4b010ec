"""Grouping by producer id equals a stable sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kaudit.analysis.scan.producer_grouping import group
from kaudit.analysis.scan.rows import GAP, assemble

ids = st.one_of(st.integers(0, 5), st.integers(0, 2**63 - 1), st.integers(2**40, 2**40 + 9))


@given(st.lists(ids, max_size=200))
def test_grouping_is_a_stable_sort_of_the_ids(values):
    column = np.asarray(values, dtype=np.int64)
    order, ordered = group(column)
    expected = np.argsort(column, kind="stable")
    assert order.tolist() == expected.tolist()
    assert ordered.tolist() == column[expected].tolist()


def test_rows_are_assembled_whatever_their_number():
    for count in (0, 1, 2048, 5000):
        column = np.arange(count, dtype=np.int64)
        rows = assemble(GAP, count, {"first_missing": column, "last_missing": column + 1, "position": 7, "segment": 3})
        assert rows["last_missing"].tolist() == list(range(1, count + 1))
        assert rows["position"].tolist() == [7] * count
