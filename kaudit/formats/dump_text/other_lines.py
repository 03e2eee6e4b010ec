"""Lines of kafka-dump-log that are no rows of pairs: headers of files, and what the tool says beside the rows."""

import re
from typing import Final

from kaudit.formats.dump_text.rows import DumpFile, DumpNote, DumpRow, DumpStart, NoteKind
from kaudit.model.limits import DUMP_LINE_BYTES

MAX_LINE_BYTES: Final = DUMP_LINE_BYTES
"""Longest line, and longest record over several lines, that is held; what is longer becomes a note."""
_MAX_DIGITS: Final = 19
_MAX_INT64: Final = 2**63 - 1
FILE_START: Final = b"Dumping "
OFFSET_STARTS: Final = (b"Log starting offset: ", b"Starting offset: ")
_INVALID_BYTES: Final = re.compile(rb"Found ([0-9]{1,18}) invalid bytes at the end of .*")
_NOTE_STARTS: Final = (
    (b"Non-consecutive offsets in", NoteKind.NON_CONSECUTIVE),
    (b"Mismatches in", NoteKind.MISMATCH),
    (b"Found timestamp mismatch in", NoteKind.MISMATCH),
    (b"Found out of order timestamp in", NoteKind.MISMATCH),
    (b"Exception in thread", NoteKind.OTHER),
)
_NOTE_PAIR: Final = re.compile(rb"  (?:-?[0-9]+ is followed by -?[0-9]+|Index (?:offset|timestamp): .*)")
_SANITY_PASSED: Final = b" passed sanity check."


def other_row(line: bytes, number: int) -> DumpRow | None:
    """Return what a line without pairs of names and values says; None if it is none of the tool's."""
    if line.startswith(FILE_START):
        return DumpFile(number, line[len(FILE_START) :].rstrip(b"\r").decode("utf-8", "surrogateescape"))
    for start in OFFSET_STARTS:
        digits = line[len(start) :].rstrip(b"\r")
        if line.startswith(start) and digits.isdigit() and len(digits) <= _MAX_DIGITS and int(digits) <= _MAX_INT64:
            return DumpStart(number, int(digits))
    if found := _INVALID_BYTES.fullmatch(line):
        return DumpNote(number, NoteKind.INVALID_BYTES, line.decode("utf-8", "replace"), int(found[1]))
    if line.endswith(_SANITY_PASSED):
        return DumpNote(number, NoteKind.SANITY_PASSED, line.decode("utf-8", "replace"), None)
    for start, kind in _NOTE_STARTS:
        if line.startswith(start):
            return DumpNote(number, kind, line.decode("utf-8", "replace"), None)
    return None


def note_of(line: bytes, number: int) -> DumpNote:
    """Return a line that is nothing else as a note."""
    if len(line) > MAX_LINE_BYTES:
        return DumpNote(number, NoteKind.TOO_LONG, line[:200].decode("utf-8", "replace"), None)
    kind = NoteKind.NON_CONSECUTIVE if _NOTE_PAIR.fullmatch(line) else NoteKind.OTHER
    return DumpNote(number, kind, line.decode("utf-8", "replace"), None)
