"""Counts and digests of the records in each window of event time: where both sides have the same, the ledger needs no record of it.

A digest is of the records of one window in one partition, in their order: two sides with equal digests have the same records there, and equal
ones as often. It is a sum of hashes of a record's identity and its number in the window, twice 64 bits.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.records.places import numbers_of, offsets_of
from kaudit.audits.records.reading import PartitionRecords, ReadAgain, ReadPartition, RecordTask
from kaudit.diff.records.topics import Pairing
from kaudit.model.ledger import MOST_RANGES, WindowCounts, WindowDifference
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.record_content import mixed
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory

RUN = np.dtype([("window", "<i8"), ("first", "<u8"), ("records", "<i8")])
"""Records of one window at offsets without a gap: the place of the first, without its last bit, and how many."""
DIGEST = np.dtype([("window", "<i8"), ("records", "<i8"), ("high", "<u8"), ("low", "<u8")])
MOST_RUNS = 1 << 22
"""Runs of all partitions of both sides that are remembered: 100 MB."""
_MOST_WINDOWS = 1 << 17
"""Windows of one partition."""
_OFFSET = np.uint64(1)


class WindowTask(Struct, frozen=True):
    """A partition to read by windows of so many milliseconds; at most `most_runs` runs are remembered, with None no run is wanted."""

    records: RecordTask
    milliseconds: int
    most_runs: int | None

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.records.bytes

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The one directory that is read."""
        return self.records.directories


class ReadWindows(Struct, frozen=True):
    """A partition by windows: rows of DIGEST, ascending, and of RUN, in the order of the log. `complete`: all of both are there."""

    read: ReadPartition
    digests: NDArray[Any]
    runs: NDArray[Any]
    complete: bool


def read_windows(task: WindowTask, options: ScanOptions, open_source: OpenSource) -> ReadWindows:
    """Read one partition; memory is a window of the log, and what is returned."""
    records = PartitionRecords(task.records, options, open_source)
    windows = _Windows(task.milliseconds, task.most_runs)
    for rows, timestamps in records.parts():
        windows.add(rows, timestamps)
    return ReadWindows(records.read(), windows.digests(), windows.runs(), windows.complete)


class _Windows:
    def __init__(self, milliseconds: int, most_runs: int | None) -> None:
        self.complete = True
        self._milliseconds = milliseconds
        self._most_runs = most_runs
        self._runs: list[NDArray[Any]] = [np.empty(0, dtype=RUN)]
        self._count = 0
        self._found: dict[int, tuple[int, int, int]] = {}

    def add(self, rows: NDArray[Any], timestamps: NDArray[np.int64]) -> None:
        """Take rows of IDENTIFIED with their timestamps, in the order of the log."""
        if not len(rows) or not self.complete:
            return
        windows = timestamps // self._milliseconds
        if self._most_runs is not None:
            self._add_runs(windows, rows["place"] & ~_OFFSET)
        self._add_digests(windows, rows)
        if self._count > (self._most_runs or 0) or len(self._found) > _MOST_WINDOWS:
            self.complete, self._runs, self._found = False, [np.empty(0, dtype=RUN)], {}

    def _add_runs(self, windows: NDArray[np.int64], places: NDArray[np.uint64]) -> None:
        last = self._runs[-1][-1:]
        ends = last["first"] + (last["records"].astype(np.uint64) << _OFFSET)
        follows = np.concatenate([ends, places[:-1] + np.uint64(2)]) == places[1 - len(last) :]
        same = np.concatenate([last["window"], windows[:-1]]) == windows[1 - len(last) :]
        new = np.append(np.full(1 - len(last), fill_value=True), ~(follows & same))
        starts = np.flatnonzero(new)
        if len(last):
            last["records"] += int(starts[0]) if len(starts) else len(windows)
        own = np.empty(len(starts), dtype=RUN)
        own["window"], own["first"] = windows[starts], places[starts]
        own["records"] = np.diff(np.append(starts, len(windows)))
        if len(own):
            self._runs.append(own)
        self._count += len(own)

    def _add_digests(self, windows: NDArray[np.int64], rows: NDArray[Any]) -> None:
        order = np.argsort(windows, kind="stable")
        windows, rows = windows[order], rows[order]
        starts = np.flatnonzero(np.append(True, windows[1:] != windows[:-1]))
        counts = np.diff(np.append(starts, len(windows)))
        names = windows[starts].tolist()
        before = [self._found.get(name, (0, 0, 0)) for name in names]
        ranks = np.arange(len(rows)) - np.repeat(starts - np.array([each[0] for each in before]), counts)
        high = np.add.reduceat(mixed(rows["high"], rows["low"], ranks), starts)
        low = np.add.reduceat(mixed(ranks, rows["low"], rows["high"]), starts)
        for name, known, *own in zip(names, before, counts.tolist(), high.tolist(), low.tolist(), strict=True):
            self._found[name] = (known[0] + own[0], (known[1] + own[1]) % 2**64, (known[2] + own[2]) % 2**64)

    def digests(self) -> NDArray[Any]:
        """Return a row for each window."""
        return np.array([(name, *self._found[name]) for name in sorted(self._found)], dtype=DIGEST)

    def runs(self) -> NDArray[Any]:
        """Return the runs in the order of the log."""
        return np.concatenate(self._runs)


