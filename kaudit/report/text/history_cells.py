"""What tables and lines say of the entries of histories, many rows at once, as pieces of text (text_rows.py)."""

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.json_record import rfc3339
from kaudit.model.sequence import distance
from kaudit.model.timeline import (
    AT_ONCE,
    MARKER,
    NONE,
    OUTCOMES,
    RUN,
    TYPES,
    Entry,
    EventEntry,
    FindingEntry,
    Histories,
    HistoryRow,
    MissingEntry,
)
from kaudit.report.console import visible
from kaudit.report.text.formatting import duration, plural
from kaudit.report.text.text_rows import Mask, Piece, by_value, digits_of, number, texts, where

_SHORT_MS = 50
"""The duration of a run is shown from here on."""
_DAY_MS = 86_400_000
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last time of the calendar: years 1 to 9999."""
_RUNS = ("data", "txn data")
_MARKERS = tuple(kind or "MARKER" for kind in TYPES)
_OUTCOMES = texts(OUTCOMES)
_MINUTES = texts(f"{minute // 60:02d}:{minute % 60:02d}:" for minute in range(24 * 60))
_SECONDS = texts(f"{second:02d}." for second in range(60))
_MILLISECONDS = texts(f"{ms:03d}" for ms in range(1000))
Numbers = NDArray[np.int64]


def cells_of(histories: Histories) -> "list[HistoryCells]":
    """Return the texts of all rows, some thousand together."""
    bounds = [*range(0, len(histories.rows), AT_ONCE), len(histories.rows)]
    return [HistoryCells(histories, first, stop) for first, stop in pairwise(bounds)]


class HistoryCells:
    """The texts of the rows `first` to `stop` of histories, but for `findings`; `listed`: rows that are none."""

    def __init__(self, histories: Histories, first: int, stop: int) -> None:
        self.first, self.stop = first, stop
        self.rows = histories.rows[first:stop]
        self.others = {at - first: entry for at, entry in histories.others.items() if first <= at < stop}
        self.is_run, self.is_marker = self.rows["row"] == RUN, self.rows["row"] == MARKER
        found = {at: entry for at, entry in sorted(self.others.items()) if isinstance(entry, FindingEntry)}
        self.findings = list(found.values())
        self.listed = np.ones(stop - first, dtype=bool)
        self.listed[list(found)] = False
        self.times = self.rows["min_timestamp"]
        self.dated = in_calendar(self.times)
        self._names = [*_RUNS, *_MARKERS]
        self._name = np.where(self.is_marker, self.rows["type"] + len(_RUNS), self.rows["is_transactional"])
        for at, entry in self.others.items():
            self._name[at] = len(self._names)
            self._names.append(event(entry))

    @cached_property
    def lengths(self) -> Numbers:
        """The lengths of what stands in the columns (shape (5, n)): offsets, event, epoch, sequences and time; 0 for findings."""
        rows, known = self.rows, self.times != NO_TIMESTAMP
        names = np.array([len(name) for name in self._names])[self._name]
        times = np.where(self.dated, 12, np.where(known, digits_of(self.times) + 3, 1))
        epochs = _span_lengths(rows["producer_epoch"], rows["producer_epoch"])
        offsets = _span_lengths(rows["first_offset"], rows["last_offset"])
        sequences = _span_lengths(rows["first_sequence"], rows["last_sequence"])
        return np.stack([offsets, names, epochs, sequences, times]) * self.listed

    def descriptions(self) -> list[Piece]:
        """Return each whole entry as a line, each value with its name."""
        rows, first, last = self.rows, self.times, self.rows["max_timestamp"]
        epochs, before = rows["producer_epoch"], np.full(len(rows), NONE)
        unknown = epochs == NONE
        unknown[[at for at, entry in self.others.items() if not isinstance(entry, EventEntry)]] = False
        until = self.dated & in_calendar(last) & (last != first)
        return [
            *self.events(),
            b", offset ",
            *spans(rows["first_offset"], rows["last_offset"]),
            *where(epochs != NONE, [b", epoch ", *number(epochs[epochs != NONE])]),
            *where(unknown, [b", epoch None"]),
            *where(self.is_run, [b", sequence "]),
            *where(self.is_run, spans(rows["first_sequence"][self.is_run], rows["last_sequence"][self.is_run])),
            *where(self.dated, [b", ", *instants(first[self.dated])]),
            *where(until, [b"..", *instants(last[until])]),
            *where(self.has_details(before), [b", "]),
            *self.details(before, before),
        ]

    def columns(self) -> tuple[list[Piece], ...]:
        """Return what stands in the columns."""
        rows = self.rows
        return (
            spans(rows["first_offset"], rows["last_offset"]),
            self.events(),
            spans(rows["producer_epoch"], rows["producer_epoch"]),
            spans(rows["first_sequence"], rows["last_sequence"]),
            self._clocks(),
        )

    def events(self) -> list[Piece]:
        """Return the kinds of events: data, txn data, COMMIT, missing, ..."""
        return [by_value(self._name, self._names.__getitem__)]

    def _clocks(self) -> list[Piece]:
        none = self.times == NO_TIMESTAMP
        beyond = ~none & ~self.dated
        clocks = _clocks_of(self.times[self.dated])
        return [*where(none, [b"-"]), *where(beyond, [*number(self.times[beyond]), b" ms"]), *where(self.dated, clocks)]

    def has_details(self, epochs: Numbers) -> Mask:
        """Return which rows have details; `epochs` as for details()."""
        others = self.listed & ~self.is_marker
        has: Mask = others | self._fences(epochs) | self._coordinated
        return has

    @property
    def _coordinated(self) -> Mask:
        known: Mask = self.is_marker & (self.rows["coordinator_epoch"] != NONE)
        return known

    def _fences(self, epochs: Numbers) -> Mask:
        own = self.rows["producer_epoch"]
        rises: Mask = (self.is_run | self.is_marker) & (epochs != NONE) & (own > epochs)
        return rises

    def details(self, epochs: Numbers, leader_epochs: Numbers) -> list[Piece]:
        """Return the further details of each row; the arguments are of the runs and markers, and of the runs, before it, or NONE."""
        fences, coordinated = self._fences(epochs), self._coordinated
        others = [at for at, entry in self.others.items() if not isinstance(entry, FindingEntry)]
        own = np.zeros(len(self.rows), dtype=bool)
        own[others] = True
        return [
            *where(fences, [b"fences epoch ", *number(epochs[fences])]),
            *where(fences & (self.is_run | coordinated), [b", "]),
            *where(coordinated, [b"coordinator epoch ", *number(self.rows["coordinator_epoch"][coordinated])]),
            *self._transactions(),
            *self._amounts(),
            *self._leader_epochs(leader_epochs),
            *where(own, [texts(_detail(self.others[at]) for at in sorted(others))]),
        ]

    def _transactions(self) -> list[Piece]:
        outcomes = self.rows["transaction_outcome"]
        ended = self.is_run & (outcomes >= 0)
        is_open = ended & (outcomes == OUTCOMES.index("open"))
        return [
            *where(ended, [_OUTCOMES[outcomes[ended]]]),
            *where(is_open, [b" since offset ", *number(self.rows["transaction_first_offset"][is_open])]),
            *where(ended, [b", "]),
        ]

    def _amounts(self) -> list[Piece]:
        """Return the number of batches, and of records where compaction removed some: the sequences show how many there were."""
        first, last = self.times, self.rows["max_timestamp"]
        # unsigned: timestamps of damaged batches may be further apart than int64 reaches
        lasted = (last - first).view(np.uint64)
        shows = self.is_run & (first != NO_TIMESTAMP) & (last > first) & (lasted >= _SHORT_MS)
        records = self.rows["records"]
        written = distance(self.rows["first_sequence"], self.rows["last_sequence"]) + 1
        left = self.is_run & (records != written) & (written >= 1)
        counts = by_value(self.rows["batches"][self.is_run], lambda count: plural(count, "batch", "batches"))
        return [
            *where(self.is_run, [counts]),
            *where(shows, [by_value(_rounded(lasted[shows]), lambda ms: f" in {duration(ms / 1000)}")]),
            *where(left, [b", ", by_value(records[left], "{:,}".format)]),
            *where(left, [b" of ", by_value(written[left], "{:,}".format), b" records left"]),
        ]

    def _leader_epochs(self, before: Numbers) -> list[Piece]:
        first, last = self.rows["first_leader_epoch"], self.rows["last_leader_epoch"]
        changed = self.is_run & ((first != last) | ((before != NONE) & (before != first)))
        return where(changed, [b", leader epoch ", *spans(first[changed], last[changed])])


def _rounded(milliseconds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return fewer durations that read the same: from a minute on `duration` rounds to seconds."""
    seconds = np.rint(milliseconds / 1000).astype(np.uint64)
    return np.where(milliseconds < 59_500, milliseconds, seconds * np.uint64(1000))


