"""The manifest of a segment that Aiven's tiered-storage plugin has copied to an object store: JSON, one beside each segment.

The plugin cuts a segment into chunks of one size, transforms each by itself (zstd, AES-GCM, or not at all) and stores them one after the
other; the manifest says how long each became. Source: the plugin's README ("Chunking", "Index encoding") and its SegmentManifestV1,
ChunkIndex and ChunkSizesBinaryCodec (github.com/Aiven-Open/tiered-storage-for-apache-kafka).
"""

import base64
import struct
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct, field
from numpy.typing import NDArray

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.codecs import Codec, decompress

_INT32: Final = (1 << 31) - 1
ENCRYPTION_BYTES: Final = 28
"""By which encryption makes a chunk or an index longer: an initialization vector of 12 bytes in front, a tag of 16 at the end."""
_MAX_INDEX_BYTES: Final = 10 << 20
"""Bytes of the chunks' sizes: TransformedChunksDeserializer.MAX_DECOMPRESSED_SIZE."""
_MOST_BYTES_OF_SIZE: Final = 4

_Size = Annotated[int, Meta(ge=0, le=_INT32)]
_Offset = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Chunk(Struct, frozen=True):
    """One chunk: `start` and `size` in the segment, and `object_start` and `object_size` in the object that holds it transformed."""

    number: int
    start: int
    size: int
    object_start: int
    object_size: int


class ChunkIndex(Struct, frozen=True, eq=False):
    """Where the chunks of a segment of `file_size` bytes lie; each but the last is `chunk_size` bytes of it.

    `ends`: where each ends in the object, shape (chunks,), int64; None where all but the last, of `last_size`, became `transformed_size`.
    """

    chunk_size: int
    file_size: int
    transformed_size: int = 0
    last_size: int = 0
    ends: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.file_size // self.chunk_size)

    @property
    def object_size(self) -> int:
        """Size of the object in bytes."""
        return self._end(self.count - 1) if self.count else 0

    def at(self, position: int) -> Chunk:
        """Return the chunk that holds a byte of the segment, 0 <= position < file_size."""
        number = position // self.chunk_size
        start = number * self.chunk_size
        size = min(self.chunk_size, self.file_size - start)
        first = self._end(number - 1) if number else 0
        return Chunk(number, start, size, first, self._end(number) - first)

    def _end(self, number: int) -> int:
        if self.ends is not None:
            return int(self.ends[number])
        return number * self.transformed_size + (self.last_size if number == self.count - 1 else self.transformed_size)


class IndexRange(Struct, frozen=True):
    """Bytes of the object with a segment's indexes that are one of them."""

    position: _Size
    size: _Size


class IndexRanges(Struct, frozen=True, rename="camel"):
    """Where each index lies in the object that holds them all; a segment without aborted transactions has no index of them."""

    offset: IndexRange
    timestamp: IndexRange
    producer_snapshot: IndexRange
    leader_epoch: IndexRange
    transaction: IndexRange | None


class SegmentMetadata(Struct, frozen=True, rename="camel"):
    """What the broker said of the segment: the part of RemoteLogSegmentMetadata that the plugin writes. Both offsets are inclusive."""

    start_offset: _Offset
    end_offset: _Offset
    segment_leader_epochs: Mapping[int, _Offset] = field(default_factory=dict)


class Encryption(Struct, frozen=True):
    """The key that the chunks are encrypted with, itself encrypted with the RSA key `key_id`, and what is authenticated besides each chunk."""

    key_id: str
    data_key: bytes
    aad: bytes


class SegmentManifest(Struct, frozen=True):
    """A manifest that makes sense. `metadata` is None in those that other programs wrote without it."""

    chunks: ChunkIndex
    indexes: IndexRanges
    compressed: bool
    encryption: Encryption | None
    metadata: SegmentMetadata | None

    @property
    def overhead(self) -> int:
        """Bytes by which each index is longer than its file."""
        return 0 if self.encryption is None else ENCRYPTION_BYTES

    @property
    def is_plain(self) -> bool:
        """Whether the object is the segment, byte by byte."""
        chunks = self.chunks
        same = chunks.ends is None and (chunks.transformed_size == chunks.chunk_size or chunks.count < 2)
        return not self.compressed and self.encryption is None and same and chunks.object_size == chunks.file_size


class _ChunkIndex(Struct, frozen=True, rename="camel"):
    type: Literal["fixed", "variable"]
    original_chunk_size: Annotated[int, Meta(ge=1, le=_INT32)]
    original_file_size: _Size
    transformed_chunk_size: _Size | None = None
    final_transformed_chunk_size: _Size | None = None
    transformed_chunks: str | None = None


