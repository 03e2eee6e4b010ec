"""Which producers missing from a snapshot cannot have expired, and which of its open transactions are too old."""

import numpy as np
import pytest

from kaudit.audits.sidefiles.snapshot_states import OpenInSnapshot, read_snapshot, unexplained
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot
from kaudit.source.layout import SegmentFile
from kaudit.source.schemes import open_segment
from tests.crafted_sample import snapshot

LATE = 1_000_000_000
"""Written so long after all timestamps, ms, that everybody may have expired."""


def entry(producer_id: int, last_offset: int, timestamp: int, opened: int = -1) -> tuple[int, ...]:
    return (producer_id, 0, 0, last_offset, 0, timestamp, -1, opened)


def rows(*entries: tuple[int, ...]) -> np.ndarray:
    return parse_producer_snapshot(snapshot([*entries])).rows


def cannot_have_expired(stored: np.ndarray, *missing: tuple[int, int], written_ms: int = LATE) -> list[bool]:
    """`missing`: last offset and timestamp of each."""
    offsets, timestamps = np.array(missing, dtype=np.int64).T
    return [bool(flag) for flag in unexplained(stored, offsets, timestamps, written_ms)]


def test_whoever_is_younger_than_a_producer_kept_from_before_its_last_batch_cannot_have_expired():
    stored = rows(entry(1, 10, 500), entry(2, 20, 300))
    assert cannot_have_expired(stored, (15, 499), (15, 500), (15, 501)) == [False, False, True]
    # behind offset 20, the oldest kept is of time 300
    assert cannot_have_expired(stored, (25, 299), (25, 300), (25, 301)) == [False, False, True]
    # what was written after the missing one's last batch may not have been there at the sweep
    assert cannot_have_expired(stored, (9, 501), (10, 501), (11, 501)) == [False, False, True]


def test_rows_need_not_be_in_the_order_of_their_offsets():
    assert cannot_have_expired(rows(entry(2, 20, 300), entry(1, 10, 500)), (15, 400), (25, 400)) == [False, True]


def test_open_transactions_and_times_unknown_keep_a_producer_whatever_its_age():
    stored = rows(entry(1, 10, 5, opened=3), entry(2, 11, -1))
    assert cannot_have_expired(stored, (20, 100)) == [False]
    assert cannot_have_expired(rows(entry(1, 10, 0)), (20, 100)) == [True]
    assert cannot_have_expired(rows(entry(1, 10, 5, opened=0)), (20, 100)) == [False]


@pytest.mark.parametrize(("silence_ms", "kept"), [(4999, True), (5000, False), (5001, False)])
def test_nobody_expires_within_five_seconds(silence_ms, kept):
    assert cannot_have_expired(rows(), (3, 1000), written_ms=1000 + silence_ms) == [kept]


def test_the_open_transactions_begun_before_an_offset_are_the_oldest_first():
    stored = rows(
        entry(1, 30, 1, opened=9), entry(2, 31, 1, opened=4), entry(3, 32, 1, opened=10), entry(4, 33, 1, opened=5)
    )
    newest = OpenInSnapshot(SegmentFile("x", "x", 40, 0, LATE), stored, np.array([10, 60, 110, 160]))
    found = [
        (one.producer_id, one.current_txn_first_offset, position)
        for one, position in newest.begun_before(10, np.array([4], dtype=np.int64))
    ]
    assert found == [(2, 4, 60), (1, 9, 10)]


def test_a_torn_snapshot_has_no_rows_and_one_that_is_gone_is_an_error(tmp_path):
    path = tmp_path / f"{7:020d}.snapshot"
    file = SegmentFile(str(path), path.name, 7, 0, LATE)
    with pytest.raises(FileNotFoundError):
        read_snapshot(file, open_segment)
    path.write_bytes(snapshot([entry(1, 6, 5)])[:-1])
    assert read_snapshot(file, open_segment) is None
    path.write_bytes(snapshot([entry(1, 6, 5)]))
    found = read_snapshot(file, open_segment)
    assert found is not None
    assert found["producer_id"].tolist() == [1]
