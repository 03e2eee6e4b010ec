"""What transactions wrote, by the markers of all partitions: which belong together, and what was written."""

import numpy as np
import pytest
import xxhash

from kaudit.audits.transactions import outputs as module
from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.audits.transactions.outputs import TransactionOutputs, alternate, keys_read
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.model.exactly_once import EndOfTransaction, OutputRange
from kaudit.reading.rows import Rows
from kaudit.source.discover import discover
from kaudit.source.layout import PartitionDirectory
from kaudit.source.schemes import open_segment
from tests.logs import TRANSACTIONAL, Batch, Log, marker, record, sealed_records

GROUPS, ORDERS, BILLS = ("__consumer_offsets", 0), ("orders", 0), ("bills", 3)


def markers(place: tuple[str, int], *ended: tuple[int, int, int], kind: int = 1, epoch: int = 0) -> Markers:
    """Markers of one partition: (producer id, time, records)."""
    rows: Rows = np.zeros(len(ended), dtype=ENDED_TRANSACTION)
    for number, (producer_id, timestamp, records) in enumerate(ended):
        rows[number]["producer_id"], rows[number]["timestamp"], rows[number]["records"] = (
            producer_id,
            timestamp,
            records,
        )
        rows[number]["first_offset"], rows[number]["marker_offset"] = number * 10, number * 10 + 9
    rows["type"], rows["producer_epoch"] = kind, epoch
    return Markers(PartitionDirectory(*place, "b1", "/data", "/data/x", "x", ()), rows)


def of(
    outputs: TransactionOutputs, producer_id: int, time: int, last: int | None = None
) -> list[tuple[str, int, int, int]]:
    first, end = (EndOfTransaction(producer_id, 0, each, 0) for each in (time, time if last is None else last))
    return [(each.topic, each.first_offset, each.last_offset, each.records) for each in outputs.committed(first, end)]


def test_each_marker_is_of_the_transaction_whose_end_is_nearest():
    outputs = TransactionOutputs(
        [
            markers(GROUPS, (7, 1000, 1), (7, 1100, 1), (7, 9000, 1)),
            markers(ORDERS, (7, 1002, 5), (7, 1098, 6), (8, 1001, 9)),
            markers(BILLS, (7, 1104, 2), (7, 9030, 3)),
        ]
    )
    assert of(outputs, 7, 1000) == [("orders", 0, 9, 5)]
    assert of(outputs, 7, 1100) == [("bills", 0, 9, 2), ("orders", 10, 19, 6)]
    assert of(outputs, 7, 1000, 1100) == [("bills", 0, 9, 2), ("orders", 0, 19, 11)]
    assert of(outputs, 7, 9000) == [("bills", 10, 19, 3)]
    assert of(outputs, 9, 1000) == []


def test_aborted_ones_and_those_of_another_epoch_are_not_its_outputs():
    outputs = TransactionOutputs(
        [markers(GROUPS, (7, 1000, 1)), markers(ORDERS, (7, 1000, 5), kind=0), markers(BILLS, (7, 1000, 5), epoch=1)]
    )
    assert of(outputs, 7, 1000) == []


def test_of_several_replicas_the_longest_counts():
    outputs = TransactionOutputs([markers(ORDERS, (7, 1, 5)), markers(ORDERS, (7, 1, 5), (7, 900, 6))])
    assert len(outputs.rows) == 2


def ended(*rows: tuple[int, int, int, int, int], place: tuple[str, int] = ORDERS) -> Markers:
    """Markers of one partition: (producer id, epoch, type, time, first offset), the marker 9 offsets after the first."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5)
    found: Rows = np.zeros(len(rows), dtype=ENDED_TRANSACTION)
    for name, column in zip(
        ("producer_id", "producer_epoch", "type", "timestamp", "first_offset"), columns.T, strict=True
    ):
        found[name] = column
    found["marker_offset"], found["records"] = np.arange(len(rows)) * 10 + 9, np.arange(len(rows)) + 1
    return Markers(PartitionDirectory(*place, "b1", "/data", "/data/x", "x", ()), found)


def commits(producer_id: int, *times: int, place: tuple[str, int] = ORDERS, epoch: int = 0) -> Markers:
    """Commit markers with records before them."""
    return ended(*((producer_id, epoch, 1, time, 10 * number) for number, time in enumerate(times)), place=place)


def end(producer_id: int, time: int, epoch: int = 0, marker: int = 0) -> EndOfTransaction:
    return EndOfTransaction(producer_id, epoch, time, marker)


@pytest.mark.parametrize(
    ("time", "found"), [(4999, 0), (5000, 1), (10_000, 1), (15_000, 1), (15_001, 0)], ids=lambda value: f"{value}"
)
def test_markers_of_one_transaction_are_written_within_five_seconds(time, found):
    outputs = TransactionOutputs([commits(7, 10_000, place=GROUPS), commits(7, time)])
    assert len(outputs.committed(end(7, 10_000), end(7, 10_000))) == found


@pytest.mark.parametrize(
    ("time", "number"), [(1050, 0), (1051, 1), (1149, 1), (1150, 1), (1151, 2), (1250, 2)], ids=lambda value: f"{value}"
)
def test_a_marker_in_the_middle_between_two_is_of_either(time, number):
    """Groups' commits ended at 1000, 1100, 1200 and 1300."""
    ends = [1000, 1100, 1200, 1300]
    outputs = TransactionOutputs([commits(7, *ends, place=GROUPS), commits(7, time)])
    found = [place for place, each in enumerate(ends) if outputs.committed(end(7, each), end(7, each))]
    assert number in found
    assert found == ([number, number + 1] if time % 100 == 50 and number < 3 else [number])


