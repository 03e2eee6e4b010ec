"""Writers of Kafka's formats, made from the format's description alone: nothing here imports kaudit."""

import gzip
import struct
import zlib

import cramjam
import crc32c
import lz4.frame
import xxhash
import zstandard

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value):
    """Zigzag, any width."""
    return unsigned_varint(2 * value if value >= 0 else -2 * value - 1)


def varint_bytes(value):
    return varint(-1) if value is None else varint(len(value)) + value


def record(offset_delta, timestamp_delta=0, key=None, value=None, headers=(), attributes=0):
    body = struct.pack(">B", attributes) + varint(timestamp_delta) + varint(offset_delta)
    body += varint_bytes(key) + varint_bytes(value) + varint(len(headers))
    for header_key, header_value in headers:
        body += varint_bytes(header_key) + varint_bytes(header_value)
    return varint(len(body)) + body


def xerial(data, block_size=32 * 1024):
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block_size):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + block_size]))
        out += struct.pack(">i", len(block)) + block
    return out


def lz4_of_old_kafka(data):
    """As clients before 0.10 wrote it: the header checksum hashed over the magic number too."""
    frame = bytearray(lz4.frame.compress(data, store_size=False))
    frame[6] = xxhash.xxh32_intdigest(bytes(frame[:6])) >> 8 & 0xFF
    return bytes(frame)


def zstd(data, **options):
    return zstandard.ZstdCompressor(**options).compress(data)


COMPRESS = {
    0: bytes,
    GZIP: lambda data: gzip.compress(data, mtime=0),
    SNAPPY: xerial,
    LZ4: lambda data: lz4.frame.compress(data, store_size=False),
    ZSTD: lambda data: zstd(data, write_content_size=False),
}


def batch(
    records,
    base_offset=0,
    codec=0,
    flags=0,
    last_offset_delta=None,
    count=None,
    base_timestamp=1_700_000_000_000,
    max_timestamp=None,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    leader_epoch=0,
    length=None,
    magic=2,
):
    """A whole magic 2 batch around encoded `records`."""
    count = len(records) if count is None else count
    body = struct.pack(
        ">hiqqqhii",
        codec | flags,
        max(len(records) - 1, 0) if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        base_timestamp if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) + COMPRESS.get(codec, bytes)(b"".join(records))
    head = struct.pack(">ib", leader_epoch, magic) + struct.pack(">I", crc32c.crc32c(body))
    return struct.pack(">qi", base_offset, len(head) + len(body) if length is None else length) + head + body


def marker(control_type, coordinator_epoch, version=0, value_version=0, **header):
    key = struct.pack(">hh", version, control_type)
    value = struct.pack(">hi", value_version, coordinator_epoch)
    return batch([record(0, key=key, value=value)], flags=CONTROL | TRANSACTIONAL, **header)


def message(offset, magic, key=None, value=None, codec=0, timestamp=0, attributes=0):
    """One magic 0 or 1 message with its log overhead."""
    body = struct.pack(">bb", magic, attributes | codec)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for field in (key, value):
        body += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def string(text):
    if text is None:
        return struct.pack(">h", -1)
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def compact_string(text):
    if text is None:
        return b"\x00"
    raw = text.encode()
    return unsigned_varint(len(raw) + 1) + raw


def tagged(fields):
    out = unsigned_varint(len(fields))
    for tag, raw in sorted(fields.items()):
        out += unsigned_varint(tag) + unsigned_varint(len(raw)) + raw
    return out
