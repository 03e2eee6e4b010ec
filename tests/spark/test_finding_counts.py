"""What Spark's tasks report of findings as numbers, and which findings the driver then asks for."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from msgspec import Struct

from kaudit.checks.incident_groups import partition_incidents
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.reading.shuffle_codec import pack
from kaudit.spark import task_findings as spark_judging
from kaudit.spark.task_findings import AllCounts, FindingCounts, TopicPartition, first_of_each, replicas
from kaudit.spark.tasks import Replayed

GAP, OLD = ("KA104", Severity.ERROR), ("KA104", Severity.WARNING)
BUMP = ("KA201", Severity.NOTE)


def finding(counted, offset, producer_id=None):
    code, severity = counted
    return Finding(
        code, "", severity, Confidence.CERTAIN, "", topic="t", partition=0, offset=offset, producer_id=producer_id
    )


def partition_of(number, topic, found, asked=()):
    """A topic partition with one replica and these findings."""
    replica: Any = SimpleNamespace(directory=SimpleNamespace(topic=topic))
    return TopicPartition(number, [Replayed(replica)], [], found, 0, partition_incidents(found), asked)


def counts(topic, **prints):
    """Counts of a partition: so many fingerprints, from a number on, of each kind."""
    kinds = {"gap": GAP, "old": OLD, "bump": BUMP}
    found = {kinds[name]: np.arange(first, first + count, dtype=np.uint64) for name, (first, count) in prints.items()}
    return FindingCounts(topic, found, {}, np.zeros((0, 4), dtype=np.int64), frozenset())


def test_findings_are_counted_by_check_and_severity_in_their_order():
    found = [finding(GAP, 1, 7), finding(OLD, 2, 8), finding(GAP, 3, 9), finding(BUMP, 4)]
    made = partition_of(0, "orders", found, [9, 7, 10]).counts()
    prints = [int(each.fingerprint, 16) for each in found]
    assert {counted: own.tolist() for counted, own in made.fingerprints.items()} == {
        GAP: [prints[0], prints[2]],
        OLD: [prints[1]],
        BUMP: [prints[3]],
    }
    assert (made.topic, made.producer_ids) == ("orders", frozenset({7, 9}))
    assert not made.groups
    assert made.reaches.shape[0] == 0
    assert partition_of(0, "orders", found, []).counts().producer_ids == frozenset()


PARTITIONS = {
    -1: counts("", bump=(0, 1)),
    0: counts("a", gap=(10, 3), old=(20, 1)),
    2: counts("b", gap=(30, 2)),
    3: counts("a", gap=(40, 2), bump=(50, 2)),
}


@pytest.mark.parametrize(("most", "listed", "rest"), [
    (9, {-1: {BUMP: 1}, 0: {GAP: 3, OLD: 1}, 2: {GAP: 2}, 3: {GAP: 2, BUMP: 2}}, []),
    (7, {-1: {BUMP: 1}, 0: {GAP: 3, OLD: 1}, 2: {GAP: 2}, 3: {GAP: 2, BUMP: 2}}, []),
    (4, {-1: {BUMP: 1}, 0: {GAP: 3, OLD: 1}, 2: {GAP: 1}, 3: {BUMP: 2}}, [(GAP, "a", [40, 41]), (GAP, "b", [31])]),
    (3, {-1: {BUMP: 1}, 0: {GAP: 3, OLD: 1}, 3: {BUMP: 2}}, [(GAP, "a", [40, 41]), (GAP, "b", [30, 31])]),
    (
        1,
        {-1: {BUMP: 1}, 0: {GAP: 1, OLD: 1}},
        [(GAP, "a", [11, 12, 40, 41]), (BUMP, "a", [50, 51]), (GAP, "b", [30, 31])],
    ),
    (
        0,
        {},
        [
            (BUMP, "", [0]), (GAP, "a", [10, 11, 12, 40, 41]), (OLD, "a", [20]), (BUMP, "a", [50, 51]),
            (GAP, "b", [30, 31]),
        ],
    ),
])  # fmt: skip
def test_the_first_findings_of_each_check_are_listed_and_the_rest_counted_by_topic(monkeypatch, most, listed, rest):
    """Seven gaps are errors: with a limit of seven all are listed."""
    monkeypatch.setattr(spark_judging, "FINDINGS_OF_CHECK", most)
    every = AllCounts(PARTITIONS)
    assert every.to_list() == listed
    unlisted = every.unlisted(listed)
    found = [
        ((each.code, each.severity), each.topic, [int(number) for number in each.fingerprints]) for each in unlisted
    ]
    assert [each[1:] for each in sorted(found, key=str)] == [each[1:] for each in sorted(rest, key=str)]
    assert sorted(found, key=str) == sorted(rest, key=str)
    # by topic, and of a topic by code
    assert [(each.topic, each.code) for each in unlisted] == sorted((each.topic or "", each.code) for each in unlisted)


def test_so_many_of_each_check_and_severity_are_the_first_ones():
    found = [finding(GAP, 1), finding(OLD, 2), finding(GAP, 3), finding(BUMP, 4), finding(GAP, 5), finding(BUMP, 6)]
    assert [each.offset for each in first_of_each(found, {GAP: 2, BUMP: 1})] == [1, 3, 4]
    assert [each.offset for each in first_of_each(found, {OLD: 5, GAP: 0})] == [2]
    assert first_of_each(found, {}) == []


def rows(*cells: tuple[int, bytes | None, bytes | None], kept: bool = True) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "job_index": pa.array([job for job, _, _ in cells], pa.int32()),
        "audit": pa.array([audit for _, audit, _ in cells], pa.binary()),
    }
    if kept:
        columns["kept"] = pa.array([part for _, _, part in cells], pa.binary())
    return pa.RecordBatch.from_pydict(columns)


class Audit(Struct):
    name: str

    @property
    def partition(self):
        return self

    def relink_observations(self):
        return self


@pytest.fixture
def audits(monkeypatch):
    monkeypatch.setattr(spark_judging, "Replayed", Audit)
    return lambda name: pack(Audit(name))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_what_is_kept_comes_in_parts_over_several_rows(audits, size):
    """The audit lies in one of a job's rows, whichever; a job may keep nothing."""
    first, second = pack(list(range(500))), pack([2])
    cells = [
        (0, audits("one"), first[:10]), (0, None, first[10:30]), (0, None, first[30:]),
        (2, None, second), (2, audits("two"), None),
        (3, audits("three"), None),
    ]  # fmt: skip
    batches = [rows(*cells[start : start + size]) for start in range(0, len(cells), size)]
    found = [(job, part.name, kept) for job, part, kept in cast("Any", replicas(iter(batches), list[int]))]
    assert found == [(0, "one", list(range(500))), (2, "two", [2]), (3, "three", None)]


def test_rows_without_what_is_kept_have_audits_alone(audits):
    batches = [rows((0, audits("one"), None), (1, audits("two"), None), kept=False)]
    found = [(job, part.name, kept) for job, part, kept in cast("Any", replicas(iter(batches), list[int]))]
    assert found == [(0, "one", None), (1, "two", None)]


def test_a_job_whose_audit_is_not_there_is_named():
    with pytest.raises(AssertionError, match=r"^job 4: its audit did not arrive"):
        list(replicas(iter([rows((4, None, b"x"))]), list[int]))