def test_what_is_between_two_ends():
    outputs = TransactionOutputs(
        [
            commits(7, 1000, 2000, 3000, 4000, place=GROUPS),
            # an abort, markers without records, and another epoch's
            ended(
                (7, 0, 1, 1001, 0), (7, 0, 0, 2001, 10), (7, 0, 1, 2002, -1), (7, 1, 1, 3001, 30), (8, 0, 1, 2000, 40)
            ),
        ]
    )
    orders = outputs.places.index(next(place for place in outputs.places if place.topic == "orders"))

    def times(first, last, kind=1):
        rows = outputs.between(end(7, first), end(7, last), kind)
        assert all(outputs.place[rows] == orders)
        return outputs.rows["timestamp"][rows].tolist()

    assert times(1000, 4000) == [1001, 3001]
    assert times(1000, 1000) == [1001]
    assert times(2000, 2000) == []
    assert times(2000, 2000, kind=0) == [2001]
    # of one transaction its own epoch, from one to another all
    assert times(3000, 3000) == []
    assert times(2000, 3000) == [3001]


def test_ranges_name_each_partition_with_all_that_was_written():
    outputs = TransactionOutputs([commits(7, 1000, 1001, 1002), commits(7, 1000, 1003, place=BILLS)])
    rows = outputs.between(end(7, 1000), end(7, 1003), 1)
    assert outputs.ranges(rows) == [OutputRange("bills", 3, 0, 19, 3), OutputRange("orders", 0, 0, 29, 6)]
    assert outputs.ranges(rows[:0]) == []


def test_which_markers_are_of_inputs_and_of_outputs():
    outputs = TransactionOutputs([commits(7, 1000, 3000, place=GROUPS), ended((7, 0, 1, 2000, 0), (7, 0, 1, 4000, -1))])
    assert outputs.is_input(slice(None)).tolist() == [True, False, True, False]
    assert outputs.is_output(slice(1, 4)).tolist() == [True, False, False]
    assert outputs.is_input(np.array([2, 1])).tolist() == [True, False]


def test_of_replicas_with_as_many_markers_the_first_is_taken():
    one, same = commits(7, 1), commits(7, 2)
    assert TransactionOutputs([one, same]).rows["timestamp"].tolist() == [1]


def test_nothing_is_known_without_markers():
    outputs = TransactionOutputs([])
    assert outputs.committed(end(7, 1), end(7, 1)) == []
    assert list(outputs.ends_without_inputs()) == []
    assert outputs.without_inputs(7, 0)[0] == 0
    assert outputs.later_commits([7], 0, 9) == []
    assert outputs.some(7, 0, 9, 9) == []


def test_the_ends_of_producers_that_commit_no_offsets():
    outputs = TransactionOutputs(
        [
            commits(7, 1000, place=GROUPS),
            commits(7, 1001),
            # most of 8's are in bills; an abort is none
            ended((8, 0, 1, 10, 0), (8, 0, 0, 20, 10), place=("a", 0)),
            ended((8, 0, 1, 30, 0), (8, 0, 1, 40, 10), (8, 0, 0, 50, 20), place=BILLS),
            ended((9, 0, 0, 60, 0), place=("z", 0)),
        ]
    )
    assert [(producer_id, times.tolist()) for producer_id, times in outputs.ends_without_inputs()] == [
        (8, [30, 40]),
        (9, []),
    ]


