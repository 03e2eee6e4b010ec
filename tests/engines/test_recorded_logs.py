"""Logs of real brokers: both engines tell the same of them, to the byte."""

import pytest

from kaudit.report.document import pretty

CAPTURES = (
    "clients-mix", "cross-session", "failover-acks1", "legacy-formats", "retention-compaction-2.8.2", "retry-dup",
    "torn-writes", "txn-mix-2.8.2", "unknown-pid-2.0.1", "zk-pid-blocks",
)  # fmt: skip
ORACLES = ("1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", CAPTURES)
def test_captures(local, spark, evidence, name):
    path = evidence.capture(name)
    for theirs, ours in zip(spark.documents(path), local.documents(path), strict=True):
        assert pretty(theirs) == pretty(ours)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("version", ORACLES)
def test_oracles_cut_into_small_ranges(local, spark, evidence, version):
    path = evidence.oracle(version, "logdir")
    whole = local.scan(path)
    assert whole.findings
    assert spark.scan(path, chunk_bytes=2000) == whole
