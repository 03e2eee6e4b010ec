"""The text of kafka-dump-log in place of a segment: its lines to the batches that the segment's bytes would give.

Positions are those printed, of the segment. What the text leaves out is said (`CoverageGap`, DamageKind.LEFT_OUT): nothing is
taken to be fine because it cannot be seen.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from kaudit.formats.dump_text.columns import DumpBatchColumns
from kaudit.formats.dump_text.rows import DumpBatch, DumpCut, DumpNote, DumpRecord, DumpRow, NoteKind
from kaudit.formats.dump_text.text import read_dump_batches
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER_SIZE
from kaudit.formats.plain_text.facts import has_facts
from kaudit.model.batch import Batches, batches_of, concatenate
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    NO_CONTROL_TYPE,
    NO_COORDINATOR_EPOCH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    UNREPORTED_CONTROL,
)
from kaudit.model.coverage import MAX_EXAMPLES, TextLines, example
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.model.result import CoverageGap
from kaudit.reading.dump_text_columns import attributes_of, columns_of_block, columns_of_rows
from kaudit.source.text import SegmentText

_NOT_KAFKAS = re.compile(
    rb"\W*|[`~]{3,}\w*|\{(?:noformat|code)[^}]*\}|</?(?:pre|code)>"
    rb"|(?:\[?[\w.-]+@[\w.-]+[ :][^\]$#]{0,200}\]?|(?:sh|bash)-[\d.]+|PS [A-Z]:\\[^>]{0,200})? ?[$#%>](?: .*)?",
    re.DOTALL,
).fullmatch
"""What people and programs put around a text: fences, prompts, commands."""
_MARKERS = {"COMMIT": COMMIT_MARKER, "ABORT": ABORT_MARKER}
_MAX_HELD = 1 << 16
_MARKER_KEY_SIZE = 4
"""Bytes of the key of a control record: version and type (ControlRecordType)."""
_ALWAYS = frozenset({CoverageGap.RECORDS})

_NEEDED = frozenset({"base_offset", "last_offset", "base_sequence", "last_sequence", "producer_id", "producer_epoch"})
"""What the audit of a batch takes: a line that is cut before one of these shows no batch."""

DumpTextPart = tuple[Batches, list[LogDamage], frozenset[CoverageGap], TextLines]
_Row = dict[str, int]


def dump_text_batches(source: SegmentText, start: int) -> Iterator[DumpTextPart]:
    """Yield the batches at or after byte `start` of the segment, with what the text says is damaged or leaves out."""
    if not start:
        yield from _read(source, 0, _Text(0, _MAX_HELD, source.lines_before))
        return
    line = source.line_before(start)
    found = False
    for part in _read(source, line, _Text(start, 1)):
        batches = part[0]
        if not found and len(batches) and batches["position"][0] != start:
            break
        found = found or len(batches) > 0
        if found:
            yield part
    if not found:
        yield from _read(source, 0, _Text(start, _MAX_HELD))


def _read(source: SegmentText, line: int, text: "_Text") -> Iterator[DumpTextPart]:
    for row in read_dump_batches(text.counted(source.pieces(line))):
        text.take(row)
        if text.is_full:
            yield text.give()
    text.finish()
    yield text.give()


class _Text:
    """Follows the lines of one segment; hands on `full` batches at first, then more and more at a time."""

    def __init__(self, start: int, full: int, lines_before: int = 0) -> None:
        self._start = start
        self._lines_before = lines_before
        self._full = full
        self._parts: list[Batches] = []
        self._rows: list[_Row] = []
        self._damages: list[LogDamage] = []
        self._gaps: set[CoverageGap] = set(_ALWAYS)
        self._held = 0
        self._lines = self._other = 0
        self._unknown: list[str] = []
        self._unknown_facts = self._unknown_others = 0
        # A batch waits for the records printed below it: they say what a marker is.
        self._last: _Row | None = None
        self._next = 0
        self._next_is_known = True
        self._saw_batch = False
        self._stopped = False

    @property
    def is_full(self) -> bool:
        """Return whether there is enough to hand on."""
        return self._held >= self._full

    def take(self, row: DumpRow | DumpBatchColumns) -> None:
        """Take the next line, or block of lines."""
        match row:
            case DumpBatchColumns():
                self._settle()
                self._take_columns(row)
            case DumpBatch():
                self._settle()
                self._saw_batch = True
                self._follow(row.position, row.size or 0)
                if row.is_valid is False:
                    self._damages.append(_corrupt(row))
                else:
                    self._last = self._batch(row)
            case DumpRecord() if self._saw_batch:
                if self._last is not None:
                    _take_marker(self._last, row)
            case DumpRecord():
                self._take_record(row)
            case DumpCut():
                self._take_cut(row)
            case DumpNote():
                self._take_note(row)

    def counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Count the lines of the text while it is read."""
        piece = b"\n"
        for piece in pieces:
            self._lines += piece.count(b"\n")
            yield piece
        self._lines += not piece.endswith(b"\n")

    def finish(self) -> None:
        """The text has ended."""
        self._settle()

    def give(self) -> DumpTextPart:
        """Hand on what is complete; a batch that waits for its records stays."""
        self._flush()
        batches = concatenate(self._parts)
        if self._start:
            batches = batches[batches["position"] >= self._start]
        damages = [damage for damage in self._damages if damage.position >= self._start]
        unknown = self._unknown_facts + self._unknown_others
        lines = TextLines(self._lines, self._other, unknown, self._unknown_facts, tuple(self._unknown))
        part: DumpTextPart = batches, damages, frozenset(self._gaps), lines
        self._parts, self._damages, self._held = [], [], 0
        self._lines = self._other = self._unknown_facts = self._unknown_others = 0
        self._unknown = []
        self._full = min(self._full * 4, _MAX_HELD)
        return part

    def _flush(self) -> None:
        if self._rows:
            self._parts.append(columns_of_rows(self._rows))
            self._rows = []

    def _settle(self) -> None:
        """No more records follow of the last batch."""
        if self._last is None:
            return
        if self._last["control_type"] == UNREPORTED_CONTROL and self._last["producer_id"] > NO_PRODUCER_ID:
            self._gaps.add(CoverageGap.MARKERS)
        self._rows.append(self._last)
        self._held += 1
        self._last = None

    def _follow(self, position: int, size: int) -> None:
        """Take note of where a batch lies: the tool prints batch after batch."""
        if position > self._next and self._next_is_known:
            self._pass_over(self._next, position)
        self._next, self._next_is_known = position + size, True

    def _pass_over(self, start: int, stop: int) -> None:
        """Take note of bytes that the text leaves out."""
        detail = f"the text goes from byte {start} to byte {stop}"
        self._damages.append(LogDamage(DamageKind.LEFT_OUT, start, stop, True, detail))

    def _batch(self, row: DumpBatch) -> _Row:
        legacy = row.magic < CURRENT_MAGIC
        base = row.last_offset if row.base_offset is None else row.base_offset
        delta = row.last_offset - base
        count = row.record_count
        if legacy:
            count = 1 if row.codec == "none" else -1
        elif count is None:
            self._gaps.add(CoverageGap.COUNTS)
            count = delta + 1
        producer_id = _known(row.producer_id, NO_PRODUCER_ID)
        sequence = _known(row.base_sequence, NO_SEQUENCE)
        control = row.is_control
        if control is None:
            control = not legacy and _must_be_marker(producer_id, sequence, bool(row.is_transactional))
        max_timestamp = _known(row.max_timestamp, NO_TIMESTAMP)
        return {
            "position": row.position,
            "size": _known(row.size, HEADER_SIZE),
            "base_offset": base,
            "last_offset_delta": _int32(delta),
            "leader_epoch": _known(row.leader_epoch, NO_LEADER_EPOCH),
            "magic": row.magic,
            "crc": _known(row.crc, 0),
            "attributes": attributes_of(
                row.codec, row.timestamp_type, row.is_transactional, control, row.delete_horizon_ms
            ),
            "base_timestamp": max_timestamp if row.delete_horizon_ms is None else row.delete_horizon_ms,
            "max_timestamp": max_timestamp,
            "producer_id": producer_id,
            "producer_epoch": _known(row.producer_epoch, NO_PRODUCER_EPOCH),
            "base_sequence": sequence,
            "record_count": count,
            "control_type": UNREPORTED_CONTROL if control and count else NO_CONTROL_TYPE,
            "coordinator_epoch": NO_COORDINATOR_EPOCH,
        }

    def _take_columns(self, block: DumpBatchColumns) -> None:
        constants = block.constants
        usual = {"is_control", "record_count", "base_offset"} <= block.fields
        if not usual or constants["is_control"] or constants.get("is_valid") is False:
            for row in block.rows():
                self.take(row)
            return
        self._saw_batch = True
        columns = columns_of_block(block)
        positions, ends = columns["position"], columns["position"] + columns["size"]
        before = np.concatenate(([self._next if self._next_is_known else positions[0]], ends[:-1]))
        for index in np.flatnonzero(positions > before).tolist():
            self._pass_over(int(before[index]), int(positions[index]))
        self._next, self._next_is_known = int(ends[-1]), True
        self._flush()
        self._parts.append(batches_of(columns))
        self._held += block.count

    def _take_record(self, row: DumpRecord) -> None:
        """A record of a text without batches: those printed with one position are one batch."""
        self._gaps |= {CoverageGap.BATCHES, CoverageGap.COUNTS}
        position = _known(row.position, 0)
        last = self._last
        if last is not None and last["position"] == position and last["magic"] >= CURRENT_MAGIC:
            last["last_offset_delta"] = _int32(row.offset - last["base_offset"])
            last["record_count"] += 1
            last["max_timestamp"] = last["base_timestamp"] = max(
                last["max_timestamp"], _known(row.timestamp, NO_TIMESTAMP)
            )
            return
        if last is not None and position > last["position"]:
            last["size"] = position - last["position"]
        self._settle()
        self._last = self._batch(
            DumpBatch(
                row.line,
                row.offset,
                row.offset,
                1,
                row.sequence,
                row.sequence,
                row.producer_id,
                row.producer_epoch,
                row.leader_epoch,
                row.is_transactional,
                None,
                None,
                position,
                row.timestamp_type,
                row.timestamp,
                None,
                CURRENT_MAGIC if row.magic is None else row.magic,
                row.codec or "none",
                # never equal to another's: two batches with one CRC are taken for one batch sent twice
                row.offset & 0xFFFFFFFF,
                None,
                row.fields,
            )
        )
        if self._last["magic"] < CURRENT_MAGIC:
            self._last["record_count"] = 1  # the records of a wrapper, each by itself
        _take_marker(self._last, row)

    def _take_cut(self, row: DumpCut) -> None:
        """Take what stands before the cut of a line; the rest is not invented, but for a place between those around it."""
        known = row.known
        if row.kind is DumpRecord:
            is_data = self._last is not None and self._last["control_type"] == NO_CONTROL_TYPE
            is_data = is_data or known.get("key_size", _MARKER_KEY_SIZE) != _MARKER_KEY_SIZE
            if not is_data or not self._saw_batch:
                self._not_understood(row.line, row.text)
            return
        self._settle()
        self._saw_batch = True
        self._not_understood(row.line, row.text)
        if not known.keys() >= _NEEDED:
            detail = f"line {row.line} of the text is cut off: {row.text}"
            start = self._next
            self._next, self._next_is_known = self._next + HEADER_SIZE, False
            self._damages.append(
                LogDamage(
                    DamageKind.LEFT_OUT,
                    start,
                    self._next,
                    True,
                    detail,
                    known.get("base_offset"),
                    known.get("last_offset"),
                    known.get("producer_id"),
                )
            )
            return
        position = known.get("position", self._next)
        self._gaps.add(CoverageGap.POSITIONS)
        fields: dict[str, Any] = {
            "timestamp_type": None,
            "magic": CURRENT_MAGIC,
            "codec": "none",
            # never equal to another's: two batches with one CRC are taken for one batch sent twice
            "crc": known["base_offset"] & 0xFFFFFFFF,
            **known,
            "position": position,
            "line": row.line,
            "fields": frozenset(known),
        }
        self._follow(position, known.get("size", HEADER_SIZE))
        self._next_is_known = "size" in known
        self._last = self._batch(DumpBatch._make(map(fields.get, DumpBatch._fields)))

    def _not_understood(self, line: int, text: str) -> None:
        """Count a line that holds facts, and was not understood."""
        self._unknown_facts += 1
        if len(self._unknown) < MAX_EXAMPLES:
            self._unknown.append(example(self._lines_before + line, text))

    def _take_note(self, note: DumpNote) -> None:
        if note.kind is NoteKind.DOUBTFUL:
            self._not_understood(note.line, note.text)
            return
        self._settle()
        if note.kind is NoteKind.OTHER:
            text = note.text.encode("utf-8", "replace")
            if has_facts(text):
                self._not_understood(note.line, note.text)
            elif not self._saw_batch or _NOT_KAFKAS(text):
                self._other += 1
            else:
                self._unknown_others += 1
            if _NOT_KAFKAS(text):
                return
        if note.kind is NoteKind.INVALID_BYTES:
            size = note.byte_count or 0
            detail = f"kafka-dump-log found {size} bytes that are no whole batch"
            self._damages.append(LogDamage(DamageKind.TORN, self._next, self._next + max(size, 1), False, detail))
        elif note.kind in (NoteKind.OTHER, NoteKind.TOO_LONG) and (self._saw_batch or self._last) and not self._stopped:
            self._stopped = True
            detail = f"line {note.line} of the text is no row: {note.text[:200]}"
            self._damages.append(LogDamage(DamageKind.LEFT_OUT, self._next, self._next + 1, False, detail))


