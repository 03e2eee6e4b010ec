"""The files of a zip, by Python's zipfile, which reads the directory at its end; without one, by the header before each file."""

import errno
import stat
import struct
import time
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Final

from kaudit.model.limits import ARCHIVE_DIRECTORY_BYTES
from kaudit.source.archives.decoders import DEFLATE_WINDOW, Decoder, Inflater, SourceReader
from kaudit.source.archives.expanded import BLOCK_BYTES, Expanded, is_bomb
from kaudit.source.archives.forms import Form
from kaudit.source.archives.members import Member, Members
from kaudit.source.archives.parts import FilePart
from kaudit.source.archives.pieces import decoder
from kaudit.source.bytes import ByteSource, read_bytes

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_ENTRY: Final = b"PK\x01\x02"
_LOCAL_MAGIC: Final = b"PK\x03\x04"
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 0x1, 0x8, 0x800
_STORED, _DEFLATED, _BZIP2, _ZSTD = 0, 8, 12, 93
_METHODS: Final = (_STORED, _DEFLATED, _BZIP2, _ZSTD)
_OPEN_MEMBERS: Final = 8
_TRAILERS: Final = (16, 24, 12, 20)
"""Bytes that give the sizes of the file before them, with or without a signature, of 32 or 64 bits."""
_TIMESTAMPS: Final = 0x5455
"""Extra field of Info-ZIP with the time of modification in seconds since 1970; a zip itself has local times."""


