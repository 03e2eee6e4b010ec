"""The files of a state: one directory a partition replica, with an index that is replaced at once and files of rows.

An index names the files of rows that it needs. What no index names any more is removed when an index was replaced; a run
that is killed, or one that runs beside another, leaves a former index, or one whose rows are gone: then the log is read.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import lru_cache

import crc32c
from msgspec import Struct

from kaudit.errors import UsageError
from kaudit.model.limits import PACKED_CHUNK_BYTES, STATE_INDEX_BYTES
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.partition_index import (
    PartitionIndex,
    SavedRange,
    decode_index,
    digest_of,
)
from kaudit.reading.saved_partition import DamagedStateError, SavedRows
from kaudit.source.bytes import ByteSource
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

PARTITIONS = "partitions"
INDEX = "index"


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
    """Return so many bytes of a file, whose CRC-32C is this.

    Raises as `load_rows` does.
    """
    if not 0 <= at <= at + length <= source.size() or length > PACKED_CHUNK_BYTES:
        raise DamagedStateError(f"a file of rows does not have {length} bytes at {at}")
    packed = bytearray(length)
    if source.read_into(at, memoryview(packed)) < length or crc32c.crc32c(packed) != crc:
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
