"""Record batches and segments written by hand for tests: an encoder that shares nothing with kaudit.wire."""

import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

import crc32c

TRANSACTIONAL = 0x10
CONTROL = 0x20
BASE_TIMESTAMP = 1_700_000_000_000
WRAP = 2**31


def varint(number: int) -> bytes:
    """Zigzag varint."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def record(offset_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    """One record of a v2 batch without headers."""
    parts = [varint(-1) if part is None else varint(len(part)) + part for part in (key, value)]
    body = b"\0" + varint(0) + varint(offset_delta) + b"".join(parts) + varint(0)
    return varint(len(body)) + body


@dataclass(frozen=True)
class Batch:
    """One batch to be written; `payload` distinguishes batches with equal headers."""

    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    count: int = 1
    base_offset: int = 0
    timestamp: int = BASE_TIMESTAMP
    attributes: int = 0
    leader_epoch: int = 0
    payload: bytes = b"x"
    control: tuple[int, int] | None = None
    kept: int | None = None
    key: bytes | None = None

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.count - 1

    def at(self, offset: int) -> "Batch":
        """The same batch at another offset: its CRC does not change."""
        return replace(self, base_offset=offset)

    def encode(self) -> bytes:
        """The batch's bytes."""
        if self.control is not None:
            kind, coordinator_epoch = self.control
            records = [record(0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch))]
        else:
            records = [record(index, self.key, self.payload) for index in range(self.count)]
        if self.kept is not None:
            records = records[: self.kept]
        return sealed_records(self, records)


def keyed(batch: Batch) -> bytes:
    """The bytes of a batch whose records have keys of their own, as the log cleaner leaves them."""
    count = batch.count if batch.kept is None else batch.kept
    keys = (b"%d" % (batch.base_offset + index) for index in range(count))
    return sealed_records(batch, [record(index, key, batch.payload) for index, key in enumerate(keys)])


def sealed_records(batch: Batch, records: list[bytes]) -> bytes:
    """The bytes of a batch around these records."""
    body = b"".join(records)
    tail = struct.pack(
        ">hiqqqhii",
        batch.attributes,
        batch.count - 1,
        batch.timestamp,
        batch.timestamp,
        batch.producer_id,
        batch.epoch,
        batch.sequence,
        len(records),
    )
    crc = crc32c.crc32c(tail + body)
    head = struct.pack(">qiibI", batch.base_offset, 9 + len(tail) + len(body), batch.leader_epoch, 2, crc)
    return head + tail + body


def data(
    producer_id: int, epoch: int, sequence: int, count: int = 1, *, transactional: bool = False, **more: object
) -> Batch:
    """A data batch of a producer."""
    flags = TRANSACTIONAL if transactional else 0
    return Batch(producer_id, epoch, sequence % WRAP, count, attributes=flags, **more)  # type: ignore[arg-type]


def marker(producer_id: int, epoch: int, *, commit: bool = True, coordinator_epoch: int = 0, **more: object) -> Batch:
    """A transaction end marker."""
    flags = TRANSACTIONAL | CONTROL
    control = (1 if commit else 0, coordinator_epoch)
    return Batch(producer_id, epoch, -1, 1, attributes=flags, control=control, **more)  # type: ignore[arg-type]


@dataclass
class Log:
    """A partition's batches, placed at ascending offsets one millisecond apart."""

    batches: list[Batch] = field(default_factory=list)
    next_offset: int = 0
    clock: int = BASE_TIMESTAMP

    def append(self, batch: Batch, *, keep_time: bool = False) -> Batch:
        """Append a batch; a re-send keeps its timestamp, and with it its CRC."""
        self.clock += 1
        placed = batch.at(self.next_offset)
        if not keep_time:
            placed = replace(placed, timestamp=self.clock)
        self.batches.append(placed)
        self.next_offset = placed.last_offset + 1
        return placed

    def skip(self, offsets: int) -> None:
        """Leave offsets out, as retention of a cut-out batch would."""
        self.next_offset += offsets

    def encode(self) -> bytes:
        """All batches' bytes."""
        return b"".join(batch.encode() for batch in self.batches)

    def write(self, directory: Path, *, segment_starts: tuple[int, ...] = ()) -> Path:
        """Write segments into `directory`; a new one begins at each batch whose base offset is in `segment_starts`."""
        directory.mkdir(parents=True, exist_ok=True)
        first = self.batches[0].base_offset if self.batches else 0
        files: dict[int, bytearray] = {first: bytearray()}
        current = first
        for batch in self.batches:
            if batch.base_offset in segment_starts:
                current = batch.base_offset
                files.setdefault(current, bytearray())
            files[current] += batch.encode()
        for base, content in files.items():
            (directory / f"{base:020d}.log").write_bytes(content)
        return directory
