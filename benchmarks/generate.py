"""Segments made from a seed, with the truth about their faults. Shares no code with kaudit."""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import crc32c
import lz4.frame
import zstandard

TAIL = struct.Struct(">hiqqqhii")  # attributes .. records count: bytes 21 to 61
HEAD = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
TRANSACTIONAL, CONTROL = 0x10, 0x20
FIRST_TIMESTAMP = 1_700_000_000_000
FLUSH_BYTES = 8 << 20


@dataclass(frozen=True)
class Shape:
    """The shape of a log. Rates are per batch; `stride` is the distance between producer ids."""

    name: str
    records: tuple[int, int] = (1, 1)
    value_bytes: tuple[int, int] = (40, 70)
    producers: int = 2000
    stride: int = 1
    codec: str = "none"
    transactions: int = 0  # 0 none, else the transaction version: one batch and its marker each
    mixed: float = 0.0  # share of batches a hundred times as large
    anomalies: float = 2e-5  # of each kind


@dataclass
class Truth:
    """What was written: `findings` are the errors a scan must report, as (code, offset)."""

    batches: int = 0
    bytes: int = 0
    findings: set[tuple[str, int]] = field(default_factory=set)


@dataclass
class Producer:
    producer_id: int
    epoch: int = 0
    sequence: int = 0
    last: tuple[int, bytes, int, int, int] | None = None  # records, body, sequence, epoch, timestamp
    written: int = -1  # offset of its newest batch


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def record(delta: int, key: bytes | None, value: bytes) -> bytes:
    encoded = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(0) + varint(delta) + encoded + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, lambda raw: raw),
    "lz4": (3, lambda raw: lz4.frame.compress(raw, store_size=False)),
    "zstd": (4, lambda raw: zstandard.ZstdCompressor(level=3).compress(raw)),
}
WORDS = (b"order", b"user", b"status", b"created", b"amount", b"EUR", b"shipped", b'"id":')


def value(rng: random.Random, size: int, *, compressible: bool) -> bytes:
    if not compressible:
        return rng.randbytes(size)
    out = bytearray()
    while len(out) < size:
        out += rng.choice(WORDS) + b"," + str(rng.randrange(10**6)).encode()
    return bytes(out[:size])


def bodies(rng: random.Random, shape: Shape, factor: int, count: int) -> list[tuple[int, bytes]]:
    """A pool of (records, encoded records): headers and CRCs are what is unique in each batch."""
    compress = CODECS[shape.codec][1]
    pool = []
    for _ in range(count):
        number = rng.randint(*shape.records)
        sizes = [rng.randint(*shape.value_bytes) * factor for _ in range(number)]
        compressible = shape.codec != "none"
        raw = b"".join(record(at, None, value(rng, size, compressible=compressible)) for at, size in enumerate(sizes))
        pool.append((number, compress(raw)))
    return pool


class Writer:
    """Appends batches to a segment, and to another one once it has `segment_bytes`."""

    def __init__(self, path: Path, segment_bytes: int) -> None:
        self.directory = path.parent
        self.segment_bytes = segment_bytes
        self.file = path.open("wb")
        self.parts: list[bytes] = []
        self.waiting = 0
        self.offset = 0
        self.clock = FIRST_TIMESTAMP
        self.truth = Truth()
        self.corrupted = -1  # offset of the newest corrupt batch

    def append(
        self,
        producer: tuple[int, int, int],
        records: int,
        body: bytes,
        attributes: int,
        at: int | None = None,
        *,
        corrupt: bool = False,
    ) -> int:
        producer_id, epoch, sequence = producer
        self.clock += 1
        when = self.clock if at is None else at
        tail = TAIL.pack(attributes, records - 1, when, when, producer_id, epoch, sequence, records)
        crc = crc32c.crc32c(body, crc32c.crc32c(tail)) ^ int(corrupt)
        self.parts += (HEAD.pack(self.offset, 49 + len(body), 0, 2, crc), tail, body)
        self.truth.batches += 1
        self.truth.bytes += 61 + len(body)
        offset, self.offset = self.offset, self.offset + records
        self.waiting += 61 + len(body)
        if self.waiting > FLUSH_BYTES:
            self.flush()
        return offset

    def flush(self) -> None:
        self.file.write(b"".join(self.parts))
        self.parts.clear()
        self.waiting = 0
        if self.file.tell() >= self.segment_bytes:
            self.file.close()
            self.file = (self.directory / f"{self.offset:020d}.log").open("wb")


def marker_body(kind: int) -> bytes:
    return record(0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 7))


def generate(path: Path, shape: Shape, total_bytes: int, seed: int = 1, segment_bytes: int = 1 << 62) -> Truth:
    """Write about `total_bytes` to the segment at `path`, and more beside it if it has a limit; return the truth about it."""
    rng = random.Random(seed)
    pool, large = bodies(rng, shape, 1, 256), bodies(rng, shape, 100, 16)
    producers = [Producer(1000 + index * shape.stride) for index in range(shape.producers)]
    writer = Writer(path, segment_bytes)
    commit = marker_body(1)
    events = anomalies(rng, shape)
    while writer.truth.bytes < total_bytes:
        producer = producers[int(rng.random() * len(producers))]
        choice = large if shape.mixed and rng.random() < shape.mixed else pool
        records, body = choice[int(rng.random() * len(choice))]
        _send(writer, producer, shape, records, body, next(events))
        if shape.transactions:
            # version 2: the marker carries the next epoch, and data of it starts at 0
            if shape.transactions == 2:
                producer.epoch, producer.sequence, producer.last = producer.epoch + 1, 0, None
            attributes = TRANSACTIONAL | CONTROL
            writer.append((producer.producer_id, producer.epoch, -1), 1, commit, attributes)
    writer.flush()
    writer.file.close()
    return writer.truth


