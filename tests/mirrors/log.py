"""A partition's log written by hand: batches of any codec with headers, transactions, gaps; it shares no code with kaudit."""

import gzip
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import crc32c
import lz4.frame
import zstandard
from kafka.codec import snappy_encode

from tests.logs import CONTROL, TRANSACTIONAL, varint

LOG_APPEND_TIME = 0x08
NO_PRODUCER = (-1, -1, -1)
CODECS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: lambda data: gzip.compress(data, 1, mtime=0),
    2: lambda data: bytes(snappy_encode(data)),
    3: lz4.frame.compress,
    4: zstandard.ZstdCompressor(level=1).compress,
}
"""By their numbers in a batch's attributes."""


class Record(NamedTuple):
    """What a producer sends; `number` is another one for each record that it writes, and is not in its bytes."""

    number: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Placed(NamedTuple):
    """A record at its offset."""

    offset: int
    record: Record


@dataclass(frozen=True)
class Batch:
    """A batch as it lies in a log; compaction takes records out of it, not its last offset."""

    base_offset: int
    last_offset: int
    placed: tuple[Placed, ...]
    codec: int = 0
    producer: tuple[int, int, int] = NO_PRODUCER
    attributes: int = 0
    """Without the codec."""
    append_time: int | None = None
    commits: bool | None = None
    """Of a marker: what it says."""

    def encode(self) -> bytes:
        """The bytes of the batch. Format: DefaultRecordBatch and DefaultRecord of kafka-clients."""
        times = [each.record.timestamp for each in self.placed] or [self.append_time or 0]
        first, greatest = times[0], max(times)
        if self.attributes & LOG_APPEND_TIME:
            first = greatest = self.append_time or 0
        if self.commits is None:
            rows = [
                _record(
                    at - self.base_offset, each.timestamp - first if not self.attributes & LOG_APPEND_TIME else 0, each
                )
                for at, each in self.placed
            ]
        else:
            key, value = struct.pack(">hh", 0, self.commits), struct.pack(">hi", 0, 0)
            rows = [_record(0, 0, Record(-1, key, value, (), first))]
        tail = struct.pack(
            ">hiqqqhii",
            self.attributes | self.codec,
            self.last_offset - self.base_offset,
            first,
            greatest,
            *self.producer,
            len(rows),
        )
        body = tail + CODECS[self.codec](b"".join(rows))
        return struct.pack(">qiibI", self.base_offset, 9 + len(body), 0, 2, crc32c.crc32c(body)) + body


def _bytes(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def _record(offset_delta: int, timestamp_delta: int, record: Record) -> bytes:
    headers = b"".join(_bytes(name.encode()) + _bytes(value) for name, value in record.headers)
    body = b"".join(
        (
            b"\0" + varint(timestamp_delta) + varint(offset_delta) + _bytes(record.key) + _bytes(record.value),
            varint(len(record.headers)) + headers,
        )
    )
    return varint(len(body)) + body


@dataclass
class Log:
    """The batches of a partition; `start` is its log start offset, `end` its log end offset."""

    batches: list[Batch] = field(default_factory=list)
    begin: int = 0
    """Where its first segment began; compaction does not move it."""
    start: int = 0
    end: int = 0
    cleaned: int | None = None
    """Up to where the log cleaner has been."""

    def append(
        self,
        records: Sequence[Record],
        codec: int = 0,
        producer: tuple[int, int, int] = NO_PRODUCER,
        *,
        transactional: bool = False,
        append_time: int | None = None,
    ) -> None:
        """Append a batch; with `append_time` the broker dates it (LogAppendTime)."""
        placed = tuple(Placed(self.end + at, record) for at, record in enumerate(records))
        attributes = (TRANSACTIONAL if transactional else 0) | (0 if append_time is None else LOG_APPEND_TIME)
        last = self.end + len(records) - 1
        self.batches.append(Batch(self.end, last, placed, codec, producer, attributes, append_time))
        self.end = last + 1

    def mark(self, producer_id: int, time: int, *, commits: bool) -> None:
        """Append the marker that ends a producer's transaction."""
        flags = TRANSACTIONAL | CONTROL
        self.batches.append(
            Batch(self.end, self.end, (), 0, (producer_id, 0, -1), flags, append_time=time, commits=commits)
        )
        self.end += 1

    def visible(self, *, committed: bool) -> list[Placed]:
        """What a consumer reads, of read_committed or read_uncommitted."""
        dropped: set[int] = set()
        stable = self.end
        open_since: dict[int, list[Batch]] = {}
        for batch in self.batches:
            if batch.commits is not None:
                ended = open_since.pop(batch.producer[0], [])
                dropped |= set() if batch.commits else {each.base_offset for each in ended}
            elif batch.attributes & TRANSACTIONAL:
                open_since.setdefault(batch.producer[0], []).append(batch)
        if open_since:
            stable = min(batches[0].base_offset for batches in open_since.values())
        return [
            placed
            for batch in self.batches
            for placed in batch.placed
            if placed.offset >= self.start
            and (not committed or (batch.base_offset not in dropped and batch.base_offset < stable))
        ]

    def compact(self, until: int) -> None:
        """Keep of each key the last record below an offset, as the log cleaner does; records without a key go too."""
        self.cleaned = until
        last = {each.record.key: each.offset for batch in self.batches for each in batch.placed if each.offset < until}
        self.batches = [self._compacted(batch, last, until) for batch in self.batches]
        self.batches = [
            each for each in self.batches if each.placed or each.commits is not None or each.base_offset >= until
        ]

    def _compacted(self, batch: Batch, last: dict[bytes | None, int], until: int) -> Batch:
        if batch.base_offset >= until:
            return batch
        kept = tuple(
            each
            for each in batch.placed
            if each.record.key is not None and (each.offset >= until or last[each.record.key] == each.offset)
        )
        return replace(batch, placed=kept)

    def segments(self, starts: Sequence[int] = ()) -> Iterator[tuple[int, bytes]]:
        """(base offset, bytes) of segments: those batches that end before the log start are gone."""
        content: dict[int, bytearray] = {}
        there = [batch for batch in self.batches if batch.last_offset >= self.start]
        current = there[0].base_offset if there and self.start > self.begin else self.start
        content[current] = bytearray()
        for batch in there:
            if batch.base_offset in starts and content[current]:
                current = batch.base_offset
                content[current] = bytearray()
            content[current] += batch.encode()
        yield from ((base, bytes(each)) for base, each in content.items())

    def write(self, directory: Path, starts: Sequence[int] = ()) -> None:
        """Write the segments into a partition's directory; a new one begins at each of `starts`."""
        directory.mkdir(parents=True)
        for base, content in self.segments(starts):
            (directory / f"{base:020d}.log").write_bytes(content)