class _Encryption(Struct, frozen=True, rename="camel"):
    data_key: str
    aad: bytes

    def parsed(self) -> Encryption:
        """Return it with its key as bytes, which is written as `KEY_ID:BASE64` (EncryptedDataKey)."""
        key_id, _, data_key = self.data_key.partition(":")
        try:
            return Encryption(key_id, base64.b64decode(data_key, validate=True), self.aad)
        except ValueError as error:
            raise WireError(0, Reason.TEXT, f"the data key is not in base64: {error}") from None


class _Manifest(Struct, frozen=True, rename="camel"):
    version: str
    chunk_index: _ChunkIndex
    segment_indexes: IndexRanges
    compression: bool
    encryption: _Encryption | None = None
    remote_log_segment_metadata: SegmentMetadata | None = None


def parse_segment_manifest(data: bytes) -> SegmentManifest:
    """Decode a `.rsm-manifest`. Raises WireError where it is no manifest, or its numbers contradict one another."""
    try:
        found = msgspec.json.decode(data, type=_Manifest)
    except msgspec.ValidationError as error:
        raise WireError(0, Reason.VALUE, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(0, Reason.TEXT, f"not a manifest in JSON: {error}") from None
    if found.version != "1":
        raise WireError(0, Reason.VERSION, f"version {found.version} of the manifest; known is 1")
    chunks = _chunks(found.chunk_index)
    encryption = None if found.encryption is None else found.encryption.parsed()
    return SegmentManifest(
        chunks, found.segment_indexes, found.compression, encryption, found.remote_log_segment_metadata
    )


def _chunks(index: _ChunkIndex) -> ChunkIndex:
    chunk_size, file_size = index.original_chunk_size, index.original_file_size
    if index.type == "fixed":
        if index.transformed_chunk_size is None or index.final_transformed_chunk_size is None:
            raise WireError(0, Reason.VALUE, "a fixed chunk index without the sizes of its chunks")
        return ChunkIndex(chunk_size, file_size, index.transformed_chunk_size, index.final_transformed_chunk_size)
    if index.transformed_chunks is None:
        raise WireError(0, Reason.VALUE, "a variable chunk index without the sizes of its chunks")
    ends = np.cumsum(parse_chunk_sizes(index.transformed_chunks), dtype=np.int64)
    found = ChunkIndex(chunk_size, file_size, ends=ends)
    if len(ends) != found.count:
        stated = f"{file_size} bytes in chunks of {chunk_size}"
        raise WireError(0, Reason.COUNT, f"sizes of {len(ends)} chunks for {stated}: {found.count} are needed")
    return found


def parse_chunk_sizes(text: str) -> NDArray[np.int64]:
    """Decode the sizes of transformed chunks, shape (chunks,): base64 of zstd of a base and the differences to it. Raises WireError."""
    try:
        packed = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise WireError(0, Reason.TEXT, f"the sizes of the chunks are not in base64: {error}") from None
    data = decompress(Codec.ZSTD, 2, packed, _MAX_INDEX_BYTES)
    try:
        (count,) = struct.unpack_from(">i", data)
        if count < 2:
            sizes = np.array(struct.unpack_from(f">{max(count, 0)}i", data, 4), dtype=np.int64)
            end = 4 + 4 * max(count, 0)
        else:
            base, width = struct.unpack_from(">iB", data, 4)
            sizes, end = _differences(data, count, base, width)
    except struct.error:
        raise WireError(0, Reason.TRUNCATED, f"the sizes of the chunks end after {len(data)} bytes") from None
    if count < 0 or end != len(data) or (sizes < 0).any():
        raise WireError(0, Reason.COUNT, f"{len(data)} bytes are not the sizes of {count} chunks")
    return sizes


def _differences(data: bytes, count: int, base: int, width: int) -> tuple[NDArray[np.int64], int]:
    """Return the sizes, all but the last of them `width` bytes more than `base`, and where they end."""
    end = 9 + (count - 1) * width
    if not 1 <= width <= _MOST_BYTES_OF_SIZE or end + 4 != len(data):
        raise WireError(0, Reason.LENGTH, f"{len(data)} bytes are not {count} sizes of {width} bytes")
    digits = np.frombuffer(data, dtype=np.uint8, count=(count - 1) * width, offset=9).reshape(-1, width)
    padded = np.zeros((count - 1, _MOST_BYTES_OF_SIZE), dtype=np.uint8)
    padded[:, _MOST_BYTES_OF_SIZE - width :] = digits
    sizes = padded.view(">u4")[:, 0].astype(np.int64) + base
    return np.append(sizes, np.int64(struct.unpack_from(">i", data, end)[0])), end + 4
