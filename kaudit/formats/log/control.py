"""Control records: transaction markers and KRaft's own.

Source of the format: Kafka's ControlRecordType and EndTransactionMarker (4.1+: EndTxnMarker.json, same bytes), DefaultRecord.

Markers in the form every broker writes them are decoded many at once: one uncompressed record of 17 bytes: deltas 0, a key of
4 bytes, a value of 6, no headers. Markers in any other form are decoded one by one.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET, FLAGS_OFFSET, HEADER_SIZE, LOG_OVERHEAD
from kaudit.formats.log.records import DEFAULT_LIMIT, Record, read_records
from kaudit.formats.wire_format import WireFormat
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, CONTROL_FLAG, NO_CONTROL_TYPE
from kaudit.model.schema import Int16, Int32


class ControlType(IntEnum):
    """Type of a control record. UNKNOWN is never on disk: it stands for every type that kaudit does not know."""

    UNKNOWN = NO_CONTROL_TYPE
    ABORT = ABORT_MARKER
    COMMIT = COMMIT_MARKER
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @property
    def ends_transaction(self) -> bool:
        """True for the two markers; nothing else may reach the transaction logic."""
        return self in (ControlType.ABORT, ControlType.COMMIT)


class ControlRecord(Struct, frozen=True):
    """One control record: `type_id` is the type as stored (-2^15..2^15-1), `version` the key's (0..2^15-1).

    `coordinator_epoch` (-2^31..2^31-1) and `value_version` are None unless the record ends a transaction.
    """

    type: ControlType
    coordinator_epoch: int | None
    version: int
    type_id: int
    value_version: int | None


class ControlRecordKey(NamedTuple):
    """The key of a control record (ControlRecordType)."""

    version: Int16
    type: Int16


class EndTxnMarkerValue(NamedTuple):
    """The value of a marker (EndTransactionMarker)."""

    version: Int16
    coordinator_epoch: Int32


KEY: Final = WireFormat(ControlRecordKey)
VALUE: Final = WireFormat(EndTxnMarkerValue)
_KEY: Final = KEY.struct()
_VALUE: Final = VALUE.struct()
_KNOWN_TYPES: Final = {member.value: member for member in ControlType if member is not ControlType.UNKNOWN}


def parse_control(key: Buffer | None, value: Buffer | None) -> ControlRecord:
    """Decode a control record's key and value.

    Higher versions are read as version 0, as brokers do. Raises WireError for a key or (for the two markers) value that
    is missing, too short or of negative version; positions count within the key, or within the value for its faults.
    """
    if key is None or len(key) < _KEY.size:
        raise WireError(0, Reason.TRUNCATED, f"control key of {0 if key is None else len(key)} bytes, 4 are needed")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise WireError(0, Reason.VERSION, f"control key version {version}")
    control_type = _KNOWN_TYPES.get(type_id, ControlType.UNKNOWN)
    if not control_type.ends_transaction:
        return ControlRecord(control_type, None, version, type_id, None)
    if value is None or len(value) < _VALUE.size:
        raise WireError(
            0, Reason.TRUNCATED, f"marker value of {0 if value is None else len(value)} bytes, 6 are needed"
        )
    value_version, coordinator_epoch = _VALUE.unpack_from(value)
    if value_version < 0:
        raise WireError(0, Reason.VERSION, f"marker value version {value_version}")
    return ControlRecord(control_type, coordinator_epoch, version, type_id, value_version)


def read_control_records(batch: Buffer, limit: int = DEFAULT_LIMIT) -> Iterator[tuple[Record, ControlRecord]]:
    """Yield the records of one whole control batch, each with its meaning; raises WireError as read_records does."""
    if len(batch) > FLAGS_OFFSET and not batch[FLAGS_OFFSET] & CONTROL_FLAG:
        raise WireError(ATTRIBUTES_OFFSET, Reason.VALUE, "not a control batch")
    for record in read_records(batch, limit):
        yield record, parse_control(record.key, record.value)


def parse_marker(batch: Buffer, limit: int = DEFAULT_LIMIT) -> ControlRecord | None:
    """Decode one whole control batch; None if compaction left it no record.

    That is its first record's meaning, as for brokers; the others are only checked (KRaft writes several into one batch).
    Raises WireError for a batch that is not a control batch, or is malformed.
    """
    controls = [control for _, control in read_control_records(batch, limit)]
    return controls[0] if controls else None


_NUMBERS_BEFORE_KEY: Final = 5
"""Length, attributes, timestamp delta, offset delta and key length of the record: varints of one byte each."""
_HEADER_COUNT_BYTES: Final = 1
_KEY_START: Final = _NUMBERS_BEFORE_KEY
_VALUE_START: Final = _KEY_START + KEY.size + 1
_RECORD_BYTES: Final = _VALUE_START + VALUE.size + _HEADER_COUNT_BYTES

USUAL_MARKER_LENGTH: Final = HEADER_SIZE + _RECORD_BYTES - LOG_OVERHEAD
"""The length field of a batch that holds such a marker."""
USUAL_MARKER: Final = np.dtype(
    {
        "names": ["first_eight", "type", "value_length", "value_version_high", "coordinator_epoch"],
        "formats": [">u8", "u1", "u1", "u1", ">i4"],
        "offsets": [
            0,
            _KEY_START + KEY.end("type") - 1,
            _VALUE_START - 1,
            _VALUE_START,
            _VALUE_START + VALUE.offset("coordinator_epoch"),
        ],
    }
)
"""The record up to its header count; of `type` the low byte, the high one being in `first_eight`."""
USUAL_MARKER_BYTES: Final = np.dtype((np.void, USUAL_MARKER.itemsize))

_EXPECTED: Final = 0x20_00_00_00_08_00_00_00
"""Zigzag of 16 bytes, three zeros, zigzag of 4 bytes, key version, the high byte of the type."""
_MASK: Final = 0xFF_FF_FF_FF_FF_80_00_FF
"""Only the sign of the key version matters: brokers read higher versions as 0."""
_VALUE_LENGTH: Final = VALUE.size << 1


def is_usual_marker(records: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each of `records` (USUAL_MARKER, shape (n,)) whether it ends a transaction and has the usual form."""
    usual: NDArray[np.bool_] = (records["first_eight"] & _MASK == _EXPECTED) & (records["type"] <= COMMIT_MARKER)
    usual &= (records["value_length"] == _VALUE_LENGTH) & (records["value_version_high"] & 0x80 == 0)
    return usual
