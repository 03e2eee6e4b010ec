"""Logs of real brokers: findings(runs(batches)) is what scan finds, to the last field. All of it without a JVM."""

import pytest

from tests.engines.recorded import CAPTURES, ORACLES
from tests.spark.in_process import findings, load, runs_of, scanned

SMALL = {"txn-mix-2.8.2", "unknown-pid-2.0.1", "zk-pid-blocks"}
"""The others take a minute together: they run with the clusters."""


def _chosen(names):
    return [name if name in SMALL else pytest.param(name, marks=pytest.mark.cluster) for name in names]


@pytest.mark.parametrize("name", _chosen(CAPTURES))
def test_captures(evidence, name):
    logs = evidence.capture(name)
    expected = scanned(logs)
    assert findings(runs_of(load("batches", logs)), logs) == expected


@pytest.mark.parametrize("version", _chosen(ORACLES))
def test_oracles_read_in_pieces(evidence, version):
    logs = evidence.oracle(version, "logdir")
    expected = scanned(logs)
    assert expected
    assert findings(runs_of(load("batches", logs)), logs) == expected
    assert findings(None, logs) == expected
