"""A segment in the objects of Aiven's plugin: `X.log!` is the segment that X.log holds in chunks, `X.indexes!/NAME` a file beside it.

X.rsm-manifest says where each lies (kaudit.formats.sidefiles.segment_manifest); opening it is one small read.
"""

import errno
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.formats.sidefiles.segment_manifest import Chunk, SegmentManifest, parse_segment_manifest
from kaudit.installation import install_command
from kaudit.model.limits import MANIFEST_BYTES, UNPACKED_BYTES
from kaudit.source.archives.parts import FilePart
from kaudit.source.bytes import ByteSource, HeldBytes, announce, read_bytes
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT
from kaudit.source.filesystem import FileStatus, FileSystem
from kaudit.source.layout import Unreadable
from kaudit.source.uri import Uri

if TYPE_CHECKING:  # an extra
    from kaudit.source.decryption import DataKey

LOG, INDEXES, MANIFEST = "log", "indexes", "rsm-manifest"
"""Suffixes of the three objects of a segment (ObjectKeyFactory.Suffix)."""
_OBJECT: Final = re.compile(rf"([0-9]{{20}})-([a-zA-Z0-9_-]{{22}})\.({LOG}|{INDEXES}|{MANIFEST})")
_NO_BATCH: Final = b"\xff"
"""Bytes that stand where a chunk cannot be decoded: no batch begins with them, and they are no preallocated zeros."""


def object_name(name: str) -> tuple[int, str, str] | None:
    """Return base offset, segment id and suffix in the name of an object of a segment; None for any other name."""
    found = _OBJECT.fullmatch(name)
    return None if found is None else (int(found[1]), found[2], found[3])


def manifest_of(place: Uri) -> Uri:
    """Return where the manifest of an object's segment lies."""
    return place.parent / f"{place.last.rpartition('.')[0]}.{MANIFEST}"


def read_manifest(files: FileSystem, place: Uri) -> SegmentManifest:
    """Read a manifest.

    Raises:
        OSError: it is missing, cannot be read, or is damaged; the text names it.

    """
    try:
        data = files.read_start(place, MANIFEST_BYTES + 1)
    except FileNotFoundError:
        missing = f"its manifest {place.last} is missing: the upload did not finish, or somebody deleted it"
        raise OSError(errno.EIO, missing, str(place)) from None
    except OSError as error:
        raise type(error)(error.errno, f"its manifest {place.last}: {error.strerror}", str(place)) from error
    if len(data) > MANIFEST_BYTES:
        raise OSError(errno.EFBIG, f"its manifest {place.last} has more than {MANIFEST_BYTES >> 20} MiB", str(place))
    try:
        return parse_segment_manifest(data)
    except WireError as error:
        raise OSError(errno.EINVAL, f"its manifest {place.last} is damaged: {error.detail}", str(place)) from error


def index_files(base_offset: int, manifest: SegmentManifest) -> Mapping[str, tuple[int, int]]:
    """Return position and size, in the object of a segment's indexes, of the files that a broker keeps under these names.

    The producer snapshot is that of the segment's end (RemoteLogManager.copyLogSegment); without metadata that is not known.
    """
    ranges, prefix = manifest.indexes, f"{base_offset:020d}"
    named = {
        f"{prefix}.index": ranges.offset,
        f"{prefix}.timeindex": ranges.timestamp,
        f"{prefix}.txnindex": ranges.transaction,
    }
    # neither file is ever empty: nothing was uploaded then
    if ranges.leader_epoch.size:
        named[LEADER_EPOCH_CHECKPOINT] = ranges.leader_epoch
    if manifest.metadata is not None and ranges.producer_snapshot.size:
        named[f"{manifest.metadata.end_offset + 1:020d}.snapshot"] = ranges.producer_snapshot
    return {name: (found.position, found.size) for name, found in named.items() if found is not None}


