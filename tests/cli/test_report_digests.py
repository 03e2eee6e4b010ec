"""When the digests of a saved report are its own: the digest of a log is that of its ranges, which cover its offsets."""

import pytest
from msgspec.structs import replace

from kaudit.cli.comparison import _is_consistent
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The digest of a log of offsets 0..4."""
    log = Log()
    for sequence in range(5):
        log.append(data(7, 0, sequence))
    path = tmp_path_factory.mktemp("logs")
    log.write(path / "orders-0")
    digests = local.scan(ScanOptions([str(path)], digests=True), SilentProgress()).digests
    assert digests is not None
    (entry,) = digests.partitions
    return entry


def test_a_digest_as_it_was_written(judged):
    assert (judged.start_offset, judged.end_offset) == (0, 5)
    assert _is_consistent(judged)


def test_ranges_cover_the_offsets_to_the_last(judged):
    end = judged.ranges.end_offset
    assert _is_consistent(replace(judged, end_offset=end))
    assert not _is_consistent(replace(judged, end_offset=end + 1))
    later = replace(judged.ranges, first_offset=judged.ranges.width)
    assert not _is_consistent(replace(judged, ranges=later))


def test_another_digest_is_not_that_of_the_ranges(judged):
    other = "0" * len(judged.digest)
    assert not _is_consistent(replace(judged, digest=other))
    assert not _is_consistent(replace(judged, digest=None))


def test_offsets_do_not_go_back(judged):
    assert _is_consistent(replace(judged, start_offset=5))
    assert not _is_consistent(replace(judged, start_offset=6))


def test_without_ranges_there_is_no_digest_and_no_offset(judged):
    bare = replace(judged, ranges=None, digest=None)
    assert _is_consistent(replace(bare, start_offset=5))
    assert not _is_consistent(bare)
    assert not _is_consistent(replace(judged, ranges=None, start_offset=5))
    assert not _is_consistent(replace(bare, start_offset=6))
