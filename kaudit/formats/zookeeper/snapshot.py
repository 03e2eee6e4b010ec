"""ZooKeeper's snapshot, `version-2/snapshot.<last zxid before it began, hex>`.

    magic "ZKSN" i32 · version i32 (2) · dbid i64
    sessions      count i32 · (id i64, timeout ms i32)*
    access lists  count i32 · (id i64, acl vector)*
    znodes        (path, data, acl id i64, stat)* · path "/" ends them
    seal          Adler-32 of everything before it i64 · path "/"
    3.6+          zxid and digest of the tree, sealed once more (not read)

It is fuzzy: written while transactions go on, so a znode may be newer than the name says: its mzxid is what counts.
Source: FileSnap, SerializeUtils.serializeSnapshot, DataTree.serialize, DataNode, StatPersisted.
"""

import struct
import zlib

from msgspec import Struct, field

from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.zookeeper.records import FILE_HEADER_SIZE, JuteReader, read_file_header
from kaudit.formats.zookeeper.znode import ZnodeChange, ZnodeEvent, kept_value

MAGIC = b"ZKSN"

_STAT = struct.Struct(">qqqqiiiqq")  # czxid mzxid ctime mtime version cversion aversion ephemeralOwner pzxid
_NODE_TAIL = 8 + _STAT.size  # the access list's id precedes the stat
_ROOT_MARK = "/"
_SESSION_SIZE = 12
_SMALLEST_ACCESS_LIST = 12
_SMALLEST_ACL = 12
_CHECKSUM_STEP = 1 << 20


class SnapshotScan(Struct):
    """The znodes searched for in a snapshot: `values`, empty when none was in what could be read.

    `complete` says that all znodes were read and the checksum held, so that an absent znode was absent.
    `trailing_bytes` follow the seal (a digest, from 3.6 on).
    """

    database_id: int
    sessions: int = 0
    znodes: int = 0
    values: list[ZnodeChange] = field(default_factory=list)
    complete: bool = False
    trailing_bytes: int = 0
    damages: list[Damage] = field(default_factory=list)


def scan_snapshot(data: memoryview, suffix: str) -> SnapshotScan:
    """Find the znodes whose path ends in `suffix` in a snapshot and check the snapshot's own seal.

    Only those are kept. A snapshot cut short or with a wrong checksum is read as far as it goes and yields
    Damage; raises WireError when `data` is no snapshot at all.
    """
    scan = SnapshotScan(read_file_header(data, MAGIC, "snapshot"))
    reader = JuteReader(data, FILE_HEADER_SIZE, len(data))
    try:
        _skip_sessions_and_access_lists(reader, scan)
        _read_znodes(reader, suffix, scan)
        _check_seal(reader, scan)
    except WireError as error:
        scan.damages.append(Damage(error.position, len(data), error.reason, f"snapshot ends early: {error}"))
    return scan


def _skip_sessions_and_access_lists(reader: JuteReader, scan: SnapshotScan) -> None:
    scan.sessions = reader.count(_SESSION_SIZE)
    reader.skip(scan.sessions * _SESSION_SIZE, "sessions")
    for _ in range(reader.count(_SMALLEST_ACCESS_LIST)):
        reader.int64()
        for _ in range(reader.count(_SMALLEST_ACL)):
            reader.int32()
            reader.skip_buffer()
            reader.skip_buffer()


def _read_znodes(reader: JuteReader, suffix: str, scan: SnapshotScan) -> None:
    wanted = suffix.encode()
    while True:
        start = reader.position
        name = reader.buffer()
        if name == _ROOT_MARK.encode():
            return
        if name is not None and name.endswith(wanted):
            scan.values.append(_znode(reader, name, start))
        else:
            reader.skip_buffer()
            reader.skip(_NODE_TAIL, "znode")
        scan.znodes += 1


def _znode(reader: JuteReader, name: bytes, start: int) -> ZnodeChange:
    value = kept_value(reader.buffer())
    reader.int64()
    at = reader.position
    reader.skip(_STAT.size, "stat")
    _, mzxid, _, mtime, version, *_ = _STAT.unpack_from(reader.data, at)
    return ZnodeChange(name.decode("utf-8", "replace"), ZnodeEvent.SNAPSHOT, mzxid, mtime, version, value, start)


def _check_seal(reader: JuteReader, scan: SnapshotScan) -> None:
    sealed = reader.position
    expected = reader.int64()
    end_mark = reader.buffer()
    actual = zlib.adler32(b"")
    for start in range(0, sealed, _CHECKSUM_STEP):
        actual = zlib.adler32(reader.data[start : min(start + _CHECKSUM_STEP, sealed)], actual)
    scan.trailing_bytes = reader.remaining()
    if actual != expected:
        detail = f"Adler-32 {actual:#x} where the snapshot says {expected:#x}"
        scan.damages.append(Damage(0, sealed, Reason.CRC, detail))
    elif end_mark != _ROOT_MARK.encode():
        detail = f"the snapshot ends in {end_mark!r} instead of {_ROOT_MARK!r}"
        scan.damages.append(Damage(sealed + 8, reader.position, Reason.VALUE, detail))
    else:
        scan.complete = True
