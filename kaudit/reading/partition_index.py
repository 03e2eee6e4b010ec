"""The index of a partition's saved ranges: which bytes of which segments they are, and where their rows lie."""

import hashlib
from collections.abc import Sequence

import msgspec
import zstandard
from msgspec import Struct

from kaudit.model.limits import STATE_INDEX_BYTES
from kaudit.reading.chunk_rows import ChunkRows, LastBatch
from kaudit.reading.saved_partition import DamagedStateError, FileIdentity, OtherFormatStateError, Settings
from kaudit.reading.struct_codec import FORMAT, unpacked

_NAME = b"kaudit-state-"
_MAGIC = b"%s%d\n" % (_NAME, FORMAT)
_DIGEST_BYTES = hashlib.sha256().digest_size


class SavedSegment(Struct, frozen=True, array_like=True):
    """A segment as it was when it was read."""

    name: str
    base_offset: int
    size: int
    modified_ms: int
    file: FileIdentity


class SavedRange(Struct, frozen=True, array_like=True):
    """Bytes `start` to `stop` of a segment (its index), and `length` bytes from `at` of a file (its index) that hold their rows.

    `joined`: so many whole segments that follow are among the rows. The rows hold for a plan with the same log start offset, or
    where no batch lies below either; and for one whose latest timestamp parts the same timestamps.
    """

    segment: int
    joined: int
    start: int
    stop: int
    file: int
    at: int
    length: int
    crc: int
    log_start_offset: int | None
    first_offset: int | None
    max_timestamp: int
    least_beyond: int | None
    last_batch: LastBatch | None

    @classmethod
    def of(cls, rows: ChunkRows, log_start_offset: int | None, *, at: int, length: int, crc: int) -> "SavedRange":
        """Describe rows that were written to the file of index 0."""
        return cls(
            rows.segment,
            rows.joined,
            rows.start,
            rows.stop,
            0,
            at,
            length,
            crc,
            log_start_offset,
            rows.first_offset,
            rows.counts.max_timestamp,
            rows.least_beyond,
            rows.last_batch,
        )

    def holds(self, log_start_offset: int | None, latest_timestamp: int) -> bool:
        """Return whether reading the same bytes with these would give the same rows."""
        if self.max_timestamp > latest_timestamp or (
            self.least_beyond is not None and self.least_beyond <= latest_timestamp
        ):
            return False
        if log_start_offset == self.log_start_offset:
            return True
        first = self.first_offset
        return first is not None and max(log_start_offset or 0, self.log_start_offset or 0) <= first


class Checkpoint(Struct, frozen=True, array_like=True):
    """What putting the first `ranges` ranges together came to, in a file of its own: `length` bytes.

    It holds for the same segments from the first on, and the same `log_start_offset`; with the same `snapshots`, which were
    compared with it, and no other below `end_offset`; and if the cleaner's checkpoint lists the partition or not, as then.
    """

    ranges: int
    file: str
    length: int
    crc: int
    end_offset: int
    log_start_offset: int | None
    is_compacted: bool
    snapshots: Sequence[SavedSegment]


class PartitionIndex(Struct, frozen=True):
    """What is saved of one partition. `files` are names of files beside the index; ranges are in the partition's order."""

    settings: Settings
    directory: bytes
    segments: Sequence[SavedSegment]
    ranges: Sequence[SavedRange]
    files: Sequence[str]
    checkpoint: Checkpoint | None = None

    @property
    def names(self) -> list[str]:
        """All files that it needs."""
        return [*self.files, *([] if self.checkpoint is None else [self.checkpoint.file])]


def encode_index(index: PartitionIndex) -> bytes:
    """Return the index as a file."""
    content = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(index))
    return _MAGIC + hashlib.sha256(content).digest() + content


def digest_of(encoded: bytes) -> str:
    """Return what names an encoded index."""
    return encoded[len(_MAGIC) :][:_DIGEST_BYTES].hex()


def decode_index(encoded: bytes) -> PartitionIndex:
    """Return the index in a file.

    Raises:
        OtherFormatStateError: a kaudit with another format wrote it.
        DamagedStateError: it was cut, or changed, or is something else.

    """
    digest, content = encoded[len(_MAGIC) :][:_DIGEST_BYTES], encoded[len(_MAGIC) + _DIGEST_BYTES :]
    if encoded.startswith(_NAME) and not encoded.startswith(_MAGIC):
        raise OtherFormatStateError("an index is damaged, or has another format")
    if not encoded.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
        raise DamagedStateError("an index is damaged")
    try:
        index = msgspec.msgpack.decode(unpacked(content, STATE_INDEX_BYTES), type=PartitionIndex)
    except (zstandard.ZstdError, msgspec.DecodeError, MemoryError) as error:
        raise DamagedStateError(f"an index is damaged: {error}") from None
    if not all(
        0 <= entry.segment <= entry.segment + entry.joined < len(index.segments)
        and 0 <= entry.file < len(index.files)
        and 0 <= entry.start <= entry.stop
        for entry in index.ranges
    ) or any("/" in name or name in ("", ".", "..") for name in index.names):
        raise DamagedStateError("an index is damaged: it names what is not there")
    if index.checkpoint is not None and not 0 < index.checkpoint.ranges <= len(index.ranges):
        raise DamagedStateError("an index is damaged: its checkpoint is of ranges that are not there")
    return index