def anomalies(rng: random.Random, shape: Shape) -> Iterator[str]:
    """Yield the fault of each batch, mostly none."""
    kinds = (
        ("gap",) if shape.transactions == 1 else () if shape.transactions else ("gap", "duplicate", "fence", "corrupt")
    )
    while True:
        draw = rng.random()
        chosen = int(draw / shape.anomalies) if shape.anomalies else len(kinds)
        yield kinds[chosen] if chosen < len(kinds) else ""


def _send(writer: Writer, producer: Producer, shape: Shape, records: int, body: bytes, event: str) -> None:
    attributes = CODECS[shape.codec][0] | (TRANSACTIONAL if shape.transactions else 0)
    known, producer_id = producer.last is not None, producer.producer_id
    if event == "duplicate" and producer.last is not None:
        count, sent, sequence, epoch, at = producer.last
        offset = writer.append((producer_id, epoch, sequence), count, sent, attributes, at)
        writer.truth.findings.add(("KA101", offset))
        return
    # offsets lost to a corrupt batch since the producer's last one would explain its missing sequences
    if event == "gap" and known and producer.written > writer.corrupted:
        producer.sequence += 3
        writer.truth.findings.add(("KA104", writer.offset))
    old = (producer_id, producer.epoch, producer.sequence)
    if event == "fence" and known:
        producer.epoch, producer.sequence = producer.epoch + 1, 0
    corrupt = event == "corrupt" and known
    sequence, epoch = producer.sequence, producer.epoch
    offset = writer.append((producer_id, epoch, sequence), records, body, attributes, corrupt=corrupt)
    producer.written = offset
    if corrupt:
        writer.corrupted = offset
        writer.truth.findings.add(("KA001", offset))
    if event == "fence" and known:
        writer.truth.findings.add(("KA201", writer.append(old, records, body, attributes)))
    producer.last = None if corrupt else (records, body, sequence, epoch, writer.clock - (event == "fence" and known))
    producer.sequence += records


def generate_commits(path: Path, total_bytes: int, seed: int = 1) -> None:
    """Write a segment of __consumer_offsets: 200 groups with members commit one to ten of their partitions, one in 20 in a transaction."""
    rng = random.Random(seed)
    writer = Writer(path, 1 << 62)
    reached = [[0] * 10 for _ in range(200)]
    commit = marker_body(1)
    for group in range(len(reached)):
        # GroupMetadata of version 3: one member, whose subscription and assignment are empty
        member = (
            text("m") + text(None) + text("client") + text("/10.0.0.1") + struct.pack(">iiii", 60_000, 45_000, 0, 0)
        )
        state = struct.pack(">h", 3) + text("consumer") + struct.pack(">i", 1) + text("range") + text("m")
        named = struct.pack(">h", 2) + text(f"group-{group}")
        writer.append(NOBODY, 1, record(0, named, state + struct.pack(">qi", FIRST_TIMESTAMP, 1) + member), 0)
    while writer.truth.bytes < total_bytes:
        group = rng.randrange(len(reached))
        records: list[bytes] = []
        for partition in rng.sample(range(10), rng.choice((1, 1, 2, 10))):
            reached[group][partition] += rng.randrange(100)
            key = struct.pack(">h", 1) + text(f"group-{group}") + text("orders") + struct.pack(">i", partition)
            offset = (
                struct.pack(">hqi", 3, reached[group][partition], 5) + text("") + struct.pack(">q", FIRST_TIMESTAMP)
            )
            records.append(record(len(records), key, offset))
        producer = (1000 + group, 0, -1) if group % 20 == 0 else NOBODY
        attributes = TRANSACTIONAL if group % 20 == 0 else 0
        writer.append(producer, len(records), b"".join(records), attributes)
        if attributes:
            writer.append(producer, 1, commit, TRANSACTIONAL | CONTROL)
    writer.flush()
    writer.file.close()


def generate_metadata(path: Path, total_bytes: int, seed: int = 1) -> None:
    """Write a segment of __cluster_metadata: heartbeats of the controller, changes of partitions, and a grant of producer ids in 2,000."""
    rng = random.Random(seed)
    writer = Writer(path, 1 << 62)
    grants = 0
    while writer.truth.bytes < total_bytes:
        draw = rng.random()
        if draw < 0.0005:
            grants += 1
            value = b"\1\x0f\0" + struct.pack(">iqq", rng.randrange(3), 7, 1000 * grants) + b"\0"
        elif draw < 0.5:
            value = b"\1\x14\0\0"
        else:
            isr = struct.pack(">iii", 1, 2, 3)
            value = b"\1\5\0" + struct.pack(">i", rng.randrange(50)) + rng.randbytes(16) + b"\1\0\x0d\4" + isr
        writer.append(NOBODY, 1, record(0, None, value), 0)
    writer.flush()
    writer.file.close()


NOBODY = (-1, -1, -1)


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()
