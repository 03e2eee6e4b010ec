"""What of a log could not be read, reported once, and apart from it what retention removed meanwhile."""

import pytest

from kaudit.reading.unread_segments import Failure, ShrunkError, UnreadSegments, failure, require_whole
from kaudit.source.layout import SegmentFile, Unreadable
from kaudit.source.schemes import SegmentRemovedError
from tests.memory import Memory


def segment(base, size=100):
    return SegmentFile(f"/d/{base}.log", f"{base}.log", base, size, 0)


def collected(*failures):
    unread = UnreadSegments([segment(0), segment(50), segment(70, size=0)])
    for failed in failures:
        unread.add(failed)
    return unread


def names(entries):
    return [entry.path for entry in entries]


def test_nothing_failed():
    unread = collected()
    assert (bool(unread), unread.unreadable, unread.removed) == (False, [], [])


def test_a_file_that_cannot_be_read_twice_is_reported_once_with_the_first_reason():
    unread = collected(Failure("a", "first", vanished=True), Failure("a", "second"), Failure("b", "third"))
    assert unread.unreadable == [Unreadable("a", "first", True), Unreadable("b", "third", False)]
    assert (bool(unread), unread.removed) == (True, [])


@pytest.mark.parametrize(("log_start", "removed"), [(50, True), (0, True), (60, False), (70, False), (None, False)])
def test_retention_explains_what_lies_before_a_segment_with_bytes_that_is_read(log_start, removed):
    unread = collected(Failure("a", "gone", vanished=True, log_start=log_start))
    assert (names(unread.removed), names(unread.unreadable)) == ((["a"], []) if removed else ([], ["a"]))
    assert unread


def test_what_cannot_be_read_is_not_what_retention_removed_though_it_did_that_too():
    unread = collected(Failure("a", "gone", log_start=50), Failure("b", "gone", log_start=50), Failure("a", "denied"))
    assert (names(unread.removed), names(unread.unreadable)) == (["b"], ["a"])


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(0, 9)], ["t offsets 0..9"]),
        ([(0, 9), (10, 19)], ["t offsets 0..19"]),
        ([(0, 9), (5, 19)], ["t offsets 0..19"]),
        ([(0, 9), (11, 19)], ["t offsets 0..9", "t offsets 11..19"]),
        ([(0, 9), (11, 19), (20, 20)], ["t offsets 0..9", "t offsets 11..20"]),
    ],
)
def test_ranges_of_offsets_that_go_on_are_one(ranges, expected):
    unread = collected(*(Failure("t", "timed out", offsets=offsets) for offsets in ranges))
    assert names(unread.unreadable) == expected
    assert unread
    assert {entry.reason for entry in unread.unreadable} == {"timed out"}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError(13, "Permission denied"), Failure("a", "Permission denied")),
        (FileNotFoundError(2, "No such file or directory"), Failure("a", "No such file or directory", vanished=True)),
        (OSError(), Failure("a", "OSError")),
        (SegmentRemovedError("a", 50), None),
    ],
)
def test_why_a_file_could_not_be_read(error, expected):
    found = failure("a", error)
    if expected is None:
        assert (found.vanished, found.log_start) == (True, 50)
    else:
        assert found == expected


def test_a_file_that_has_shrunk_was_not_read_whole():
    require_whole(segment(0), Memory(bytes(100)))
    require_whole(segment(0), Memory(bytes(101)))
    with pytest.raises(ShrunkError, match="1 of its 100 bytes are gone") as caught:
        require_whole(segment(0), Memory(bytes(99)))
    assert failure("a", caught.value).vanished