@pytest.mark.parametrize(
    ("inputs", "outputs", "since", "expected"),
    [
        # one of the outputs in the middle has no commit of the group near
        ([1000, 3000], [1000, 2000, 3000], 0, (2, [2000])),
        ([1000, 2000, 3000], [1001, 2001, 3001], 0, (3, [])),
        # before the first and after the last commit of the group nothing is known
        ([1000, 3000], [500, 1000, 3000, 3500], 0, (2, [])),
        # as many are missing as are left: else times do not say which
        ([1000, 1010, 3000], [1000, 2000, 3000], 0, (3, [])),
        # what lies in the middle is nearer to the one after it
        ([1000, 2000, 4000], [1000, 2000, 3000, 4000], 0, (3, [3000])),
        ([1000, 2500, 4000], [1000, 2000, 3000, 4000], 0, (3, [2000])),
        ([1000, 2499, 4000], [1000, 2000, 3000, 4000], 0, (3, [3000])),
        ([1000, 3000, 5000], [1000, 2000, 3000, 4000, 5000], 3000, (2, [4000])),
        ([1000, 3000, 5000], [1000, 2000, 3000, 4000, 5000], 3001, (1, [])),
        ([], [1000, 2000], 0, (0, [])),
        ([1000, 2000], [], 0, (2, [])),
    ],
)
def test_transactions_that_commit_nothing_between_others_that_do(inputs, outputs, since, expected):
    parts = (commits(7, *inputs, place=GROUPS), commits(7, *outputs))
    found = TransactionOutputs(part for part in parts if len(part.rows))
    committing, rows = found.without_inputs(7, since)
    assert (committing, found.rows["timestamp"][rows].tolist()) == expected


def test_each_epoch_and_the_partition_with_most_are_looked_at_by_themselves():
    found = TransactionOutputs(
        [
            # transaction version 2: an epoch for each; that of 1 has no commit of a group
            ended((7, 0, 1, 1000, 0), (7, 2, 1, 3000, 10), (8, 0, 1, 1000, 20), (8, 0, 1, 3000, 30), place=GROUPS),
            ended(
                (7, 0, 1, 1000, 0), (7, 1, 1, 2000, 10), (7, 2, 1, 3000, 20), (7, 1, 0, 2500, 30), (7, 1, 1, 2600, -1)
            ),
            commits(8, 2000, place=("orders", 1)),
            commits(8, 1000, 2001, 3000, place=BILLS),
        ]
    )
    committing, rows = found.without_inputs(7, 0)
    assert (committing, found.rows["timestamp"][rows].tolist()) == (2, [2000])
    committing, rows = found.without_inputs(8, 0)
    assert (committing, found.rows["timestamp"][rows].tolist()) == (2, [2001])
    assert [found.places[place].topic for place in found.place[rows]] == ["bills"]


def test_later_commits_of_several_producers_the_first_ones():
    found = TransactionOutputs(
        [
            ended(
                (7, 3, 1, 3000, 0),
                (8, 4, 1, 2000, 10),
                (7, 3, 0, 2500, 20),
                (9, 0, 1, 2600, 30),
                (7, 3, 1, 1000, 40),
                place=GROUPS,
            ),
            commits(7, 2200),
        ]
    )
    assert found.later_commits([8, 7], 1000, 9) == [end(8, 2000, 4, 19), end(7, 3000, 3, 9)]
    assert found.later_commits([8, 7], 999, 2) == [end(7, 1000, 3, 49), end(8, 2000, 4, 19)]


@pytest.mark.parametrize(
    ("most", "times"),
    [(1, [1000]), (2, [1000, 1008]), (3, [1000, 1004, 1008]), (9, [*range(1000, 1009)]), (20, [*range(1000, 1009)])],
)
def test_some_committed_transactions_spread_over_a_time(most, times):
    found = TransactionOutputs(
        [ended(*((7, 0, 1, time, 0) for time in range(999, 1010)), (7, 0, 0, 1004, 0), (8, 0, 1, 1004, 0))]
    )
    assert [each.ended_ms for each in found.some(7, 1000, 1008, most)] == times


def hashed(*values: bytes) -> list[int]:
    return sorted(
        np.array([xxhash.xxh3_64_intdigest(value) for value in values], dtype=np.uint64).view(np.int64).tolist()
    )


