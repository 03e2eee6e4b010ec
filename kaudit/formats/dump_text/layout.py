"""The grammar of one line of kafka-dump-log: `name: value` pairs, in an order each release changed.

So the order is learned from the text: the first line of a kind is taken apart pair by pair and leaves a compiled pattern
for those that follow. Source of the names: Kafka's DumpLogSegments, 0.11 to 4.2.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from kaudit.formats.dump_text.rows import (
    DumpAbortedTransaction,
    DumpBatch,
    DumpDataRow,
    DumpOffsetIndexEntry,
    DumpRecord,
    DumpSnapshotEntry,
    DumpTimeIndexEntry,
)

ROW_STARTS: Final = (b"baseOffset: ", b"| offset: ", b"offset: ", b"producerId: ", b"version: ", b"timestamp: ")

TIMESTAMP_TYPES: Final = (b"CreateTime", b"LogAppendTime", b"NoTimestampType")
# Where the pairs end: from here on a line is free text.
TAIL_NAMES: Final = (b"headerKeys:", b"key:", b"payload:", b"endTxnMarker:", b"controlType:")

_INT64_LIMIT: Final = 1 << 63
_MAX_PAIRS: Final = 40
_MAX_LAYOUTS: Final = 64
_PAIR: Final = re.compile(rb"(?:^|(?<=\| )| )([A-Za-z]+): (\S+)")
_NUMBER: Final = rb"(-?[0-9]{1,19})"
_SHORT_NUMBER: Final = rb"(-?[0-9]{1,18})"
_BOOLEAN: Final = rb"(true|false)"
_WORD: Final = rb"(\w+)"
_OPTIONAL_NUMBER: Final = rb"(?:(?:OptionalLong|Some)[\[(](-?[0-9]{1,19})[\])]|OptionalLong\.empty|None)"
_NUMBER_OR_NULL: Final = rb"(?:([0-9]{1,19})|null)"


class Value(NamedTuple):
    """Pattern and reader of the value after a name; a group that did not match reads as None."""

    pattern: bytes
    read: Callable[[bytes], Any]


def _number(text: bytes) -> int:
    value = int(text)
    if not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise OverflowError
    return value


def _lower(text: bytes) -> str:
    return text.decode("ascii", "replace").lower()


INTEGER: Final = Value(_NUMBER, _number)
_FLAG: Final = Value(_BOOLEAN, b"true".__eq__)
_CODEC: Final = Value(_WORD, _lower)
OPTIONAL: Final = Value(_OPTIONAL_NUMBER, _number)
_CRC: Final = Value(_NUMBER_OR_NULL, _number)

_Table = dict[bytes, tuple[str, Value]]


def _integers(*names: str) -> _Table:
    """Integers printed under these names; the fields are called the same in snake case."""
    return {name.encode(): (re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name), INTEGER) for name in names}


_COMMON: Final = {
    **_integers("offset", "baseOffset", "lastOffset", "baseSequence", "lastSequence", "producerId", "producerEpoch"),
    **_integers("position", "magic"),
    b"partitionLeaderEpoch": ("leader_epoch", INTEGER),
    b"isTransactional": ("is_transactional", _FLAG),
    b"compresscodec": ("codec", _CODEC),
    b"compressType": ("codec", _CODEC),
    b"crc": ("crc", _CRC),
    b"isvalid": ("is_valid", _FLAG),
    b"isValid": ("is_valid", _FLAG),
}
_BATCH: Final = _COMMON | {
    b"offset": ("last_offset", INTEGER),  # an entry of magic 0 or 1 is printed with its last offset alone
    b"count": ("record_count", INTEGER),
    b"isControl": ("is_control", _FLAG),
    b"deleteHorizonMs": ("delete_horizon_ms", OPTIONAL),
    b"size": ("size", INTEGER),
    **dict.fromkeys(TIMESTAMP_TYPES, ("max_timestamp", INTEGER)),
}
_RECORD: Final = _COMMON | {
    **_integers("keySize", "valueSize", "sequence"),
    b"keysize": ("key_size", INTEGER),
    b"valuesize": ("value_size", INTEGER),
    b"batchSize": ("size", INTEGER),
    **dict.fromkeys(TIMESTAMP_TYPES, ("timestamp", INTEGER)),
}
_SNAPSHOT: Final = {
    **_integers("producerId", "producerEpoch", "coordinatorEpoch"),
    b"currentTxnFirstOffset": ("current_txn_first_offset", OPTIONAL),
    **_integers("lastTimestamp", "firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp"),
}
_ABORTED: Final = _integers("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
_OFFSET_ENTRY: Final = _integers("offset", "position")
_TIME_ENTRY: Final = _integers("timestamp", "offset")
TABLES: Final[dict[type[DumpBatch | DumpRecord], _Table]] = {DumpBatch: _BATCH, DumpRecord: _RECORD}
"""Fields, and patterns of their values, by the names that batches and records are printed with."""
KNOWN_NAMES: Final = frozenset(name + b":" for name in {*_BATCH, *_RECORD, *_SNAPSHOT, *_ABORTED}).union(TAIL_NAMES)

_HEADER_KEYS_START: Final = b" headerKeys: ["
_HEADER_KEYS_END: Final = re.compile(rb"\](?= key: | payload: | endTxnMarker: | controlType: | [A-Z]\w+: \{|$)")
_KEY_START: Final = b" key: "
_PAYLOAD_START: Final = b" payload: "
_END_MARKER_TEXT: Final = re.compile(rb" endTxnMarker: (\w+) coordinatorEpoch: (-?[0-9]{1,10})")
_CONTROL_TEXT: Final = re.compile(rb" (controlType: .*|[A-Z]\w+: \{.*)", re.DOTALL)
# What may follow the pairs of a record; another pair there belongs to another layout.
_RECORD_TAIL: Final = rb"( (?:(?:headerKeys|key|payload|endTxnMarker|controlType): |[A-Z]\w+: \{).*| ?\r?)?"
_USUAL_RECORD_TAIL: Final = rb"(?: headerKeys: \[([^\]]*)\])?(?: key: (.*?))?(?: payload: (.*))?"

# A record of data after its pairs, up to the line feed, where the next line cannot continue its text.
_NEXT_ROW: Final = rb"(?=\n(?:\| offset: |baseOffset: ))"
_DATA_RECORD_TAIL: Final = rb"(?: headerKeys: \[[^\]\n]*+\])?+(?: key: [^\n]*+| payload: [^\n]*+)?" + _NEXT_ROW
_DATA_RECORD_FIELDS: Final = rb"(?: headerKeys: \[([^\]\n]*+)\])?+( key: [^\n]*?)?( payload: [^\n]*+)?" + _NEXT_ROW
_GROUP_START: Final = re.compile(rb"\((?!\?)")

_USUAL_TAIL_FIELDS: Final = ("header_keys", "key", "payload")
_CONTROL_FIELDS: Final = ("end_marker", "coordinator_epoch", "control")
_TAIL_FIELDS: Final = (*_USUAL_TAIL_FIELDS, *_CONTROL_FIELDS)
_NO_CONTROL: Final = (None,) * len(_CONTROL_FIELDS)
_NO_TAIL: Final = (None,) * len(_TAIL_FIELDS)

_RowType = type[DumpDataRow]
# The first kind whose required names are all there is the line's.
_KINDS: Final[tuple[tuple[_RowType, frozenset[bytes], _Table], ...]] = (
    (DumpRecord, frozenset({b"offset", b"keySize", b"valueSize"}), _RECORD),
    (DumpRecord, frozenset({b"offset", b"keysize", b"valuesize"}), _RECORD),
    (DumpBatch, frozenset({b"lastOffset", b"baseOffset", b"position", b"magic", b"compresscodec"}), _BATCH),
    (DumpBatch, frozenset({b"offset", b"position", b"magic", b"compresscodec"}), _BATCH),
    (DumpSnapshotEntry, frozenset(list(_SNAPSHOT)[:4]), _SNAPSHOT),
    (DumpAbortedTransaction, frozenset(_ABORTED), _ABORTED),
    (DumpTimeIndexEntry, frozenset(_TIME_ENTRY), _TIME_ENTRY),
    (DumpOffsetIndexEntry, frozenset(_OFFSET_ENTRY), _OFFSET_ENTRY),
)


class Layout:
    """One order of names: reads every line that has it.

    `names` are the names in order; `row_type` what a line becomes; `known` (field, value) of the names we know, one per
    group of `pattern`: the value after any other name is skipped. `fields` are the row's fields a line prints.
    `data_record_lines` finds, in lines, those of a record layout that say nothing but their record, each with the line
    feed before it, `data_records` the same with the known fields, header keys, ` key: ...` and ` payload: ...` as
    groups; both are None for other layouts. `usual_readers` read those fields.
    """

    __slots__ = (
        "_arrange",
        "_readers",
        "_start",
        "_usual",
        "data_record_lines",
        "data_records",
        "fields",
        "known",
        "names",
        "pattern",
        "row_type",
        "timestamp_type",
        "usual_readers",
    )

    def __init__(self, names: tuple[bytes, ...], row_type: _RowType, table: _Table) -> None:
        self.names = names
        self.row_type = row_type
        targets = [table.get(name) for name in names]
        self.known = tuple(target for target in targets if target)
        parts = [
            re.escape(name) + b": " + (target[1].pattern if target else rb"\S+")
            for name, target in zip(names, targets, strict=True)
        ]
        head = (rb"(?:\| )?" if row_type is DumpRecord else b"") + b" ".join(parts)
        tail, usual_tail = (_RECORD_TAIL, _USUAL_RECORD_TAIL) if row_type is DumpRecord else (rb" ?\r?", rb" ?\r?")
        self.pattern = re.compile(head + tail, re.DOTALL)
        # Numbers of 18 digits need no range check: nearly every line takes this way.
        short = head.replace(b"{1,19}", b"{1,18}")
        self._usual = re.compile(short + usual_tail, re.DOTALL)
        # Searched for in many lines at once: they start with the line feed before, a literal is found fast.
        start = rb"\n\| " + b" ".join(parts).replace(_NUMBER, _SHORT_NUMBER)
        is_record = row_type is DumpRecord
        self.data_record_lines = re.compile(_GROUP_START.sub(b"(?:", start) + _DATA_RECORD_TAIL) if is_record else None
        self.data_records = re.compile(start + _DATA_RECORD_FIELDS) if is_record else None
        self._readers = tuple(value.read for _, value in self.known)
        self.usual_readers = tuple(int if value is INTEGER else value.read for _, value in self.known)
        printed = [field for field, _ in self.known]
        times = [name.decode() for name in names if name in TIMESTAMP_TYPES]
        self.fields = frozenset([*printed, "timestamp_type"] if times else printed)
        self.timestamp_type = times[0] if times else None
        self._start: list[Any] = [None, self.timestamp_type, self.fields]
        # One C call puts a line's values in the row's order; a field that the line lacks is the None in front.
        pool: list[str | None] = [None, "timestamp_type", "fields", "line", *printed]
        pool += _TAIL_FIELDS if row_type is DumpRecord else ()
        self._arrange = itemgetter(*(pool.index(field) if field in pool else 0 for field in row_type._fields))

    def read(self, line: bytes, number: int) -> DumpDataRow | None:
        """Make the row of line number `number`; None if the line has another layout or a number is not an int64."""
        found = self._usual.fullmatch(line)
        if found is None:
            return self._read_unusual(line, number)
        groups = found.groups()
        pool = [*self._start, number]
        pool += [None if text is None else read(text) for read, text in zip(self.usual_readers, groups, strict=False)]
        if self.row_type is DumpRecord:
            pool += groups[-len(_USUAL_TAIL_FIELDS) :]
            pool += _NO_CONTROL
            row: DumpRecord = DumpRecord._make(self._arrange(pool))
            return row if row.key is None or len(row.key) == row.key_size else self._read_unusual(line, number)
        return self.row_type._make(self._arrange(pool))

    def _read_unusual(self, line: bytes, number: int) -> DumpDataRow | None:
        found = self.pattern.fullmatch(line)
        if found is None:
            return None
        groups = found.groups()
        pool = [*self._start, number]
        try:
            pool += [None if text is None else read(text) for read, text in zip(self._readers, groups, strict=False)]
        except OverflowError:
            return None
        if self.row_type is not DumpRecord:
            return self.row_type._make(self._arrange(pool))
        row = DumpRecord._make(self._arrange([*pool, *_NO_TAIL]))
        return row._replace(**_read_tail(groups[-1], row.key_size)) if groups[-1] else row


def _read_tail(tail: bytes, key_size: int) -> dict[str, Any]:
    """Read a record's free fields from the text after its pairs: header keys, marker or control, key, payload."""
    fields: dict[str, Any] = {}
    if tail.startswith(_HEADER_KEYS_START):
        end = _HEADER_KEYS_END.search(tail, len(_HEADER_KEYS_START))
        if end is None:
            return {"header_keys": tail[len(_HEADER_KEYS_START) :]}
        fields["header_keys"] = tail[len(_HEADER_KEYS_START) : end.start()]
        tail = tail[end.end() :]
    if marker := _END_MARKER_TEXT.fullmatch(tail.rstrip(b"\r")):
        fields["end_marker"] = marker[1].decode("ascii", "replace")
        fields["coordinator_epoch"] = int(marker[2])
    elif control := _CONTROL_TEXT.fullmatch(tail):
        fields["control"] = control[1].decode("utf-8", "replace")
    else:
        if tail.startswith(_KEY_START):
            start = len(_KEY_START)
            # A key may hold " payload: " itself: its size says where it ends, unless a decoder printed something else.
            end_of_key = start + key_size
            fits = end_of_key == len(tail) or tail.startswith(_PAYLOAD_START, end_of_key)
            if key_size < 0 or not fits:
                found = tail.find(_PAYLOAD_START, start)
                end_of_key = len(tail) if found < 0 else found
            fields["key"] = tail[start:end_of_key]
            tail = tail[end_of_key:]
        if tail.startswith(_PAYLOAD_START):
            fields["payload"] = tail[len(_PAYLOAD_START) :]
    return fields


