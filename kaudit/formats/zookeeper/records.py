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
OP_SET_ACL = 7
OP_CHECK = 13
OP_MULTI = 14
OP_CREATE2 = 15
OP_RECONFIG = 16
OP_CREATE_CONTAINER = 19
OP_DELETE_CONTAINER = 20
OP_CREATE_TTL = 21
OP_CREATE_SESSION = -10
OP_CLOSE_SESSION = -11
OP_ERROR = -1

_SMALLEST_ACL = 12
_SMALLEST_PATH = 4
_SMALLEST_MULTI_MEMBER = 8
# A multi cannot be sent inside a multi; a file that nests them deeper is not ZooKeeper's.
_MAX_MULTI_DEPTH = 2


class Create(Struct, frozen=True):
    """A znode was created, `version` 0. `data` is None for no value; `kind`: persistent, container or TTL."""

    path: str
    data: bytes | None
    ephemeral: bool
    kind: int


class Delete(Struct, frozen=True):
    """A znode went away."""

    path: str


class SetData(Struct, frozen=True):
    """A znode's value changed; `version` is the version after the change."""

    path: str
    data: bytes | None
    version: int


class SetAcl(Struct, frozen=True):
    """A znode's access list changed; `version` is the access list's own."""

    path: str
    version: int


class Check(Struct, frozen=True):
    """A multi's condition on a znode's version: changes nothing."""

    path: str
    version: int


class CreateSession(Struct, frozen=True):
    """A client's session began; `timeout_ms` as negotiated."""

    timeout_ms: int


class CloseSession(Struct, frozen=True):
    """A client's session ended. `deleted` are its ephemeral znodes as 3.6+ lists them, empty before."""

    deleted: tuple[str, ...]


class Failed(Struct, frozen=True):
    """A request that was refused, e.g. -103 for a wrong version: changes nothing, yet takes a zxid."""

    error: int


class Multi(Struct, frozen=True):
    """Several operations as one transaction: all of `members` happened, or none when one of them is Failed."""

    members: tuple["Record", ...]


class Unknown(Struct, frozen=True):
    """A transaction of a type this reader does not know, its bytes as they are."""

    type: int
    raw: bytes


Record = Create | Delete | SetData | SetAcl | Check | CreateSession | CloseSession | Failed | Multi | Unknown


def decode_record(type_: int, reader: JuteReader) -> Record:
    """Decode the record of one transaction from `reader`, which ends where the transaction does.

    What follows the record (3.6+ may append a digest of the tree) stays unread. Raises WireError.
    """
    return _decode(type_, reader, 0)


def _decode(type_: int, reader: JuteReader, depth: int) -> Record:
    if type_ == OP_MULTI:
        return _multi(reader, depth)
    decoder = _DECODERS.get(type_)
    if decoder is None:
        start = reader.position
        reader.position = reader.end
        return Unknown(type_, bytes(reader.data[start : reader.end]))
    return decoder(reader)


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


def _skip_acl(reader: JuteReader) -> None:
    for _ in range(reader.count(_SMALLEST_ACL)):
        reader.int32()
        reader.skip_buffer()
        reader.skip_buffer()


def _create(reader: JuteReader) -> Create:
    path, data = _path(reader), reader.buffer()
    _skip_acl(reader)
    # parentCVersion follows, since 3.4; nothing here needs it.
    return Create(path, data, reader.boolean(), OP_CREATE)


def _create_container(reader: JuteReader) -> Create:
    path, data = _path(reader), reader.buffer()
    _skip_acl(reader)
    return Create(path, data, ephemeral=False, kind=OP_CREATE_CONTAINER)


def _create_ttl(reader: JuteReader) -> Create:
    path, data = _path(reader), reader.buffer()
    _skip_acl(reader)
    return Create(path, data, ephemeral=False, kind=OP_CREATE_TTL)


def _set_data(reader: JuteReader) -> SetData:
    return SetData(_path(reader), reader.buffer(), reader.int32())


def _set_acl(reader: JuteReader) -> SetAcl:
    path = _path(reader)
    _skip_acl(reader)
    return SetAcl(path, reader.int32())


def _close_session(reader: JuteReader) -> CloseSession:
    # Up to 3.5 a closed session carries nothing at all.
    if not reader.remaining():
        return CloseSession(())
    return CloseSession(tuple(_path(reader) for _ in range(reader.count(_SMALLEST_PATH))))


_DECODERS: dict[int, Callable[[JuteReader], Record]] = {
    OP_CREATE: _create,
    OP_CREATE2: _create,
    OP_CREATE_CONTAINER: _create_container,
    OP_CREATE_TTL: _create_ttl,
    OP_DELETE: lambda reader: Delete(_path(reader)),
    OP_DELETE_CONTAINER: lambda reader: Delete(_path(reader)),
    OP_SET_DATA: _set_data,
    OP_RECONFIG: _set_data,
    OP_SET_ACL: _set_acl,
    OP_CHECK: lambda reader: Check(_path(reader), reader.int32()),
    OP_CREATE_SESSION: lambda reader: CreateSession(reader.int32()),
    OP_CLOSE_SESSION: _close_session,
    OP_ERROR: lambda reader: Failed(reader.int32()),
}
