"""The batches of a run, read again from their segment: those that were written, with what was there before each."""

import pytest

from kaudit.model.log_rows import BoundaryBatch
from kaudit.reading.run_batches import RunFetcher
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import Log, data, marker

PRODUCER, OTHER = 7, 8


@pytest.fixture
def written(tmp_path):
    """Two producers in turn, a marker of the first, a hole of four offsets, and a segment in front."""
    log = Log()
    batches = [log.append(data(OTHER, 0, 0))]
    for number in range(6):
        batches.append(log.append(data(PRODUCER, 0, 2 * number, 2, payload=b"%d" % number)))
        if number == 2:
            batches.append(log.append(marker(PRODUCER, 0)))
            log.skip(4)
        batches.append(log.append(data(OTHER, 0, 1 + number)))
    log.write(tmp_path / "orders-0", segment_starts=(1,))
    (directory,) = discover([str(tmp_path)]).partitions
    return directory, batches[1:]


@pytest.mark.parametrize(("first", "last"), [(0, 5), (0, 0), (1, 3), (5, 5)])
def test_the_data_batches_of_a_run(written, first, last):
    directory, batches = written
    positions, present = {}, {}
    position = there = 0
    for batch in batches:
        positions[batch], present[batch] = position, 100 + there
        position += len(batch.encode())
        there += batch.count
    own = [batch for batch in batches if batch.producer_id == PRODUCER and batch.control is None][first : last + 1]
    run = {
        "segment": 1,
        "first_position": positions[own[0]],
        "first_offset": own[0].base_offset,
        "last_offset": own[-1].base_offset,
        "present_before_first": present[own[0]],
        "producer_id": PRODUCER,
    }
    found = RunFetcher(directory, open_segment)(run)
    assert [batch._replace(crc=0) for batch in found] == [
        BoundaryBatch(
            batch.base_offset, batch.last_offset, batch.sequence, batch.sequence + 1, 2, 0, batch.timestamp,
            present[batch], positions[batch], len(batch.encode()), 0, 1,
        )
        for batch in own
    ]  # fmt: skip


def test_a_run_ends_where_the_producer_goes_on_beyond_it(written):
    """Nothing behind the run is read: what lies there may be damaged."""
    directory, batches = written
    read = []

    def watched(segment):
        source = open_segment(segment)
        original = source.read_into

        class Watched:
            size, close = source.size, source.close

            @staticmethod
            def read_into(position, buffer):
                read.append((position, len(buffer)))
                return original(position, buffer)

        return Watched()

    own = [batch for batch in batches if batch.producer_id == PRODUCER and batch.control is None]
    run = dict.fromkeys(("first_position", "present_before_first"), 0)
    run |= {"segment": 1, "first_offset": 1, "last_offset": own[1].base_offset, "producer_id": PRODUCER}
    fetched = RunFetcher(directory, watched)(run)
    assert [batch.base_offset for batch in fetched] == [own[0].base_offset, own[1].base_offset]
    assert {position for position, _ in read} == {0}
