"""The files of a tar, by Python's tarfile, which reads the headers; their content is read where it lies."""

import errno
import tarfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from kaudit.model.limits import ARCHIVE_HEADER_BYTES
from kaudit.source.archives.decoders import SourceReader
from kaudit.source.archives.members import Member, Members
from kaudit.source.archives.parts import FilePart, SparseFile
from kaudit.source.bytes import ByteSource, read_bytes

_LAST_MS: Final = 1 << 53
_BROKEN: Final = (tarfile.TarError, ValueError, LookupError, OverflowError, RecursionError, TypeError)
"""What tarfile raises for headers that nobody wrote."""
_KINDS: Final = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
}


class _Headers(SourceReader):
    """Limits what is read of one member's headers, which tarfile holds in memory."""

    allowed = ARCHIVE_HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises OSError for more than may be."""
        if not 0 <= size <= self.allowed:
            raise OSError(errno.EFBIG, f"the headers of one member have more than {ARCHIVE_HEADER_BYTES >> 20} MiB")
        self.allowed -= size
        return super().read(size) or b""


def tar_members(source: ByteSource, members: Members) -> str | None:
    """Add the files of a tar; return why they end early, None where they do not."""
    size = source.size()
    headers = _Headers(source)
    at = 0
    try:
        with tarfile.TarFile(fileobj=headers, mode="r", errorlevel=0) as tar:
            while True:
                headers.allowed = ARCHIVE_HEADER_BYTES
                found = tar.next()
                if found is None:
                    break
                if found.size < 0 or tar.offset <= at:
                    return f"the header of {found.name} is damaged"
                at = tar.offset
                tar.members.clear()  # type: ignore[attr-defined] # it would keep every header it has read
                _add(source, members, found)
                if at > size:
                    return f"it ends in the middle of {found.name}"
    except _BROKEN as error:
        return f"the header after byte {at:,} is damaged ({error})"
    end = read_bytes(source, at, tarfile.BLOCKSIZE)
    if any(end):
        return f"what follows byte {at:,} is no header of a tar"
    return None if end else "it ends without its end mark: files after it may be missing"


def _add(source: ByteSource, members: Members, found: tarfile.TarInfo) -> None:
    if found.isdir():
        members.directory(found.name)
        return
    refusal = ""
    size = found.size
    opened: Callable[[], ByteSource] = partial(_open, source, found.offset_data, found.size, _holes(found))
    if found.islnk():
        target = members.find(found.linkname)
        if target is None:
            refusal = f"a hard link to {found.linkname}, which is not in the archive before it"
        else:
            size, opened, refusal = target.size, target.open, target.refusal
    elif not found.isreg():
        kind = _KINDS.get(found.type, "no file")
        refusal = f"{kind} in an archive, which kaudit does not follow"
    elif not _is_sane(found):
        refusal = "the list of its holes is damaged"
    members.add(found.name, Member(0 if refusal else size, _modified_ms(found), opened, refusal))


def _holes(found: tarfile.TarInfo) -> Sequence[tuple[int, int]] | None:
    """Return where the data of a file with holes lie, position and length; None for a file without."""
    listed = cast("Sequence[tuple[int, int]] | None", found.sparse)  # as tarfile fills it, whatever its stub says
    return None if listed is None else [entry for entry in listed if entry[1]]  # some of old tars stand for nothing


def _is_sane(found: tarfile.TarInfo) -> bool:
    end = 0
    for position, length in _holes(found) or ():
        if position < end or length < 0:
            return False
        end = position + length
    return end <= found.size


def _modified_ms(found: tarfile.TarInfo) -> int:
    return min(max(round(found.mtime * 1000), 0), _LAST_MS)


def _open(source: ByteSource, position: int, size: int, data: Sequence[tuple[int, int]] | None) -> ByteSource:
    if data is None:
        return FilePart(source, position, size)
    return SparseFile(source, position, size, data)
