"""Rows of ranges that are joined: those of one range, and the same to whoever replays them."""

import os
import random
import sys
from contextlib import closing
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kaudit.partition.assembler import PartitionAssembler
from kaudit.reading.chunk_codec import pack_chunk
from kaudit.reading.chunk_rows import ChunkRange, ChunkRows, Outcome
from kaudit.reading.chunk_summary import compress
from kaudit.reading.range_joining import MOST_ROW_BYTES, join, join_ranges
from kaudit.reading.range_reader import read_planned
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.layout import list_snapshots
from kaudit.source.schemes import open_segment
from tests.crafted_sample import snapshot
from tests.engines.faulty_logs import FAULTS
from tests.logs import Batch, Log, data
from tests.properties.histories import PRODUCERS, STEPS, build, starts, steps
from tests.properties.test_law import decode

MODULE = "kaudit.reading.range_joining"


def plain(rows):
    """Everything that rows hold, as Python numbers, but `tails`: what they do not list is read again."""
    tables = {name: getattr(rows, name) for name in rows.__struct_fields__ if name != "tails"}
    non_idempotent = tables.pop("non_idempotent")
    tables |= {"without id": non_idempotent.rows, "recurring": non_idempotent.recurring}
    tables |= {"batches without id": non_idempotent.batches, "regressions": non_idempotent.regressions}
    return {name: table.tolist() if hasattr(table, "tolist") else table for name, table in tables.items()}


def compressed(batches, first, stop):
    position = [*batches["position"].tolist(), int(batches["position"][-1] + batches["size"][-1])]
    where = ChunkRange(0, position[first], position[stop], position[stop])
    return compress(batches[first:stop], where, log_start_offset=None, latest_timestamp=2**62)


def grouped(order, parts):
    """Join neighbours, and what comes of that, until one is left; `order` is random."""
    while len(parts) > 1:
        first = order.randint(0, len(parts) - 2)
        count = order.randint(2, len(parts) - first)
        parts = [*parts[:first], join(parts[first : first + count]), *parts[first + count :]]
    return parts[0]


@settings(max_examples=400, deadline=None)
@given(steps, starts, st.data(), st.randoms(use_true_random=False))
def test_joined_rows_are_those_of_one_range(actions, first, draw, order):
    log = build(actions, first)
    if not log.batches:
        return
    batches = decode(log)
    cuts = draw.draw(st.lists(st.integers(1, len(batches) - 1), max_size=8, unique=True)) if len(batches) > 1 else []
    parts = [compressed(batches, *bounds) for bounds in pairwise([0, *sorted(cuts), len(batches)])]
    assert plain(grouped(order, parts)) == plain(compressed(batches, 0, len(batches)))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 1, 5, -3, 200_000])), min_size=2, max_size=40),
    st.sets(st.integers(1, 39), max_size=5),
    st.randoms(use_true_random=False),
)
# the first batch that the last one is compared with has its time, but those after the cut have others
@example([*[(0, 0)] * 4, (0, 1), (0, 5), (0, -3), (0, -3)], {4}, random.Random(0))
def test_candidates_for_copies_are_those_of_one_range(sent, cuts, order):
    """Batches without a producer id: a few contents over and over, at equal, near and distant times."""
    log = Log()
    clock = 1_700_000_000_000
    for content, later in sent:
        clock += later
        log.append(Batch(payload=b"%d" % content, timestamp=clock), keep_time=True)
    batches = decode(log)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(batches)), len(batches)]
    reading = "kaudit.reading"
    with (
        patch(f"{reading}.equal_batches.DISTANCE", 4),
        patch(f"{reading}.non_idempotent_rows.DISTANCE", 4),
        patch(f"{reading}.equal_batches.NEAR", 2),
    ):
        parts = [compressed(batches, start, stop) for start, stop in pairwise(bounds)]
        assert plain(grouped(order, parts)) == plain(compressed(batches, 0, len(batches)))


def outcomes_of(directory, chunk_bytes, **options):
    """The jobs, and for each what came of its ranges, segment by segment."""
    asked = ScanOptions([str(directory)], chunk_bytes=chunk_bytes, **options)
    for job in plan_jobs(asked, find_input(asked), all_needs):
        found: dict[int, list[list[Outcome]]] = {}
        for spec in job.ranges():
            found.setdefault(spec.segment, []).append(read_planned(spec))
        yield job, list(found.values())


def audited(job, outcomes):
    feed = PartitionAssembler(job, None)
    for outcome in outcomes:
        feed.take(outcome)
    audit = feed.close()
    # which producer comes first is nobody's business: findings are sorted
    audit.producer_ids = np.sort(audit.producer_ids)
    audit.opened = sorted(audit.opened, key=lambda each: each.producer_id)
    # what holes explain is asked for behind holes that are listed, and not in front of all of them
    first_hole = min((missing.first_offset for missing in audit.missing), default=sys.maxsize)
    audit.observations = sorted(
        (each for each in audit.observations if not each.explained or each.offset > first_hole),
        key=lambda each: (each.offset, each.producer_id, each.kind.value),
    )
    with np.printoptions(threshold=sys.maxsize):
        return repr(audit)


