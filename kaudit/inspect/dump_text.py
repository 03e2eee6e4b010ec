"""Text of kafka-dump-log as the same rows as the files it was made from; what a text does not print is None."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from kaudit.formats.dump_text.partial_rows import ROW_START
from kaudit.formats.dump_text.rows import (
    DumpAbortedTransaction,
    DumpBatch,
    DumpCut,
    DumpFile,
    DumpNote,
    DumpOffsetIndexEntry,
    DumpRecord,
    DumpSnapshotEntry,
    DumpStart,
    DumpTimeIndexEntry,
    NoteKind,
)
from kaudit.formats.dump_text.text import read_dump
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.control import ControlType
from kaudit.inspect.internal_topics import dump_content_row, printed_control_content
from kaudit.inspect.rows import BytesFormatter, LogFile, Row, fields_of, identify_by_name, null
from kaudit.inspect.side_files import aborted_fields, snapshot_fields
from kaudit.source.file_kinds import SEGMENT
from kaudit.source.inspect_columns import INSPECT_TABLES
from kaudit.source.layout import TextRange
from kaudit.source.plain_text import plain_text
from kaudit.source.schemes import filesystem
from kaudit.source.text import SegmentText
from kaudit.source.uri import Uri

_NULL_SIZE = -1
_CONTROL_TYPE = re.compile(r"controlType: (\w+)\((-?[0-9]{1,5})\)")
_CONTROL_NAMES = {
    "LeaderChange": ControlType.LEADER_CHANGE,
    "SnapshotHeader": ControlType.SNAPSHOT_HEADER,
    "SnapshotFooter": ControlType.SNAPSHOT_FOOTER,
    "KRaftVersion": ControlType.KRAFT_VERSION,
    "KRaftVoters": ControlType.KRAFT_VOTERS,
}
_PRINTED = ("position", "size", "last_offset", "magic", "crc", "codec", "delete_horizon_ms")
_PRINTED_OR_NULL = (
    "leader_epoch", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "last_sequence",
)  # fmt: skip
_DAMAGE = (NoteKind.INVALID_BYTES, NoteKind.NON_CONSECUTIVE, NoteKind.MISMATCH, NoteKind.TOO_LONG, NoteKind.DOUBTFUL)


def dump_rows(file: LogFile, texts: BytesFormatter, *, records: bool) -> Iterator[Row]:
    """Yield the rows of a dump's text. Raises OSError if it cannot be read.

    Records are shown if asked for, and where the text has no batches to show (a deep dump of 0.11 or 1.x).
    """
    with closing(filesystem(file.path).open(file.path)) as source:
        plain, form = plain_text(source, ROW_START)
        text = SegmentText(source, TextRange(0, plain.size(), form=form))
        yield from _Dump(file, texts, records=records).rows(text.pieces())


class _Dump:
    """Follows the files that a text contains, one after the other."""

    def __init__(self, file: LogFile, texts: BytesFormatter, *, records: bool) -> None:
        self._given = file
        self._place = replace(file, kind=SEGMENT)
        self._texts = texts
        self._records = records
        self._batch: DumpBatch | None = None

    def rows(self, chunks: Iterable[bytes]) -> Iterator[Row]:
        """Yield the rows in the order of the text."""
        for line in read_dump(chunks):
            match line:
                case DumpFile():
                    named = identify_by_name(Uri("", "", line.path))
                    # names the user gave win over those in the text
                    self._place = named.named(self._given.topic, self._given.partition)
                    self._batch = None
                case DumpStart():
                    if self._place.base_offset is None:
                        self._place = replace(self._place, base_offset=line.offset)
                case DumpBatch():
                    self._batch = line
                    yield batch_row(line, self._place)
                case DumpRecord():
                    if self._records or self._batch is None:
                        yield self._record(line)
                case DumpCut() | DumpNote():
                    yield from self._not_whole(line)
                case _:
                    yield self._row(_KINDS[type(line)][0], line.line) | _KINDS[type(line)][1](line, self._place)

    def _row(self, kind: str, line: int) -> Row:
        return self._place.side_row(kind, line=line)

    def _not_whole(self, line: DumpCut | DumpNote) -> Iterator[Row]:
        """What a line says that was cut off, and that it was; what the tool says of damage."""
        if isinstance(line, DumpCut) and line.kind is DumpBatch:
            yield _cut_row(line, self._place)
        if isinstance(line, DumpCut) or line.kind in _DAMAGE:
            kind = "cut" if isinstance(line, DumpCut) else line.kind.value
            yield self._row("damage", line.line) | {"kind": kind, "detail": line.text}

    def _record(self, line: DumpRecord) -> Row:
        batch = self._batch
        inside = batch is not None and line.offset <= batch.last_offset

        def known(name: str) -> Any:  # noqa: ANN401 - whatever type the field has
            value = getattr(line, name)
            return getattr(batch, name) if value is None and inside else value

        row = self._row("record", line.line)
        del row["file"]
        if line.end_marker is not None:
            row |= {"row": "marker", "control_type": line.end_marker, "coordinator_epoch": line.coordinator_epoch}
        elif line.control is not None:
            row |= {"row": "control"} | _control(line.control)
        row |= {
            "position": known("position"),
            "offset": line.offset,
            "timestamp": null(line.timestamp),
            "timestamp_type": _time_type(line.timestamp_type),
            **{name: null(known(name)) for name in ("producer_id", "producer_epoch", "leader_epoch")},
            "sequence": null(line.sequence),
            "is_transactional": known("is_transactional"),
            "key": self._shown(line.key, line.key_size),
            "value": self._shown(line.payload, line.value_size),
        }
        if line.end_marker is not None or line.control is not None:
            return row
        return dump_content_row(row, line.key, None if line.value_size == _NULL_SIZE else line.payload or b"")

    def _shown(self, printed: bytes | None, size: int) -> dict[str, object] | None:
        """Show what the text shows; `size` is the real one, and without --print-data-log there is no text."""
        if size == -1:
            return None
        if printed is None:
            return {"text": None, "encoding": None, "size": size, "truncated": False}
        shown = self._texts.show(printed)
        assert shown is not None
        return shown | {"size": size}


def _control(printed: str) -> Row:
    """`controlType: NAME(id)` as 3.9 and before print it, else the record's own name and fields as JSON."""
    if found := _CONTROL_TYPE.match(printed):
        return {"control_type": found[1], "type_id": int(found[2]), "control": None}
    name, _, fields = printed.partition(": ")
    known = _CONTROL_NAMES.get(name)
    if known is None:
        return {"control_type": name, "type_id": None, "control": fields}
    named: Row = {"control_type": known.name, "type_id": known.value, "control": fields}
    return named | printed_control_content(known.value, fields)