class EqualRecords(Struct, frozen=True):
    """Records of one side that the other has too, in the same order in each partition: places of runs, ascending, and what is `before` each.

    `before` has one number more: that of all.
    """

    first: NDArray[np.uint64]
    before: NDArray[np.int64]

    @classmethod
    def of(cls, runs: NDArray[Any]) -> "EqualRecords":
        """Return the records of runs of all partitions, in the order of their places."""
        return cls(runs["first"].copy(), np.append(0, np.cumsum(runs["records"])))

    def at(self, ranks: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the places of the records with these numbers."""
        run = np.searchsorted(self.before, ranks, side="right") - 1
        found: NDArray[np.uint64] = self.first[run] + ((ranks - self.before[run]).astype(np.uint64) << _OFFSET)
        return found

    def ranks(self, places: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many of the records lie before each place."""
        if not len(self.first):
            return np.zeros(len(places), dtype=np.int64)
        run = np.searchsorted(self.first, places, side="left") - 1
        within = (places - self.first[run] + _OFFSET) >> _OFFSET
        found = self.before[run] + np.minimum(within.astype(np.int64), self.before[run + 1] - self.before[run])
        return np.where(run < 0, 0, found)


class Narrowed(Struct, frozen=True):
    """What is left of two sides, source and target: `again` by the number of a partition; those not in it are read whole.

    `windows` of each pair; `read` of each partition the first time, `equal` records of both sides.
    """

    windows: Sequence[WindowCounts]
    read: tuple[Sequence[ReadPartition], Sequence[ReadPartition]]
    again: tuple[Mapping[int, ReadAgain], Mapping[int, ReadAgain]]
    equal: tuple[EqualRecords, EqualRecords]

    def ends(self) -> NDArray[np.int64]:
        """Return the numbers of the first and the last of the equal records in each partition."""
        source = self.equal[0]
        if not len(source.first):
            return np.empty(0, dtype=np.int64)
        new = np.flatnonzero(np.diff(numbers_of(source.first))) + 1
        starts = source.before[np.append(0, new)]
        return np.unique(np.concatenate([starts, np.append(starts[1:], source.before[-1]) - 1]))


def narrow(
    pairings: Sequence[Pairing], milliseconds: int, sides: tuple[Sequence[ReadWindows], Sequence[ReadWindows]]
) -> Narrowed:
    """Compare the windows of pairs of topics, and say what must be read again."""
    by_number = [{each.read.number: each for each in side} for side in sides]
    counts = []
    again: tuple[dict[int, ReadAgain], dict[int, ReadAgain]] = {}, {}
    equal: list[list[NDArray[Any]]] = [[], []]
    for pairing in pairings:
        numbers = sorted(pairing.numbers.values())
        own = [{number: side[number] for number in numbers if number in side} for side in by_number]
        found = compare_windows(*map(_digests, own))
        kept = [{number: _without(each.runs, found) for number, each in side.items()} for side in own]
        reason = _why_all(own) or ("" if _same_order(*kept) else _ORDER)
        if not reason and any(number != other for number, other in _by_content(*map(_digests, own)).items()):
            reason = _OTHER_NUMBERS
        counts.append(counted(found, milliseconds, reason))
        for side in (0, 1) if not reason else ():
            for number, each in own[side].items():
                again[side][number] = _to_read(each, found)
                equal[side].append(kept[side][number])
    runs = (np.concatenate([np.empty(0, dtype=RUN), *parts]) for parts in equal)
    source, target = (EqualRecords.of(each[np.argsort(each["first"])]) for each in runs)
    read = [each.read for each in sides[0]], [each.read for each in sides[1]]
    return Narrowed(counts, read, again, (source, target))


ORDER_CROSSES = "records of windows that are equal and of others change their order"
_ORDER = "windows follow one another in another order"
_OTHER_NUMBERS = "partitions of the target have other numbers"
Digests = Mapping[int, NDArray[Any]]
"""Rows of DIGEST by the number of a partition."""
Compared = Mapping[int, tuple[bool, int, int]]
"""By window: whether it is equal in all partitions, and the records of source and target."""


def _digests(side: Mapping[int, ReadWindows]) -> Digests:
    return {number: each.digests for number, each in side.items()}


def _by_content(source: Digests, target: Digests) -> Mapping[int, int]:
    """Return for each partition of the target that of the source whose windows most of its own equal; that of its number where none is alone in that."""
    owners = {row.tobytes(): number for number, rows in source.items() for row in rows}
    found: dict[int, int] = {}
    for number, rows in target.items():
        votes = Counter(owners[row.tobytes()] for row in rows if row.tobytes() in owners)
        most = max(votes.values(), default=0)
        found[number] = number if votes[number] == most else votes.most_common(1)[0][0]
    return found if len(set(found.values())) == len(found) else {number: number for number in target}


def compare_windows(source: Digests, target: Digests) -> Compared:
    """Compare the windows of two topics, partitions as they have the same windows."""
    numbers = _by_content(source, target)
    target = {numbers[number]: rows for number, rows in target.items()}
    found: dict[int, tuple[bool, int, int]] = {}
    empty = np.empty(0, dtype=DIGEST)
    for number in source.keys() | target.keys():
        sides = [side.get(number, empty) for side in (source, target)]
        rows = [{int(row["window"]): row for row in side} for side in sides]
        for window in rows[0].keys() | rows[1].keys():
            both = [side.get(window) for side in rows]
            same, *before = found.get(window, (True, 0, 0))
            own = [0 if row is None else int(row["records"]) for row in both]
            equal = both[0] is not None and both[0] == both[1]
            found[window] = bool(same and equal), before[0] + own[0], before[1] + own[1]
    return found


def counted(found: Compared, milliseconds: int, reason: str) -> WindowCounts:
    """Return what a ledger says of windows; `reason`: why all records are compared nevertheless."""
    differing = [(window, *counts) for window, (same, *counts) in sorted(found.items()) if not same]
    return WindowCounts(
        milliseconds=milliseconds,
        windows=len(found),
        differing=len(differing),
        differences=[
            WindowDifference(None if window < 0 else window * milliseconds, *counts)
            for window, *counts in differing[:MOST_RANGES]
        ],
        compared_whole=reason or None,
    )


def _why_all(sides: Iterable[Mapping[int, ReadWindows]]) -> str:
    """Return why windows of two topics prove nothing, if they do not."""
    parts = [each for side in sides for each in side.values()]
    if any(each.read.cleaned for each in parts):
        return "a log cleaner has been there: later records explain why earlier ones are gone"
    if any(each.read.damaged or each.read.unreadable for each in parts):
        return "a part of the log is damaged or cannot be read"
    return "" if all(each.complete for each in parts) else "more windows than are remembered"


def _same_order(source: Mapping[int, NDArray[Any]], target: Mapping[int, NDArray[Any]]) -> bool:
    """Whether windows follow one another in the same way in each partition."""
    none = np.empty(0, dtype=RUN)
    return all(
        np.array_equal(_pattern(source.get(number, none)), _pattern(target.get(number, none)))
        for number in source.keys() | target.keys()
    )


def _pattern(runs: NDArray[Any]) -> NDArray[Any]:
    """Return how many records of which window follow one another, shape (n, 2)."""
    starts = np.flatnonzero(np.append(True, runs["window"][1:] != runs["window"][:-1])[: len(runs)])
    if not len(starts):
        return np.empty((0, 2), dtype=np.int64)
    return np.stack([runs["window"][starts], np.add.reduceat(runs["records"], starts)], axis=1)


def _differs(runs: NDArray[Any], found: Compared) -> NDArray[np.bool_]:
    return np.isin(runs["window"], [window for window, (same, *_) in found.items() if not same])


def _without(runs: NDArray[Any], found: Compared) -> NDArray[Any]:
    return runs[~_differs(runs, found)]


def _to_read(each: ReadWindows, found: Compared) -> ReadAgain:
    """Return the offsets of the windows that differ."""
    runs = each.runs[_differs(each.runs, found)]
    first = offsets_of(runs["first"]) + each.read.first_offset
    ends = first + runs["records"]
    begins = np.append(True, first[1:] != ends[:-1])[: len(first)]
    ranges = np.stack([first[begins], ends[np.append(begins[1:], True)[: len(ends)]]], axis=1)
    share = int(runs["records"].sum()) / max(each.read.summary.records, 1)
    return ReadAgain(each.read.first_offset, ranges, int(each.read.summary.bytes * share))
