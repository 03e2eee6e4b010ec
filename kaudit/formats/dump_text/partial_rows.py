"""Lines of kafka-dump-log that end too early: what stands before the cut of one, and the pieces of one that was wrapped.

A terminal cuts a line at its width (`less -S`, a copied screen), or goes on in the next line; mail programs wrap at blanks.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from kaudit.formats.dump_text.layout import (
    KNOWN_NAMES,
    ROW_STARTS,
    TABLES,
    TAIL_NAMES,
    TIMESTAMP_TYPES,
    learn,
    pairs_of,
)
from kaudit.formats.dump_text.other_lines import FILE_START, OFFSET_STARTS
from kaudit.formats.dump_text.rows import DumpBatch, DumpCut, DumpDataRow, DumpOffsetIndexEntry, DumpRecord
from kaudit.formats.plain_text.forms import PLAIN, form_of, plain_block

_ROW: Final = re.compile(
    rb"(?P<batch>baseOffset: -?[0-9])|\| offset: -?[0-9]|offset: [0-9]+ position: [0-9]+ [A-Za-z]"
).match
ROW_START: Final = re.compile(
    rb"baseOffset: -?[0-9]+(?=[ \r]|$)|\| offset: [0-9]+(?=[ \r]|$)|(?<![\w.:])offset: [0-9]+ position: [0-9]+ [A-Zi]"
    rb"|producerId: [0-9]+ producerEpoch: -?[0-9]+ coordinatorEpoch: |Dumping [^ ]|(?:Log s|S)tarting offset: [0-9]"
)
"""What the tool's lines begin with, wherever it stands in a line."""
_ELLIPSIS: Final = re.compile(rb"(?: ?\.\.\.| ?\xe2\x80\xa6|[>$+\\])[ \r]*$")
"""What terminals, editors and people put where they cut a line."""
_NAME: Final = re.compile(rb"[a-zA-Z]+:").match
_LAST_OF_BATCH: Final = frozenset({"crc", "is_valid"})
"""Fields that every release prints of a batch, near the end of its line."""
_FIELDS_OF_INDEX: Final = 2
_SHOWN: Final = 200


def begins_row(line: bytes) -> bool:
    """Return whether a line begins as a batch's or a record's does; it may end too early."""
    return _ROW(line) is not None


def is_whole(row: object) -> bool:
    """Return whether a row has the fields that come last in its line, whatever the release: none of them was cut off."""
    if isinstance(row, DumpBatch):
        return row.fields >= _LAST_OF_BATCH
    if isinstance(row, DumpOffsetIndexEntry):
        return len(row.fields) == _FIELDS_OF_INDEX
    if isinstance(row, DumpRecord) and "position" in row.fields and (row.magic or 0) > 1:
        return row.header_keys is not None  # 0.11 to 1.1 print the producer between magic and header keys
    return True


def expects_batch(line: bytes) -> bool:
    """Return whether the line of a record ends before the fields of its batch, which 2.4 to 2.8 print in it (`baseOffset: ...`)."""
    return (
        line.startswith(b"| ")
        and b" isValid: " in line
        and b" baseOffset: " not in line
        and b" headerKeys: " not in line
    )


def cut_row(line: bytes, number: int) -> DumpCut | None:
    """Read what stands before the cut of a line; None if it does not read as a batch's or a record's that was cut.

    The last value is not taken: digits may be missing.
    """
    begun = _ROW(line)
    if begun is None:
        return None
    text = _ELLIPSIS.sub(b"", line)
    pairs = pairs_of(text)
    names = {name for name, _, _ in pairs}
    is_batch = begun["batch"] is not None or (line.startswith(b"offset") and b"size" in names)
    table = TABLES[DumpBatch if is_batch else DumpRecord]
    fields: dict[str, Any] = {}
    for name, value, end in pairs:
        if end == len(text) or name not in table:
            continue
        field, how = table[name]
        matched = re.fullmatch(how.pattern, value)
        if matched is None:
            return None
        try:
            fields.setdefault(field, None if matched[1] is None else how.read(matched[1]))
        except OverflowError:
            return None
        if name in TIMESTAMP_TYPES:
            fields["timestamp_type"] = name.decode()
    rest = text[pairs[-1][2] if pairs else 0 :].strip(b" \r")
    # free text: nothing that begins like this is printed of a batch, or of a record before its own text
    if (
        rest
        and not any(name.startswith(rest) for name in KNOWN_NAMES)
        and (is_batch or not rest.startswith(TAIL_NAMES))
    ):
        return None
    return DumpCut(number, DumpBatch if is_batch else DumpRecord, fields, line[:_SHOWN].decode("utf-8", "replace"))


def joined(pieces: Sequence[bytes]) -> bytes:
    """Put the pieces of a wrapped line together; where the break took the blank between two words, it is put back."""
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += b" " + piece if _lost_blank(whole, piece) else piece
    return whole


def _lost_blank(left: bytes, right: bytes) -> bool:
    """A blank follows each name, and each value that a name follows."""
    if left.endswith(b" ") or right.startswith(b" "):
        return False
    *_, before, last = [b"", b"", *left[-200:].split(b" ")]
    if last.endswith(b":") or last == b"|":
        return True
    name = _NAME(right)
    return before.endswith(b":") and name is not None and name[0] in KNOWN_NAMES


def says_more(row: DumpDataRow, than: DumpBatch | DumpRecord) -> bool:
    """Return whether a row has a field that another reading of its beginning lacks, or has differently."""
    if not isinstance(row, DumpRecord) or not isinstance(than, DumpRecord):
        return row[:-1] != than[:-1]
    tail = ("end_marker", "control", "key", "payload")
    more = row.fields > than.fields or (than.header_keys is None and row.header_keys is not None)
    return more or any(getattr(row, field) != getattr(than, field) for field in tail)


def fits_sizes(row: DumpDataRow) -> bool:
    """Return whether the text of a record is as long as its sizes say."""
    return (
        isinstance(row, DumpRecord)
        and (row.key is None or len(row.key) == row.key_size)
        and (row.payload is None or len(row.payload) == row.value_size)
    )


_PROBE_BYTES: Final = 1 << 16
_PROBE_LINES: Final = 20


def looks_like_dump(data: bytes) -> bool:
    """Return whether a file's first 20 lines have a row or a `Dumping` header of kafka-dump-log, in any form (`form_of`)."""
    form = form_of(data, ROW_START)
    if form != PLAIN:
        lines = plain_block(data[form.mark : _PROBE_BYTES], form).split(b"\n", _PROBE_LINES)
        return any(map(begins_row, lines[:_PROBE_LINES]))
    lines = data[:_PROBE_BYTES].split(b"\n", _PROBE_LINES)[:_PROBE_LINES]
    return any(
        line.startswith((FILE_START, *OFFSET_STARTS)) or (line.startswith(ROW_STARTS) and learn(line) is not None)
        for line in lines
    )
