"""The same body over both engines: what was done to a log is found, wherever the log is cut."""

import random

import pytest

from tests.engines.faulty_logs import FAULTS
from tests.logs import WRAP
from tests.properties.histories import PRODUCERS, STEPS, build

CUTS = [None, 200, 1000]
"""Bytes a range: whole segments; ranges of two or three batches, cuts inside every window; some more."""


@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__)
def test_what_was_done_is_found(engine, tmp_path, make):
    result = engine.scan(make(tmp_path / "orders-0"))
    assert sorted(finding.code for finding in result.findings) == FAULTS[make]
    assert result.summary.partitions == 1
    assert not result.incomplete


def test_cuts_change_nothing(local, tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    whole, *cut = [local.documents(tmp_path, chunk_bytes=size) for size in CUTS]
    assert whole[0]["summary"]["batches"] > 500
    for documents in cut:
        assert documents == whole


@pytest.mark.jvm
def test_engines_agree_on_faults(local, spark, tmp_path):
    # at each cut, so what cuts do not change here they do not change there
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    for size in CUTS:
        assert spark.documents(tmp_path, chunk_bytes=size) == local.documents(tmp_path, chunk_bytes=size)


@pytest.mark.jvm
def test_engines_agree_on_random_histories(local, spark, tmp_path):
    # gaps, re-sends, fencing, wraps, transactions, losses, silences: forty partitions in one job
    rng = random.Random(20261121)
    for number in range(40):
        actions = [
            (rng.choice(STEPS), rng.randrange(PRODUCERS), rng.randint(1, 7), rng.random() < 0.5)
            for _ in range(rng.randint(5, 120))
        ]
        log = build(actions, [rng.choice([0, 0, 5, WRAP - 3]) for _ in range(PRODUCERS)])
        if log.batches:
            log.write(tmp_path / f"orders-{number}")
    documents = local.documents(tmp_path, chunk_bytes=500)
    assert len({finding["code"] for finding in documents[0]["findings"]}) > 8
    assert spark.documents(tmp_path, chunk_bytes=500) == documents
