"""Histograms of producer ids: nothing is counted twice or lost, and the steps of time stay few."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.analysis.producer_ids.histograms import (
    COUNTS,
    IDLE_TIMES_MS,
    LIFETIMES_MS,
    TimeSteps,
    counts_between,
    histogram,
)
from kaudit.cli.app import run


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
