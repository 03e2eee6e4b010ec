"""One znode's changes, from a transaction log.

A cluster may keep its znodes below a chroot, so a znode is found by the end of its path.
"""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct, field

from kaudit.formats.errors import Damage
from kaudit.formats.zookeeper.records import Create, Delete, Failed, Multi, Record, SetData
from kaudit.formats.zookeeper.transaction_log import Transaction, decoded, read_transactions

MAX_KEPT_VALUE = 4096
"""Bytes kept of a znode's value; what is longer is cut to one byte more, so that a reader notices."""


class ZnodeEvent(StrEnum):
    """How a znode's value became known."""

    CREATED = "created"
    SET = "set"
    DELETED = "deleted"
    SNAPSHOT = "snapshot"


class ZnodeChange(Struct, frozen=True):
    """The value the znode `path` got by transaction `zxid` at `time_ms` (the leader's clock, ms since 1970).

    `data` is None for no value and for a deleted znode; `version` counts the changes since its creation (0), None
    when deleted. `position` is the byte in the file it was read from.
    """

    path: str
    event: ZnodeEvent
    zxid: int
    time_ms: int
    version: int | None
    data: bytes | None
    position: int


class ZnodeScan(Struct):
    """What one file says about one znode, and counters of everything else.

    `transactions` counts by ZooKeeper's type number. First and last zxid and time are of whatever transaction stood
    there, so they say which part of the history the file covers; None when there was none.
    """

    changes: list[ZnodeChange] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    transactions: Counter[int] = field(default_factory=Counter)
    first_zxid: int | None = None
    last_zxid: int | None = None
    last_time_ms: int | None = None


def scan_log(data: memoryview, suffix: str) -> ZnodeScan:
    """Collect what a transaction log says about znodes whose path ends in `suffix`: `/latest_producer_id_block`.

    Memory grows with that znode's changes only. Raises WireError when `data` is no transaction log.
    """
    scan = ZnodeScan()
    wanted = suffix.encode()
    for item in read_transactions(data):
        if isinstance(item, Damage):
            scan.damages.append(item)
            continue
        scan.transactions[item.type] += 1
        scan.first_zxid = item.zxid if scan.first_zxid is None else scan.first_zxid
        scan.last_zxid, scan.last_time_ms = item.zxid, item.time
        # Most transactions name other znodes: a search in their bytes is far cheaper than decoding them.
        if wanted in bytes(item.body):
            _collect(item, suffix, scan)
    return scan


def _collect(transaction: Transaction, suffix: str, scan: ZnodeScan) -> None:
    record = decoded(transaction)
    if isinstance(record, Damage):
        scan.damages.append(record)
        return
    for member in _applied(record):
        change = _change(transaction, member, suffix)
        if change is not None:
            scan.changes.append(change)


def _applied(record: Record) -> Iterator[Record]:
    """List the records that took effect: a multi with one refused member changes nothing."""
    if not isinstance(record, Multi):
        yield record
        return
    if not any(isinstance(member, Failed) for member in record.members):
        for member in record.members:
            yield from _applied(member)


def _change(transaction: Transaction, record: Record, suffix: str) -> ZnodeChange | None:
    version: int | None
    match record:
        case Create(path=path, data=data) if path.endswith(suffix):
            event, version, value = ZnodeEvent.CREATED, 0, data
        case SetData(path=path, data=data, version=new) if path.endswith(suffix):
            event, version, value = ZnodeEvent.SET, new, data
        case Delete(path=path) if path.endswith(suffix):
            event, version, value = ZnodeEvent.DELETED, None, None
        case _:
            return None
    kept = kept_value(value)
    return ZnodeChange(path, event, transaction.zxid, transaction.time, version, kept, transaction.position)


def kept_value(value: bytes | None) -> bytes | None:
    """Cut a znode's value to what is kept of it, see MAX_KEPT_VALUE."""
    return value if value is None else value[: MAX_KEPT_VALUE + 1]
