"""When chunks stand for a segment, and what of a partition a filter left out."""

import pytest
from msgspec.structs import replace

from kaudit.engines.ranges import read_most
from kaudit.reading.unread_segments import Failure
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.schemes import open_segment
from kaudit.spark.given_rows import _covers, _distinct, _has_batches
from tests.logs import Log, data

SIZE = len(data(7, 0, 0).encode())


def job_of(directory):
    options = ScanOptions([str(directory)])
    (job,) = plan_jobs(options, find_input(options), all_needs)
    return job


@pytest.fixture
def job(tmp_path):
    log = Log()
    for sequence in range(4):
        log.append(data(7, 0, sequence))
    log.write(tmp_path / "orders-0")
    return job_of(tmp_path)


def chunk(job, start, stop):
    """The chunk of some of the four batches."""
    (spec,) = job.in_pieces
    (rows,) = read_most(replace(spec, start=start * SIZE, stop=stop * SIZE, expected_offset=None))
    return rows


def test_chunks_side_by_side_from_the_first_byte_to_the_last_cover_a_segment(job):
    (spec,) = job.in_pieces
    whole, first, second, third = (chunk(job, *ends) for ends in ((0, 4), (0, 1), (1, 3), (3, 4)))
    assert _covers(spec, [whole])
    assert _covers(spec, [first, second, third])
    for lacking in (
        [],
        [first],
        [first, second],
        [second, third],
        [first, third],
        [third, first, second],
        [whole, third],
    ):
        assert not _covers(spec, lacking)


def test_a_chunk_without_a_stop_or_read_otherwise_covers_nothing(job):
    (spec,) = job.in_pieces
    whole = chunk(job, 0, 4)
    assert not _covers(spec, [replace(whole, stop=-1)])
    assert not _covers(replace(spec, decode=not spec.decode), [whole])


def test_what_could_not_be_read_is_an_outcome_too(job):
    (spec,) = job.in_pieces
    failure = Failure(spec.file.path, "Permission denied")
    assert _covers(spec, [failure])
    assert _covers(spec, [chunk(job, 0, 1), failure])


def test_of_chunks_that_came_twice_one_is_left_in_the_order_of_the_file(job):
    first, second = chunk(job, 0, 1), chunk(job, 1, 4)
    again = replace(first)
    failures = [Failure("a", "x"), Failure("b", "y")]
    found = _distinct(iter([failures[0], second, first, again, failures[1], second]))
    assert [id(each) for each in found] == [id(each) for each in (first, second, *failures)]


def test_a_partition_has_batches_where_one_is_valid(job, tmp_path):
    assert _has_batches(job.plan, open_segment)
    (segment,) = (tmp_path / "orders-0").glob("*.log")
    content = segment.read_bytes()
    segment.write_bytes(b"\xff" * (3 * SIZE) + content[3 * SIZE :])
    assert _has_batches(job.plan, open_segment)
    segment.write_bytes(b"\xff" * len(content))
    assert not _has_batches(job.plan, open_segment)
    segment.unlink()
    assert not _has_batches(job.plan, open_segment)
    assert not _has_batches([], open_segment)
