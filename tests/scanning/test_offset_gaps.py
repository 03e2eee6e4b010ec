"""Offsets that no batch has: what explains them, and at which byte that is said."""

from typing import Any

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.total_impact import total_impact
from kaudit.scanning.options import ScanOptions
from tests.checks.stories import Missing, findings, log_of, plain, position
from tests.logs import Batch, Log, data

SEGMENT = "{:020d}.log"


def corrupt(batch: Batch) -> bytes:
    encoded = bytearray(batch.encode())
    encoded[-3] ^= 1
    return bytes(encoded)


def batch_at(offset: int, count: int) -> Batch:
    return data(1, 0, offset, count).at(offset)


def write(directory, *segments):
    """Segments of batches (offset, count) or corrupt ones (offset, count, True); each named by its first number."""
    directory.mkdir(parents=True)
    for base, *batches in segments:
        content = b"".join(
            corrupt(batch_at(*batch[:2])) if len(batch) > 2 else batch_at(*batch).encode() for batch in batches
        )
        (directory / SEGMENT.format(base)).write_bytes(content)
    return directory


def size(count: int) -> int:
    return len(batch_at(0, count).encode())


def reported(directory, **options):
    """Code, first and last offset, byte and segment of what is missing or damaged; sequences report the same once more."""
    result = scan(ScanOptions([str(directory)], jobs=1, **options), SilentProgress())
    return [
        (each.code, each.offset, each.last_offset, each.position, None if each.segment is None else int(each.segment[-24:-4]))
        for each in result.findings
        if each.code.startswith("KA00")
    ]  # fmt: skip


HOLES: dict[str, tuple[list[Any], list[tuple[Any, ...]]]] = {
    "a damaged header inside a wider hole costs what it claims; the rest was cut out beside it": (
        [(0, (0, 5), (7, 3, True), (12, 1))],
        [
            ("KA007", 5, 6, size(5), 0),
            ("KA001", 7, 9, size(5), 0),
            ("KA007", 10, 11, size(5) + size(3), 0),
        ],
    ),
    "one that claims the end of the hole": (
        [(0, (0, 5), (7, 3, True), (10, 1))],
        [("KA007", 5, 6, size(5), 0), ("KA001", 7, 9, size(5), 0)],
    ),
    "one that claims its beginning": (
        [(0, (0, 5), (5, 3, True), (10, 1))],
        [("KA001", 5, 7, size(5), 0), ("KA007", 8, 9, size(5) + size(3), 0)],
    ),
    "one that claims more than is missing costs all of it": (
        [(0, (0, 5), (7, 4, True), (10, 1))],
        [("KA001", 7, 10, size(5), 0)],
    ),
    "one that claims offsets before the hole, too": (
        [(0, (0, 5), (4, 3, True), (10, 1))],
        [("KA001", 4, 6, size(5), 0)],
    ),
    "two damaged ones with a hole between them": (
        [(0, (0, 5), (5, 1, True), (8, 2, True), (10, 1))],
        [("KA001", 5, 5, size(5), 0), ("KA007", 6, 7, size(5) + size(1), 0), ("KA001", 8, 9, size(5) + size(1), 0)],
    ),
    "damage at the beginning of a log": (
        [(0, (0, 3, True), (5, 1))],
        [("KA001", 0, 2, 0, 0), ("KA007", 3, 4, size(3), 0)],
    ),
    "a missing segment": ([(0, (0, 5)), (8, (8, 2))], [("KA008", 5, 7, None, 0)]),
    "a missing segment, and a hole at the beginning of the next": (
        [(0, (0, 5)), (8, (10, 2))],
        [("KA008", 5, 7, None, 0), ("KA007", 8, 9, 0, 8)],
    ),
    "a hole at the end of a segment is as if a segment were missing": (
        [(0, (0, 5)), (7, (7, 2))],
        [("KA008", 5, 6, None, 0)],
    ),
    "a hole at the beginning of a segment": ([(0, (0, 5)), (5, (7, 2))], [("KA007", 5, 6, 0, 5)]),
    "damage over the end of a segment": (
        [(0, (0, 5), (5, 2, True)), (7, (9, 1))],
        [("KA001", 5, 6, size(5), 0), ("KA007", 7, 8, 0, 7)],
    ),
    "damage at the end of a log costs what nobody knows": (
        [(0, (0, 5), (5, 2, True))],
        [("KA001", 5, 6, size(5), 0)],
    ),
}


