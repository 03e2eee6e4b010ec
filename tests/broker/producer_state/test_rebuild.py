"""Producer state out of a log's bytes, and into a snapshot: UnifiedLog.rebuildProducerState, ProducerStateManager.writeSnapshot."""

import pytest

from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import LogReader, snapshot_entry
from kaudit.broker.releases.profile import profile_for
from kaudit.model.side_files import SnapshotEntry
from tests.checks.stories import Missing, abort, commit, log_of, plain, transactional
from tests.logs import BASE_TIMESTAMP, WRAP, Batch, Log

PROFILE = profile_for("3.9.1")


def read(log: Log, *, changes=lambda raw: raw):
    reader = LogReader([memoryview(changes(log.encode()))])
    producers = ProducerStateManager(PROFILE)
    producers.replicate(reader)
    return reader, {producer_id: snapshot_entry(producer_id, state) for producer_id, state in producers.states.items()}


def entry(producer_id, epoch, last_sequence, last_offset, delta, time, coordinator_epoch=-1, txn=-1):
    return SnapshotEntry(
        producer_id, epoch, last_sequence, last_offset, delta, BASE_TIMESTAMP + time, coordinator_epoch, txn
    )


@pytest.mark.parametrize(
    ("parts", "entries", "end"),
    [
        ([plain(0, 3), plain(3, 2)], [entry(1, 0, 4, 4, 1, 2)], 5),
        ([plain(0, 3), Batch(count=4)], [entry(1, 0, 2, 2, 2, 1)], 7),
        ([plain(WRAP - 2, 5)], [entry(1, 0, 2, 4, 4, 1)], 5),
        ([plain(0), plain(0, 2, epoch=4, payload=b"y")], [entry(1, 4, 1, 2, 1, 2)], 3),
        ([transactional(0, 2), transactional(2)], [entry(1, 0, 2, 2, 0, 2, txn=0)], 3),
        ([transactional(0, 2), commit(coordinator_epoch=3)], [entry(1, 0, 1, 1, 1, 2, 3)], 3),
        ([transactional(0, 2), abort(epoch=1, coordinator_epoch=3)], [entry(1, 1, -1, -1, 0, 2, 3)], 3),
        ([commit(coordinator_epoch=9, who=5)], [entry(5, 0, -1, -1, 0, 1, 9)], 1),
        ([plain(0), Missing(10), plain(1, 2)], [entry(1, 0, 2, 12, 1, 2)], 13),
        ([transactional(0), commit(kept=0), plain(0, who=2)], [entry(1, 0, 0, 0, 0, 1, txn=0), entry(2, 0, 0, 2, 0, 3)], 3),
    ],
)  # fmt: skip
def test_what_a_snapshot_at_the_end_of_a_log_holds(parts, entries, end):
    reader, found = read(log_of(*parts))
    assert list(found.values()) == entries
    assert reader.end == (end, False)


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (lambda raw: raw[:-1], (2, True)),  # the third batch is torn
        (lambda raw: raw + b"\0" * 5, (3, True)),
        (lambda raw: raw[:100] + bytes([raw[100] ^ 1]) + raw[101:], (1, True)),  # inside the second
        (lambda raw: raw[:20] + bytes([raw[20] ^ 1]) + raw[21:], (0, True)),
    ],
)
def test_reading_ends_at_the_first_damage(change, end):
    reader, found = read(log_of(plain(0), plain(1), plain(2)), changes=change)
    assert reader.end == end
    assert [state.last_sequence for state in found.values()] == ([end[0] - 1] if end[0] else [])
