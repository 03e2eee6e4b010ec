"""A producer's batches around a place in the log: which, of what keys, and how far the log is read."""

import random

import crc32c
import numpy as np
import pytest

from kaudit.audits.repeats import restarts
from kaudit.audits.repeats.restarts import NEIGHBOURS, ProducerBatches, Side
from kaudit.reading.record_content import batch_content
from kaudit.source.schemes import open_segment
from tests.audits.repeats.stored import batches_of, written
from tests.logs import Batch, Log, data, marker

SIZE = len(data(1, 0, 0).encode())
"""Bytes of each batch of one record."""
PID = 4000


def offsets(side: Side) -> list[int]:
    return [batch.base_offset for batch in side.batches]


@pytest.mark.parametrize(("reach", "count"), [(1, 1), (SIZE, 1), (SIZE + 1, 2), (2 * SIZE, 2), (6 * SIZE, 6)])
def test_batches_from_a_place_on_begin_within_the_reach(tmp_path, reach, count):
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(8)))
    reader = ProducerBatches(directory, open_segment, reach)
    assert offsets(reader.after(batches_of(directory)[1], PID, 0)) == list(range(1, 1 + count))


@pytest.mark.parametrize(("reach", "count"), [(1, 1), (SIZE, 1), (SIZE + 1, 2), (2 * SIZE, 2), (2 * SIZE + 1, 3)])
def test_batches_up_to_a_place_begin_within_the_reach_of_its_first_byte(tmp_path, reach, count):
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(8)))
    reader = ProducerBatches(directory, open_segment, reach)
    assert offsets(reader.before(batches_of(directory)[6], PID, 0)) == list(range(7 - count, 7))


def test_only_the_epochs_data_outside_transactions_counts(tmp_path):
    directory = written(
        tmp_path,
        data(PID, 0, 0),
        data(PID, 1, 0),
        data(PID + 1, 0, 0),
        data(PID, 0, 1, transactional=True),
        marker(PID, 0),
        data(PID, 0, 2),
        Batch(),
        data(PID, 0, 3),
    )
    reader = ProducerBatches(directory, open_segment)
    assert offsets(reader.after(batches_of(directory)[0], PID, 0)) == [0, 5, 7]
    assert offsets(reader.before(batches_of(directory)[7], PID, 0)) == [0, 5, 7]
    assert offsets(reader.after(batches_of(directory)[0], PID, 1)) == [1]
    assert offsets(reader.before(batches_of(directory)[7], PID + 1, 0)) == [2]


def test_segments_beside_it_are_read_as_far_as_the_reach_goes(tmp_path):
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(9)), starts=(3, 6))
    middle = batches_of(directory, 1)[1]
    for reach, before, after in (
        (2 * SIZE, [3, 4], [4, 5]),
        (2 * SIZE + 1, [2, 3, 4], [4, 5, 6]),
        (100 * SIZE, [0, 1, 2, 3, 4], [4, 5, 6, 7, 8]),
    ):
        reader = ProducerBatches(directory, open_segment, reach)
        found = reader.before(middle, PID, 0), reader.after(middle, PID, 0)
        assert [offsets(side) for side in found] == [before, after]
    places = [(batch.segment, batch.position) for batch in found[0].batches]
    assert places == [(0, 0), (0, SIZE), (0, 2 * SIZE), (1, 0), (1, SIZE)]


def test_the_nearest_are_kept_and_no_more_is_read_once_they_are_enough(tmp_path, monkeypatch):
    count = 3 * NEIGHBOURS
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(count)))
    middle = batches_of(directory)[100]
    for block_bytes in (1 << 20, 10 * SIZE):
        monkeypatch.setattr(restarts, "_BLOCK_BYTES", block_bytes)
        reader = ProducerBatches(directory, open_segment)
        assert offsets(reader.before(middle, PID, 0)) == list(range(101 - NEIGHBOURS, 101))
        assert offsets(reader.after(middle, PID, 0)) == list(range(100, 100 + NEIGHBOURS))
    assert len(reader._blocks) < 3 * NEIGHBOURS // 10


def test_a_batch_is_known_by_its_records_and_their_count(tmp_path):
    batches = data(PID, 0, 0, 2, payload=b"one"), data(PID, 0, 2, payload=b"two")
    directory = written(tmp_path, *batches)
    side = ProducerBatches(directory, open_segment).after(batches_of(directory)[0], PID, 0)
    records = [batch.encode()[61:] for batch in batches]
    crcs = np.array([crc32c.crc32c(body) for body in records], dtype=np.uint32)
    sizes = np.array([61 + len(body) for body in records])
    assert side.contents == batch_content(crcs, sizes, np.array([batch.count for batch in batches])).tolist()
    assert side.times == [Log().clock + 1, Log().clock + 2]


def test_bytes_before_a_place_are_searched_for_its_records_under_another_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(restarts, "_BLOCK_BYTES", 2 * SIZE + 7)  # some batches lie across two pieces
    payloads = [b"a", b"b", b"c", b"d", b"a", b"e"]
    producers = [(PID, 0), (PID, 0), (PID + 1, 0), (PID, 2), (PID, 0), (PID, 0)]
    batches = [
        data(*producer, sequence, payload=payload)
        for sequence, (producer, payload) in enumerate(zip(producers, payloads, strict=True))
    ]
    heads = [data(PID, 1, sequence, payload=payload) for sequence, payload in enumerate(b"%c" % i for i in b"abcdex")]
    directory = written(tmp_path, *batches, *heads, starts=(2, 5))
    *_, last, a, b, c, d, e, x = batches_of(directory, 2)
    reader = ProducerBatches(directory, open_segment)
    assert [reader.may_have_before(last, PID, 0, first) for first in (a, b, c, d, e, x)] == [
        *(True, True, False, False, True, False)
    ]
    near = ProducerBatches(directory, open_segment, reach=1)
    assert [near.may_have_before(last, PID, 0, first) for first in (a, b, e)] == [False, False, True]


@pytest.mark.parametrize("seed", range(20))
def test_what_the_search_excludes_is_in_no_batch_before(tmp_path, seed):
    rng = random.Random(seed)
    batches = [
        data(rng.choice((PID, PID, PID + 1)), rng.choice((0, 0, 1)), sequence, payload=rng.choice((b"a", b"b", b"bb")))
        for sequence in range(30)
    ]
    directory = written(tmp_path, *batches, starts=tuple(sorted(rng.sample(range(1, 20), rng.randint(0, 2)))))
    reach = rng.choice((SIZE, 5 * SIZE, 100 * SIZE))
    reader = ProducerBatches(directory, open_segment, reach)
    every = [batch for segment in range(len(directory.segments)) for batch in batches_of(directory, segment)]
    last, *later = every[rng.randint(5, 15) :]
    tail = set(reader.before(last, PID, 0).contents)
    for first, batch in zip(later, batches[-len(later) :], strict=True):
        content = ProducerBatches(directory, open_segment).after(first, batch.producer_id, batch.epoch, 1).contents
        may, has = reader.may_have_before(last, PID, 0, first), bool(tail & set(content))
        assert may == has if reach > len(every) * SIZE else may >= has
