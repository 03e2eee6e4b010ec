"""Histories no recording has: each written out by hand, with the verdict the rules give it."""

import json
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.broker.producer_ids.allocation_faults import (
    Burn,
    find_malformed,
    find_near_end,
    find_shared_blocks,
    find_unallocated,
    measure_burn,
)
from kaudit.broker.producer_ids.allocation_rules import Coverage, StepKind, is_complete, next_block, replay
from kaudit.broker.producer_ids.block_history import (
    BlockHistory,
    ProducerIdsRecord,
    combine,
    from_lines,
    from_records,
    from_znode,
)
from kaudit.formats.zookeeper.pid_block import AnswerLine, BadLine, ZnodeLine
from kaudit.formats.zookeeper.transaction_log import ZnodeChange, ZnodeEvent
from kaudit.model.producer_ids import BlockEntry, EntryKind, RegressionCause, UnallocatedReason

MAX = 2**63 - 1
DAY = 86_400_000


def value(broker: int, start: int, end: int | None = None) -> bytes:
    last = start + 999 if end is None else end
    return json.dumps({"version": 1, "broker": broker, "block_start": str(start), "block_end": str(last)}).encode()


def znode(*writes: tuple[int | None, bytes | None]) -> BlockHistory:
    """A znode's history of (version, value) writes, deleted where the version is None."""
    changes = []
    for zxid, (version, data) in enumerate(writes, 10):
        event = ZnodeEvent.DELETED if version is None else ZnodeEvent.SET
        changes.append((ZnodeChange("/latest_producer_id_block", event, zxid, zxid * 1000, version, data, 0), "log.1"))
    return from_znode(changes)


def holds(entry: BlockEntry, producer_id: int) -> bool:
    assert entry.start is not None
    assert entry.end is not None
    return entry.start <= producer_id <= entry.end


def kinds(history: BlockHistory) -> list[StepKind]:
    return [step.kind for step in replay(history)]


def test_consecutive_versions_distinguish_a_jump_from_a_missing_entry():
    jumped = znode((1, value(0, 0)), (2, value(1, 5000)))
    missing = znode((1, value(0, 0)), (5, value(1, 5000)))
    assert [(step.kind, step.skipped) for step in replay(jumped)][1] == (StepKind.JUMPED, (1000, 4999))
    assert [(step.kind, step.skipped) for step in replay(missing)][1] == (StepKind.UNSEEN, (1000, 4999))
    assert is_complete(replay(jumped))
    assert not is_complete(replay(missing))


def test_a_broker_that_finds_its_own_write_again_shares_nothing():
    history = znode((1, value(0, 0)), (2, value(1, 1000)), (3, value(1, 1000)), (4, value(0, 2000)))
    assert kinds(history) == [StepKind.FIRST, StepKind.NEXT, StepKind.REPEATED, StepKind.NEXT]
    assert Coverage(replay(history)).overlaps == []


def test_one_value_set_again_behind_garbage_shares_nothing():
    history = znode((1, value(0, 0)), (2, b"x"), (3, value(0, 0)), (4, value(1, 1000)))
    assert kinds(history) == [StepKind.FIRST, StepKind.NO_BLOCK, StepKind.REPEATED, StepKind.NEXT]
    assert Coverage(replay(history)).overlaps == []


@pytest.mark.parametrize("broker", [1, 2])
def test_a_restored_backup_grants_a_block_once_more(broker: int):
    # The backup held version 1; the same broker or another then took version 2 a second time.
    history = znode((1, value(0, 0)), (2, value(1, 1000)), (2, value(broker, 1000)), (3, value(0, 2000)))
    steps = replay(history)
    assert (steps[2].kind, steps[2].cause) == (StepKind.REGRESSED, RegressionCause.SET_BACK)
    (shared,) = find_shared_blocks(steps, Coverage(steps), np.array([1000], dtype=np.int64))
    assert (shared.overlap.first, shared.overlap.last, shared.seen) == (1000, 1999, (1000,))


