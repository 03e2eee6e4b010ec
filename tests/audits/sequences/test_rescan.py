"""Batches read again for a few producer ids, against the batches as they were written."""

import numpy as np
import pytest

from kaudit.audits.sequences import rescan as module
from kaudit.audits.sequences.rescan import Questions, rescan
from kaudit.model.producer_ids import FirstBatch
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import WRAP, Batch, Log, data, marker


def written(tmp_path, *batches, segment_starts=()):
    log = Log()
    for batch in batches:
        log.append(batch)
    log.write(tmp_path / "orders-0", segment_starts=segment_starts)
    (directory,) = discover([str(tmp_path / "orders-0")]).partitions
    return log, directory


BATCHES = (
    data(7, 0, 0, 2),
    data(8, 0, 0, 3),
    data(7, 0, 2),
    marker(7, 0),
    data(7, 1, WRAP - 1, 4),
    Batch(7, 1, -1, 1),
    data(7, 0, 3, 5),
    data(9, 2, 0, timestamp=5),
)


def chain_of(log, producer_id, epoch, start=0):
    """Offset, first and last sequence, CRC of each data batch that ends at `start` or later."""
    return [
        (
            each.base_offset,
            each.sequence,
            (each.sequence + each.count - 1) % WRAP,
            int.from_bytes(each.encode()[17:21]),
        )
        for each in log.batches
        if (each.producer_id, each.epoch) == (producer_id, epoch)
        and each.control is None
        and each.sequence >= 0
        and each.last_offset >= start
    ]


@pytest.mark.parametrize("start", range(13))
def test_a_chain_holds_the_data_batches_of_an_epoch_that_end_at_an_offset_or_later(tmp_path, start):
    log, directory = written(tmp_path, *BATCHES, segment_starts=(5, 7))
    seen = rescan(directory, open_segment, Questions(chains={(7, 0): start, (7, 1): 0}))
    assert list(seen.chain(7, 0)) == chain_of(log, 7, 0, start)
    assert list(seen.chain(7, 1)) == chain_of(log, 7, 1) != []
    assert list(seen.chain(8, 0)) == []
    assert not seen.first


def test_of_a_long_chain_the_beginning_is_kept(tmp_path, monkeypatch):
    log, directory = written(tmp_path, *BATCHES, segment_starts=(5, 7))
    for room in (0, 1, 2, 3):
        monkeypatch.setattr(module, "MAX_CHAIN_BATCHES", room)
        seen = rescan(directory, open_segment, Questions(chains={(7, 0): 0}))
        assert list(seen.chain(7, 0)) == chain_of(log, 7, 0)[:room]


def test_first_batches_and_where_they_lie(tmp_path):
    log, directory = written(tmp_path, *BATCHES, segment_starts=(5, 7))
    found = rescan(directory, open_segment, Questions(first_of=np.array([7, 9, 10]))).first
    first, last = log.batches[0], log.batches[-1]
    in_its_segment = sum(len(each.encode()) for each in log.batches if 7 <= each.base_offset < last.base_offset)
    assert found == {
        7: FirstBatch(0, 1, first.timestamp, 0, 0, 0),
        9: FirstBatch(last.base_offset, last.base_offset, last.timestamp, 2, in_its_segment, 2),
    }
    assert in_its_segment > 0


def test_negative_ids_are_found_when_asked_for_and_the_absent_one_is_none(tmp_path, monkeypatch):
    batches = [Batch(producer_id, 0, 0, payload=b"%d" % producer_id) for producer_id in (-1, -2, -3, -2, 4)]
    _, directory = written(tmp_path, *batches, segment_starts=(2,))
    assert sorted(rescan(directory, open_segment, Questions(negative=True)).first) == [-3, -2]
    monkeypatch.setattr(module, "MAX_NEGATIVE_IDS", 1)
    assert sorted(rescan(directory, open_segment, Questions(negative=True)).first) == [-2]


def test_without_questions_nothing_is_read(tmp_path):
    _, directory = written(tmp_path, *BATCHES)

    def open_nothing(segment):
        raise AssertionError(segment)

    assert rescan(directory, open_nothing, Questions()).first == {}
    for asked in (Questions(chains={(1, 0): 0}), Questions(first_of=np.array([1])), Questions(negative=True)):
        with pytest.raises(AssertionError):
            rescan(directory, open_nothing, asked)


def test_a_segment_that_cannot_be_opened_is_passed_over(tmp_path):
    log, directory = written(tmp_path, *BATCHES, segment_starts=(5, 7))

    def open_some(segment):
        if segment.base_offset == 5:
            raise FileNotFoundError(segment.name)
        return open_segment(segment)

    seen = rescan(directory, open_some, Questions(chains={(7, 0): 0}))
    assert [each[0] for each in seen.chain(7, 0)] == [each[0] for each in chain_of(log, 7, 0) if not 5 <= each[0] < 7]
