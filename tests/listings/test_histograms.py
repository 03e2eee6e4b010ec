"""Histograms of producer ids: nothing is counted twice or lost, and the steps of time stay few."""

import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.cli.app import run
from kaudit.listings.statistics import (
    COUNTS,
    IDLE_TIMES_MS,
    LIFETIMES_MS,
    TimeSteps,
    counts_between,
    histogram,
)


def test_counts_are_parted_at_powers_of_ten_and_times_at_natural_ones():
    assert (0, 1, 2, *(10**power for power in range(1, 7))) == COUNTS
    minute, hour, day = (timedelta(**{unit: 1}) // timedelta(milliseconds=1) for unit in ("minutes", "hours", "days"))
    assert (0, 1000, minute, hour, day, 7 * day) == LIFETIMES_MS
    assert (0, minute, hour, day, 7 * day) == IDLE_TIMES_MS


@pytest.mark.parametrize(
    ("seconds", "step_seconds"),
    [
        *((0, 1), (15, 1), (16, 10), (159, 10), (160, 60), (959, 60), (960, 600), (9_599, 600), (9_600, 3600)),
        *((16 * 3600 - 1, 3600), (16 * 3600, 6 * 3600), (4 * 86_400 - 1, 6 * 3600), (4 * 86_400, 86_400)),
        *((16 * 86_400, 7 * 86_400), (112 * 86_400, 30 * 86_400), (480 * 86_400, 365 * 86_400)),
    ],
)
def test_the_shortest_natural_step_is_taken_of_which_sixteen_suffice(seconds, step_seconds):
    steps = TimeSteps.between(0, seconds * 1000)
    assert steps == TimeSteps(step_seconds * 1000, 0, seconds // step_seconds + 1)


def test_what_no_natural_step_covers_is_parted_into_sixteen():
    last = 16 * 365 * 86_400_000
    step = last // 15 + 1
    assert TimeSteps.between(0, last) == TimeSteps(step, 0, 15)
    assert TimeSteps.between(0, last - 1) == TimeSteps(365 * 86_400_000, 0, 16)


def test_buckets_begin_and_end_with_one_that_is_not_empty():
    assert counts_between(np.array([-1, 0, 9, 10, 10, 99]), (0, 10, 20)).tolist() == [2, 2, 1]
    assert histogram(np.array([0, 2, 0, 1, 0]), (0, 10, 20, 30, 40)) == [
        *({"from": 10, "to": 19, "ids": 2}, {"from": 20, "to": 29, "ids": 0}, {"from": 30, "to": 39, "ids": 1})
    ]
    assert histogram(np.array([1, 0, 3]), (0, 10, 20))[-1] == {"from": 20, "to": None, "ids": 3}
    assert histogram(np.array([0, 0]), (0, 10)) == []


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**62)), st.sampled_from([COUNTS, LIFETIMES_MS, IDLE_TIMES_MS]))
def test_each_value_is_counted_in_its_bucket(values, bounds):
    buckets: Any = histogram(counts_between(np.array(values, dtype=np.int64), bounds), bounds)
    for bucket in buckets:
        last = 2**63 if bucket["to"] is None else bucket["to"]
        assert bucket["ids"] == sum(bucket["from"] <= value <= last for value in values)
    assert sum(bucket["ids"] for bucket in buckets) == len(values)
    assert all(before["to"] + 1 == after["from"] for before, after in pairwise(buckets))
    assert not buckets or (buckets[0]["ids"] and buckets[-1]["ids"])


def steps_of_time(timestamps):
    steps = TimeSteps.between(int(timestamps.min()), int(timestamps.max()))
    return steps.rows(steps.counts(timestamps))


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**62), min_size=1))
def test_steps_of_time_are_few_equal_and_complete(timestamps):
    steps = steps_of_time(np.array(timestamps, dtype=np.int64))
    starts = [step["start_timestamp"] for step in steps]
    lengths = {after - before for before, after in pairwise(starts)}
    assert len(steps) <= 16
    assert len(lengths) <= 1
    for start, after, step in zip(starts, [*starts[1:], 2**63], steps, strict=True):
        assert step["ids"] == sum(start <= timestamp < after for timestamp in timestamps)
    assert starts[0] <= min(timestamps)


def test_an_hour_of_new_ids_comes_in_steps_of_ten_minutes():
    minutes = np.array([0, 1, 9, 10, 59], dtype=np.int64)
    steps = steps_of_time(minutes * 60_000)
    assert [(step["start_timestamp"] // 60_000, step["ids"]) for step in steps] == [
        *((0, 3), (10, 1), (20, 0), (30, 0), (40, 0), (50, 1))
    ]


def test_the_flood_of_the_sample_is_seen(capsys):
    """samples/producer-ids: 603 ids wrote one batch, one wrote ten, all in epoch 0."""
    assert run(["producers", "--summary", "--exit-zero", "-q", "--output-format", "json", "samples/producer-ids"]) == 0
    histograms = json.loads(capsys.readouterr().out)["summary"]["ids"]["histograms"]
    assert histograms["batches"] == [
        {"from": 1, "to": 1, "ids": 603},
        {"from": 2, "to": 9, "ids": 0},
        {"from": 10, "to": 99, "ids": 1},
    ]
    assert histograms["epochs"] == [{"from": 1, "to": 1, "ids": 604}]
    assert sum(step["ids"] for step in histograms["first_seen"]) == 604