def has_open_header_keys(line: bytes) -> bool:
    """Return whether the list of header keys in the line of a record is not closed: the line ends too early."""
    start = line.find(_HEADER_KEYS_START)
    return start >= 0 and _HEADER_KEYS_END.search(line, start + len(_HEADER_KEYS_START)) is None


def learn(line: bytes) -> Layout | None:
    """Make the layout of a line from its own pairs; None if it is not a row of any kind."""
    return _layout(tuple(name for name, _, _ in pairs_of(line)))


def pairs_of(line: bytes) -> list[tuple[bytes, bytes, int]]:
    """Take the beginning of a line apart: name, value, and the byte where the value ends, up to the line's free text."""
    position = 2 if line.startswith(b"| ") else 0
    pairs: list[tuple[bytes, bytes, int]] = []
    while len(pairs) < _MAX_PAIRS:
        pair = _PAIR.match(line, position)
        if pair is None or pair[1] + b":" in TAIL_NAMES:
            break
        position = pair.end()
        pairs.append((pair[1], pair[2], position))
    return pairs


@lru_cache(maxsize=_MAX_LAYOUTS)
def _layout(names: tuple[bytes, ...]) -> Layout | None:
    present = frozenset(names)
    for row_type, required, table in _KINDS:
        if required <= present:
            return Layout(names, row_type, table)
    return None
