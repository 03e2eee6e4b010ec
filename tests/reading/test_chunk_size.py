"""How much is read at a time: what makes ranges longer, and what must not."""

import numpy as np
import pytest

from kaudit.model.columns import Columns
from kaudit.reading.chunk_rows import ChunkRows, Counts
from kaudit.reading.chunk_size import LEAST_BYTES, MOST_BYTES, ChunkSize, RecentSizes, fixed_size
from kaudit.reading.rows import RUN

MIB = 1 << 20


def rows(producers, runs_each, batches, read):
    columns = dict.fromkeys(RUN.names or (), 0) | {"producer_id": np.repeat(np.arange(producers), runs_each)}
    runs = Columns(RUN, producers * runs_each, columns)
    return ChunkRows(0, 0, read, read, runs, counts=Counts(batches=batches))


def settled(producers, runs_each, batch_bytes, *, fresh=False):
    chunk_size, known = ChunkSize(), 0
    for _ in range(8):
        batches = chunk_size.bytes // batch_bytes
        known = known + producers if fresh else producers
        chunk_size.update(rows(min(producers, batches), runs_each, batches, chunk_size.bytes), known)
    return chunk_size.bytes


def test_a_few_ids_with_long_runs_are_read_in_long_ranges():
    assert 24 * MIB <= settled(2000, 1, 123) <= 40 * MIB
    assert settled(2000, 1, 16_000) == MOST_BYTES


def test_many_ids_that_come_again_are_joined():
    assert settled(20_000, 1, 123) > 16 * MIB


def test_ids_that_never_come_again_are_not():
    assert settled(30_000, 1, 123, fresh=True) == LEAST_BYTES


def test_a_marker_behind_every_batch_keeps_ranges_short():
    assert settled(500, 30, 123) == LEAST_BYTES


def test_small_batches_behind_large_ones_shorten_ranges_at_once():
    chunk_size = ChunkSize()
    for _ in range(3):
        chunk_size.update(rows(4, 1, chunk_size.bytes // MIB, chunk_size.bytes), 4)
    assert chunk_size.bytes == MOST_BYTES
    chunk_size.update(rows(4, 1, 1 << 19, 50 * MIB), 4)  # not half of the range: it had more batches than are held
    assert chunk_size.bytes < 32 * MIB


def test_many_runs_are_never_held_at_once():
    assert settled(150_000, 1, 70) < 8 * MIB


@pytest.mark.parametrize("left", [0, 1 * MIB, 100 * MIB, 1 << 40])
def test_towards_the_end_ranges_become_short_for_those_who_share_the_rest(left):
    assert ChunkSize(32 * MIB).next_bytes(left) == 32 * MIB
    shared = ChunkSize(32 * MIB, sharers=2).next_bytes(left)
    assert LEAST_BYTES <= 32 * MIB // 3 <= shared <= max(left // 4, 32 * MIB // 3)
    assert shared <= 32 * MIB


@pytest.mark.parametrize(
    ("producers", "runs_each", "batches", "fresh", "longer"),
    [
        (1000, 1, 4000, 1000, True),  # four batches a run: few rows as it is
        (1000, 1, 3999, 1000, False),
        (1000, 1, 2000, 749, True),  # less than three of four runs are of ids that are new
        (1000, 1, 2000, 750, False),
        (1000, 2, 4000, 0, False),  # two runs of each id in one range: a longer one joins none
    ],
)
def test_ranges_become_longer_where_runs_would_go_on(producers, runs_each, batches, fresh, longer):
    chunk_size = ChunkSize()
    chunk_size.update(rows(producers, runs_each, batches, LEAST_BYTES), fresh)
    # else so long that 16,384 batches stay rows of their own
    assert chunk_size.bytes == (16 * LEAST_BYTES if longer else (1 << 14) * LEAST_BYTES // batches)


def test_short_ranges_do_not_become_shorter():
    assert ChunkSize(sharers=2).next_bytes(0) == LEAST_BYTES


def test_a_size_that_was_asked_for_stays():
    chunk_size = fixed_size(500)
    chunk_size.update(rows(1, 1, 100, 500), 1)
    assert chunk_size.next_bytes(1 << 40) == 500


def test_ranges_without_batches_change_nothing():
    chunk_size = ChunkSize()
    chunk_size.update(rows(0, 1, 0, chunk_size.bytes), 0)
    assert chunk_size.bytes == LEAST_BYTES


def test_a_partition_begins_with_the_size_of_recent_ranges():
    recent = RecentSizes()
    first, second, third = (ChunkSize(recent=recent) for _ in range(3))
    assert first.next_bytes(1 << 40) == LEAST_BYTES
    first.update(rows(500, 1, 30_000, LEAST_BYTES), 500)
    assert first.bytes > 16 * MIB
    assert second.next_bytes(1 << 40) == 16 * MIB  # not all of it: its batches may be smaller
    second.update(rows(400_000, 1, 400_000, 16 * MIB), 400_000)
    assert third.next_bytes(1 << 40) == second.bytes == LEAST_BYTES


def test_a_size_that_was_asked_for_is_no_neighbour_s():
    assert fixed_size(500).next_bytes(1 << 40) == 500
