"""Records that a client without idempotence put into new batches before it sent them again."""

import struct

import pytest

import kaudit
from kaudit.audits.repeats import records_again, regrouped
from kaudit.model.log_rows import NonIdempotentBatch
from kaudit.model.producer_patterns import RepeatedBatch
from kaudit.source.layout import PartitionDirectory, SegmentFile
from tests.logs import Batch, record, sealed_records

TIME = 1_700_000_000_000


def written(tmp_path, *batches, attributes=0):
    """Write batches, each the numbers of its records; a record has its number as value and time."""
    content, offset = b"", 0
    for numbers in batches:
        values = [b"%d" % abs(number) for number in numbers]
        batch = Batch(count=len(numbers), base_offset=offset, timestamp=TIME + numbers[0], attributes=attributes)
        records = [
            _timed(index, value, number - numbers[0])
            for index, (value, number) in enumerate(zip(values, numbers, strict=True))
        ]
        content += sealed_records(batch, records)
        offset += len(numbers)
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(content)
    return directory


def _timed(index, value, later):
    """A record that is stamped `later` ms, 0 to 63, than its batch."""
    plain = bytearray(record(index, None, value))
    plain[2:3] = struct.pack("B", 2 * later)  # the length and the attributes are a byte each
    return bytes(plain)


def copies(directory):
    found = [finding for finding in kaudit.scan([directory]).findings if finding.code == "KA702"]
    return [
        (finding.offset, finding.last_offset, finding.evidence["copies"], finding.impact.records_duplicated)
        for finding in found
    ]


WHOLE = ([0, 1], [0, 1])
"""A batch and its copy, which show that the client sends again."""


def test_records_in_batches_of_other_sizes_are_counted_beside_whole_copies(tmp_path):
    directory = written(tmp_path, *WHOLE, [10, 11, 12], [13, 14], [11, 12, 13], [14, 20], [21])
    assert copies(directory) == [(2, 3, [[0, 2]], 2), (9, 12, [[5, 9]], 4)]


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param(([10, 11, 12], [13, 14], [11, 12, 13], [14, 20]), id="no whole copy"),
        pytest.param(([10, 11, 12], [12, 20]), id="one alone"),
    ],
)
def test_without_evidence_nothing_is_counted(tmp_path, batches):
    whole = () if len(batches) == 4 else WHOLE
    found = copies(written(tmp_path, *whole, *batches))
    assert [offset for offset, *_ in found] == [2] * (len(whole) // 2)


def test_other_times_are_other_records_and_what_recurs_is_no_copy(tmp_path, monkeypatch):
    directory = written(tmp_path, *WHOLE, [10, 11, 12], [11, 12, 13])
    assert len(copies(directory)) == 2
    monkeypatch.setattr(regrouped, "_MOST_TIMES", 0)
    assert len(copies(directory)) == 1


@pytest.mark.parametrize(
    ("log_start", "regrouped_copies"), [(4, [(9, 12, [[5, 9]], 4)]), (7, [(11, 12, [[7, 11]], 2)]), (8, [])]
)
def test_of_what_was_deleted_there_are_no_copies_though_its_segment_is_still_there(
    tmp_path, log_start, regrouped_copies
):
    repeat, after = ([0, 1], [10, 11, 12], [13, 14], [11, 12, 13], [14, 20]), ([30], [30])
    directory = written(tmp_path, [0, 1], *repeat, *after)
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {log_start}\n")
    found = [finding for finding in copies(directory) if finding[0] != 15]
    assert found == regrouped_copies


def bounds(directory):
    found = [finding for finding in kaudit.scan([directory]).findings if finding.code == "KA702"]
    each = [(finding.impact.records_duplicated, finding.impact.records_duplicated_at_most) for finding in found]
    return [sum(least for least, _ in each), None if None in dict(each).values() else sum(most for _, most in each)]


@pytest.mark.parametrize(
    ("batches", "most"),
    [
        pytest.param(([10, 11, 12], [13]), 2, id="nothing else"),
        pytest.param(([10, 11, 12], [12, 20], [10, 30]), 4, id="two records that may be chance"),
        pytest.param(([10, 11, 12], [11, 12, 13]), 4, id="regrouped"),
        pytest.param(([30, 31], [-31, -30]), 2, id="the same at other times"),
    ],
)
def test_there_are_no_more_repeats_than_records_that_equal_earlier_ones(tmp_path, batches, most):
    found = bounds(written(tmp_path, *WHOLE, *batches))
    assert found[1] == most
    assert 2 <= found[0] <= most


def test_where_a_batch_is_there_again_under_other_times_records_are_counted_whatever_their_times(tmp_path):
    directory = written(tmp_path, [-10], [-20], *WHOLE, [10], [20])
    assert bounds(directory) == [4, 4]


@pytest.mark.parametrize(("limit", "value"), [("MOST_RECORDS", 8), ("MOST_BYTES", 200)])
def test_what_lies_beyond_a_limit_is_not_counted_and_there_is_no_upper_bound(tmp_path, monkeypatch, limit, value):
    directory = written(tmp_path, *WHOLE, [10, 11, 12], [11, 12, 13])
    assert (len(copies(directory)), bounds(directory)) == (2, [4, 4])
    monkeypatch.setattr(records_again, limit, value)
    assert (len(copies(directory)), bounds(directory)) == (1, [2, None])


def test_of_a_partition_too_large_to_be_read_what_lies_around_copies_is_read(tmp_path, monkeypatch):
    directory = written(tmp_path, *WHOLE, [10, 11, 12], [11, 12, 13])
    monkeypatch.setattr(records_again.RecordsAgain, "fits", lambda _: False)
    assert (len(copies(directory)), bounds(directory)) == (2, [4, None])
    monkeypatch.setattr(regrouped, "AROUND_BYTES", 0)
    assert (len(copies(directory)), bounds(directory)) == (1, [2, None])


def test_a_batch_that_cannot_be_decoded_leaves_no_upper_bound(tmp_path):
    directory = written(tmp_path, *WHOLE)
    log = directory / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + sealed_records(Batch(count=2, base_offset=4, timestamp=TIME), [b"\x05abc"]))
    assert bounds(directory) == [2, None]


def test_of_a_segment_that_is_gone_nothing_is_counted():
    def gone(_):
        raise OSError("gone")

    first = NonIdempotentBatch(0, 0, 1, 0, 0, 80, 2, TIME, TIME, 0, 0, False)
    repeat = RepeatedBatch(first, first._replace(ordinal=1, base_offset=2, last_offset=3, position=80), 1)
    segment = SegmentFile("/d/orders-0/00000000000000000000.log", "00000000000000000000.log", 0, 160, 0)
    directory = PartitionDirectory("orders", 0, "d", "/d", "/d/orders-0", "orders-0", (segment,))
    assert regrouped.regrouped_records([repeat], directory, gone) == ([], None)
