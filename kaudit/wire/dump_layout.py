"""The grammar of one line of kafka-dump-log: `name: value` pairs, in an order each release changed.

So the order is learned from the text: the first line of a kind is taken apart pair by pair and leaves a compiled pattern
for those that follow. Source of the names: Kafka's DumpLogSegments, 0.11 to 4.2.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kaudit.wire.dump_rows import (
    DumpAbortedTransaction,
    DumpBatch,
    DumpDataRow,
    DumpOffsetIndexEntry,
    DumpRecord,
    DumpSnapshotEntry,
    DumpTimeIndexEntry,
)

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
    """How the value behind a name is written and read; a group that did not match reads as None."""

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

_COMMON: Final = {
    b"offset": ("offset", INTEGER),
    b"baseOffset": ("base_offset", INTEGER),
    b"lastOffset": ("last_offset", INTEGER),
    b"baseSequence": ("base_sequence", INTEGER),
    b"lastSequence": ("last_sequence", INTEGER),
    b"producerId": ("producer_id", INTEGER),
    b"producerEpoch": ("producer_epoch", INTEGER),
    b"partitionLeaderEpoch": ("leader_epoch", INTEGER),
    b"isTransactional": ("is_transactional", _FLAG),
    b"position": ("position", INTEGER),
    b"magic": ("magic", INTEGER),
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
    b"keysize": ("key_size", INTEGER),
    b"keySize": ("key_size", INTEGER),
    b"valuesize": ("value_size", INTEGER),
    b"valueSize": ("value_size", INTEGER),
    b"batchSize": ("size", INTEGER),
    b"sequence": ("sequence", INTEGER),
    **dict.fromkeys(TIMESTAMP_TYPES, ("timestamp", INTEGER)),
}
_SNAPSHOT: Final = {
    b"producerId": ("producer_id", INTEGER),
    b"producerEpoch": ("producer_epoch", INTEGER),
    b"coordinatorEpoch": ("coordinator_epoch", INTEGER),
    b"currentTxnFirstOffset": ("current_txn_first_offset", OPTIONAL),
    b"lastTimestamp": ("last_timestamp", INTEGER),
    b"firstSequence": ("first_sequence", INTEGER),
    b"lastSequence": ("last_sequence", INTEGER),
    b"lastOffset": ("last_offset", INTEGER),
    b"offsetDelta": ("offset_delta", INTEGER),
    b"timestamp": ("timestamp", INTEGER),
}
_ABORTED: Final = {
    b"version": ("version", INTEGER),
    b"producerId": ("producer_id", INTEGER),
    b"firstOffset": ("first_offset", INTEGER),
    b"lastOffset": ("last_offset", INTEGER),
    b"lastStableOffset": ("last_stable_offset", INTEGER),
}
_OFFSET_ENTRY: Final = {b"offset": ("offset", INTEGER), b"position": ("position", INTEGER)}
_TIME_ENTRY: Final = {b"timestamp": ("timestamp", INTEGER), b"offset": ("offset", INTEGER)}

_HEADER_KEYS_START: Final = b" headerKeys: ["
_HEADER_KEYS_END: Final = re.compile(rb"\](?= key: | payload: | endTxnMarker: | controlType: | [A-Z]\w+: \{|$)")
_KEY_START: Final = b" key: "
_PAYLOAD_START: Final = b" payload: "
_END_MARKER_TEXT: Final = re.compile(rb" endTxnMarker: (\w+) coordinatorEpoch: (-?[0-9]{1,10})")
_CONTROL_TEXT: Final = re.compile(rb" (controlType: .*|[A-Z]\w+: \{.*)", re.DOTALL)
_USUAL_RECORD_TAIL: Final = rb"(?: headerKeys: \[([^\]]*)\])?(?: key: (.*?))?(?: payload: (.*))?"

_KEY_SIZE: Final = DumpRecord._fields.index("key_size")
_HEADER_KEYS: Final = DumpRecord._fields.index("header_keys")
_END_MARKER: Final = DumpRecord._fields.index("end_marker")
_COORDINATOR_EPOCH: Final = DumpRecord._fields.index("coordinator_epoch")
_CONTROL: Final = DumpRecord._fields.index("control")
_KEY: Final = DumpRecord._fields.index("key")
_PAYLOAD: Final = DumpRecord._fields.index("payload")

_Table = dict[bytes, tuple[str, Value]]
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
    group of `pattern`: the value behind any other name is skipped. `fields` are the row's fields a line prints.
    """

    __slots__ = ("_readers", "_template", "_usual", "fields", "known", "names", "pattern", "row_type")

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
        tail, usual_tail = (rb"( .*)?", _USUAL_RECORD_TAIL) if row_type is DumpRecord else (rb" ?\r?", rb" ?\r?")
        self.pattern = re.compile(head + tail, re.DOTALL)
        # Numbers of 18 digits need no range check: nearly every line takes this way.
        self._usual = re.compile(head.replace(_NUMBER, _SHORT_NUMBER) + usual_tail, re.DOTALL)
        columns = row_type._fields
        self._readers = tuple((columns.index(field), value.read) for field, value in self.known)
        template: list[Any] = [None] * len(columns)
        printed = {field for field, _ in self.known}
        times = [name.decode() for name in names if name in TIMESTAMP_TYPES]
        if times:
            template[columns.index("timestamp_type")] = times[0]
            printed.add("timestamp_type")
        template[-1] = self.fields = frozenset(printed)
        self._template = template

    def read(self, line: bytes, number: int) -> DumpDataRow | None:
        """Make the row of line number `number`; None if the line is of another layout or a number is no int64."""
        found = self._usual.fullmatch(line)
        groups = found.groups() if found else ()
        values = self._template.copy()
        values[0] = number
        if found is not None:
            for (index, read), text in zip(self._readers, groups, strict=False):
                if text is not None:
                    values[index] = int(text) if read is _number else read(text)
            if self.row_type is not DumpRecord:
                return self.row_type._make(values)
            key = groups[-2]
            if key is None or len(key) == values[_KEY_SIZE]:
                values[_HEADER_KEYS], values[_KEY], values[_PAYLOAD] = groups[-3:]
                return DumpRecord._make(values)
        return self._read_unusual(line, values)

    def _read_unusual(self, line: bytes, values: list[Any]) -> DumpDataRow | None:
        found = self.pattern.fullmatch(line)
        if found is None:
            return None
        groups = found.groups()
        try:
            for (index, read), text in zip(self._readers, groups, strict=False):
                if text is not None:
                    values[index] = read(text)
        except OverflowError:
            return None
        if self.row_type is DumpRecord and groups[-1]:
            _read_tail(values, groups[-1])
        return self.row_type._make(values)


