"""The records inside ZooKeeper's transactions: who changed which znode, and how.

Source: zookeeper.jute (org.apache.zookeeper.txn), SerializeUtils.deserializeTxn and ZooDefs.OpCode, 3.4 to 3.9.
"""

from collections.abc import Callable

from msgspec import Struct

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.zookeeper.jute import JuteReader

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
    """A transaction that changes no znode's value, or of a type this reader does not know."""

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
    for _ in range(reader.count(_SMALLEST_MULTI_MEMBER)):
        type_ = reader.int32()
        start = reader.position + 4
        reader.skip_buffer()
        # A null buffer advances by its length field alone, so the member is empty.
        members.append(_decode(type_, JuteReader(reader.data, start, reader.position), depth + 1))
    return Multi(tuple(members))


def _path(reader: JuteReader) -> str:
    return reader.string() or ""


def _create(reader: JuteReader) -> Create:
    return Create(_path(reader), reader.buffer())


def _delete(reader: JuteReader) -> Delete:
    return Delete(_path(reader))


def _set_data(reader: JuteReader) -> SetData:
    return SetData(_path(reader), reader.buffer(), reader.int32())


_DECODERS: dict[int, Callable[[JuteReader], Record]] = {
    **dict.fromkeys((OP_CREATE, OP_CREATE2, OP_CREATE_CONTAINER, OP_CREATE_TTL), _create),
    **dict.fromkeys((OP_DELETE, OP_DELETE_CONTAINER), _delete),
    **dict.fromkeys((OP_SET_DATA, OP_RECONFIG), _set_data),
    OP_ERROR: lambda reader: Failed(reader.int32()),
}
