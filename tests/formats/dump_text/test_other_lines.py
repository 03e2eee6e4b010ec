"""Lines of kafka-dump-log that are no rows, as Kafka's DumpLogSegments prints them."""

import pytest

from kaudit.formats.dump_text.other_lines import MAX_LINE_BYTES, note_of, other_row
from kaudit.formats.dump_text.rows import DumpFile, DumpNote, DumpStart, NoteKind


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"Dumping /data/a-0/0.log", DumpFile(7, "/data/a-0/0.log")),
        (b"Dumping /data/\xff.log\r", DumpFile(7, "/data/\udcff.log")),
        (b"Log starting offset: 0", DumpStart(7, 0)),
        (b"Starting offset: 12\r", DumpStart(7, 12)),
        (b"Starting offset: 9223372036854775807", DumpStart(7, 2**63 - 1)),
        (b"Starting offset: 9223372036854775808", None),
        (b"Starting offset: 0000000000000000001", DumpStart(7, 1)),
        (b"Starting offset: 00000000000000000001", None),
        (b"Starting offset: -1", None),
        (b"Starting offset: ", None),
        (b"Ended offset: 12", None),
        (b"Found 12 invalid bytes at the end of a.log", (NoteKind.INVALID_BYTES, 12)),
        (b"Found 123456789012345678 invalid bytes at the end of ", (NoteKind.INVALID_BYTES, 123456789012345678)),
        (b"Found 1234567890123456789 invalid bytes at the end of ", None),
        (b"a.index passed sanity check.", (NoteKind.SANITY_PASSED, None)),
        (b"a.index passed sanity check", None),
        (b"Non-consecutive offsets in a.log", (NoteKind.NON_CONSECUTIVE, None)),
        (b"Mismatches in :a.index", (NoteKind.MISMATCH, None)),
        (b"Found timestamp mismatch in :a.timeindex", (NoteKind.MISMATCH, None)),
        (b"Found out of order timestamp in :a.timeindex", (NoteKind.MISMATCH, None)),
        (b'Exception in thread "main" java.io.IOException', (NoteKind.OTHER, None)),
        (b"", None),
        (b"text", None),
    ],
)
def test_what_a_line_says(line, row):
    expected = DumpNote(7, row[0], line.decode("utf-8", "replace"), row[1]) if type(row) is tuple else row
    assert other_row(line, 7) == expected


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"  5 is followed by 7", NoteKind.NON_CONSECUTIVE),
        (b"  -1 is followed by -5", NoteKind.NON_CONSECUTIVE),
        (b"  Index offset: 5, log offset: 6", NoteKind.NON_CONSECUTIVE),
        (b"  Index timestamp: 5, log timestamp: 6", NoteKind.NON_CONSECUTIVE),
        (b" 5 is followed by 7", NoteKind.OTHER),
        (b"anything", NoteKind.OTHER),
    ],
)
def test_other_lines_are_notes(line, kind):
    assert note_of(line, 3) == DumpNote(3, kind, line.decode(), None)


def test_lines_that_are_too_long_are_not_held():
    assert note_of(b"x" * MAX_LINE_BYTES, 3).kind is NoteKind.OTHER
    long = note_of(b"x" * (MAX_LINE_BYTES + 1), 3)
    assert (long.line, long.kind, long.text, long.byte_count) == (3, NoteKind.TOO_LONG, "x" * 200, None)