def _read_tail(values: list[Any], tail: bytes) -> None:
    """Fill a record's free fields from the text behind its pairs: header keys, marker or control, key, payload."""
    if tail.startswith(_HEADER_KEYS_START):
        end = _HEADER_KEYS_END.search(tail, len(_HEADER_KEYS_START))
        if end is None:
            values[_HEADER_KEYS] = tail[len(_HEADER_KEYS_START) :]
            return
        values[_HEADER_KEYS] = tail[len(_HEADER_KEYS_START) : end.start()]
        tail = tail[end.end() :]
    if marker := _END_MARKER_TEXT.fullmatch(tail.rstrip(b"\r")):
        values[_END_MARKER] = marker[1].decode("ascii", "replace")
        values[_COORDINATOR_EPOCH] = int(marker[2])
        return
    if control := _CONTROL_TEXT.fullmatch(tail):
        values[_CONTROL] = control[1].decode("utf-8", "replace")
        return
    if tail.startswith(_KEY_START):
        start = len(_KEY_START)
        # A key may hold " payload: " itself: its size tells where it ends, unless a decoder printed something else.
        end_of_key = start + values[_KEY_SIZE]
        if not (values[_KEY_SIZE] >= 0 and tail.startswith(_PAYLOAD_START, end_of_key)):
            found = tail.find(_PAYLOAD_START, start)
            end_of_key = len(tail) if found < 0 else found
        values[_KEY] = tail[start:end_of_key]
        tail = tail[end_of_key:]
    if tail.startswith(_PAYLOAD_START):
        values[_PAYLOAD] = tail[len(_PAYLOAD_START) :]


def learn(line: bytes) -> Layout | None:
    """Make the layout of a line from its own pairs; None if it is no row of any kind."""
    position = 2 if line.startswith(b"| ") else 0
    names: list[bytes] = []
    while len(names) < _MAX_PAIRS:
        pair = _PAIR.match(line, position)
        if pair is None or pair[1] + b":" in TAIL_NAMES:
            break
        names.append(pair[1])
        position = pair.end()
    return _layout(tuple(names))


@lru_cache(maxsize=_MAX_LAYOUTS)
def _layout(names: tuple[bytes, ...]) -> Layout | None:
    present = frozenset(names)
    for row_type, required, table in _KINDS:
        if required <= present:
            return Layout(names, row_type, table)
    return None
