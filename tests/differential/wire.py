"""Record batches of magic 2 as bytes and back, by Kafka's DefaultRecordBatch and DefaultRecord; nothing of kaudit is used."""

import gzip
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import lz4.frame
import zstandard
from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, two timestamps, producer, count."""
CRC_FROM = 21
"""The CRC covers the bytes from the attributes on."""
NONE, GZIP, LZ4, ZSTD = 0, 1, 3, 4
TRANSACTIONAL, CONTROL = 0x10, 0x20
MARKER = struct.Struct(">hh")
MARKER_VALUE = struct.Struct(">hi")


class Record(NamedTuple):
    """One record; offset and timestamp are relative to its batch's."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True)
class Batch:
    """A batch by its fields. `last` is its last offset; `max_timestamp` and `timestamp` are ms."""

    base: int
    last: int
    records: tuple[Record, ...]
    leader_epoch: int = 0
    attributes: int = 0
    timestamp: int = 0
    max_timestamp: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def commits(self) -> bool:
        """Whether a marker commits; else it aborts (ControlRecordType)."""
        return self.records[0].key == MARKER.pack(0, 1)

    @cached_property
    def raw(self) -> bytes:
        """Its bytes."""
        body = b"".join(_record(record) for record in self.records)
        codec = self.attributes & 7
        if not self.records:
            codec = NONE  # DefaultRecordBatch.writeEmptyHeader
        if codec == GZIP:
            body = gzip.compress(body, 1, mtime=0)
        elif codec == LZ4:
            body = lz4.frame.compress(body, block_linked=False)
        elif codec == ZSTD:
            body = zstandard.ZstdCompressor().compress(body)
        covered = (
            struct.pack(
                ">hiqqqhii",
                (self.attributes & ~7) | codec,
                self.last - self.base,
                self.timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.sequence,
                len(self.records),
            )
            + body
        )
        return struct.pack(">qiibI", self.base, len(covered) + 9, self.leader_epoch, 2, crc32c(covered)) + covered

    def keeping(self, records: tuple[Record, ...]) -> "Batch":
        """Return it with these of its records, as MemoryRecords.filterTo writes it: offsets and sequence stay."""
        if records:
            latest = self.timestamp + max(record.timestamp_delta for record in records)
            return replace(self, records=records, max_timestamp=latest)
        return replace(self, records=(), timestamp=-1, attributes=self.attributes & ~7)


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _record(record: Record) -> bytes:
    body = b"".join(
        (
            b"\0",
            _varint(record.timestamp_delta),
            _varint(record.offset_delta),
            _sized(record.key),
            _sized(record.value),
            _varint(len(record.headers)),
            *(_sized(name) + _sized(value) for name, value in record.headers),
        )
    )
    return _varint(len(body)) + body


def marker(
    base: int, *, leader_epoch: int, timestamp: int, producer: tuple[int, int], commits: bool, coordinator_epoch: int
) -> Batch:
    """Return an end marker of `producer`: its id and epoch (EndTransactionMarker)."""
    record = Record(0, 0, MARKER.pack(0, int(commits)), MARKER_VALUE.pack(0, coordinator_epoch))
    return Batch(
        base, base, (record,), leader_epoch, TRANSACTIONAL | CONTROL, timestamp, timestamp, producer[0], producer[1]
    )


class Found(NamedTuple):
    """A batch as it lies in a segment at bytes `position`..`end`, by its header. Its CRC holds."""

    position: int
    end: int
    base: int
    last: int
    leader_epoch: int
    attributes: int
    producer_id: int
    records: int


def batch_at(data: bytes, position: int) -> Found | None:
    """Return the whole batch that begins at a position, None unless its CRC holds (DefaultRecordBatch.ensureValid)."""
    if position + HEADER.size > len(data):
        return None
    base, length, epoch, magic, crc, attributes, delta, _, _, producer, _, _, count = HEADER.unpack_from(data, position)
    end = position + 12 + length
    if magic != 2 or length < HEADER.size - 12 or end > len(data) or delta < 0:
        return None
    if crc32c(memoryview(data)[position + CRC_FROM : end]) != crc:
        return None
    return Found(position, end, base, base + delta, epoch, attributes, producer, count)


def keys(data: bytes, found: Found) -> Iterator[bytes | None]:
    """Yield the keys of a batch's records."""
    body = data[found.position + HEADER.size : found.end]
    codec = found.attributes & 7
    if codec == GZIP:
        body = gzip.decompress(body)
    elif codec == LZ4:
        body = lz4.frame.decompress(body)
    elif codec == ZSTD:
        body = zstandard.ZstdDecompressor().decompress(body)
    at = 0
    for _ in range(found.records):
        size, at = _read_varint(body, at)
        following = at + size
        _, at = _read_varint(body, at + 1)
        _, at = _read_varint(body, at)
        size, at = _read_varint(body, at)
        yield None if size < 0 else body[at : at + size]
        at = following


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
