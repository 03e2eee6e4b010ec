"""What a scan says it could not check."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.damage import DamageKind, LogDamage, PlacedDamage
from kaudit.model.result import CoverageGap
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_rows import Counts
from kaudit.scanning.not_covered import anomalies_not_listed, partitions_not_audited, without_digest
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable

SAMPLES = Path(__file__).parents[2] / "samples"
NO_COORDINATOR = "open transactions could not be compared with their coordinator: no __transaction_state "


def without_coordinator(*paths):
    result = scan(ScanOptions([str(path) for path in paths]), SilentProgress())
    return [
        (entry.path, entry.reason.removeprefix(NO_COORDINATOR))
        for entry in result.not_audited
        if entry.reason.startswith(NO_COORDINATOR)
    ]


def copied(sample, target):
    """Copy a sample without its __transaction_state."""
    return shutil.copytree(SAMPLES / sample, target, ignore=shutil.ignore_patterns("__transaction_state-*"))


def test_of_one_cluster_the_coordinators_log_is_not_among_the_inputs(tmp_path):
    one = copied("open-transaction", tmp_path / "one")
    assert without_coordinator(one) == [("tx-a-1 and 1 more", "among the inputs")]
    assert without_coordinator(SAMPLES / "open-transaction") == []


def test_of_several_clusters_it_is_said_which_one_lacks_it(tmp_path):
    """The two samples are of two clusters by their meta.properties."""
    one, two = copied("open-transaction", tmp_path / "one"), copied("hanging-transaction", tmp_path / "two")
    assert without_coordinator(one, SAMPLES / "hanging-transaction") == [("tx-a-1 and 1 more", f"in {one}")]
    assert {reason for _, reason in without_coordinator(one, two)} == {f"in {one}", f"in {two}"}


SEGMENTS = [SegmentFile(f"/d/orders-0/{base:020d}.log", f"{base:020d}.log", base, 100, 0) for base in (0, 50)]
NOTHING_WRONG = PartitionAudit(
    directory=PartitionDirectory(
        "orders", 0, "b1", "/d", "/d/orders-0", "orders-0", SEGMENTS, log_start_offset=0, has_checkpoints=True
    ),
    counts=Counts(batches=2), observations=(), dropped_observations=0, missing=(), damages=(), unlisted=0,
    regressions=(), opened=(), compacted=False, log_end_offset=100, producers=1, runs=1,
    has_tv2=False, still_growing=False,
)  # fmt: skip
NO_CHECKPOINT = "the log start offset is not known: no checkpoint beside the partition (pass --log-start-offset)"
RESTARTS = "producers that begin after others ended: compared with the last records of those (KA701; --depth records compares with all)"
LEGACY = "magic 0 and 1: no producer ids, sequences are not checkable"
COMPACTED = "compacted: offsets that the log cleaner can have removed, and the sequences they held, are not reported"
GROWING = "the last batch was still being written"


def partition(topic="orders", number=0, *, checkpoints=True, **fields: Any) -> PartitionAudit:
    directory = replace(NOTHING_WRONG.directory, topic=topic, partition=number, has_checkpoints=checkpoints)
    return replace(NOTHING_WRONG, directory=directory, **fields)


def left_out(segment, at):
    detail = f"a line of {at} bytes"
    damage = LogDamage(DamageKind.LEFT_OUT, at, at + 9, resynchronised=True, detail=detail)
    return PlacedDamage(damage, segment, None, None, None)


def reported_lines(*parts, log_start_given=False):
    found = partitions_not_audited(
        parts, log_start_given=log_start_given, without_coordinator=(), other_coordinators=False
    )
    return [(entry.path, entry.reason) for entry in found]


GONE = [Unreadable(f"/d/{number}.log", "removed by retention") for number in range(3)]


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ([partition()], []),
        ([partition(checkpoints=False)], [("orders-0", NO_CHECKPOINT)]),
        (
            [partition(number=number, checkpoints=False) for number in range(1002)],
            [("orders-0 and 1,001 more", NO_CHECKPOINT)],
        ),
        # what brokers keep for themselves has no log start that users give, and is compacted
        ([partition("__transaction_state", checkpoints=False, compacted=True)], []),
        ([partition("__consumer_offsets", counts=Counts(legacy_batches=1))], [("__consumer_offsets-0", LEGACY)]),
        ([partition(compacted=True), partition(number=7)], [("orders-0", COMPACTED)]),
        ([partition(), partition(number=7, still_growing=True)], [("orders-7", GROWING)]),
        ([partition(restarts_compared=2)], [("orders-0", RESTARTS)]),
        ([partition("__transaction_state", restarts_compared=2)], []),
        ([partition(removed=GONE[:1])], [("/d/0.log", "removed by retention")]),
        ([partition(removed=GONE[:2])], [("/d/0.log and 1 more", "removed by retention")]),
        ([partition(removed=GONE)], [("/d/0.log and 2 more", "removed by retention")]),
        (
            [partition(coverage_gaps=frozenset({CoverageGap.COUNTS})), partition(number=1)],
            [("orders-0", CoverageGap.COUNTS.value)],
        ),
        (
            [partition(damages=[left_out(1, 8)])],
            [("orders-0", f"{50:020d}.log: a line of 8 bytes: what lies there is not checked")],
        ),
        (
            [partition(damages=[left_out(0, 8), left_out(1, 4), left_out(1, 40)])],
            [("orders-0", f"{0:020d}.log: a line of 8 bytes: what lies there is not checked, and 2 more such places")],
        ),
        (
            [partition(damages=[left_out(0, 8), left_out(1, 4)])],
            [("orders-0", f"{0:020d}.log: a line of 8 bytes: what lies there is not checked, and 1 more such places")],
        ),
    ],
)
def test_what_could_not_be_checked_in_partitions(parts, lines):
    assert reported_lines(*parts) == lines


def test_the_log_start_that_a_user_gives_is_known():
    assert reported_lines(partition(checkpoints=False), log_start_given=True) == []


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({}, []),
        ({"unlisted": 1000, "dropped_observations": 234}, ["1,234 more anomalies are counted here, not listed"]),
        ({"unlisted": 1}, ["1 more anomalies are counted here, not listed"]),
        ({"dropped_observations": 1}, ["1 more anomalies are counted here, not listed"]),
        ({"snapshots_not_compared": 3}, ["older producer snapshots were not compared with the log: 3"]),
        ({"bumps_not_compared": 1}, ["1 more epoch bumps were not searched for repeated records (KA704)"]),
        ({"restarts_not_compared": 1}, ["1 more producers were not compared with those before them (KA701)"]),
    ],
)
def test_what_is_counted_and_not_listed(fields, lines):
    found = list(anomalies_not_listed([partition(number=3, **fields), partition()]))
    assert [(entry.path, entry.reason) for entry in found] == [("orders-3", line) for line in lines]


def test_which_partitions_have_no_digest():
    parts = [partition(), partition(number=1, unreadable=GONE[:1])]
    assert [(entry.path, entry.reason) for entry in without_digest(parts)] == [
        ("orders-1", "no digest: not all of it could be read"),
        ("orders-0", "no digest: a text of kafka-dump-log is not the bytes of a log"),
    ]
