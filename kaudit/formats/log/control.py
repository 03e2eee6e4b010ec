"""Control records: transaction markers and KRaft's own.

Source of the format: Kafka's ControlRecordType and EndTransactionMarker (4.1+: EndTxnMarker.json, same bytes).
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.records import DEFAULT_LIMIT, HEADER_BYTES, Record, read_records


class ControlType(IntEnum):
    """What a control record says. UNKNOWN is never on disk: it stands for every type this release does not know."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
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


_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_KNOWN_TYPES: Final = {member.value: member for member in ControlType if member is not ControlType.UNKNOWN}
_COUNT_POSITION: Final = 57
_ATTRIBUTES_POSITION: Final = 22
_CODEC_BITS: Final = 0x07
_CONTROL_BIT: Final = 0x20

# What every broker writes: one uncompressed record of 16 bytes, deltas 0, a 4-byte key, a 6-byte value, no headers.
_PLAIN_MARKER_BYTES: Final = HEADER_BYTES + 17
_PLAIN_MARKER: Final = struct.Struct(">5shhchic")
_PLAIN_START: Final = b"\x20\x00\x00\x00\x08"
_PLAIN_VALUE_LENGTH: Final = b"\x0c"
_PLAIN_HEADER_COUNT: Final = b"\x00"
_PLAIN_COUNT: Final = b"\x00\x00\x00\x01"


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
    if len(batch) > _ATTRIBUTES_POSITION and not batch[_ATTRIBUTES_POSITION] & _CONTROL_BIT:
        raise WireError(_ATTRIBUTES_POSITION - 1, Reason.VALUE, "not a control batch")
    for record in read_records(batch, limit):
        yield record, parse_control(record.key, record.value)


def parse_marker(batch: Buffer, limit: int = DEFAULT_LIMIT) -> ControlRecord | None:
    """Decode what one whole control batch says, or None if compaction left it no record.

    That is its first record's meaning, as for brokers; the others are checked for soundness only (KRaft writes several
    into one batch). Raises WireError for a batch that is no control batch, or is malformed.
    """
    if len(batch) == _PLAIN_MARKER_BYTES and batch[_COUNT_POSITION:HEADER_BYTES] == _PLAIN_COUNT:
        marker = _parse_plain(batch)
        if marker is not None:
            return marker
    first: ControlRecord | None = None
    for _, control in read_control_records(batch, limit):
        first = first or control
    return first


def _parse_plain(batch: Buffer) -> ControlRecord | None:
    """Decode the usual form of a marker without the record reader, 5 times as fast; None for anything unusual."""
    start, version, type_id, value_length, value_version, coordinator_epoch, header_count = _PLAIN_MARKER.unpack_from(
        batch, HEADER_BYTES
    )
    control_type = _KNOWN_TYPES.get(type_id, ControlType.UNKNOWN)
    attributes = batch[_ATTRIBUTES_POSITION]
    usual = (
        start == _PLAIN_START
        and value_length == _PLAIN_VALUE_LENGTH
        and header_count == _PLAIN_HEADER_COUNT
        and attributes & _CONTROL_BIT
        and not attributes & _CODEC_BITS
        and control_type.ends_transaction
        and version >= 0
        and value_version >= 0
        and batch[16] == 2
        and batch[8:12] == b"\x00\x00\x00\x42"
        and batch[23] < 0x80
    )
    return ControlRecord(control_type, coordinator_epoch, version, type_id, value_version) if usual else None