def in_calendar(times: Numbers) -> Mask:
    """Return which of these timestamps have a date."""
    has: Mask = (times >= _FIRST_MS) & (times <= _LAST_MS) & (times != NO_TIMESTAMP)
    return has


def days_of(times: Numbers) -> Numbers:
    """Return the days since the epoch."""
    return times // _DAY_MS


def dates_of(times: Numbers) -> Piece:
    """Return the dates of times within the calendar."""
    return by_value(days_of(times), lambda day: (rfc3339(day * _DAY_MS) or "").partition("T")[0])


def _clocks_of(times: Numbers) -> list[Piece]:
    """Return the times of day, of times within the calendar."""
    of_day = times - days_of(times) * _DAY_MS
    seconds = of_day // 1000
    minute = seconds // 60
    return [_MINUTES[minute], _SECONDS[seconds - minute * 60], _MILLISECONDS[of_day - seconds * 1000]]


def instants(times: Numbers) -> list[Piece]:
    """Return times within the calendar as RFC 3339."""
    return [dates_of(times), b"T", *_clocks_of(times), b"Z"]


def spans(first: Numbers, last: Numbers) -> list[Piece]:
    """Return `7`, `7..9`, or `-` for NONE."""
    none, two = first == NONE, _differs(first, last)
    return [
        *where(none, [b"-"]),
        *where(~none, number(first[~none])),
        *where(two, [b"..", *number(last[two])]),
    ]