class SegmentObject(FileSystem):
    """What one object of a segment holds, as a file system: a file for the log, a directory for the indexes."""

    is_remote = False
    is_compressed = False
    refused: Sequence[Unreadable] = ()
    noted: Sequence[Unreadable] = ()

    def __init__(self, files: FileSystem, place: Uri, held_as: FileStatus) -> None:
        """Read the manifest beside `place`. Raises OSError as `read_manifest` and `require_readable`."""
        named = object_name(place.last)
        assert named is not None, "whoever asks has looked at the name"
        self._files, self._place, self._held_as = files, place, held_as
        self._base_offset, _, self._suffix = named
        self.manifest = read_manifest(files, manifest_of(place))
        require_readable(self.manifest, place)

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        if self._suffix == LOG:
            return FileStatus(uri.last, False, self.manifest.chunks.file_size, self._held_as.modified_ms)
        if uri == self._place.content:
            return FileStatus(uri.last, True, 0, self._held_as.modified_ms)
        size = max(self._range(uri)[1] - self.manifest.overhead, 0)
        return FileStatus(uri.last, False, size, self._held_as.modified_ms)

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List the indexes, sorted by name."""
        if self._suffix == LOG or uri != self._place.content:
            raise FileNotFoundError(errno.ENOENT, "no such directory in the object", str(uri))
        return [self.status(uri / name) for name in sorted(index_files(self._base_offset, self.manifest))]

    def open(self, uri: Uri, key_files: Sequence[str] = ()) -> ByteSource:
        """Open the segment, or one of its indexes, with the private keys in these files. Raises OSError where it is encrypted and none is its."""
        key = self._key(key_files)
        if self._suffix == LOG:
            return ChunkedSegment(self._files.open(self._place), self.manifest, key)
        position, size = self._range(uri)
        part = _Part(self._files.open(self._place), position, size)
        if key is None or not size:
            return part
        with closing(part):
            data = read_bytes(part, 0, min(size, UNPACKED_BYTES))
        try:
            return HeldBytes(memoryview(key.decrypted(data)))
        except WireError as error:
            where = f"bytes {position:,} to {position + size:,} of the object"
            raise OSError(errno.EIO, f"{where} cannot be decrypted: {error.detail}", str(uri)) from None

    def chunk_at(self, position: int, key_files: Sequence[str] = ()) -> tuple[Chunk, str]:
        """Return the chunk that holds a byte of the segment, and why it cannot be decoded: empty where it can. Raises OSError as `open`."""
        with closing(ChunkedSegment(self._files.open(self._place), self.manifest, self._key(key_files))) as source:
            chunk = self.manifest.chunks.at(position)
            return chunk, source.problem(chunk)

    def _key(self, key_files: Sequence[str]) -> "DataKey | None":
        encryption = self.manifest.encryption
        if encryption is None:
            return None
        if not key_files:
            instead = "scan --remote with --remote-key FILE, its private RSA key, decrypts it"
            raise OSError(
                errno.EACCES, f"encrypted with key {encryption.key_id} (AES-GCM): {instead}", str(self._place)
            )
        key: DataKey = decryption("DataKey")(encryption, key_files)
        return key

    def _range(self, uri: Uri) -> tuple[int, int]:
        found = index_files(self._base_offset, self.manifest).get(uri.last)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such index in the object", str(uri))
        return found


def require_readable(manifest: SegmentManifest, place: Uri) -> None:
    """Check that kaudit decodes the chunks of a segment. Raises OSError where they are larger than is held."""
    size = min(manifest.chunks.chunk_size, manifest.chunks.file_size)
    if not manifest.is_plain and size > UNPACKED_BYTES:
        raise OSError(errno.EFBIG, f"chunks of {size:,} bytes: kaudit holds {UNPACKED_BYTES >> 20} MiB", str(place))


def decryption(name: str) -> Callable[..., Any]:
    """Return what kaudit.source.decryption has under a name. Raises OSError without the extra."""
    try:
        found: Callable[..., Any] = getattr(import_module("kaudit.source.decryption"), name)
    except ImportError:
        raise OSError(errno.ENOSYS, f"decrypting needs an extra: {install_command('decryption')}") from None
    return found


class _Part(FilePart):
    """A part of an object that is opened for it alone."""

    def __init__(self, source: ByteSource, start: int, size: int) -> None:
        super().__init__(source, start, size)
        self.close: Callable[[], None] = source.close  # nobody else reads it


class ChunkedSegment:
    """A segment whose chunks are decoded one by one; the last one that was read is held."""

    def __init__(self, source: ByteSource, manifest: SegmentManifest, key: "DataKey | None" = None) -> None:
        self._source = source
        self._chunks = manifest.chunks
        self._compressed = manifest.compressed
        self._key = key
        self._number = -1
        self._held = b""
        self.close = source.close

    def size(self) -> int:
        """Return the size of the segment."""
        return self._chunks.file_size

    def announce(self, start: int, stop: int) -> None:
        """Announce the bytes of the object that hold these of the segment."""
        stop = min(stop, self._chunks.file_size)
        if start < stop:
            last = self._chunks.at(stop - 1)
            announce(self._source, self._chunks.at(start).object_start, last.object_start + last.object_size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        done, wanted = 0, min(len(buffer), self._chunks.file_size - position)
        while done < wanted:
            chunk = self._chunks.at(position + done)
            if chunk.number != self._number:
                self._held, self._number = self._decoded(chunk), chunk.number
            at = position + done - chunk.start
            part = self._held[at : at + wanted - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return max(done, 0)

    def problem(self, chunk: Chunk) -> str:
        """Return why a chunk cannot be decoded, empty where it can."""
        try:
            self._content(chunk)
        except WireError as error:
            return error.detail
        return ""

    def _decoded(self, chunk: Chunk) -> bytes:
        try:
            return self._content(chunk)
        except WireError:
            return _NO_BATCH * chunk.size

    def _content(self, chunk: Chunk) -> bytes:
        """Return the bytes of a chunk. Raises WireError where the object's are not those, OSError where it cannot be read."""
        size = min(chunk.object_size, max(self._source.size() - chunk.object_start, 0))
        data = read_bytes(self._source, chunk.object_start, size) if size else b""
        return decoded_chunk(data, chunk, compressed=self._compressed, key=self._key)


def decoded_chunk(data: bytes, chunk: Chunk, *, compressed: bool, key: "DataKey | None" = None) -> bytes:
    """Return what the bytes of a chunk were before the plugin transformed them.

    Raises:
        WireError: there are too few, AES-GCM or zstd refuses them, or they become another number of bytes than the manifest says.

    """
    if len(data) < chunk.object_size:
        missing = f"the object ends {chunk.object_size - len(data):,} bytes before the chunk does"
        raise WireError(len(data), Reason.TRUNCATED, missing)
    content = data if key is None else key.decrypted(data)
    content = decompress(Codec.ZSTD, 2, content, chunk.size) if compressed else content
    if len(content) != chunk.size:
        raise WireError(0, Reason.LENGTH, f"it becomes {len(content):,} bytes, {chunk.size:,} by the manifest")
    return content
