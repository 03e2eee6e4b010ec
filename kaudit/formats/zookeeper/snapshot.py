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

from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.zookeeper.records import FILE_HEADER_SIZE, JuteReader, read_file_header
from kaudit.formats.zookeeper.transaction_log import ZnodeChange, ZnodeEvent, ZnodeScan, kept_value

MAGIC = b"ZKSN"

_STAT = struct.Struct(">qqqqiiiqq")  # czxid mzxid ctime mtime version cversion aversion ephemeralOwner pzxid
_NODE_TAIL = 8 + _STAT.size  # the access list's id precedes the stat
_ROOT_MARK = b"/"
_SESSION_SIZE = 12
_SMALLEST_ACCESS_LIST = 12
_SMALLEST_ACL = 12
_CHECKSUM_STEP = 1 << 20


def scan_snapshot(data: memoryview, suffix: str) -> ZnodeScan:
    """Find the znodes whose path ends in `suffix` in a snapshot and check the snapshot's own seal.

    Without damage a znode that is absent from `changes` did not exist. A snapshot cut short or with a wrong checksum is read as
    far as it goes and yields Damage; raises WireError when `data` is not a snapshot at all.
    """
    read_file_header(data, MAGIC, "snapshot")
    scan = ZnodeScan()
    reader = JuteReader(data, FILE_HEADER_SIZE)
    try:
        _skip_sessions_and_access_lists(reader)
        _read_znodes(reader, suffix.encode(), scan)
        _check_seal(data, reader, scan)
    except WireError as error:
        scan.damages.append(Damage(error.position, len(data), error.reason, f"snapshot ends early: {error}"))
    return scan


def _skip_sessions_and_access_lists(reader: JuteReader) -> None:
    reader.skip(reader.count("sessions", _SESSION_SIZE) * _SESSION_SIZE, "sessions")
    for _ in range(reader.count("access lists", _SMALLEST_ACCESS_LIST)):
        reader.int64("access list id")
        for _ in range(reader.count("access list", _SMALLEST_ACL)):
            reader.int32("permissions")
            reader.skip_buffer()
            reader.skip_buffer()


def _read_znodes(reader: JuteReader, suffix: bytes, scan: ZnodeScan) -> None:
    while True:
        start = reader.position
        name = reader.buffer()
        if name == _ROOT_MARK:
            return
        if name is not None and name.endswith(suffix):
            scan.changes.append(_znode(reader, name, start))
        else:
            reader.skip_buffer()
            reader.skip(_NODE_TAIL, "znode")


def _znode(reader: JuteReader, name: bytes, start: int) -> ZnodeChange:
    value = kept_value(reader.buffer())
    reader.int64("access list id")
    _, mzxid, _, mtime, version, *_ = _STAT.unpack(reader.raw(_STAT.size, "stat"))
    return ZnodeChange(name.decode("utf-8", "replace"), ZnodeEvent.SNAPSHOT, mzxid, mtime, version, value, start)


def _check_seal(data: memoryview, reader: JuteReader, scan: ZnodeScan) -> None:
    sealed = reader.position
    expected = reader.int64("checksum")
    end_mark = reader.buffer()
    actual = zlib.adler32(b"")
    for start in range(0, sealed, _CHECKSUM_STEP):
        actual = zlib.adler32(data[start : min(start + _CHECKSUM_STEP, sealed)], actual)
    if actual != expected:
        detail = f"Adler-32 {actual:#x} where the snapshot says {expected:#x}"
        scan.damages.append(Damage(0, sealed, Reason.CRC, detail))
    elif end_mark != _ROOT_MARK:
        detail = f"the snapshot ends in {end_mark!r} instead of '/'"
        scan.damages.append(Damage(sealed + 8, reader.position, Reason.VALUE, detail))
