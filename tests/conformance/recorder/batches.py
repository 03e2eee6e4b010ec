"""The bytes a scenario's produce step sends, sound or broken on purpose."""

import gzip
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import crc32c

from tests.logs import record

_GZIP = 1
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_SEALED = struct.Struct(">hiqqqhii")
_RAW_RECORD_BYTES_CUT = 10
_TRAILING = bytes(range(6))


@dataclass(frozen=True)
class Sent:
    """A batch as a scenario step describes it; sequences and counts as written into the header."""

    producer_id: int
    epoch: int
    sequence: int
    count: int
    timestamp: int
    step: dict[str, Any]

    def encode(self) -> bytes:
        """Its bytes."""
        step = self.step
        records = b"" if step.get("no_records") else b"".join(self._records())
        codec = step.get("codec", 0)
        if codec == _GZIP:
            records = gzip.compress(records, mtime=0)
        attributes = codec
        if step.get("txn"):
            attributes |= _TRANSACTIONAL
        if step.get("control"):
            attributes |= _CONTROL
        return sealed(
            records,
            attributes=attributes,
            delta=step.get("last_offset_delta", self.count - 1),
            count=step.get("count_header", self.count),
            batch=self,
        )

    def _records(self) -> list[bytes]:
        step = self.step
        if step.get("control"):
            return [record(0, struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 0))]
        keys = step.get("keys") or []
        values = step.get("values") or []
        return [
            record(
                index,
                keys[index].encode() if index < len(keys) else None,
                values[index].encode() if index < len(values) else self._value(index),
            )
            for index in range(self.count)
        ]

    def _value(self, index: int) -> bytes:
        if "value_size" in self.step:
            return b"v" * int(self.step["value_size"])
        return f"p{self.producer_id}/e{self.epoch}/s{self.sequence}+{index}".encode()


def sealed(records: bytes, *, attributes: int, delta: int, count: int, batch: Sent) -> bytes:
    """A batch around encoded records, with what the step breaks."""
    step = batch.step
    covered = _SEALED.pack(
        attributes, delta, batch.timestamp, batch.timestamp, batch.producer_id, batch.epoch, batch.sequence, count
    )
    crc = crc32c.crc32c(covered + records) ^ (1 if step.get("bad_crc") else 0)
    length = 9 + len(covered) + len(records)
    header = struct.pack(
        ">qiibI", step.get("base_offset", 0), length, step.get("ple", -1), step.get("magic", 2), crc
    )  # fmt: skip
    return header + covered + records


def messages(magic: int, keys: list[str | None], timestamp: int, *, compressed: bool) -> bytes:
    """Messages of magic 0 or 1, one for each key; `compressed` wraps them in one, as producers up to 0.10.2 did."""
    inner = b"".join(
        _message(magic, offset, timestamp, key if key is None else key.encode(), b"old", 0)
        for offset, key in enumerate(keys)
    )
    if not compressed:
        return inner
    return _message(magic, len(keys) - 1, timestamp, None, gzip.compress(inner, mtime=0), _GZIP)


def _message(magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes, codec: int) -> bytes:
    stamp = struct.pack(">q", timestamp) if magic else b""
    named = struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
    covered = struct.pack(">bb", magic, codec) + stamp + named + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(covered)) + covered
    return struct.pack(">qi", offset, len(message)) + message


def raw(kind: str, batch: Sent) -> bytes:
    """A record set no client writes: old messages, nothing at all, a batch cut short, bytes behind a batch."""
    if kind == "empty":
        return b""
    if kind in ("v0", "v1"):
        return messages(int(kind[1]), [None], batch.timestamp, compressed=False)
    whole = batch.encode()
    return whole[:-_RAW_RECORD_BYTES_CUT] if kind == "truncated" else whole + _TRAILING
