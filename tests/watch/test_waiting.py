"""What a watch reports when: what may still be withdrawn waits, nothing is said twice, and reading again has its time."""

import shutil
from pathlib import Path

import pytest

from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS
from kaudit.model.severity import Severity, Status
from kaudit.source.schemes import open_segment
from kaudit.watch import findings, watcher
from kaudit.watch.findings import Due, LiveAudit
from kaudit.watch.memory import Memory, Reported, Waiting
from kaudit.watch.partition_follower import PartitionFollower
from tests.logs import Log, data
from tests.scan_results import old_duplicate
from tests.watch.growing import GrowingLog, Watching

SAMPLE = Path(__file__).parents[2] / "samples" / "coordinator"
STAYS, NEXT_READING, END_OF_TRANSACTION = "KA101", "KA301", "KA302"
BEGAN = 1_700_000_000_000


def idle_for(milliseconds, **evidence):
    """A transaction that is idle for so long by times of brokers, and for ever by those of clients."""
    return {"first_timestamp": BEGAN, "now_timestamp": BEGAN + (1 << 40), "idle_ms": milliseconds, **evidence}


@pytest.mark.parametrize(
    ("finding", "reported"),
    [
        ({"code": STAYS}, True),
        ({"code": STAYS, "severity": Severity.WARNING}, True),
        ({"code": STAYS, "severity": Severity.NOTE}, False),
        ({"code": NEXT_READING}, False),
        ({"code": END_OF_TRANSACTION, "evidence": idle_for(MAX_TRANSACTION_TIMEOUT_MS)}, True),
        ({"code": END_OF_TRANSACTION, "evidence": idle_for(MAX_TRANSACTION_TIMEOUT_MS - 1)}, False),
        ({"code": END_OF_TRANSACTION, "evidence": idle_for(0)}, False),
        ({"code": END_OF_TRANSACTION, "evidence": idle_for(None)}, False),
        # the coordinator states the timeout, and the check's severity says whether it has passed
        ({"code": END_OF_TRANSACTION, "severity": Severity.WARNING, "evidence": idle_for(1, coordinator="ongoing")}, True),
        ({"code": END_OF_TRANSACTION, "severity": Severity.NOTE, "evidence": idle_for(1 << 40, coordinator="ongoing")}, False),
    ],
)  # fmt: skip
def test_what_may_be_withdrawn_is_not_reported_at_once(finding, reported):
    waiting, found = Waiting(), old_duplicate(**finding)
    assert (waiting.due([found], lambda _: True, 100, 10), waiting.held) == (
        ([found], []) if reported else ([], [found])
    )
    assert (waiting.due([found], lambda _: False, 200, 10), waiting.held) == ([], [found])


@pytest.mark.parametrize("finding", [{"code": NEXT_READING}, {"code": STAYS, "severity": Severity.NOTE}])
def test_what_the_next_reading_may_withdraw_is_reported_when_it_has_stood_in_the_same_words(finding):
    waiting = Waiting()
    first, other = old_duplicate(**finding, message="one"), old_duplicate(**finding, message="two")
    looks = [(first, 100), (first, 109), (other, 110), (other, 119), (other, 120), (other, 130)]
    assert [bool(waiting.due([found], lambda _: True, now, 10)) for found, now in looks] == [False] * 4 + [True] * 2
    waiting.due([], lambda _: True, 131, 10)  # it is gone: the next one waits anew
    assert not waiting.due([other], lambda _: True, 132, 10)


def test_memory_forgets_what_is_about_deleted_offsets_and_partitions_and_counts_for_ever():
    memory = Memory()
    found = [
        old_duplicate(offset=4, last_offset=9),
        old_duplicate(offset=5, last_offset=None),
        old_duplicate(offset=None, last_offset=None),
        old_duplicate(offset=6, last_offset=6, partition=1),
        old_duplicate(offset=7, last_offset=7, severity=Severity.NOTE, status=Status.KNOWN),
    ]
    places: dict[tuple[object, ...], str] = {
        (each.log_dir, each.topic, each.partition): f"/logs/{each.topic}-{each.partition}" for each in found
    }
    first, other = (f"/logs/{found[number].topic}-{found[number].partition}" for number in (0, 3))
    assert memory.take(found, places) == found
    assert memory.take(found, places) == []
    assert list(memory.findings.values()) == [
        Reported(each.code, each.severity.value, places[each.log_dir, each.topic, each.partition], last)
        for each, last in zip(found, (9, 5, None, 6, 7), strict=True)
    ]
    assert (memory.read_bytes, memory.repeated_readings, memory.grown_ms) == (0, 0, None)
    assert memory.by_severity() == {found[0].severity.value: 4}
    assert memory.by_check() == {(found[0].code, found[0].severity.value): 4}

    def left():
        return [known.last_offset for known in memory.findings.values()]

    for starts, deleted, expected in (
        ({}, (), [9, 5, None, 6, 7]),
        ({first: 5}, (), [9, 5, None, 6, 7]),
        ({first: 6}, (), [9, None, 6, 7]),
        ({first: 8}, {other}, [9, None]),
    ):
        memory.forget(starts, deleted)
        assert left() == expected
    assert memory.by_severity() == {found[0].severity.value: 4}


def test_an_offset_at_the_very_beginning_is_remembered():
    memory = Memory()
    memory.take([old_duplicate(offset=0, last_offset=0)], {})
    memory.forget({}, ())
    assert len(memory.findings) == 1


