"""A producer's last records before a place in the log: which, and how far the log is read."""

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kaudit.audits.repeats import producer_records
from kaudit.audits.repeats.producer_records import ProducerRecords, places_of
from kaudit.audits.repeats.restarts import Edge, Restart
from kaudit.audits.repeats.session_copies import Compared, compare_restarts
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.rows import TAIL_BATCHES
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import discover
from kaudit.source.layout import PartitionDirectory
from kaudit.source.schemes import open_segment
from tests.audits.repeats.stored import batches_of, written
from tests.logs import Batch, Log, data, marker

SIZE = len(data(1, 0, 0).encode())
"""Bytes of each batch of one record."""
PID = 4000


def tail(directory: PartitionDirectory, last: int, *, epoch: int = 0, reach: int = 1 << 20) -> list[int]:
    """Offsets of the records up to the batch that begins at offset `last`."""
    every = [batch for segment in range(len(directory.segments)) for batch in batches_of(directory, segment)]
    (edge,) = [batch for batch in every if batch.base_offset == last]
    records = ProducerRecords(directory, open_segment, IdentityReader())
    return [record.offset for record in records.tail(Edge(PID, epoch, edge), reach)]


@pytest.mark.parametrize(("reach", "count"), [(1, 1), (SIZE, 1), (SIZE + 1, 2), (2 * SIZE, 2), (2 * SIZE + 1, 3)])
def test_batches_begin_within_the_reach_of_the_last_ones_first_byte(tmp_path, reach, count):
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(8)))
    assert tail(directory, 6, reach=reach) == list(range(7 - count, 7))


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
    assert tail(directory, 7) == [0, 5, 7]
    assert tail(directory, 7, epoch=1) == [1]


def test_segments_before_it_are_read_as_far_as_the_reach_goes(tmp_path):
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(9)), starts=(3, 6))
    for reach, found in ((2 * SIZE, [3, 4]), (2 * SIZE + 1, [2, 3, 4]), (100 * SIZE, [0, 1, 2, 3, 4])):
        assert tail(directory, 4, reach=reach) == found


def test_the_nearest_are_taken_in_steps_of_any_size(tmp_path, monkeypatch):
    count = 3 * TAIL_BATCHES
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(count)), starts=(90,))
    for step in (1 << 18, 10 * SIZE, SIZE + 7):
        monkeypatch.setattr(producer_records, "_BLOCK_BYTES", step)
        assert tail(directory, 100) == list(range(101 - TAIL_BATCHES, 101))
        assert tail(directory, 20) == list(range(21))


def test_large_batches_are_fewer_but_not_less_than_a_client_has_in_flight(tmp_path, monkeypatch):
    directory = written(tmp_path, *(data(PID, 0, sequence) for sequence in range(20)))
    for most, count in ((7 * SIZE, 7), (SIZE, 5), (1, 5)):
        monkeypatch.setattr(producer_records, "_TAIL_BYTES", most)
        assert tail(directory, 19) == list(range(20 - count, 20))


def test_of_a_segment_that_is_gone_there_is_none(tmp_path):
    directory = written(tmp_path, data(PID, 0, 0))
    (batch,) = batches_of(directory)

    def gone(_):
        raise OSError("gone")

    assert list(ProducerRecords(directory, gone, IdentityReader()).tail(Edge(PID, 0, batch), 1 << 20)) == []


PLENTY = 1 << 16
"""Bytes of a batch that none here has."""


def compared(directory: PartitionDirectory, restarts: list[Restart], largest_batch: int) -> Compared:
    return compare_restarts(restarts, directory, open_segment, IdentityReader(), largest_batch=largest_batch)


