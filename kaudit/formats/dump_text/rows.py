"""The lines of kafka-dump-log as typed rows.

All are named tuples (a dump has millions of lines) and start with `line`, the line's number in the text, from 1. A field
is None where that version's text does not print it (`fields` names those it does print) or prints none.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class DumpFile(NamedTuple):
    """`Dumping <path>`: the rows up to the next DumpFile are of that file."""

    line: int
    path: str


class DumpStart(NamedTuple):
    """`Starting offset: N`: the segment's base offset, taken from its file name."""

    line: int
    offset: int


class DumpBatch(NamedTuple):
    """A batch of magic 2, or an entry of magic 0 or 1, which has no base offset and no producer.

    `position` and `size` in bytes; `max_timestamp` in ms, `timestamp_type` CreateTime, LogAppendTime or NoTimestampType;
    `codec` in lower case; `crc` unsigned. 0.11 to 1.1 print no record_count and no is_control, none before 3.1 a delete
    horizon; sentinels (-1) stay as printed.
    """

    line: int
    base_offset: int | None
    last_offset: int
    record_count: int | None
    base_sequence: int | None
    last_sequence: int | None
    producer_id: int | None
    producer_epoch: int | None
    leader_epoch: int | None
    is_transactional: bool | None
    is_control: bool | None
    delete_horizon_ms: int | None
    position: int
    timestamp_type: str | None
    max_timestamp: int | None
    size: int | None
    magic: int
    codec: str
    crc: int | None
    is_valid: bool | None
    fields: frozenset[str]


class DumpRecord(NamedTuple):
    """One record of a deep dump; the fields of its batch are repeated or not, by version: see `fields`.

    `key_size` and `value_size` in bytes, -1 for null. `key` and `payload` are the bytes printed, None where nothing was
    printed: UTF-8 of the real ones if those are UTF-8, else what the tool (or its decoder) made of them. `header_keys` is
    the text between the brackets. `end_marker` is COMMIT or ABORT with its `coordinator_epoch`; `control` the text of
    other control records.
    """

    line: int
    offset: int
    timestamp_type: str | None
    timestamp: int | None
    key_size: int
    value_size: int
    sequence: int | None
    base_offset: int | None
    last_offset: int | None
    base_sequence: int | None
    last_sequence: int | None
    producer_id: int | None
    producer_epoch: int | None
    leader_epoch: int | None
    is_transactional: bool | None
    position: int | None
    size: int | None
    magic: int | None
    codec: str | None
    crc: int | None
    is_valid: bool | None
    header_keys: bytes | None
    end_marker: str | None
    coordinator_epoch: int | None
    control: str | None
    key: bytes | None
    payload: bytes | None
    fields: frozenset[str]


class DumpSnapshotEntry(NamedTuple):
    """One producer of a .snapshot. Sequences and offsets are None for a producer known by its marker alone."""

    line: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    current_txn_first_offset: int | None
    last_timestamp: int | None
    first_sequence: int | None
    last_sequence: int | None
    last_offset: int | None
    offset_delta: int | None
    timestamp: int | None
    fields: frozenset[str]


class DumpAbortedTransaction(NamedTuple):
    """One row of a .txnindex."""

    line: int
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    fields: frozenset[str]


class DumpOffsetIndexEntry(NamedTuple):
    """One row of a .index, its offset made absolute by the tool."""

    line: int
    offset: int
    position: int
    fields: frozenset[str]


class DumpTimeIndexEntry(NamedTuple):
    """One row of a .timeindex, its offset made absolute by the tool."""

    line: int
    timestamp: int
    offset: int
    fields: frozenset[str]


class DumpCut(NamedTuple):
    """A line of a batch or a record (`kind`) that ends too early: `known` are the fields of such a row before the cut.

    `text` is the beginning of the line.
    """

    line: int
    kind: type[DumpBatch | DumpRecord]
    known: Mapping[str, Any]
    text: str


class NoteKind(StrEnum):
    """Kinds of lines of the tool that are not rows."""

    INVALID_BYTES = "invalid-bytes"  # Found N invalid bytes at the end of <file>
    SANITY_PASSED = "sanity-passed"  # an index passed --index-sanity-check
    NON_CONSECUTIVE = "non-consecutive"  # offsets that are not, and the pairs listed under it
    MISMATCH = "mismatch"  # index entries that do not match the log, and the pairs listed under it
    TOO_LONG = "too-long"  # a line longer than kaudit holds: skipped
    DOUBTFUL = "doubtful"  # a row that was cut, or text of the record before it: nothing shows which
    OTHER = "other"  # log lines, stack traces, unknown text


class DumpNote(NamedTuple):
    """A line that is not a row; `text` as printed, `byte_count` the number in INVALID_BYTES."""

    line: int
    kind: NoteKind
    text: str
    byte_count: int | None


DumpDataRow = (
    DumpBatch | DumpRecord | DumpSnapshotEntry | DumpAbortedTransaction | DumpOffsetIndexEntry | DumpTimeIndexEntry
)
DumpRow = DumpFile | DumpStart | DumpDataRow | DumpCut | DumpNote