def test_one_block_for_two_brokers_is_shared():
    history = znode((1, value(0, 0)), (2, value(1, 0)))
    steps = replay(history)
    assert (steps[1].kind, steps[1].cause) == (StepKind.REGRESSED, RegressionCause.SAME_BLOCK)
    (shared,) = find_shared_blocks(steps, Coverage(replay(history)), np.array([3, 999, 1000], dtype=np.int64))
    assert (shared.overlap.first, shared.overlap.last, shared.seen) == (0, 999, (3, 999))


def test_a_znode_created_anew_shares_from_the_first_block_on():
    history = znode(
        (1, value(0, 0)), (2, value(1, 1000)), (None, None), (0, None), (1, value(0, 0)), (2, value(0, 1000))
    )
    steps = replay(history)
    assert [step.kind for step in steps][4:] == [StepKind.REGRESSED, StepKind.NEXT]
    assert steps[4].cause is RegressionCause.RECREATED
    shared = list(find_shared_blocks(steps, Coverage(replay(history)), np.array([], dtype=np.int64)))
    assert [(item.overlap.first, item.cause, item.seen_count) for item in shared] == [
        (0, RegressionCause.RECREATED, 0),
        (1000, RegressionCause.RECREATED, 0),
    ]


def test_a_znode_created_with_a_later_value_left_ids_out():
    history = znode((1, value(0, 0)), (None, None), (0, value(0, 5000)))
    assert kinds(history) == [StepKind.FIRST, StepKind.NO_BLOCK, StepKind.JUMPED]


def test_the_block_after_garbage_is_judged_by_the_last_block_known():
    history = znode((1, value(0, 0)), (2, b"x"), (3, value(1, 1000)))
    assert kinds(history) == [StepKind.FIRST, StepKind.NO_BLOCK, StepKind.NEXT]
    assert kinds(znode((4, b"x"), (5, value(1, 1000)))) == [StepKind.NO_BLOCK, StepKind.BEGINS_LATER]


def migrated(next_id: int, *later: int) -> BlockHistory:
    """ZooKeeper's blocks up to 5000-5999, the migration's record, then the controller's."""
    before = znode(*((version, value(version % 2, (version - 1) * 1000)) for version in range(1, 7)))
    records = [ProducerIdsRecord(7, 20_000, 1, -1, next_id)]
    records += [ProducerIdsRecord(8 + number, 21_000 + number, 2, 30, after) for number, after in enumerate(later)]
    return combine([from_records(records, "metadata"), before])


def test_a_migration_that_copied_the_block_in_use_is_named():
    history = migrated(5000, 6000, 7000)
    steps = replay(history)
    assert [(step.kind, step.cause) for step in steps[6:]] == [
        (StepKind.REGRESSED, RegressionCause.MIGRATION),
        (StepKind.NEXT, None),
        (StepKind.NEXT, None),
    ]
    (shared,) = find_shared_blocks(steps, Coverage(replay(history)), np.array([5500], dtype=np.int64))
    assert (shared.overlap.earlier.zxid, shared.overlap.later.offset) == (15, 8)
    assert (shared.overlap.first, shared.overlap.last, shared.cause) == (5000, 5999, RegressionCause.MIGRATION)


def test_a_migration_that_went_on_behind_the_block_in_use_is_healthy():
    history = migrated(6000, 7000, 8000)
    assert kinds(history) == [StepKind.FIRST, *[StepKind.NEXT] * 8]
    assert is_complete(replay(history))
    assert Coverage(replay(history)).overlaps == []


def test_what_the_controller_writes_back_into_the_znode_is_no_grant():
    # Dual write (3.4 to 3.9): broker -1, the block that follows the one just granted.
    history = znode((1, value(0, 0)), (2, value(-1, 1000)), (3, value(-1, 2000)), (4, value(5, 3000)))
    assert [entry.kind for entry in history.entries][1:3] == [EntryKind.RESERVED, EntryKind.RESERVED]
    assert kinds(history) == [StepKind.FIRST, StepKind.NEXT, StepKind.NEXT, StepKind.NEXT]
    assert Coverage(replay(history)).holders(1500) == ()