def assert_joined_is_equal(directory, chunk_bytes, **options):
    """Return how many outcomes there were, and how many joined."""
    before = after = 0
    twice = (outcomes_of(directory, chunk_bytes, **options) for _ in range(2))  # assembling changes rows
    for (job, segments), (_, again) in zip(*twice, strict=True):
        snapshots = [file.base_offset for file in list_snapshots(job.directory)]
        separate = [outcome for found in segments for outcomes in found for outcome in outcomes]
        before += len(separate)
        expected = audited(job, separate)
        joined = [one for found in again for one in join_ranges(found, snapshots)]
        assert sum(one.ranges for one in joined) == sum(map(len, segments))
        rows = [outcome for one in joined for outcome in one.outcomes]
        after += len(rows)
        assert audited(job, rows) == expected
    return before, after


@pytest.mark.parametrize("chunk_bytes", [200, 1000])
def test_faults_are_observed_alike(tmp_path, chunk_bytes):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    before, after = assert_joined_is_equal(tmp_path, chunk_bytes)
    assert after < before / 2


@pytest.mark.parametrize("depth", [Depth.CRC, Depth.RECORDS])
def test_random_histories_are_observed_alike(tmp_path, depth):
    rng = random.Random(24)
    for number in range(60 if os.environ.get("KAUDIT_TEST_EXAMPLES") == "all" else 20):
        actions = [
            (rng.choice(STEPS), rng.randrange(PRODUCERS), rng.randint(1, 7), rng.random() < 0.5)
            for _ in range(rng.randint(5, 120))
        ]
        log = build(actions, [rng.choice([0, 5]) for _ in range(PRODUCERS)])
        if log.batches:
            bases = tuple(batch.base_offset for batch in log.batches[1:] if rng.random() < 0.05)
            log.write(tmp_path / f"orders-{number}", segment_starts=bases)
    before, after = assert_joined_is_equal(tmp_path, 300, depth=depth)
    assert after < before / 2