def batch_row(line: DumpBatch, file: LogFile) -> Row:
    """Return the row of one batch line, with every column of `batch`."""
    legacy = line.magic < CURRENT_MAGIC
    base: int | None = line.base_offset
    count = line.record_count
    if legacy:
        plain = line.codec == "none"
        base, count = (line.last_offset, 1) if plain else (None, None)
    return (
        dict.fromkeys(INSPECT_TABLES["batch"])
        | file.row("batch", base_offset=base, record_count=count, crc_valid=line.is_valid)
        | fields_of(line, _PRINTED, or_null=_PRINTED_OR_NULL)
        | {
            "last_offset_delta": None if base is None else line.last_offset - base,
            "timestamp_type": _time_type(line.timestamp_type),
            "is_transactional": False if legacy else line.is_transactional,
            "is_control": False if legacy else line.is_control,
        }
    )


def _cut_row(line: DumpCut, file: LogFile) -> Row:
    """Return the row of a batch's line that was cut: what does not stand before the cut is None."""
    fields = {name: line.known.get(name) for name in (*_PRINTED, *_PRINTED_OR_NULL)}
    row = file.row("batch", base_offset=line.known.get("base_offset"), record_count=line.known.get("record_count"))
    more = {name: line.known.get(name) for name in ("is_transactional", "is_control", "timestamp_type")}
    return dict.fromkeys(INSPECT_TABLES["batch"]) | row | {name: null(value) for name, value in fields.items()} | more


def _time_type(printed: str | None) -> str | None:
    return None if printed == "NoTimestampType" else printed


def _snapshot(line: DumpSnapshotEntry, file: LogFile) -> Row:
    time = line.last_timestamp if line.last_timestamp is not None else line.timestamp
    return snapshot_fields(line, file) | {"timestamp": null(time)}


def _aborted(line: DumpAbortedTransaction, _place: LogFile) -> Row:
    return aborted_fields(line)


def _index(line: DumpOffsetIndexEntry, _place: LogFile) -> Row:
    return {"offset": line.offset, "log_position": line.position}


def _timeindex(line: DumpTimeIndexEntry, _place: LogFile) -> Row:
    return {"timestamp": null(line.timestamp), "offset": line.offset}


_KINDS: dict[type, tuple[str, Callable[..., Row]]] = {
    DumpSnapshotEntry: ("snapshot", _snapshot),
    DumpAbortedTransaction: ("txnindex", _aborted),
    DumpOffsetIndexEntry: ("index", _index),
    DumpTimeIndexEntry: ("timeindex", _timeindex),
}
