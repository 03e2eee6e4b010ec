"""ZooKeeper's transaction log, `version-2/log.<zxid of the first transaction, hex>`, and what it says about single znodes.

    file   magic "ZKLG" i32 · version i32 (2) · dbid i64 · entries · zeros (the file grows 64 MiB at a time)
    entry  Adler-32 of the transaction i64 · length i32 · transaction · "B"
    transaction  clientId i64 · cxid i32 · zxid i64 · time i64 (ms) · type i32 · record · digest (3.6+, optional)

Source: FileTxnLog, Util.readTxnBytes, SerializeUtils.deserializeTxn; checked against the recorded directories.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct, field

from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.zookeeper.records import (
    FILE_HEADER_SIZE,
    Create,
    Delete,
    Failed,
    JuteReader,
    Multi,
    Record,
    SetData,
    decode_record,
    read_file_header,
)

MAGIC = b"ZKLG"

_ENTRY_HEADER = struct.Struct(">qi")
_TXN_HEADER = struct.Struct(">qiqqi")
_END_MARK = 0x42
_MAX_ADLER32 = 2**32 - 1
_ZEROS = bytes(1 << 16)


class Transaction(Struct, frozen=True):
    """One transaction. `position` is the byte its entry starts at, `time` the leader's clock in ms since 1970.

    The record stays in `body` until `decoded` is called: most transactions are of no interest.
    """

    position: int
    zxid: int
    time: int
    type: int
    body: memoryview


def read_transactions(data: memoryview) -> Iterator[Transaction | Damage]:
    """Yield the transactions of one log in file order, and what is damaged between them.

    Raises WireError when `data` is not a transaction log at all; anything else comes as Damage, after which reading goes
    on at the next transaction whose checksum holds. Nothing is copied: bodies are views of `data`.
    """
    read_file_header(data, MAGIC, "transaction log")
    position = FILE_HEADER_SIZE
    while position < len(data):
        entry = _entry_at(data, position)
        if isinstance(entry, Transaction):
            yield entry
            position = _entry_end(data, position)
            continue
        if entry is None:
            tail = _first_nonzero(data, position)
            if tail is None:
                return
            entry = Damage(tail, tail, Reason.TRAILING, "bytes follow the zeros that should end the log")
        following = _next_entry(data, position + 1)
        # only the last transaction can be torn; one before intact ones was overwritten or lost its lengths
        overwritten = entry.reason is Reason.TRUNCATED and following < len(data)
        # a transaction after the zeros begins with zeros of its own
        start = min(entry.position, following)
        yield Damage(start, following, Reason.LENGTH if overwritten else entry.reason, entry.detail)
        position = following


def _entry_end(data: memoryview, position: int) -> int:
    return position + _ENTRY_HEADER.size + int(_ENTRY_HEADER.unpack_from(data, position)[1]) + 1


def _entry_at(data: memoryview, position: int) -> Transaction | Damage | None:
    """Read the entry at `position`; None where the log's zeros begin."""
    left = len(data) - position
    if left < _ENTRY_HEADER.size:
        if _first_nonzero(data, position) is None:
            return None
        return Damage(position, position, Reason.TRUNCATED, f"{left} bytes are left for the head of a transaction")
    checksum, length = _ENTRY_HEADER.unpack_from(data, position)
    if length == 0 and checksum == 0:
        return None
    start = position + _ENTRY_HEADER.size
    fault = _fault(data, start, length, checksum)
    if fault is not None:
        return Damage(position, position, *fault)
    body = data[start : start + length]
    _, _, zxid, time, type_ = _TXN_HEADER.unpack_from(body)
    return Transaction(position, zxid, time, type_, body[_TXN_HEADER.size :])


def _fault(data: memoryview, start: int, length: int, checksum: int) -> tuple[Reason, str] | None:
    """Return what is wrong with the transaction of `length` bytes at `start`, None if nothing is."""
    if length < _TXN_HEADER.size:
        return Reason.LENGTH, f"a transaction of {length} bytes"
    if length >= len(data) - start:
        return Reason.TRUNCATED, f"a transaction of {length} bytes where {len(data) - start} are left"
    if data[start + length] != _END_MARK:
        # ZooKeeper calls this a partial transaction: the file grew, the bytes did not arrive.
        return Reason.TRUNCATED, f"a transaction of {length} bytes without its end mark"
    actual = zlib.adler32(data[start : start + length])
    if actual != checksum:
        return Reason.CRC, f"Adler-32 {actual:#x} where the log says {checksum:#x}"
    return None


