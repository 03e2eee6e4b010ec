"""The files of a state: one directory a partition replica, with an index that is replaced at once and files of rows.

An index says which bytes of which segments are saved, and names the files where their rows lie. A file that no index names any
more is removed after an index was replaced. A run that is killed, or that runs beside another, leaves the former index, or one
whose rows are gone: then the log is read.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import lru_cache

import msgspec
import zstandard
from msgspec import Struct

from kaudit.crc import crc32c
from kaudit.errors import UsageError
from kaudit.model.limits import PACKED_CHUNK_BYTES, STATE_INDEX_BYTES
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_rows import ChunkRows, LastBatch
from kaudit.reading.saved_partition import DamagedStateError, FileIdentity, OtherFormatStateError, SavedRows, Settings
from kaudit.reading.struct_codec import FORMAT, unpacked
from kaudit.source.bytes import ByteSource
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

PARTITIONS = "partitions"
INDEX = "index"


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

    `joined`: number of following whole segments that are among the rows. The rows hold for a plan with the same log start offset, or
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
    """The replay of the first `ranges` ranges, in a file of its own: `length` bytes.

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
    """Index of the saved ranges of one partition. `files` are names of files beside the index; ranges are in the partition's order."""

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


def directory_of(state: Uri, partition_directory: str) -> Uri:
    """Return where a state keeps what it has of the partition replica in this directory."""
    place = str(Uri.parse(partition_directory).absolute())
    return state / PARTITIONS / hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:32]


def read_index(directory: Uri) -> tuple[PartitionIndex, str] | None:
    """Return a partition's index and its digest, None where there is none.

    Raises:
        DamagedStateError: it is something else.
        OSError: it cannot be read.

    """
    place = directory / INDEX
    try:
        encoded = filesystem(place).read_start(place, STATE_INDEX_BYTES)
    except FileNotFoundError:
        return None
    return decode_index(encoded), digest_of(encoded)


class _PlannedIndex(Struct, frozen=True):
    """An index, and its ranges by the base offset of the segment that they begin in."""

    index: PartitionIndex
    ranges: Mapping[int, Sequence[SavedRange]]


@lru_cache(maxsize=2)
def planned_index(rows: SavedRows) -> _PlannedIndex:
    """Return the index that a plan was made with; the ranges of one partition are asked for one after the other.

    Raises as `read_index` does, and DamagedStateError where another run has replaced it.
    """
    found = read_index(Uri.parse(rows.directory))
    if found is None or found[1] != rows.digest:
        raise DamagedStateError("another run has replaced an index meanwhile")
    index, ranges = found[0], defaultdict[int, list[SavedRange]](list)
    for entry in index.ranges:
        ranges[index.segments[entry.segment].base_offset].append(entry)
    return _PlannedIndex(index, ranges)


def ranges_of(rows: SavedRows, base_offset: int, start: int, stop: int) -> list[SavedRange]:
    """Return the saved ranges that begin in the segment of this base offset and make up these bytes, in order.

    Raises as `planned_index` does, and DamagedStateError where they do not make them up.
    """
    found = [entry for entry in planned_index(rows).ranges[base_offset] if start <= entry.start < stop]
    ends = [start, *(entry.stop for entry in found)]
    if [entry.start for entry in found] != ends[:-1] or ends[-1] != stop:
        raise DamagedStateError("an index does not have the ranges it had")
    return found


def load_rows(spec: ChunkSpec) -> list[ChunkRows]:
    """Return the rows that are saved for a range, or for small segments that were read together.

    Raises:
        OSError: they cannot be read.
        DamagedStateError: they are not what was saved.

    """
    assert spec.saved is not None
    directory = Uri.parse(spec.saved.directory)
    index = planned_index(spec.saved).index
    loaded: list[ChunkRows] = []
    with ExitStack() as stack:
        sources: dict[int, ByteSource] = {}
        for entry in ranges_of(spec.saved, spec.file.base_offset, spec.start, spec.stop):
            if entry.file not in sources:
                place = directory / index.files[entry.file]
                sources[entry.file] = stack.enter_context(closing(filesystem(place).open(place)))
            packed = read_packed(sources[entry.file], entry.at, entry.length, entry.crc)
            rows = _rows(packed, entry).renumbered(spec.segment)
            rows.is_saved = True
            loaded.append(rows)
    return loaded


def read_packed(source: ByteSource, at: int, length: int, crc: int) -> bytes:
    """Return `length` bytes of a file and check their CRC-32C.

    Raises as `load_rows` does.
    """
    if not 0 <= at <= at + length <= source.size() or length > PACKED_CHUNK_BYTES:
        raise DamagedStateError(f"a file of rows does not have {length} bytes at {at}")
    packed = bytearray(length)
    if source.read_into(at, memoryview(packed)) < length or crc32c(packed) != crc:
        raise DamagedStateError("a file of rows is damaged")
    return bytes(packed)


def _rows(packed: bytes, entry: SavedRange) -> ChunkRows:
    try:
        (rows,) = unpack_chunk(packed)
    except (UsageError, ValueError) as error:
        raise DamagedStateError(str(error)) from error
    here = (entry.joined, entry.start, entry.stop, entry.stop)
    if not isinstance(rows, ChunkRows) or here != (rows.joined, rows.start, rows.stop, rows.read_to):
        raise DamagedStateError("the rows of a range are those of another one")
    return rows
