"""ZooKeeper's serialisation written down a second time, from zookeeper.jute, to build what no recording has."""

import struct
import zlib


def string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">i", -1)
    return buffer(text.encode())


def buffer(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def acl() -> bytes:
    return struct.pack(">ii", 1, 31) + string("world") + string("anyone")


def create(path: str, data: bytes | None) -> bytes:
    return string(path) + buffer(data) + acl() + b"\x00" + struct.pack(">i", 7)


def set_data(path: str, data: bytes | None, version: int) -> bytes:
    return string(path) + buffer(data) + struct.pack(">i", version)


def multi(*members: tuple[int, bytes]) -> bytes:
    return struct.pack(">i", len(members)) + b"".join(
        struct.pack(">i", type_) + buffer(body) for type_, body in members
    )


def transaction(zxid: int, type_: int, body: bytes, time: int = 1_000) -> bytes:
    return struct.pack(">qiqqi", 0x100, 5, zxid, time, type_) + body


def entry(txn: bytes) -> bytes:
    return struct.pack(">qi", zlib.adler32(txn), len(txn)) + txn + b"B"


def log(*transactions: bytes, padding: int = 4096) -> bytes:
    return b"ZKLG" + struct.pack(">iq", 2, 0) + b"".join(map(entry, transactions)) + bytes(padding)


def znode(path: str, data: bytes | None, *, mzxid: int = 3, version: int = 2, mtime: int = 500) -> bytes:
    stat = struct.pack(">qqqqiiiqq", 1, mzxid, 400, mtime, version, 0, 0, 0, mzxid)
    return string(path) + buffer(data) + struct.pack(">q", 1) + stat


def snapshot(*znodes: bytes, sessions: int = 2) -> bytes:
    body = b"ZKSN" + struct.pack(">iq", 2, 0) + struct.pack(">i", sessions)
    body += b"".join(struct.pack(">qi", 100 + number, 6000) for number in range(sessions))
    body += struct.pack(">iq", 1, 1) + acl() + znode("", b"") + b"".join(znodes) + string("/")
    return body + struct.pack(">q", zlib.adler32(body)) + string("/")