def _next_entry(data: memoryview, position: int) -> int:
    """Find where the next intact entry starts at or after `position`, else the end of `data`."""
    last = len(data) - _ENTRY_HEADER.size - _TXN_HEADER.size - 1
    while position <= last:
        checksum, length = _ENTRY_HEADER.unpack_from(data, position)
        # The upper half of the checksum is always 0: few wrong places get past this line.
        if 0 < checksum <= _MAX_ADLER32 and isinstance(_entry_at(data, position), Transaction):
            return position
        if checksum == 0 and length == 0:
            # The checksum's own leading zeros precede the first byte that is not 0.
            position = (_first_nonzero(data, position) or len(data)) - _ENTRY_HEADER.size
        position += 1
    return len(data)


def _first_nonzero(data: memoryview, position: int) -> int | None:
    """Find the first byte at or after `position` that is not 0, 64 KiB at a time."""
    while position < len(data):
        block = data[position : position + len(_ZEROS)]
        if block != _ZEROS[: len(block)]:
            return position + next(index for index, byte in enumerate(block) if byte)
        position += len(block)
    return None


def decoded(transaction: Transaction) -> Record | Damage:
    """Decode a transaction's record, or say why it cannot be although its checksum holds."""
    try:
        return decode_record(transaction.type, JuteReader(transaction.body))
    except WireError as error:
        detail = f"transaction {transaction.zxid:#x} of type {transaction.type}: {error}"
        end = transaction.position + _ENTRY_HEADER.size + _TXN_HEADER.size + len(transaction.body) + 1
        return Damage(transaction.position, end, error.reason, detail)


MAX_KEPT_VALUE = 4096
"""Bytes kept of a znode's value; what is longer is cut to one byte more, so that a reader notices."""


class ZnodeEvent(StrEnum):
    """How a znode's value became known."""

    CREATED = "created"
    SET = "set"
    DELETED = "deleted"
    SNAPSHOT = "snapshot"


class ZnodeChange(Struct, frozen=True):
    """The value the znode `path` got by transaction `zxid` at `time_ms` (the leader's clock, ms since 1970).

    `data` is None for no value and for a deleted znode; `version` counts the changes since its creation (0), None
    when deleted. `position` is the byte in the file it was read from.
    """

    path: str
    event: ZnodeEvent
    zxid: int
    time_ms: int
    version: int | None
    data: bytes | None
    position: int


class ZnodeScan(Struct):
    """Changes in one file of the znodes searched for.

    First and last zxid and the last time are those of any transaction of a log: the part of the history that it covers; None
    without transactions, and for a snapshot.
    """

    changes: list[ZnodeChange] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    first_zxid: int | None = None
    last_zxid: int | None = None
    last_time_ms: int | None = None


def scan_log(data: memoryview, suffix: str) -> ZnodeScan:
    """Collect what a transaction log says about znodes whose path ends in `suffix`: `/latest_producer_id_block`.

    Memory grows with that znode's changes only. Raises WireError when `data` is not a transaction log.
    """
    scan = ZnodeScan()
    wanted = suffix.encode()
    for item in read_transactions(data):
        if isinstance(item, Damage):
            scan.damages.append(item)
            continue
        scan.first_zxid = item.zxid if scan.first_zxid is None else scan.first_zxid
        scan.last_zxid, scan.last_time_ms = item.zxid, item.time
        # Most transactions name other znodes: a search in their bytes is far cheaper than decoding them.
        if wanted in bytes(item.body):
            _collect(item, suffix, scan)
    return scan


def _collect(transaction: Transaction, suffix: str, scan: ZnodeScan) -> None:
    record = decoded(transaction)
    if isinstance(record, Damage):
        scan.damages.append(record)
        return
    for member in _applied(record):
        change = _change(transaction, member, suffix)
        if change is not None:
            scan.changes.append(change)


def _applied(record: Record) -> Iterator[Record]:
    """List the records that took effect: a multi with one refused member changes nothing."""
    if not isinstance(record, Multi):
        yield record
        return
    if not any(isinstance(member, Failed) for member in record.members):
        for member in record.members:
            yield from _applied(member)


def _change(transaction: Transaction, record: Record, suffix: str) -> ZnodeChange | None:
    version: int | None
    match record:
        case Create(path=path, data=data) if path.endswith(suffix):
            event, version, value = ZnodeEvent.CREATED, 0, data
        case SetData(path=path, data=data, version=new) if path.endswith(suffix):
            event, version, value = ZnodeEvent.SET, new, data
        case Delete(path=path) if path.endswith(suffix):
            event, version, value = ZnodeEvent.DELETED, None, None
        case _:
            return None
    kept = kept_value(value)
    return ZnodeChange(path, event, transaction.zxid, transaction.time, version, kept, transaction.position)


def kept_value(value: bytes | None) -> bytes | None:
    """Cut a znode's value to what is kept of it, see MAX_KEPT_VALUE."""
    return value if value is None else value[: MAX_KEPT_VALUE + 1]