class _Directory(SourceReader):
    """Limits what zipfile reads at once: all of the directory."""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises OSError for more than may be."""
        rest = self._size - self._at
        size = rest if size < 0 else min(size, rest)
        if size > ARCHIVE_DIRECTORY_BYTES:
            raise OSError(errno.EFBIG, f"the directory of the zip has more than {ARCHIVE_DIRECTORY_BYTES >> 20} MiB")
        return super().read(size) or b""


class ZipContent:
    """Opens the members of a zip; those opened last are kept, since they are read in pieces."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._opened: OrderedDict[int, ByteSource] = OrderedDict()

    def add_to(self, members: Members) -> str | None:
        """Add the files; return why some may be missing, None if none are."""
        try:
            with zipfile.ZipFile(_Directory(self._source)) as found:
                for info in found.filelist:
                    self._add(members, info)
        except (zipfile.BadZipFile, ValueError, LookupError, OverflowError, NotImplementedError, struct.error) as error:
            if members.entries[""]:
                return f"its directory is damaged ({error})"
            for info in self._walk(members):
                self._add(members, info)
            return "it has no directory at its end: it is cut off, or damaged there"
        return None

    def _add(self, members: Members, info: zipfile.ZipInfo) -> None:
        name = info.filename
        if "/" not in name and info.create_system == 0:
            name = name.replace("\\", "/")  # as .NET has written them
        if name.endswith("/"):
            members.directory(name)
            return
        kind = info.external_attr >> 16
        refusal = ""
        if info.flag_bits & _ENCRYPTED:
            refusal = "encrypted: kaudit asks for no passwords"
        elif stat.S_ISLNK(kind):
            refusal = "a symbolic link in an archive, which kaudit does not follow"
        elif kind and stat.S_IFMT(kind) and not stat.S_ISREG(kind):
            refusal = "no file in an archive, which kaudit does not follow"
        elif info.compress_type not in _METHODS:
            refusal = f"packed by a method (number {info.compress_type}) that kaudit does not read"
        opened = partial(self._open, info)
        members.add(name, Member(0 if refusal else info.file_size, _modified_ms(info), opened, refusal))

    def _open(self, info: zipfile.ZipInfo) -> ByteSource:
        at = info.header_offset
        if at in self._opened:
            self._opened.move_to_end(at)
            return self._opened[at]
        opened = self._checked(info)
        self._opened[at] = opened
        if len(self._opened) > _OPEN_MEMBERS:
            self._opened.popitem(last=False)
        return opened

    def _checked(self, info: zipfile.ZipInfo) -> ByteSource:
        """Open a member and read it once, to compare its size and its CRC-32. Raises OSError where they differ."""
        head = read_bytes(self._source, info.header_offset, _LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(_LOCAL_MAGIC):
            raise OSError(errno.EIO, "the zip is damaged: there is no file where its directory says", info.filename)
        start = info.header_offset + _LOCAL.size + sum(_LOCAL.unpack(head)[-2:])
        packed = FilePart(self._source, start, info.compress_size)
        content: ByteSource = packed
        if info.compress_type != _STORED:
            content = Expanded(_decoder(packed, info.compress_type), info.compress_size, info.filename)
        crc = at = 0
        while at <= info.file_size and (data := read_bytes(content, at, BLOCK_BYTES)):
            crc = zlib.crc32(data, crc)
            at += len(data)
        if at != info.file_size or crc != info.CRC:
            raise OSError(
                errno.EIO, "its size or its CRC-32 is not what the zip says: the zip is damaged", info.filename
            )
        return content

    def _walk(self, members: Members) -> Iterator[zipfile.ZipInfo]:
        """Yield the files by the headers before them, as long as each follows the one before and is whole."""
        at, size = 0, self._source.size()
        while (header := _local_header(self._source, at)) is not None:
            info, start = header
            if info.flag_bits & _SIZES_FOLLOW and info.compress_type == _DEFLATED:
                at = start + _measure(FilePart(self._source, start, size - start), info)
            else:
                at = start + info.compress_size
            if at > size:
                members.refuse(info.filename, "cut off: the zip ends in the middle of it")
                return
            yield info
            if info.flag_bits & _SIZES_FOLLOW:
                at += next((length for length in _TRAILERS if self._follows(at + length)), size)

    def _follows(self, at: int) -> bool:
        return read_bytes(self._source, at, len(_LOCAL_MAGIC)) in {_LOCAL_MAGIC, _ENTRY}


def _local_header(source: ByteSource, at: int) -> tuple[zipfile.ZipInfo, int] | None:
    """Return what the header of a file says, and where the file begins; None where there is no header."""
    head = read_bytes(source, at, _LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(_LOCAL_MAGIC):
        return None
    _, _, flags, method, clock, date, crc, packed, expanded, name_length, extra_length = _LOCAL.unpack(head)
    names = read_bytes(source, at + _LOCAL.size, name_length + extra_length)
    name = names[:name_length].decode("utf-8" if flags & _UTF8 else "cp437", "replace") or "a file without a name"
    day = (date >> 9) + 1980, date >> 5 & 15, date & 31
    info = zipfile.ZipInfo(name, (*day, clock >> 11, clock >> 5 & 63, (clock & 31) * 2))
    info.extra = names[name_length:]
    info.flag_bits, info.compress_type, info.header_offset = flags, method, at
    info.CRC, info.compress_size, info.file_size = crc, packed, expanded
    return info, at + _LOCAL.size + name_length + extra_length


def _measure(packed: FilePart, info: zipfile.ZipInfo) -> int:
    """Set the sizes and the CRC-32 of a file whose header leaves them out; return how long it is, more than there is if cut off."""
    inflater = Inflater(packed, DEFLATE_WINDOW)
    info.file_size = info.CRC = 0
    while (data := inflater.read(BLOCK_BYTES)) and not is_bomb(info.file_size, packed.size()):
        info.file_size += len(data)
        info.CRC = zlib.crc32(data, info.CRC)
    info.compress_size = packed.size() + 1 if inflater.problem else inflater.consumed
    return info.compress_size


def _decoder(packed: ByteSource, method: int) -> Decoder:
    if method == _DEFLATED:
        return Inflater(packed, DEFLATE_WINDOW)
    return decoder(Form.BZIP2 if method == _BZIP2 else Form.ZSTD, packed)


def _modified_ms(info: zipfile.ZipInfo) -> int:
    """Return the time of modification: in UTC where it is given, else by this machine's zone, as when unpacking."""
    extra = info.extra
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == _TIMESTAMPS and length >= 5 and len(extra) >= 9 and extra[4] & 1:
            return int(struct.unpack_from("<i", extra, 5)[0]) * 1000
        extra = extra[4 + length :]
    return int(time.mktime((*info.date_time, 0, 0, -1))) * 1000
