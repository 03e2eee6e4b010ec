"""Records that retention deleted when they had just been written, by the lines of each release."""

import pytest

from kaudit.checks.replicas.record_times import fresh_records_deleted
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import line, reported

WEEK = 604_800_000
LAST = 1_789_651_349_305
LEADER = line("[Broker id=1] Leader t-0 with topic id Some(a) starts at leader epoch 0 from offset 0 with partition epoch 0, high watermark 0, ISR [1], ")  # fmt: skip
FOLLOWER = line("[Broker id=1] Follower t-0 starts at leader epoch 0 from offset 0 with partition epoch 0 and high watermark 0. Current leader is 2.")  # fmt: skip


def deleted(base=0, newest=LAST - 2 * WEEK, *, some=True, why="log retention time"):
    stamp = f"Some({newest})" if some else newest
    return line(
        f"[UnifiedLog partition=t-0, dir=/data] Deleting segment LogSegment(baseOffset={base}, size=9, lastModifiedTime={LAST}, "
        f"largestRecordTimestamp={stamp}) due to {why} {WEEK}ms breach based on the largest record timestamp in the segment",
        2,
    )


def moved(to):
    return line(f"[UnifiedLog partition=t-0, dir=/data] Incremented log start offset to {to} due to segment deletion")


@pytest.mark.parametrize(
    "text",
    [deleted(), deleted(some=False), deleted(why="retention time")],
    ids=["3.6", "3.9", "3.0"],
)
def test_records_that_were_expired_when_they_came(tmp_path, text):
    (found,) = reported(fresh_records_deleted, tmp_path, server=[LEADER, moved(40), text])
    assert (found.severity, found.topic, found.offset, found.last_offset) == (Severity.ERROR, "t", 0, 39)
    assert (found.impact.records_lost_at_least, found.impact.records_lost_at_most) == (40, 40)


def test_segments_of_a_partition_are_one_finding(tmp_path):
    lines = [LEADER, moved(40), deleted(), moved(70), deleted(40), moved(90), deleted(70, LAST - 5)]
    (found,) = reported(fresh_records_deleted, tmp_path, server=lines)
    assert (found.offset, found.last_offset, found.evidence.log_events_count) == (0, 69, 2)


@pytest.mark.parametrize(
    "lines",
    [[LEADER, deleted(newest=LAST - 5)], [FOLLOWER, deleted()], [LEADER, deleted(why="local log retention time")]],
    ids=["due", "new-replica", "local-tier"],
)
def test_what_was_due_is_silent(tmp_path, lines):
    assert not reported(fresh_records_deleted, tmp_path, server=lines)


def test_without_the_new_log_start_the_number_is_not_known(tmp_path):
    (found,) = reported(fresh_records_deleted, tmp_path, server=[LEADER, deleted()])
    assert (found.last_offset, found.impact.records_lost_at_most) == (None, None)
