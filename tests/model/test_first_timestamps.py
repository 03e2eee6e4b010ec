"""When a batch's first record was written: not what the base timestamp says under log append time, or a delete horizon (KIP-534)."""

import numpy as np
import pytest

from kaudit.model.batch import BATCH, first_timestamps

BASE, MAX = 1000, 5000
FLAGS = [(0x00, BASE), (0x08, MAX), (0x40, MAX), (0x10, BASE)]


def batches(attributes):
    rows = np.zeros(1, dtype=BATCH)
    rows["attributes"], rows["base_timestamp"], rows["max_timestamp"] = attributes, BASE, MAX
    return rows


@pytest.mark.parametrize(("attributes", "first"), FLAGS)
def test_the_first_timestamp(attributes, first):
    assert first_timestamps(batches(attributes)).tolist() == [first]


@pytest.mark.spark
@pytest.mark.parametrize(("attributes", "first"), FLAGS)
def test_dataframes_leave_out_what_begins_later(attributes, first):
    from kaudit.spark.options import ReadOptions
    from kaudit.spark.readers import _wanted

    options = ReadOptions(paths=("/logs",), until=BASE)
    assert len(_wanted(batches(attributes), options)) == (first == BASE)
