"""The grammar of one line of kafka-dump-log: `name: value` pairs, in an order each release changed.

So the order is learned from the text: the first line of a kind is taken apart pair by pair and leaves a compiled pattern
for those that follow. Source of the names: Kafka's DumpLogSegments, 0.11 to 4.2.
"""

import re
from collections.abc import Callable
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
_PAIR: Final = re.compile(rb"(?:^|(?<=\| )| )([A-Za-z]+): (\S+)")
_NUMBER: Final = rb"(-?[0-9]{1,19})"
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

    `names` are the names in order; `row_type` what a line becomes; `targets` (field, value) per name, None for a name
    nobody knows, whose value is skipped; `timestamp_type` as the name of the time says, if there is one.
    """

    __slots__ = ("_readers", "_template", "names", "pattern", "row_type", "targets", "timestamp_type")

    def __init__(self, names: tuple[bytes, ...], row_type: _RowType, table: _Table) -> None:
        self.names = names
        self.row_type = row_type
        self.targets = tuple(table.get(name) for name in names)
        times = [name for name in names if name in TIMESTAMP_TYPES]
        self.timestamp_type = times[0].decode() if times else None
        parts = [
            re.escape(name) + b": " + (target[1].pattern if target else rb"\S+")
            for name, target in zip(names, self.targets, strict=True)
        ]
        prefix = rb"(?:\| )?" if row_type is DumpRecord else b""
        tail = rb"( .*)?" if row_type is DumpRecord else rb" ?\r?"
        self.pattern = re.compile(prefix + b" ".join(parts) + tail, re.DOTALL)
        fields = row_type._fields
        self._readers = tuple((fields.index(target[0]), target[1].read) for target in self.targets if target)
        template: list[Any] = [None] * len(fields)
        printed = {target[0] for target in self.targets if target}
        if self.timestamp_type:
            template[fields.index("timestamp_type")] = self.timestamp_type
            printed.add("timestamp_type")
        template[-1] = frozenset(printed)
        self._template = template

    @property
    def fields(self) -> frozenset[str]:
        """Names of the row fields a line of this layout prints."""
        printed: frozenset[str] = self._template[-1]
        return printed

    def read(self, line: bytes, number: int) -> tuple[list[Any], bytes | None] | None:
        """Values of the row's fields and the free text behind the pairs; None if the line is of another layout."""
        found = self.pattern.fullmatch(line)
        if found is None:
            return None
        groups = found.groups()
        values = self._template.copy()
        values[0] = number
        try:
            for (index, read), text in zip(self._readers, groups, strict=False):
                if text is not None:
                    values[index] = read(text)
        except OverflowError:
            return None
        return values, groups[-1] if self.row_type is DumpRecord else None


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
    present = frozenset(names)
    for row_type, required, table in _KINDS:
        if required <= present:
            return Layout(tuple(names), row_type, table)
    return None
