"""Producers that ended below the log start, and those idle longest."""

import numpy as np
import pytest

from kaudit.audits.sequences import expired_producers as module
from kaudit.audits.sequences.expired_producers import evicted_producers, idle_longest
from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_patterns import EvictedProducer, IdleProducer
from kaudit.model.producer_state import ProducerAuditState
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import Log, data, marker


def evicted(tmp_path, log_start, *batches, segment_starts=()):
    """Who is evicted with that log start, and the positions of the batches in their segment."""
    log = Log()
    for batch in batches:
        log.append(batch)
    log.write(tmp_path / "b" / "orders-0", segment_starts=segment_starts)
    (tmp_path / "b" / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {log_start}\n")
    (directory,) = discover([str(tmp_path / "b")]).partitions
    assert directory.log_start_offset == log_start
    positions = {}
    for batch in log.batches:
        start = max((each for each in (0, *segment_starts) if each <= batch.base_offset), default=0)
        before = [each for each in log.batches if start <= each.base_offset < batch.base_offset]
        positions[batch.base_offset] = sum(len(each.encode()) for each in before)
    return evicted_producers(directory, open_segment), positions


SENT = [data(1, 0, sequence, payload=b"%d" % sequence) for sequence in range(6)]


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ([], {"again": None}),
        ([data(1, 0, 6)], None),  # it went on
        ([data(1, 0, 0)], {"again": 7}),
        ([data(1, 1, 0)], None),  # a new epoch
        ([data(1, 0, 0), data(1, 0, 6)], {"again": 7}),  # the first batch above decides
        ([marker(1, 0), data(1, 0, 0)], {"again": 8}),
    ],
    ids=["ended", "went on", "began again", "raised its epoch", "began again and went on", "behind a marker"],
)
def test_a_producer_below_the_log_start(tmp_path, above, expected):
    found, positions = evicted(tmp_path, 7, *SENT, data(2, 0, 0), *above, data(2, 0, 1))
    own = [each for each in found if each.producer_id == 1]
    assert own == ([EvictedProducer(1, 0, 5, 5, 0, positions[5], **expected)] if expected is not None else [])
    assert [each for each in found if each.producer_id == 2] == []


@pytest.mark.parametrize(("which", "known"), [(0, False), (1, True), (5, True)])
def test_a_batch_of_the_last_five_again(tmp_path, which, known):
    """With its old timestamp, and so with its CRC. The sixth last is not known, and does not begin at 0 if it goes on."""
    log = Log()
    sent = [log.append(data(1, 0, sequence, payload=b"%d" % sequence)) for sequence in range(6)]
    log.skip(1)
    log.append(sent[which], keep_time=True)
    log.write(tmp_path / "b" / "orders-0")
    (tmp_path / "b" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    (directory,) = discover([str(tmp_path / "b")]).partitions
    position = sum(len(each.encode()) for each in sent[:5])
    expected = EvictedProducer(1, 0, 5, 5, 0, position, again=7, repeated=known)
    assert evicted_producers(directory, open_segment) == [expected]


def test_only_the_segment_of_the_log_start_is_read(tmp_path):
    found, positions = evicted(tmp_path, 4, *SENT, data(2, 0, 0), segment_starts=(2, 5))
    assert found == []  # it goes on above
    found, positions = evicted(
        tmp_path / "other", 3, data(1, 0, 0), data(2, 0, 0), data(3, 4, 0), data(9, 0, 0), segment_starts=(1,)
    )
    assert found == [
        EvictedProducer(2, 0, 1, 0, 1, positions[1]),
        EvictedProducer(3, 4, 2, 0, 1, positions[2]),
    ]


def test_of_a_log_that_starts_with_a_segment_the_one_before_is_read(tmp_path):
    """It is about to be deleted: whoever ended in it is forgotten."""
    found, positions = evicted(tmp_path, 2, data(1, 0, 0), data(2, 0, 0), data(9, 0, 0), segment_starts=(2,))
    assert found == [EvictedProducer(number, 0, number - 1, 0, 0, positions[number - 1]) for number in (1, 2)]


def test_a_log_that_starts_with_its_first_segment_evicts_nobody(tmp_path):
    assert evicted(tmp_path, 0, *SENT)[0] == []


def test_so_many_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_EVICTED", 2)
    found, _ = evicted(tmp_path, 4, data(1, 0, 0), data(2, 0, 0), data(3, 0, 0), data(1, 0, 1), data(9, 0, 0))
    assert [(each.producer_id, each.last_sequence) for each in found] == [(1, 1), (2, 0)]


def test_the_longest_idle_come_first_without_those_in_a_transaction(monkeypatch):
    table = ProducerTable()
    last = BoundaryBatch(40, 44, 0, 4, 5, 1, 1000, 0, 700, 100, 0, 3)
    states = {
        10: ProducerAuditState(epoch=2, last_sequence=4, last=last, last_timestamp=3000),
        11: ProducerAuditState(epoch=0, last_timestamp=1000, marker_offset=50),
        12: ProducerAuditState(epoch=0, last_timestamp=500, txn_first_offset=0),
        13: ProducerAuditState(epoch=0, last_timestamp=-1),
        14: ProducerAuditState(epoch=1, last_sequence=4, last=last, last_timestamp=2000, marker_offset=45),
        15: ProducerAuditState(epoch=1, last_timestamp=0, marker_offset=7),
    }
    slots = table.slots(np.array(sorted(states)))
    table.store(dict(zip(slots.tolist(), (states[producer_id] for producer_id in sorted(states)), strict=True)))
    expected = [
        IdleProducer(15, 1, 7, 0, None, None),
        IdleProducer(11, 0, 50, 1000, None, None),
        IdleProducer(14, 1, 45, 2000, 3, 700),
        IdleProducer(10, 2, 44, 3000, 3, 700),
    ]
    assert idle_longest(table.rows) == expected
    for limit in (1, 2, 3):
        monkeypatch.setattr(module, "MAX_IDLE", limit)
        assert idle_longest(table.rows) == expected[:limit]
