"""Records whose producer id, epoch and sequence an earlier record of the partition has."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.spill import Rows
from kaudit.model.sequence import MAX_SEQUENCE

SEQUENCED = np.dtype([("offset", "<i8"), ("earlier", "<i8")])
"""Offsets of a record and of the last one before it with the same producer id, epoch and sequence."""
MOST_RECORDS = 1 << 22
"""Records of batches whose sequences are found several times that are compared; more are counted."""
_AHEAD = 1 << 30
"""A sequence further on than this has been passed already: it wraps at 2^31."""


class RepeatedSequences(NamedTuple):
    """SEQUENCED rows by offset, and how many more records have sequences that earlier batches may have."""

    rows: Rows
    more: int


NO_SEQUENCES = RepeatedSequences(np.empty(0, dtype=SEQUENCED), 0)


class SequenceWatch:
    """Takes the batches of one partition as STORED, in the order of the log.

    Memory: a producer epoch's last sequence, and the batches of those epochs in which a sequence went back.
    """

    def __init__(self) -> None:
        self._highest: dict[tuple[int, int], int] = {}
        self._suspects: list[Rows] = []

    def feed(self, rows: Rows) -> None:
        """Take more batches."""
        own = _with_sequences(rows)
        if len(own):
            self._suspects += _gone_back(own, self._highest)

    def found(self, stored: Callable[[], Iterable[Rows]]) -> RepeatedSequences:
        """Return the records with a known sequence; `stored` gives all that was fed again."""
        if not self._suspects:
            return NO_SEQUENCES
        found, more = _overlapping(stored(), np.concatenate(self._suspects))
        return RepeatedSequences(_known(found), more)


def _with_sequences(rows: Rows) -> Rows:
    return rows.take(np.flatnonzero((rows["producer_id"] >= 0) & (rows["sequence"] >= 0)))


def _producers(rows: Rows) -> NDArray[Any]:
    return np.rec.fromarrays([rows["producer_id"], rows["epoch"]], dtype=[("producer_id", "<i8"), ("epoch", "<i2")])


def _gone_back(batches: Rows, highest: dict[tuple[int, int], int]) -> Iterator[Rows]:
    """Yield the batches that do not begin after the highest sequence of their producer epoch, and note the new ones."""
    rows = batches.take(np.lexsort((batches["epoch"], batches["producer_id"])))
    producers, epochs = rows["producer_id"], rows["epoch"]
    starts = np.flatnonzero(np.append(True, (producers[1:] != producers[:-1]) | (epochs[1:] != epochs[:-1])))
    keys = list(zip(producers[starts].tolist(), epochs[starts].tolist(), strict=True))
    first = rows["sequence"].astype(np.int64)
    last = (first + np.maximum(rows["span"], 0)) & MAX_SEQUENCE
    before = np.append(-1, last[:-1])
    before[starts] = [highest.get(key, -1) for key in keys]
    ahead = np.where(before < 0, 0, ((first - before) & MAX_SEQUENCE) - 1)
    stops = np.append(starts[1:], len(rows))
    highest.update(zip(keys, last[stops - 1].tolist(), strict=True))
    for group in np.flatnonzero(np.logical_or.reduceat((ahead < 0) | (ahead >= _AHEAD), starts)).tolist():
        own = slice(int(starts[group]), int(stops[group]))
        back, highest[keys[group]] = _passed(first[own].tolist(), last[own].tolist(), int(before[own.start]))
        yield rows[own][back]


def _passed(firsts: Sequence[int], lasts: Sequence[int], known: int) -> tuple[list[int], int]:
    """Return which batches of one producer epoch begin at or before the highest sequence, `known` before the first (-1: none), and the new one."""
    back = []
    for index, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        if known >= 0 and not 0 < (first - known) & MAX_SEQUENCE <= _AHEAD:
            back.append(index)
        if known < 0 or (last - known) & MAX_SEQUENCE <= _AHEAD:
            known = last
    return back, known


def _overlapping(stored: Iterable[Rows], suspects: Rows) -> tuple[Rows, int]:
    """Return the batches of these producer epochs that have sequences of the suspects, and the records of others there was no room for."""
    producers, at = np.unique(_producers(suspects), return_inverse=True)
    lowest, highest = np.full(len(producers), MAX_SEQUENCE), np.zeros(len(producers), dtype=np.int64)
    first = suspects["sequence"].astype(np.int64)
    np.minimum.at(lowest, at, first)
    np.maximum.at(highest, at, first + suspects["span"])
    found: list[Rows] = []
    room, more = MOST_RECORDS, 0
    for batches in map(_with_sequences, stored):
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
