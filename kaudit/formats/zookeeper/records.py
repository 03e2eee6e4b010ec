"""Header and records of ZooKeeper's files; a record, serialised by jute, is a change of znodes.

Source: ZooKeeper's zookeeper.jute (org.apache.zookeeper.txn), BinaryInputArchive, SerializeUtils.deserializeTxn and
ZooDefs.OpCode, 3.4 to 3.9; FileHeader, FileTxnLog.TXNLOG_MAGIC, FileSnap.SNAP_MAGIC. Jute has big-endian integers,
length-prefixed strings, buffers and vectors; a length of -1 stands for null.
"""

import struct
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kaudit.formats.byte_reader import NULL_LENGTH, Reader
from kaudit.formats.errors import Reason, WireError

FORMAT_VERSION: Final = 2
_HEADER: Final = struct.Struct(">4siq")
FILE_HEADER_SIZE: Final = _HEADER.size


def read_file_header(data: memoryview, expected: bytes, what: str) -> int:
    """Check the header of a file whose magic is `expected` and return its database id (int64).

    Raises WireError, which calls the file `what`: TRUNCATED, VERSION.
    """
    if len(data) < FILE_HEADER_SIZE:
        raise WireError(0, Reason.TRUNCATED, f"a {what} of {len(data)} bytes has no file header")
    magic, version, database_id = _HEADER.unpack_from(data)
    if magic != expected:
        raise WireError(0, Reason.VERSION, f"magic {magic!r} instead of {expected!r}: not a ZooKeeper {what}")
    if version != FORMAT_VERSION:
        raise WireError(4, Reason.VERSION, f"{what} of format version {version}, known is {FORMAT_VERSION}")
    return int(database_id)


class JuteReader(Reader):
    """Reads Jute's variable-length values. A vector is its `count` and its elements."""

    __slots__ = ()

    def buffer(self) -> bytes | None:
        """Read a byte array, or None for null."""
        length = self._length("buffer")
        return None if length is None else self.raw(length, "buffer")

    def skip_buffer(self) -> int:
        """Pass a buffer or string without copying it; return where its bytes begin."""
        return self.skip(self._length("buffer") or 0, "buffer")

    def part(self, start: int) -> "JuteReader":
        """Return a reader of the bytes from `start` to here."""
        return JuteReader(self._data, start, self.position)

    def text(self) -> str | None:
        """Read a UTF-8 string, or None for null."""
        start = self.position
        raw = self.buffer()
        return None if raw is None else self._text(raw, start, "string")

    def count(self, what: str, smallest: int) -> int:
        """Read a vector's element count, 0 for null, whose elements take `smallest` (> 0) bytes or more each."""
        start = self.position
        return self._bounded(self._length(what) or 0, smallest, start, what)

    def _length(self, what: str) -> int | None:
        start = self.position
        length = self.int32(f"length of a {what}")
        if length == NULL_LENGTH:
            return None
        if length < 0:
            raise WireError(start, Reason.LENGTH, f"{what} of negative length {length}")
        return length


OP_CREATE = 1
OP_DELETE = 2
OP_SET_DATA = 5
OP_MULTI = 14
OP_CREATE2 = 15
OP_RECONFIG = 16
OP_CREATE_CONTAINER = 19
OP_DELETE_CONTAINER = 20
OP_CREATE_TTL = 21
OP_ERROR = -1

_SMALLEST_MULTI_MEMBER = 8
# A multi cannot be sent inside a multi; a file that nests them deeper is not ZooKeeper's.
_MAX_MULTI_DEPTH = 2


class Create(Struct, frozen=True):
    """A znode was created, `version` 0. `data` is None for no value."""

    path: str
    data: bytes | None


class Delete(Struct, frozen=True):
    """A znode went away."""

    path: str


class SetData(Struct, frozen=True):
    """A znode's value changed; `version` is the version after the change."""

    path: str
    data: bytes | None
    version: int


class Failed(Struct, frozen=True):
    """A request that was refused, e.g. -103 for a wrong version: changes nothing, yet takes a zxid."""

    error: int


class Multi(Struct, frozen=True):
    """Several operations as one transaction: all of `members` happened, or none when one of them is Failed."""

    members: tuple["Record", ...]


class Other(Struct, frozen=True):
    """A transaction that changes no znode's value, or has an unknown type."""

    type: int


Record = Create | Delete | SetData | Failed | Multi | Other


def decode_record(type_: int, reader: JuteReader) -> Record:
    """Decode the record of one transaction from `reader`, which ends where the transaction does.

    What follows the fields kept (access lists; from 3.6 on a digest of the tree) stays unread. Raises WireError.
    """
    return _decode(type_, reader, 0)


def _decode(type_: int, reader: JuteReader, depth: int) -> Record:
    if type_ == OP_MULTI:
        return _multi(reader, depth)
    decoder = _DECODERS.get(type_)
    return Other(type_) if decoder is None else decoder(reader)


def _multi(reader: JuteReader, depth: int) -> Multi:
    if depth == _MAX_MULTI_DEPTH:
        raise WireError(reader.position, Reason.LIMIT, f"multi transactions nested more than {_MAX_MULTI_DEPTH} deep")
    members: list[Record] = []
    for _ in range(reader.count("multi transaction", _SMALLEST_MULTI_MEMBER)):
        type_, start = reader.int32("type"), reader.skip_buffer()
        members.append(_decode(type_, reader.part(start), depth + 1))
    return Multi(tuple(members))


def _path(reader: JuteReader) -> str:
    return reader.text() or ""


def _create(reader: JuteReader) -> Create:
    return Create(_path(reader), reader.buffer())


def _delete(reader: JuteReader) -> Delete:
    return Delete(_path(reader))


def _set_data(reader: JuteReader) -> SetData:
    return SetData(_path(reader), reader.buffer(), reader.int32("version"))


_DECODERS: dict[int, Callable[[JuteReader], Record]] = {
    **dict.fromkeys((OP_CREATE, OP_CREATE2, OP_CREATE_CONTAINER, OP_CREATE_TTL), _create),
    **dict.fromkeys((OP_DELETE, OP_DELETE_CONTAINER), _delete),
    **dict.fromkeys((OP_SET_DATA, OP_RECONFIG), _set_data),
    OP_ERROR: lambda reader: Failed(reader.int32("error")),
}