def test_a_metadata_log_that_lost_its_head_is_incomplete():
    history = from_records([ProducerIdsRecord(90, None, 1, 4, 41_000), ProducerIdsRecord(95, None, 1, 4, 43_000)], "m")
    assert kinds(history) == [StepKind.BEGINS_LATER, StepKind.UNSEEN]
    seen = np.array([5, 40_500, 41_500, 50_000], dtype=np.int64)
    found = list(find_unallocated(history, Coverage(replay(history)), seen, None, complete=False))
    unallocated = [(item.producer_id, item.reason, item.proven, item.nearest_below) for item in found]
    assert unallocated == [
        (41_500, UnallocatedReason.BETWEEN, False, history.entries[0]),
        (50_000, UnallocatedReason.BEYOND, False, history.entries[1]),
    ]


def test_one_current_value_is_a_history_of_one():
    history, bad = from_lines([ZnodeLine(1, value(1, 7000))], "now.json")
    assert bad == []
    assert kinds(history) == [StepKind.BEGINS_LATER]
    assert next_block(history) == (8000, 8999)


def test_answers_of_the_controller_are_grants():
    history, _ = from_lines([AnswerLine(1, 0, 1000, 2, 5), AnswerLine(2, 1000, 1000, 3, 6)], "answers")
    assert [(entry.start, entry.end, entry.broker) for entry in history.entries] == [(0, 999, 2), (1000, 1999, 3)]
    assert is_complete(replay(history))


def test_blocks_beyond_int64_cover_what_ids_can_be():
    history, _ = from_lines(
        [AnswerLine(1, MAX - 1, 2**70), AnswerLine(2, -(2**70), 5), AnswerLine(3, 0, 1000)], "forged"
    )
    coverage = Coverage(replay(history))
    assert coverage.bounds == (0, MAX)
    assert [entry.start for entry in coverage.holders(MAX)] == [MAX - 1]
    assert [item.entry.start for item in find_malformed(history)] == [MAX - 1, -(2**70)]
    assert [step.exhausted for step in replay(history)] == [True, False, False]


def test_bad_lines_are_handed_back():
    bad_line = BadLine(2, "not a JSON object")
    history, bad = from_lines([ZnodeLine(1, value(0, 0)), bad_line, ZnodeLine(3, value(0, 1000))], "lines")
    assert bad == [bad_line]
    assert [entry.source for entry in history.entries] == ["lines:1", "lines:3"]


def test_combined_lines_find_their_place_by_version_or_time():
    files = znode((1, value(0, 0)), (3, value(1, 2000)))
    early, _ = from_lines([ZnodeLine(1, value(1, 1000), version=2), ZnodeLine(2, value(1, 3000))], "lines")
    assert [entry.start for entry in combine([early, files]).entries] == [0, 1000, 2000, 3000]
    timed, _ = from_lines([ZnodeLine(1, value(1, 1000), at_ms=10_500)], "timed")
    assert [entry.start for entry in combine([timed, files]).entries] == [0, 1000, 2000]


def test_no_history_proves_nothing():
    history = BlockHistory()
    assert not is_complete(replay(history))
    assert next_block(history) is None
    assert (
        list(find_unallocated(history, Coverage(replay(history)), np.array([1], dtype=np.int64), None, complete=False))
        == []
    )


@pytest.mark.parametrize(
    ("broker", "start", "end", "defect"),
    [
        (1, 0, 99, "the block holds 100 ids instead of 1000"),
        (1, 1000, 0, "the block ends at 0, before it starts at 1000"),
        (1, -1000, -1, "the block starts at the negative id -1000"),
        (-5, 0, 999, "the broker id -5 is negative"),
    ],
)
def test_blocks_no_broker_takes_are_malformed(broker: int, start: int, end: int, defect: str):
    (item,) = find_malformed(znode((1, value(broker, start, end))))
    assert item.defects == (defect,)