def _take_marker(batch: _Row, record: DumpRecord) -> None:
    if record.end_marker in _MARKERS and batch["control_type"] != NO_CONTROL_TYPE:
        batch["control_type"] = _MARKERS[record.end_marker]
        batch["coordinator_epoch"] = _known(record.coordinator_epoch, NO_COORDINATOR_EPOCH)


def _must_be_marker(producer_id: int, base_sequence: int, is_transactional: bool) -> bool:  # noqa: FBT001
    """A release that does not print isControl prints markers so; data of a producer id always has sequences."""
    return producer_id > NO_PRODUCER_ID and base_sequence == NO_SEQUENCE and is_transactional


def _known(value: int | None, absent: int) -> int:
    return absent if value is None else value


def _int32(value: int) -> int:
    """A delta that fits its field; one that does not contradicts itself, and shows as negative."""
    return value if -(2**31) <= value < 2**31 else -1


def _corrupt(row: DumpBatch) -> LogDamage:
    base = row.last_offset if row.base_offset is None else row.base_offset
    return LogDamage(
        DamageKind.CRC_MISMATCH,
        row.position,
        row.position + max(_known(row.size, HEADER_SIZE), 1),
        True,
        "kafka-dump-log says that the CRC does not match (isvalid: false)",
        base,
        max(row.last_offset, base),
        row.producer_id,
    )