def test_what_the_slowest_reading_takes_is_ten_times_as_long():
    judge = LiveAudit(Watching(SAMPLE).options, open_segment)
    assert judge.slowest == 0
    judge._blocks_due.longest, judge._coordinators_due.longest = 0.5, 0.25
    assert judge.slowest == 5
    judge._coordinators_due.longest = 0.75
    assert judge.slowest == 7.5


def test_findings_about_transactions_stay_until_their_coordinators_log_is_read_again(tmp_path):
    """Its log is gone in the meantime: what it said stays, in the place that a scan gives it."""
    shutil.copytree(SAMPLE, tmp_path / "logs")
    watching = Watching(tmp_path / "logs")
    watching.look()
    assert watching.watcher.result is not None
    before = [(found.code, found.offset) for found in watching.watcher.result.findings]
    state = tmp_path / "logs" / "__transaction_state-0" / f"{0:020}.log"
    state.write_bytes(state.read_bytes()[:100])
    watching.watcher._audit._coordinators_due.is_now = lambda: False  # type: ignore[method-assign]
    for _ in range(2):
        watching.look()
        now = [(found.code, found.offset) for found in watching.watcher.result.findings]
        assert [found for found in now if found[0] in dict(before)] == before
    assert watching.end() == watching.scanned()
    assert [(found.code, found.offset) for found in watching.watcher.result.findings] != before


@pytest.mark.parametrize(
    ("code", "coordinated"),
    [
        ("KA301", True),
        ("KA302", True),
        ("KA305", True),
        ("KA303", False),
        ("KA101", False),
        ("KA104", False),
        ("KA401", False),
    ],
)
def test_which_findings_hold_what_a_coordinator_says(code, coordinated):
    """Those about transactions that the log alone does not decide: not an idempotent producer's, not a log's own."""
    assert findings._is_coordinated(old_duplicate(code=code)) is coordinated


def test_when_something_was_appended_while_nobody_watched(log):
    """The state file's time counts where it is later than the files': they were read then."""
    watching = Watching(log.directory.parent)
    watching.look()
    modified_ms = log.file(0).stat().st_mtime_ns // 1_000_000
    for since in (5, modified_ms, 1 << 44):
        watching.watcher.memory.grown_ms = since
        watching.restart()
        watching.look()
        assert watching.watcher.memory.grown_ms == max(since, modified_ms)


@pytest.fixture
def log(tmp_path):
    """A partition with a duplicate."""
    log = GrowingLog(tmp_path / "logs" / "orders-0")
    log.roll(0)
    written = Log()
    for number in range(3):
        log.append(written.append(data(7, 0, number)))
    log.append(written.batches[-1].at(3))
    return log


@pytest.fixture
def judged(monkeypatch):
    """A mark for each time that everything was judged, and for each that the histories of blocks were read."""
    seen = []
    for owner, name in ((LiveAudit, "result"), (findings, "read_blocks")):
        original = getattr(owner, name)

        def noted(*arguments, original=original, name=name, **options):
            seen.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)
    return seen


def test_what_stands_still_is_judged_once_unless_something_waits(log, judged):
    watching = Watching(log.directory.parent)
    for _ in range(3):
        watching.look()
    assert judged == ["read_blocks", "result"]
    log.append(data(7, 0, 3).at(4), first_bytes=30)
    for _ in range(3):
        watching.look()
    assert watching.watcher.waiting.held
    assert judged.count("result") == 4


def test_what_has_no_time_yet_is_judged_by_the_last_look(log, judged, monkeypatch):
    monkeypatch.setattr(Due, "is_now", lambda due: False)
    watching = Watching(log.directory.parent)
    assert watching.watcher.clock_ms == 0
    for _ in range(2):
        watching.look()
    assert (judged, watching.reported) == ([], {})
    assert [found["code"] for found in watching.end().values()] == [STAYS]
    assert [found["code"] for found in watching.reported.values()] == [STAYS]
    assert judged == ["read_blocks", "result"]


def test_a_partition_that_cannot_be_read_is_tried_again_now_and_then(log, monkeypatch):
    other = GrowingLog(log.directory.with_name("payments-0"))
    other.roll(0)
    other.append(data(7, 0, 0).at(0))
    watching = Watching(log.directory.parent)
    visited, refused = [], {"orders-0"}
    visit, opened = PartitionFollower.visit, watching.watcher._open

    def refuse(segment):
        if Path(segment.path).parent.name in refused:
            raise PermissionError(13, "Permission denied", segment.path)
        return opened(segment)

    def noted(follower, job, stopping):
        visited.append(job.directory.name)
        return visit(follower, job, stopping)

    watching.watcher._open = refuse
    monkeypatch.setattr(PartitionFollower, "visit", noted)
    looks = [["orders-0", "payments-0"], ["orders-0"], [], []]
    for expected in looks:
        watching.look()
        assert visited == expected
        visited.clear()
    monkeypatch.setattr(watcher, "TRY_AGAIN_SECONDS", 0)
    watching.watcher._try_again_at = 0
    refused.clear()
    for expected in (["orders-0"], []):
        watching.look()
        assert visited == expected
        visited.clear()
    assert STAYS in {found["code"] for found in watching.reported.values()}
    assert watching.end() == watching.scanned()
