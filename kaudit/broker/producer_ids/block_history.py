"""One timeline of the blocks of producer ids, from all their sources."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from kaudit.model.producer_ids import BlockEntry


class BlockHistory(Struct, frozen=True):
    """Entries from old to new. `observed_until_ms`: a later grant could not be in it; None when that is unknown."""

    entries: tuple[BlockEntry, ...] = ()
    observed_until_ms: int | None = None


class ProducerIdsRecord(Struct, frozen=True):
    """A record of `__cluster_metadata`: `next_producer_id` is the first id after the block just granted."""

    offset: int
    timestamp: int | None
    broker_id: int
    broker_epoch: int
    next_producer_id: int


def combine(histories: Sequence[BlockHistory]) -> BlockHistory:
    """Join histories of one cluster into one timeline.

    ZooKeeper's entries keep the order of their zxids, the controller's that of their offsets, and the two are merged by
    time. An entry of neither is dropped when one of those has the same grant, else placed by time, then by znode
    version, else at the end. `observed_until_ms` is the latest known.
    """
    entries = [entry for history in histories for entry in history.entries]
    by_zxid = {(entry.zxid, entry.version): entry for entry in reversed(entries) if entry.zxid is not None}
    by_offset = {entry.offset: entry for entry in reversed(entries) if entry.offset is not None}
    merged = _merge(
        sorted(by_zxid.values(), key=lambda entry: entry.zxid or 0),
        sorted(by_offset.values(), key=lambda entry: entry.offset or 0),
        _time,
    )
    known = {(entry.kind, entry.start, entry.end) for entry in merged}
    loose = [
        entry
        for entry in entries
        if entry.zxid is None and entry.offset is None and (entry.kind, entry.start, entry.end) not in known
    ]
    merged = _merge(merged, [entry for entry in loose if entry.at_ms is not None], _time)
    merged = _merge(merged, [entry for entry in loose if entry.at_ms is None], _version)
    ends = [history.observed_until_ms for history in histories if history.observed_until_ms is not None]
    return BlockHistory(tuple(merged), max(ends, default=None))


def _time(entry: BlockEntry) -> int | None:
    return entry.at_ms


def _version(entry: BlockEntry) -> int | None:
    return entry.version


def _merge(one: list[BlockEntry], other: list[BlockEntry], key: Callable[[BlockEntry], int | None]) -> list[BlockEntry]:
    """Merge two lists by `key`, each keeping its own order; those of `other` without a key come last."""
    merged: list[BlockEntry] = []
    taken = 0
    for entry in other:
        limit = key(entry)
        while taken < len(one) and (limit is None or (key(one[taken]) or 0) <= limit):
            merged.append(one[taken])
            taken += 1
        merged.append(entry)
    return [*merged, *one[taken:]]