class TestRecords:
    """What transactions wrote, read again: orders has records of 7 and 8, bills one of 7; each transaction ends at 1000."""

    def written(self, root, name: str, *batches: tuple[int, bytes | None], attributes: int = TRANSACTIONAL) -> Markers:
        """Batches of (producer id, key), the markers of 7 and then one more batch of 7."""
        log, raw = Log(), b""
        for producer_id, key in batches:
            batch = log.append(Batch(producer_id, 0, 0, attributes=attributes))
            raw += sealed_records(batch, [record(0, key, b"value of " + (key or b"none"))])
        stop = log.append(marker(7, 0))
        raw += stop.encode() + log.append(Batch(7, 0, 9, key=b"after")).encode()
        directory = root / f"{name}-0"
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(raw)
        (partition,) = (each for each in discover([str(root)]).partitions if each.topic == name)
        rows: Rows = np.zeros(1, dtype=ENDED_TRANSACTION)
        rows["producer_id"], rows["type"], rows["timestamp"], rows["marker_offset"] = 7, 1, 1000, stop.base_offset
        return Markers(partition, rows)

    def content(self, *parts, **options):
        return TransactionOutputs(parts).content(end(7, 1000), open_segment, **options)

    def test_the_records_of_one_producer_up_to_its_marker(self, tmp_path):
        orders = self.written(tmp_path, "orders", (7, b"k"), (8, b"m"), (7, b"l"), (7, b"k"))
        found = self.content(orders, self.written(tmp_path, "bills", (7, b"a")))
        assert found is not None
        assert (found.keys.tolist(), found.keyed) == (hashed(b"k", b"l", b"a"), True)
        assert len(found.contents) == 3
        assert found.contents.tolist() == sorted(found.contents.tolist())
        # a record is the same wherever it lies
        (tmp_path / "again").mkdir()
        again = self.content(self.written(tmp_path / "again", "bills", (7, b"l"), (7, b"a"), (7, b"k")))
        assert again is not None
        assert np.array_equal(again.contents, found.contents)

    def test_records_without_keys(self, tmp_path):
        found = self.content(self.written(tmp_path, "orders", (7, b"k"), (7, None)))
        assert found is not None
        assert (found.keyed, found.keys.tolist(), len(found.contents)) == (False, hashed(b"k"), 2)

    def test_nothing_is_known_of_none_and_of_what_cannot_be_decoded(self, tmp_path):
        orders = self.written(tmp_path, "orders", (7, b"k"))
        assert self.content(orders, aborted=True) is None
        assert self.content(self.written(tmp_path, "empty", (8, b"k"))) is None
        gzip_that_is_none = self.written(tmp_path, "bills", (7, b"k"), attributes=TRANSACTIONAL | 1)
        assert self.content(orders, gzip_that_is_none) is None

    def test_of_a_large_transaction_nothing_is_read(self, tmp_path, monkeypatch):
        orders = self.written(tmp_path, "orders", (7, b"k"), (8, b"m"), (7, b"l"))
        size = len(sealed_records(Batch(), [record(0, b"k", b"value of k")]))
        for limit, known in ((2 * size, True), (2 * size - 1, False)):
            monkeypatch.setattr(module, "_MOST_BYTES", limit)
            assert (self.content(orders) is not None) is known

    def test_the_keys_of_data_between_two_offsets(self, tmp_path, monkeypatch):
        partition = self.written(tmp_path, "orders", (7, b"a"), (8, b"b"), (7, None), (7, b"c"), (7, b"b")).directory
        assert sorted(keys_read(partition, 0, 9, open_segment).tolist()) == hashed(b"a", b"b", b"c", b"after")
        assert sorted(keys_read(partition, 1, 4, open_segment).tolist()) == hashed(b"b", b"c")
        assert sorted(keys_read(partition, 2, 3, open_segment).tolist()) == []
        size = len(sealed_records(Batch(), [record(0, b"a", b"value of a")]))
        for limit, keys in ((2 * size, hashed(b"a", b"b")), (2 * size - 1, [])):
            monkeypatch.setattr(module, "_MOST_BYTES", limit)
            assert sorted(keys_read(partition, 0, 2, open_segment).tolist()) == keys

    def test_all_segments_are_read_from_the_one_on_that_has_the_offset(self, tmp_path):
        log = Log()
        for key in (b"a", b"b", b"c", b"d"):
            log.append(Batch(7, 0, 0, key=key))
        log.write(tmp_path / "orders-0", segment_starts=(1, 2, 3))
        (partition,) = discover([str(tmp_path)]).partitions
        assert sorted(keys_read(partition, 1, 3, open_segment).tolist()) == hashed(b"b", b"c")


@pytest.mark.parametrize(
    ("repeated", "expected"),
    [(0, True), (1, True), (2, False)],
)
def test_one_commit_in_ten_may_be_repeated(repeated, expected):
    """Of ten steps nine have one transaction each; of the others none, as these commits came twice."""
    times = sorted([*range(0, 1100 - 100 * repeated, 100), *(100 * number + 1 for number in range(repeated))])
    assert len(times) == 11
    assert alternate(times, np.arange(50, 1100 - 100 * repeated - 50, 100)) is expected
