"""Which records equal earlier ones, and which have the sequence of an earlier one: compared with a dict over random logs."""

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from kaudit.audits.records import reading, repeats, spill
from kaudit.audits.records.sequences import RepeatedSequences, SequenceWatch
from kaudit.audits.records.stored import PART, STORED, StoredBatches
from kaudit.engines.progress import SilentProgress
from kaudit.engines.repeated_records import repeated_records
from kaudit.errors import UsageError
from kaudit.model.duplicates import Duplicate
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import TRANSACTIONAL, Log, data, marker


def random_log(seed):
    """Transactions of producers 1 to 3, some aborted and some open, and records of nobody; few payloads and keys."""
    chance, log = random.Random(seed), Log()
    sequences: defaultdict[int, int] = defaultdict(int)
    for _ in range(chance.randint(20, 90)):
        producer_id = chance.choice((-1, 1, 2, 3))
        if producer_id > 0 and chance.random() < 0.2:
            log.append(marker(producer_id, 0, commit=chance.random() < 0.5))
            continue
        count = chance.randint(1, 4)
        first = -1 if producer_id < 0 else sequences[producer_id]
        if producer_id > 0:
            sequences[producer_id] += count
        what = {"payload": b"%d" % chance.randint(0, 5), "key": chance.choice((None, b"k", b"l"))}
        epoch = -1 if producer_id < 0 else 0
        log.append(data(producer_id, epoch, first, count, transactional=producer_id > 1, **what))
    return log


def records_of(log):
    """Offset and batch of every record that consumers are given."""
    return [
        (offset, batch)
        for batch in log.batches
        if batch.control is None
        for offset in range(batch.base_offset, batch.last_offset + 1)
    ]