@pytest.mark.parametrize("chunk_bytes", [None, 100])
@pytest.mark.parametrize("story", HOLES)
def test_what_is_missing(story, chunk_bytes, tmp_path):
    segments, expected = HOLES[story]
    directory = write(tmp_path / "orders-0", *segments)
    assert reported(directory, chunk_bytes=chunk_bytes) == expected
    # what is missing is counted once, whoever is to blame
    present = sum(batch[1] for _, *batches in segments for batch in batches if len(batch) == 2)
    last = max((batch[0] + batch[1] for _, *batches in segments for batch in batches if len(batch) == 2))
    result = scan(ScanOptions([str(directory)], chunk_bytes=chunk_bytes), SilentProgress())
    assert total_impact(result.findings).records_lost_at_most == (last - present or None)


def test_an_empty_segment_is_the_one_that_is_missing(tmp_path):
    directory = write(tmp_path / "orders-0", (0, (0, 5)), (5,), (8, (8, 2)))
    assert reported(directory) == [("KA008", 5, 7, 0, 5)]


@pytest.mark.parametrize(("kept", "compacted"), [(3, False), (2, True)])
def test_one_removed_record_is_trace_enough_of_compaction(kept, compacted, tmp_path):
    """The cleaner removes records from a batch and keeps its last offset delta; a producer never sends such a batch."""
    log = log_of(plain(0, 3, kept=kept), Missing(5), plain(8))
    assert bool(findings(log, tmp_path, "KA007")) is not compacted
    result = scan(ScanOptions([str(tmp_path / "orders-0")]), SilentProgress())
    assert [summary.compacted for summary in result.partitions] == [compacted]


@pytest.mark.parametrize(
    ("epochs", "odd"),
    [
        ([0, 1, 1, 3], []),
        ([0, 2, 1, 2], [(1, 0)]),
        ([3, 1], [(1, 3)]),
        ([1, 5, 1, 1], [(1, 1)]),  # above its neighbours
        ([1, 5, 3, 3], [(1, 1)]),
        ([5, 1, 1, 1], [(1, 5)]),
        ([1, 1, 5], []),
        ([1, 5, 5, 1], [(1, 1)]),
        ([2, 1, 1, 3], [(1, 2)]),
        ([2, 1, 0, 2], [(1, 2), (2, 2)]),
        # -1 is none; below that is nobody's
        ([-1, 0, -1, 0], []),
        ([3, 3 - 2**31, 3], [(1, 3)]),
        ([-2, 0, 0], [(0, 0)]),
    ],
)
def test_leader_epochs_never_fall(epochs, odd, tmp_path):
    """LeaderEpochFileCache.assign: each leader writes with an epoch above the last one's. `odd`: offset, epoch expected."""
    log = log_of(*[plain(number, leader_epoch=epoch) for number, epoch in enumerate(epochs)])
    found = findings(log, tmp_path, "KA009")
    assert [(each.offset, each.evidence["expected_leader_epoch"]) for each in found] == odd
    assert [each.position for each in found] == [position(log, offset) for offset, _ in odd]
    assert [each.evidence["leader_epoch"] for each in found] == [epochs[offset] for offset, _ in odd]


@pytest.mark.parametrize(("log_start", "expected"), [(None, []), (5, []), (0, []), (7, [])])
def test_below_its_first_segment_nothing_is_expected(log_start, expected, tmp_path):
    log = Log(next_offset=5)
    log.append(plain(5, 3))
    options = {} if log_start is None else {"log_start_offset": log_start}
    assert [each.code for each in findings(log, tmp_path, "KA00", **options)] == expected


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        # a broker names a segment by the end of the log when it begins it: UnifiedLog.roll
        ([(0, (0, 5)), (8,)], [("KA008", 5, 7, None, 0)]),
        ([(0, (0, 5)), (5,)], []),
        ([(0,), (8, (8, 2))], [("KA008", 0, 7, 0, 0)]),
        ([(3,), (8,)], [("KA008", 3, 7, 0, 3)]),
        ([(8,)], []),
        ([(0, (0, 5), (5, 3, True)), (8,)], [("KA001", 5, 7, size(5), 0)]),
    ],
)
def test_empty_segments_name_offsets_that_the_log_had(tmp_path, segments, expected):
    assert reported(write(tmp_path / "t-0", *segments)) == expected


def test_a_log_start_after_an_empty_first_segment_says_that_nothing_is_missing(tmp_path):
    directory = write(tmp_path / "t-0", (0,), (8, (8, 2)))
    assert reported(directory, log_start_offset=8) == []
