"""A second, small reader of whole segments of any magic, for comparison with dumps: struct and nothing of kaudit."""

import struct

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def batch_rows(data):
    """Each batch or legacy entry as the fields kafka-dump-log prints, and its bytes, to the first that is cut off."""
    position = 0
    while position + 17 <= len(data):
        base_offset, length = struct.unpack_from(">qi", data, position)
        size, magic = length + 12, data[position + 16]
        if size < 26 or position + size > len(data) or magic > 127:
            return
        raw = data[position : position + size]
        yield (_v2(raw) if magic >= 2 else _legacy(raw, base_offset)) | {"position": position, "size": size}, raw
        position += size


def _v2(raw):
    base, _, leader_epoch, magic, crc, attributes, delta, base_time, max_time, pid, epoch, sequence, count = (
        struct.unpack_from(">qiibIhiqqqhii", raw)
    )
    has_horizon = bool(attributes & 0x40)
    return {
        "base_offset": base,
        "last_offset": base + delta,
        "record_count": count,
        "base_sequence": sequence,
        "last_sequence": -1 if sequence == -1 else (sequence + delta) % 2**31,
        "producer_id": pid,
        "producer_epoch": epoch,
        "leader_epoch": leader_epoch,
        "is_transactional": bool(attributes & 0x10),
        "is_control": bool(attributes & 0x20),
        "delete_horizon_ms": base_time if has_horizon else None,
        "timestamp_type": "LogAppendTime" if attributes & 8 else "CreateTime",
        "max_timestamp": max_time,
        "magic": magic,  # the tools read every magic above 2 as if it were 2
        "codec": CODECS[attributes & 7],
        "crc": crc,
    }


def _legacy(raw, offset):
    crc, magic, attributes = struct.unpack_from(">Ibb", raw, 12)
    timestamp = struct.unpack_from(">q", raw, 18)[0] if magic else -1
    return {
        "last_offset": offset,
        "timestamp_type": ("LogAppendTime" if attributes & 8 else "CreateTime") if magic else "NoTimestampType",
        "max_timestamp": timestamp,
        "magic": magic,
        "codec": CODECS[attributes & 7],
        "crc": crc,
    }