@pytest.mark.parametrize("kinds", [1, 2, 4, 8])
def test_a_search_of_bytes_leaves_out_nothing_that_reading_all_tails_finds(tmp_path, kinds):
    """Three producers at random, each with epochs whose first records are now and then there before, in one batch or in several."""
    total: Counter[str] = Counter()
    for seed in range(40):
        choose = random.Random(f"{kinds} {seed}")
        batches, times, sequences, firsts = [], [], dict.fromkeys(range(3), 0), []
        epochs = dict.fromkeys(range(3), 0)
        for number in range(60):
            producer = choose.randrange(3)
            if sequences[producer] and choose.random() < 0.15:
                epochs[producer], sequences[producer] = epochs[producer] + 1, 0
                firsts.append((producer, epochs[producer], number))
            count = choose.choice([1, 1, 1, 3])
            payload = b"%d" % choose.randrange(kinds)
            batches.append(data(PID + producer, epochs[producer], sequences[producer], count, payload=payload))
            times.append(1_000 + choose.choice([number, number // 20]))
            sequences[producer] += count
        (place := tmp_path / str(seed)).mkdir()
        directory = written(place, *batches, starts=(30,), times=times)
        every = [batch for segment in range(len(directory.segments)) for batch in batches_of(directory, segment)]
        restarts = []
        for producer, epoch, number in firsts:
            before: dict[int, Edge] = {}
            for batch, stored in zip(batches[:number], every, strict=False):
                before[batch.producer_id] = Edge(batch.producer_id, batch.epoch, stored)
            own = before.pop(PID + producer)
            restarts.append(Restart(Edge(PID + producer, epoch, every[number]), [own, *before.values()]))
        found = compared(directory, restarts, 0)
        assert compared(directory, restarts, PLENTY) == found
        total.update(sessions=len(found[0]), epochs=len(found[1]))
    assert min(total["sessions"], total["epochs"]) > 0 or kinds > 2
    assert total["epochs"] > 0


def test_where_the_bytes_are_not_there_no_tail_is_read(tmp_path, monkeypatch):
    directory = written(tmp_path, *(data(PID, number // 8, number % 8, payload=b"%d" % number) for number in range(16)))
    every = batches_of(directory)
    restart = Restart(Edge(PID, 1, every[8]), [Edge(PID, 0, every[7])])
    monkeypatch.setattr(ProducerRecords, "tail", None)
    assert compared(directory, [restart], SIZE) == ([], [], 0)


def test_what_the_first_reading_lists_leaves_out_nothing_that_reading_all_tails_finds(tmp_path, monkeypatch):
    """Epochs raised at random, their last batches again, zombies, what is corrupt or transactional; ranges cut anywhere."""
    repetitions = 0
    for seed in range(60):
        choose, log, bad = random.Random(seed), Log(), set[int]()
        epochs, own = [0, 0], [list[Batch](), list[Batch]()]
        for number in range(choose.choice([60, 200])):
            producer = choose.randrange(2)
            again = own[producer][-choose.randrange(1, 5) :] if choose.random() < 0.1 else []
            if again:
                if choose.random() < 0.3:
                    log.append(data(PID + producer, epochs[producer], 99, payload=b"zombie"))
                epochs[producer] += 1
                own[producer] = []
            for sequence, batch in enumerate(again):
                resent = replace(batch, epoch=epochs[producer], sequence=sequence)
                own[producer].append(log.append(resent, keep_time=choose.random() < 0.9))
            epoch, transactional = epochs[producer] - (choose.random() < 0.05), choose.random() < 0.05
            batch = data(PID + producer, epoch, len(own[producer]), payload=b"%d" % number, transactional=transactional)
            own[producer].append(log.append(batch))
            bad |= {choose.randrange(log.next_offset)} if choose.random() < 0.05 else set()
        path = log.write(tmp_path / str(seed) / "orders-0", segment_starts=(choose.randrange(1, 60),))
        (directory,) = discover([str(path)]).everything
        for number, segment in enumerate(directory.segments):
            content = bytearray(Path(segment.path).read_bytes())
            for stored in batches_of(directory, number):
                content[stored.position + 20] ^= stored.base_offset in bad
            Path(segment.path).write_bytes(content)
        options = ScanOptions([str(path)], jobs=1, chunk_bytes=choose.choice([None, SIZE * 7, SIZE * 50]))
        with monkeypatch.context() as patched:
            found = scan(options, SilentProgress())
            patched.setattr(ProducerRecords, "may_repeat", lambda *_: True)
            assert scan(options, SilentProgress()).findings == found.findings
        repetitions += sum(each.code == "KA704" for each in found.findings)
    assert repetitions > 20


@pytest.mark.parametrize("alphabet", [1, 2, 256])
def test_bytes_are_found_wherever_they_lie_once_each_and_in_order(alphabet):
    chance = random.Random(44)
    found = 0
    for _ in range(2_000):
        log = bytearray(chance.randrange(alphabet) for _ in range(chance.choice((0, 40, 400))))
        wanted = bytes(chance.randrange(alphabet) for _ in range(chance.choice((1, 8, 22, 23, 24, 40, 73))))
        for _ in range(chance.randrange(5)):
            at = chance.randrange(len(log) + 1)
            log[at : at + len(wanted)] = wanted
        start = chance.randrange(len(log) + 1)
        stop = chance.randrange(start, len(log) + 1)
        matches = re.finditer(b"(?=%b)" % re.escape(wanted), bytes(log[start:stop]))
        places = [start + match.start() for match in matches]
        assert list(places_of(wanted, log, start, stop)) == places
        found += len(places)
    assert found > 300