def _differs(first: Numbers, last: Numbers) -> Mask:
    two: Mask = (first != last) & (last != NONE) & (first != NONE)
    return two


def _span_lengths(first: Numbers, last: Numbers) -> Numbers:
    both = np.where(_differs(first, last), 2 + digits_of(last), 0)
    return np.where(first == NONE, 1, digits_of(first) + both)


def event(entry: Entry) -> str:
    """Return the kind of event: data, txn data, COMMIT, missing, ..."""
    match entry:
        case HistoryRow():
            return _RUNS[entry.is_transactional] if entry.row == RUN else _MARKERS[entry.type]
        case EventEntry():
            return visible(f"refused: {entry.event}" if entry.is_refusal else entry.event)
    return entry.kind


def _detail(entry: Entry) -> str:
    """Return the details of missing offsets, or of an event of a log."""
    if isinstance(entry, MissingEntry):
        return f"{plural(entry.offsets, 'offset')} not in the log: {entry.cause.value}"
    assert isinstance(entry, EventEntry)
    parts = [visible(f"{entry.path.rpartition('/')[2]}:{entry.line}")]
    if entry.expected_sequence is not None:
        parts.append(f"the broker has {entry.expected_sequence}")
    elif entry.expected_epoch is not None:
        parts.append(f"the broker has epoch {entry.expected_epoch}")
    if entry.placed_by != "offset":
        parts.append(f"placed by {visible(entry.placed_by)}")
    return ", ".join(parts)