def steady(directory, batches=60):
    log = Log()
    for number in range(batches):
        log.append(data(100 + number % 2, 0, number // 2))
    return log, log.write(directory)


def joined_of(directory, chunk_bytes, snapshots=()):
    ((_, (found,)),) = outcomes_of(directory, chunk_bytes)
    return list(join_ranges(found, snapshots))


def test_a_healthy_segment_is_one_piece_with_ten_batches_of_each_run(tmp_path):
    log, directory = steady(tmp_path / "orders-0")
    (one,) = joined_of(directory, 400)
    (rows,) = one.outcomes
    assert isinstance(rows, ChunkRows)
    assert one.ranges == len(log.encode()) // 414
    assert rows.runs["batches"].tolist() == [30, 30]
    assert rows.runs["first_offset"].tolist() == [0, 1]
    assert rows.runs["last_offset"].tolist() == [58, 59]
    heads, tails = [0, 2, 4, 6, 8], [50, 52, 54, 56, 58]
    own = [*heads, *tails]
    assert rows.boundary_batches["base_offset"].tolist() == [*own, *(offset + 1 for offset in own)]
    assert rows.boundary_batches["present_before"].tolist() == [*own, *(offset + 1 for offset in own)]
    assert (rows.start, rows.stop, rows.counts.batches) == (0, len(log.encode()), 60)


def test_what_is_not_certain_is_left_apart(tmp_path):
    log, directory = steady(tmp_path / "orders-0")
    whole = len(log.batches[0].encode())
    segment = directory / f"{0:020d}.log"
    content = bytearray(segment.read_bytes())
    content[30 * whole - 3] ^= 1  # the CRC of one batch fails
    segment.write_bytes(content)
    pieces = [one.ranges for one in joined_of(directory, 5 * whole)]
    assert len(pieces) == 3
    assert pieces[1] == 1


def test_a_snapshot_parts_what_lies_on_its_sides(tmp_path):
    log, directory = steady(tmp_path / "orders-0")
    whole = len(log.batches[0].encode())
    row = (100, 0, 7, 14, 0, log.batches[14].timestamp, -1, -1)
    (directory / f"{15:020d}.snapshot").write_bytes(snapshot([row]))
    (directory / f"{33:020d}.snapshot").write_bytes(snapshot([row]))
    before, after = assert_joined_is_equal(directory, 5 * whole)
    # 15 is where a range begins; 33 lies inside of one
    pieces = [one.ranges for one in joined_of(directory, 5 * whole, [15, 33])]
    assert (before, after, len(pieces)) == (12, 4, 4)
    assert pieces[:3] == [3, 3, 1]


def test_rows_that_stay_many_are_sent_before_they_are_too_many(tmp_path):
    log = Log()
    for number in range(60):
        log.append(data(1000 + number, 0, 0))
    directory = log.write(tmp_path / "orders-0")
    (most,) = joined_of(directory, 500)
    size = most.outcomes[0].row_bytes()
    with patch(f"{MODULE}.MOST_ROW_BYTES", size // 3):
        pieces = joined_of(directory, 500)
    assert 3 <= len(pieces) < most.ranges
    assert sum(piece.ranges for piece in pieces) == most.ranges
    assert sum(piece.outcomes[0].counts.batches for piece in pieces) == 60
    assert size < MOST_ROW_BYTES


def test_producers_in_turn_are_joined_as_long_as_a_quarter_of_the_room_is_left(tmp_path):
    """Each has ten boundary batches by the second third of the log: from there on joined rows do not grow."""
    log = Log()
    for number in range(40 * 32):
        log.append(data(1000 + number % 40, 0, number // 40))
    directory = log.write(tmp_path / "orders-0")
    (most,) = joined_of(directory, 5000)
    size = most.outcomes[0].row_bytes()
    with patch(f"{MODULE}.MOST_ROW_BYTES", size * 3 // 2):
        (one,) = joined_of(directory, 5000)
    assert one.ranges == most.ranges > 10
    with patch(f"{MODULE}.MOST_ROW_BYTES", size):
        assert len(joined_of(directory, 5000)) > 1


def test_joined_rows_are_sent_in_less(tmp_path):
    log = Log()
    for number in range(6000):
        log.append(data(100 + number % 50, 0, number // 50, payload=b"x" * 40))
    directory = log.write(tmp_path / "orders-0")
    ((_, (found,)),) = outcomes_of(directory, 1 << 15)
    apart = sum(len(pack_chunk(outcomes)) for outcomes in found)
    ((_, (found,)),) = outcomes_of(directory, 1 << 15)
    (one,) = join_ranges(found, ())
    assert len(pack_chunk(one.outcomes)) < apart / 4


def test_no_source_is_opened_to_join(tmp_path):
    log, directory = steady(tmp_path / "orders-0")
    ((job, (found,)),) = outcomes_of(directory, 400)
    with closing(open_segment(job.plan[0].file)) as source:
        assert source.size() == len(log.encode())
    (directory / f"{0:020d}.log").unlink()
    (one,) = join_ranges(found, ())
    assert one.ranges == len(found)


def three_ranges():
    log = Log()
    for number in range(9):
        log.append(data(7, 0, number))
    batches = decode(log)
    parts = [compressed(batches, *bounds) for bounds in ((0, 3), (3, 6), (6, 9))]
    assert [(part.first_offset, part.last_offset) for part in parts] == [(0, 2), (3, 5), (6, 8)]
    return parts


def sizes(parts, snapshots=()):
    return [one.ranges for one in join_ranges([[part] for part in parts], snapshots)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ordered", False),
        ("stop", 10**6),
        ("still_growing", True),
        ("not_read", "?"),
        ("damages", ["?"]),
        ("coverage_gaps", {"?"}),
        ("joined", 1),
        ("is_saved", True),
    ],
)
def test_a_range_that_says_more_than_its_batches_stays_alone(field, value):
    parts = three_ranges()
    assert sizes(parts) == [3]
    setattr(parts[1], field, value)
    assert sizes(parts) == [1, 1, 1]
    assert [one.outcomes[0] for one in join_ranges([[part] for part in parts], ())] == parts


@pytest.mark.parametrize(
    ("field", "value"),
    [("segment", 1), ("start", 10**6), ("first_offset", 2), ("first_offset", 1), ("wrapper_first", True)],
)
def test_a_range_that_does_not_go_on_where_the_one_before_ends_begins_anew(field, value):
    parts = three_ranges()
    setattr(parts[1], field, value)
    assert sizes(parts[:2]) == [1, 1]


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        # a snapshot at an offset has the state before it: at a range's first offset it needs nothing inside of the range
        ([0], [3]), ([9], [3]), ([100], [3]), ([], [3]),
        ([1], [1, 2]), ([2], [1, 2]), ([3], [1, 2]), ([4], [1, 1, 1]), ([5], [1, 1, 1]), ([6], [2, 1]), ([7], [2, 1]),
        ([8], [2, 1]), ([3, 6], [1, 1, 1]),
    ],
)  # fmt: skip
def test_where_a_state_is_compared_ranges_end(snapshots, expected):
    assert sizes(three_ranges(), snapshots) == expected


@pytest.mark.parametrize("outcomes", [[], ["?"], None])
def test_what_could_not_be_read_is_handed_on(outcomes):
    parts = three_ranges()
    given = [parts[1], parts[1]] if outcomes is None else outcomes
    found = list(join_ranges([[parts[0]], given, [parts[2]]], ()))
    assert [(one.ranges, list(one.outcomes)) for one in found] == [(1, [parts[0]]), (1, given), (1, [parts[2]])]