def test_a_counter_that_burns_fast_is_near_its_end():
    # 1000 ids a millisecond, 10^13 left: 115 days.
    start = MAX - 10**13
    entries = [
        BlockEntry(
            EntryKind.GRANTED, "x", start + number * 1000, start + number * 1000 + 999, 1, version=number, at_ms=at
        )
        for number, at in enumerate([0, 0, 2])
    ]
    assert list(find_near_end(replay(BlockHistory(tuple(entries[:2]))))) == []
    found = list(find_near_end(replay(BlockHistory(tuple(entries)))))
    assert [item.entry.version for item in found] == [2]
    assert found[0].days_left == pytest.approx(10**13 / 1000 / DAY, rel=1e-3)


def test_the_burn_rate_counts_regular_blocks_only():
    steps = replay(
        BlockHistory(
            tuple(
                BlockEntry(EntryKind.GRANTED, "x", start, start + 999, 1, version=number, at_ms=number * DAY // 4)
                for number, start in enumerate([0, 1000, 500_000, 501_000, 502_000])
            )
        )
    )
    burn = measure_burn(steps)
    # One block, a jump, two blocks: three in a day.
    assert burn == Burn(3, 0, DAY, MAX - 502_999)
    assert burn.blocks_per_day == 3
    assert burn.days_left == pytest.approx(MAX / 3000)
    assert measure_burn(steps[:1]) is None


BLOCKS = st.tuples(st.integers(-30, 90), st.integers(-5, 30), st.integers(0, 2))


@given(st.lists(BLOCKS, max_size=12), st.lists(st.integers(-40, 130), max_size=20))
def test_coverage_is_what_a_list_of_all_ids_says(blocks: list[tuple[int, int, int]], asked: list[int]):
    entries = tuple(
        BlockEntry(EntryKind.GRANTED, "x", start, start + size, broker, version=number)
        for number, (start, size, broker) in enumerate(blocks)
    )
    granted = [
        entry
        for before, entry in zip((None, *entries), entries, strict=False)
        if before is None or (before.start, before.end, before.broker) != (entry.start, entry.end, entry.broker)
    ]
    coverage = Coverage(replay(BlockHistory(entries)))
    for producer_id in asked:
        expected = tuple(entry for entry in granted if holds(entry, producer_id))
        assert coverage.holders(producer_id) == expected
    mask = coverage.contains(np.array(asked, dtype=np.int64))
    assert mask.tolist() == [bool(coverage.holders(producer_id)) for producer_id in asked]
    # Each repeat of an id is reported once, against the grant that held it last.
    pairs = [(o.later.version, o.earlier.version, i) for o in coverage.overlaps for i in range(o.first, o.last + 1)]
    assert len(pairs) == len(set(pairs))
    expected_pairs = set()
    for producer_id in range(-30, 121):
        holders = [entry.version for entry in granted if holds(entry, producer_id)]
        expected_pairs |= {(later, earlier, producer_id) for earlier, later in pairwise(holders)}
    assert set(pairs) == expected_pairs
    assert all(overlap.first <= overlap.last for overlap in coverage.overlaps)
    # What the same two grants hold in one piece is reported in one piece.
    pieces = [(o.later, o.earlier, o.first, o.last) for o in coverage.overlaps]
    assert not [1 for a, b in pairwise(pieces) if a[:2] == b[:2] and a[3] + 1 == b[2]]


def test_a_hundred_thousand_equal_blocks_stay_linear():
    entries = tuple(
        BlockEntry(EntryKind.GRANTED, "x", 0, 999, number % 2, version=number, zxid=number) for number in range(100_000)
    )
    began = time.process_time()
    coverage = Coverage(replay(combine([BlockHistory(entries)])))
    assert len(coverage.overlaps) == 99_999
    assert len(coverage.holders(5)) == 100_000
    assert time.process_time() - began < 10


def test_a_block_granted_by_the_znode_and_again_by_a_controller_is_the_migrations():
    """KAFKA-15552: the counter was copied without the block in use, whoever was granted the block then."""
    record = ProducerIdsRecord(7, 20_000, 2, 4, 2000)
    history = combine([znode((1, value(0, 0)), (2, value(1, 1000))), from_records([record], "metadata")])
    last = list(replay(history))[-1]
    assert (last.entry.start, last.kind, last.cause) == (1000, StepKind.REGRESSED, RegressionCause.MIGRATION)
