"""Records whose producer id, epoch and sequence an earlier record of the partition has."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.spill import Rows
from kaudit.model.sequence import MAX_SEQUENCE

SEQUENCED = np.dtype([("offset", "<i8"), ("earlier", "<i8")])
"""Offsets of a record and of the last one before it with the same producer id, epoch and sequence."""
MOST_RECORDS = 1 << 22
"""Records of batches whose sequences are found several times that are compared; more are counted."""
_AT_ONCE = 1 << 16
_AHEAD = 1 << 30
"""A sequence further on than this has been passed already: it wraps at 2^31."""


class RepeatedSequences(NamedTuple):
    """SEQUENCED rows by offset, and how many more records have sequences that earlier batches may have."""

    rows: Rows
    more: int


def repeated_sequences(stored: Rows) -> RepeatedSequences:
    """Return the records of one partition with a known sequence; `stored` are its batches as STORED, in the order of the log.

    Memory: a producer epoch's last sequence, and the batches of those epochs in which a sequence went back.
    """
    suspects: list[Rows] = []
    highest: dict[tuple[int, int], int] = {}
    for batches in _parts(stored):
        suspects += _gone_back(batches, highest)
    if not suspects:
        return RepeatedSequences(np.empty(0, dtype=SEQUENCED), 0)
    found, more = _overlapping(stored, np.concatenate(suspects))
    return RepeatedSequences(_known(found), more)


def _parts(stored: Rows) -> Iterator[Rows]:
    """Yield the batches that have sequences."""
    for start in range(0, len(stored), _AT_ONCE):
        rows = np.array(stored[start : start + _AT_ONCE])
        own = (rows["producer_id"] >= 0) & (rows["sequence"] >= 0)
        if own.any():
            yield rows[own]


def _producers(rows: Rows) -> NDArray[Any]:
    return np.rec.fromarrays([rows["producer_id"], rows["epoch"]], dtype=[("producer_id", "<i8"), ("epoch", "<i2")])


def _gone_back(batches: Rows, highest: dict[tuple[int, int], int]) -> Iterator[Rows]:
    """Yield the batches that do not begin after the highest sequence of their producer epoch, and note the new ones."""
    order = np.lexsort((np.arange(len(batches)), batches["epoch"], batches["producer_id"]))
    rows = batches[order]
    producers = _producers(rows)
    starts = np.flatnonzero(np.append(True, producers[1:] != producers[:-1]))
    first = rows["sequence"].astype(np.int64)
    last = (first + np.maximum(rows["span"], 0)) & MAX_SEQUENCE
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        key = int(rows["producer_id"][start]), int(rows["epoch"][start])
        known = highest.get(key, -1)
        before = np.append(known, last[start : stop - 1])
        ahead = ((first[start:stop] - before) & MAX_SEQUENCE) - 1
        if known < 0:
            ahead[0] = 0
        if ((ahead >= 0) & (ahead < _AHEAD)).all():
            highest[key] = int(last[stop - 1])
            continue
        back = []
        for index in range(start, stop):
            if known >= 0 and not 0 < (int(first[index]) - known) & MAX_SEQUENCE <= _AHEAD:
                back.append(index)
            if known < 0 or (int(last[index]) - known) & MAX_SEQUENCE <= _AHEAD:
                known = int(last[index])
        highest[key] = known
        yield rows[back]


def _overlapping(stored: Rows, suspects: Rows) -> tuple[Rows, int]:
    """Return the batches of these producer epochs that have sequences of the suspects, and the records of others there was no room for."""
    producers, at = np.unique(_producers(suspects), return_inverse=True)
    lowest, highest = np.full(len(producers), MAX_SEQUENCE), np.zeros(len(producers), dtype=np.int64)
    first = suspects["sequence"].astype(np.int64)
    np.minimum.at(lowest, at, first)
    np.maximum.at(highest, at, first + suspects["span"])
    found: list[Rows] = []
    room, more = MOST_RECORDS, 0
    for batches in _parts(stored):
        own = np.minimum(np.searchsorted(producers, _producers(batches)), len(producers) - 1)
        chosen = producers[own] == _producers(batches)
        begin = batches["sequence"].astype(np.int64)
        chosen &= (begin <= highest[own]) & (begin + batches["span"] >= lowest[own])
        rows = batches[chosen]
        sizes = np.maximum(rows["span"].astype(np.int64), 0) + 1
        fits = np.cumsum(sizes) <= room
        room -= int(sizes[fits].sum())
        more += int(sizes[~fits].sum())
        found.append(rows[fits])
    return np.concatenate(found), more


def _known(batches: Rows) -> Rows:
    """Return of the records of these batches, in the order of the log, those with the sequence of one before them."""
    sizes = np.maximum(batches["span"].astype(np.int64), 0) + 1
    of = np.repeat(np.arange(len(batches)), sizes)
    within = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    columns: Sequence[NDArray[Any]] = (
        batches["producer_id"][of],
        batches["epoch"][of],
        (batches["sequence"].astype(np.int64)[of] + within) & MAX_SEQUENCE,
    )
    offsets = batches["offset"][of] + within
    order = np.lexsort((offsets, *columns[::-1]))
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    again = np.flatnonzero(same) + 1
    found = np.empty(len(again), dtype=SEQUENCED)
    found["offset"], found["earlier"] = offsets[order[again]], offsets[order[again - 1]]
    return found[np.argsort(found["offset"], kind="stable")]