def hidden_in(log):
    """Offsets of transactions that were aborted or are open."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    hidden: set[int] = set()
    for batch in log.batches:
        if batch.control is not None:
            own = waiting.pop(batch.producer_id, [])
            hidden |= set(own) if batch.control[0] == 0 else set()
        elif batch.attributes & TRANSACTIONAL:
            waiting[batch.producer_id] += range(batch.base_offset, batch.last_offset + 1)
    return hidden.union(*waiting.values())


def expected(log):
    """Each repeat with the first of its equals that its consumer is given, and its number among them."""
    seen: defaultdict[tuple[bytes | None, bytes], list[int]] = defaultdict(list)
    hidden, found = hidden_in(log), []
    for offset, batch in records_of(log):
        before = seen[batch.key, batch.payload]
        given = [each for each in before if each not in hidden]
        if before:
            found.append((offset, before[0] if offset in hidden or not given else given[0], len(before) + 1))
        before.append(offset)
    return found


def known_keys(log):
    """How many records have the key of an earlier one, and say something else than all before them."""
    keys, contents, found = set(), set(), 0
    for _, batch in records_of(log):
        content = batch.key, batch.payload
        found += batch.key is not None and batch.key in keys and content not in contents
        keys.add(batch.key)
        contents.add(content)
    return found


def listed(path, **more):
    with repeated_records(ScanOptions(paths=[str(path)], **more), SilentProgress()) as listing:
        found = [each for _, each in listing.found(read_committed=False) if isinstance(each, Duplicate)]
        return [(each.offset, each.original_offset, each.copy) for each in found if each.repeats], listing.totals


@pytest.mark.parametrize("seed", range(12))
def test_every_repeat_of_a_random_log(tmp_path, monkeypatch, seed):
    if seed % 2:  # parts of a few records: buckets are split, equal records do not fit into memory
        monkeypatch.setattr(reading, "CUT_RECORDS", 7)
        monkeypatch.setattr(reading, "_HELD_ROWS", 5)
        monkeypatch.setattr(repeats, "MOST_ROWS", 4)
        monkeypatch.setattr(spill, "_READ_BYTES", 96)
    log = random_log(seed)
    found, totals = listed(log.write(tmp_path / "orders-0"))
    assert found == expected(log)
    assert (totals[0].records, totals[0].known_keys) == (len(records_of(log)), known_keys(log))
    assert totals[0].without_key == sum(batch.key is None for _, batch in records_of(log))


def test_records_of_other_partitions_are_no_repeats(tmp_path):
    logs = []
    for number in range(3):
        log = Log()
        for sequence in range(number + 1):
            log.append(data(1, 0, sequence, payload=b"same"))
        logs.append(log)
        log.write(tmp_path / f"orders-{number}")
    found, totals = listed(tmp_path)
    assert found == [each for log in logs for each in expected(log)] == [(1, 0, 2), (1, 0, 2), (2, 0, 3)]
    assert [total.records for total in totals] == [1, 2, 3]


def test_several_processes_find_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.engines.local.PROCESSES_PAY_BYTES", 0)
    logs = [random_log(seed) for seed in (20, 21, 22)]
    for number, log in enumerate(logs):
        log.write(tmp_path / f"orders-{number}")
    assert listed(tmp_path, jobs=2)[0] == [each for log in logs for each in expected(log)]


def stored(*batches):
    """Rows of batches, each (producer id, epoch, sequence, records), at ascending offsets."""
    rows = np.zeros(len(batches), dtype=STORED)
    offset = 0
    for row, (producer_id, epoch, sequence, count) in zip(rows, batches, strict=True):
        row["offset"], row["producer_id"], row["epoch"], row["sequence"], row["span"] = (
            *(offset, producer_id, epoch, sequence),
            count - 1,
        )
        offset += count
    return rows


def repeated_sequences(rows: np.ndarray, at_once: int = 1 << 16) -> RepeatedSequences:
    """Feed batches some at once."""
    parts = [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
    watch = SequenceWatch()
    for part in parts:
        watch.feed(part)
    return watch.found(lambda: parts)


@pytest.mark.parametrize(("batches", "known"), [
    ([], []),
    ([(-1, -1, -1, 3), (-1, -1, -1, 3)], []),
    ([(1, 0, 0, 2), (2, 0, 0, 2), (1, 0, 2, 2), (1, 1, 0, 2)], []),
    ([(1, 0, 0, 2), (1, 0, 2, 2), (1, 0, 2, 2), (1, 0, 4, 1)], [(4, 2), (5, 3)]),
    ([(1, 0, 0, 3), (1, 0, 2, 3)], [(3, 2)]),
    ([(1, 0, 5, 1), (1, 0, 9, 1), (1, 0, 5, 1), (1, 0, 5, 1)], [(2, 0), (3, 2)]),
    # a lower sequence that nobody had; after it one that is higher than the last and lower than the highest
    ([(1, 0, 8, 2), (1, 0, 2, 2), (1, 0, 8, 1)], [(4, 0)]),
    ([(1, 0, MAX_SEQUENCE - 1, 2), (1, 0, 0, 2), (1, 0, 2, 1)], []),
])  # fmt: skip
def test_known_sequences(batches, known):
    found = repeated_sequences(stored(*batches))
    assert ([tuple(row) for row in found.rows.tolist()], found.more) == (known, 0)


@pytest.mark.parametrize("seed", range(20))
def test_known_sequences_of_random_batches(seed):
    chance = random.Random(seed)
    batches = [
        (chance.choice((1, 2)), chance.choice((0, 1)), chance.choice((0, 1, 2, 3, 9, 40, number)), chance.randint(1, 3))
        for number in range(60)
    ]
    last: dict[tuple[int, int, int], int] = {}
    expect, offset = [], 0
    for producer_id, epoch, sequence, count in batches:
        for index in range(count):
            key = producer_id, epoch, sequence + index
            if key in last:
                expect.append((offset, last[key]))
            last[key] = offset
            offset += 1
    assert [tuple(row) for row in repeated_sequences(stored(*batches), 5).rows.tolist()] == expect


@pytest.mark.parametrize("size", [1, 3, 50])
def test_the_batch_of_an_offset_is_read_from_the_headers_again(tmp_path, size):
    log = random_log(5)
    log.write(tmp_path / "orders-0", segment_starts=(log.batches[7].base_offset,))
    (directory,) = discover([str(tmp_path)]).everything
    every = [batch for batch in log.batches if batch.control is None]
    with Path(directory.segments[0].path).open("rb") as first:
        ends = len(first.read())
    parts, rows, position, segment = [], [], 0, 0
    for batch in log.batches:
        if position == ends and not segment:
            position, segment = 0, 1
        if batch.control is None:
            rows.append((batch.base_offset, batch.last_offset, position, position + 1, segment))
        position += len(batch.encode())
    for start in range(0, len(rows), size):
        own = rows[start : start + size]
        for number in sorted({row[4] for row in own}):
            same = [row for row in own if row[4] == number]
            parts.append((same[0][0], same[-1][1], same[0][2], same[-1][3], number))
    stored = StoredBatches(directory, np.array(parts, dtype=PART), open_segment)
    wanted = [(offset, batch) for batch in every for offset in range(batch.base_offset, batch.last_offset + 1)]
    found = stored.at(np.array([offset for offset, _ in wanted]))
    assert found["offset"].tolist() == [batch.base_offset for _, batch in wanted]
    assert found["producer_id"].tolist() == [batch.producer_id for _, batch in wanted]
    assert [int(row["position"]) for row in found] == [
        next(row[2] for row in rows if row[0] == batch.base_offset) for _, batch in wanted
    ]
    assert sum(map(len, stored.parts())) == len(every)
    Path(directory.segments[0].path).unlink()
    gone = StoredBatches(directory, np.array(parts, dtype=PART), open_segment).at(np.array([wanted[0][0]]))
    assert (int(gone["size"][0]), int(gone["segment"][0])) == (0, 0)


@pytest.mark.parametrize("different", [20, 300])
@pytest.mark.parametrize("key", [None, b"k"])
@pytest.mark.parametrize("count", [1, 5])
def test_temporary_files_have_at_most_32_bytes_a_record(tmp_path, monkeypatch, count, key, different):
    log = Log()
    for number in range(400):
        log.append(data(1, 0, number * count, count, key=key, payload=b"%d" % (number % different)))
    path = log.write(tmp_path / "orders-0")
    sizes = []

    def watched(job):
        def done(task, options, open_source):
            found = job(task, options, open_source)
            spill = task.rows if job is repeats.match_repeats else task.identified
            sizes.append(sum(file.stat().st_size for file in Path(spill.directory).iterdir()))
            return found

        return done

    for job in (reading.read_partition, repeats.match_repeats):
        monkeypatch.setattr(f"kaudit.engines.repeated_records.{job.__name__}", watched(job))
    assert len(listed(path, jobs=1)[0]) == 400 * count - different
    assert sizes[0] == max(sizes) == 400 * count * 32


def test_temporary_files_do_not_go_where_the_input_is(tmp_path):
    path = random_log(1).write(tmp_path / "orders-0")
    with (
        pytest.raises(UsageError, match="nothing is written"),
        spill.spill_directory(str(path), [str(tmp_path)]),
    ):
        pass
    with pytest.raises(UsageError, match="--temporary-directory"), spill.spill_directory(str(path / "none"), []):
        pass


def test_a_full_disk_is_said_with_the_directory(tmp_path):
    with pytest.raises(UsageError, match="No space left"), spill.rows_written(tmp_path / "rows"):
        raise OSError(28, "No space left on device")
    with pytest.raises(OSError, match="broken"), spill.rows_written(tmp_path / "rows"):
        raise OSError(5, "broken")


def test_a_segment_that_cannot_be_opened_again_is_unreadable(tmp_path, monkeypatch):
    """Batches are found in one reading of a segment, and their records read in another."""
    log = Log()
    for sequence in range(6):
        log.append(data(1, 0, sequence, payload=b"same"))
    path = log.write(tmp_path / "orders-0", segment_starts=(3,))
    opened: list[str] = []

    def opens_once(segment):
        opened.append(segment.name)
        if opened.count(f"{3:020d}.log") > 1 and segment.name == f"{3:020d}.log":
            raise PermissionError(13, "Permission denied", segment.path)
        return open_segment(segment)

    monkeypatch.setattr("kaudit.engines.local.open_segment", opens_once)
    with repeated_records(ScanOptions(paths=[str(path)], jobs=1), SilentProgress()) as listing:
        assert list(listing.found(read_committed=False))
        assert (listing.totals[0].records, listing.totals[0].undecoded, listing.scan.incomplete) == (3, 3, True)
        assert [note.reason for note in listing.scan.not_audited if note.unreadable] == ["Permission denied"]
