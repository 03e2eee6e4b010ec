"""Producers' histories for people: runs, markers, missing offsets and findings in offset order.

The missing offsets that a producer's timeline lists; the producer's own rows bound their number.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.log_events.timeline_entries import MAX_SHARED, TimelineEvents
from kaudit.listings.merged_runs import merged_runs
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, NO_TIMESTAMP, UNREPORTED_CONTROL
from kaudit.model.columns import Columns, joined
from kaudit.model.damage import MissingCause
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.result import TimelineResult
from kaudit.model.timeline import (
    AT_ONCE,
    HISTORY_ROW,
    MARKER,
    NONE,
    OTHER,
    RUN,
    RUN_FIELDS,
    TYPES,
    EventEntry,
    FindingEntry,
    Histories,
    HistoryRow,
    MissingEntry,
    Other,
)
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.replay import KeptRows
from kaudit.reading.producer_grouping import with_records
from kaudit.scanning.audit import Audit

LISTED = 10
"""After one run or marker starts, at most this many ranges of a cause have their own entries; the rest is one entry."""
_FIRST_OFFSET = attrgetter("first_offset")


_LAST = 2**63 - 1
_EVENTS, _MISSING, _BATCHES, _FINDINGS = range(4)
_RANKS = {EventEntry: _EVENTS, MissingEntry: _MISSING, FindingEntry: _FINDINGS}
"""Of entries at one offset the lower comes first."""
_CODES = {
    ABORT_MARKER: TYPES.index("ABORT"),
    COMMIT_MARKER: TYPES.index("COMMIT"),
    UNREPORTED_CONTROL: TYPES.index(None),
}


class _Grouped(Struct, frozen=True):
    """Rows of producers one after the other; those of producer i begin at `bounds[i]` and end at `bounds[i + 1]`."""

    rows: Columns
    bounds: NDArray[np.int64]

    @classmethod
    def by(cls, producer_ids: NDArray[np.int64], rows: Columns) -> "_Grouped":
        """Group rows by producer id; both ascend."""
        return cls(rows, np.append(np.searchsorted(rows["producer_id"], producer_ids), len(rows)))

    def part(self, first: int, stop: int) -> "_Grouped":
        """Return the rows of these producers."""
        start = self.bounds[first]
        return _Grouped(self.rows[start : self.bounds[stop]], self.bounds[first : stop + 1] - start)

    def of(self, producer: int) -> Columns:
        """Return the rows of one producer."""
        return self.rows[self.bounds[producer] : self.bounds[producer + 1]]

    @property
    def owners(self) -> NDArray[np.intp]:
        """The number of each row's producer."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def first(self, name: str, default: int) -> NDArray[np.int64]:
        """Return this column of each producer's first row, `default` where it has none."""
        return self._at(self.bounds[:-1], name, default)

    def last(self, name: str, default: int) -> NDArray[np.int64]:
        """Return this column of each producer's last row, `default` where it has none."""
        return self._at(self.bounds[1:] - 1, name, default)

    def _at(self, rows: NDArray[np.int64], name: str, default: int) -> NDArray[np.int64]:
        column = np.append(self.rows[name].astype(np.int64), default)
        return column[np.where(np.diff(self.bounds) > 0, rows, -1)]


class MissingEntries:
    """The missing offsets of a partition, as entries of timelines."""

    def __init__(self, partition: PartitionAudit) -> None:
        directory = partition.directory
        start = directory.segments[0].base_offset if directory.segments else 0
        self._start = max(start, directory.log_start_offset or 0)
        by_cause = grouped((gap.cause, gap) for gap in sorted(partition.missing, key=_FIRST_OFFSET))
        self._by_cause = [(gaps, [0, *accumulate(gap.count for gap in gaps)]) for gaps in by_cause.values()]
        self._begins = np.array(sorted(gap.first_offset for gap in partition.missing), dtype=np.int64)

    def owners(self, runs: "_Grouped", markers: "_Grouped") -> NDArray[np.bool_]:
        """Return which producers have any (shape (producers,))."""
        first = np.minimum(runs.first("first_offset", _LAST), markers.first("offset", _LAST))
        last = np.maximum(runs.last("last_offset", 0), markers.last("offset", 0))
        within = np.searchsorted(self._begins, last, side="right") > np.searchsorted(self._begins, first)
        late: NDArray[np.bool_] = within | ((runs.first("first_sequence", 0) > 0) & (self._start > 0))
        return late

    def of_producer(self, runs: Columns, markers: Columns) -> Iterator[MissingEntry]:
        """Yield the missing offsets within a producer's span, and those before the log if its first sequence is not 0.

        `runs` and `markers` are the producer's, by offset.
        """
        if self._start > 0 and len(runs) and int(runs["first_sequence"][0]) > 0:
            yield MissingEntry(0, self._start - 1, self._start, MissingCause.LOG_START)
        if not self._by_cause:
            return
        begins = sorted([*runs["first_offset"].tolist(), *markers["offset"].tolist()])
        ends = [int(rows[name][-1]) for rows, name in ((runs, "last_offset"), (markers, "offset")) if len(rows)]
        for gaps, before in self._by_cause:
            for first, end in pairwise([*begins, max(ends, default=0) + 1]):
                start = bisect_left(gaps, first, key=_FIRST_OFFSET)
                stop = bisect_left(gaps, end, start, key=_FIRST_OFFSET)
                listed = min(stop, start + LISTED)
                for gap in gaps[start:listed]:
                    yield MissingEntry(gap.first_offset, gap.last_offset, gap.count, gap.cause)
                if listed < stop:
                    rest, last = gaps[listed], gaps[stop - 1].last_offset
                    yield MissingEntry(rest.first_offset, last, before[stop] - before[listed], rest.cause)


def build_timelines(audit: Audit, kept: Sequence[KeptRows]) -> TimelineResult:
    """Build one timeline a producer id and partition replica, from the rows kept while reading, in the audit's order."""
    scan = audit.result()
    findings = by_replica(scan.findings)
    logs = audit.compared_logs()
    transactional: set[int] = set()
    for rows in kept:
        transactional.update(*(markers["producer_id"].tolist() for markers in rows.markers))
        transactional.update(*(runs["producer_id"][runs["is_transactional"]].tolist() for runs in rows.runs))
    names = audit.transactional_ids(transactional) if transactional else {}
    logs = None if logs is None else logs.named(names)
    parts = []
    for partition, rows in zip(audit.partitions, kept, strict=True):
        if rows.runs:
            place = partition.directory
            own = findings.get((place.topic, place.partition, place.replica), ())
            events = None if logs is None else logs.of_partition(place.topic, place.partition)
            bare = replace(
                partition, observations=(), suspects=(), shared=(), damages=()
            )  # findings have been made of these
            parts.append(partial(partition_histories, bare, rows, own, events, names))
    return TimelineResult(scan, _Made(parts))


class _Made:
    """The histories of all partitions, made whenever they are read: those of many ids would not fit into memory."""

    def __init__(self, parts: Sequence[Callable[[], Iterator[Histories]]]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Histories]:
        return chain.from_iterable(part() for part in self._parts)


def with_names(audit: Audit, made: Sequence[Histories]) -> list[Histories]:
    """Return the histories with the transactional ids that __transaction_state names."""
    transactional: set[int] = set()
    for each in made:
        shows = (each.rows["row"] == MARKER) | each.rows["is_transactional"]
        transactional.update(each.producer_ids[each.owners[shows]].tolist())
    names = audit.transactional_ids(transactional) if transactional else {}
    return [
        replace(each, transactional_ids={**each.transactional_ids, **_of(names, each.producer_ids)}) for each in made
    ]


def _of(names: Mapping[int, str], producer_ids: NDArray[np.int64]) -> dict[int, str]:
    return {number: names[number] for number in producer_ids.tolist() if number in names} if names else {}


def by_replica(findings: Sequence[Finding]) -> dict[tuple[object, ...], list[Finding]]:
    """Group findings by (topic, partition, replica)."""
    return grouped(((finding.topic, finding.partition, finding.replica), finding) for finding in findings)


def partition_histories(
    partition: PartitionAudit,
    rows: KeptRows,
    findings: Sequence[Finding],
    events: TimelineEvents | None = None,
    names: Mapping[int, str] = MappingProxyType({}),
) -> Iterator[Histories]:
    """Yield the histories of all producer ids, some thousand rows at a time; `names`: transactional ids, over those of findings."""
    if not rows.runs:
        return
    runs, markers = in_order(rows)
    ids = producer_ids_of(rows)
    parts = _Grouped.by(ids, runs), _Grouped.by(ids, markers)
    opened = {entry.producer_id: entry.first_offset for entry in reversed(partition.opened)}
    beside = _Beside(
        MissingEntries(partition),
        grouped((each.producer_id, each) for each in findings),
        events,
        names,
        shared=len(ids) <= MAX_SHARED,
    )
    chunk = (parts[0].bounds[1:] + parts[1].bounds[1:]) // AT_ONCE
    for first, stop in pairwise([0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(ids)] if len(ids) else []):
        own, (own_runs, own_markers) = ids[first:stop], (rows.part(first, stop) for rows in parts)
        owners, others, named = beside.of(own, own_runs, own_markers)
        ordered, by_row = _in_order_of_offsets(own_runs, own_markers, owners, others)
        yield Histories(
            topic=partition.directory.topic,
            partition=partition.directory.partition,
            replica=partition.directory.replica,
            producer_ids=own,
            starts=own_runs.bounds + own_markers.bounds + np.searchsorted(owners, np.arange(len(own) + 1)),
            rows=ordered,
            others=by_row,
            states=_states(own_runs, own_markers, _chosen(opened, own)),
            transactional_ids=named,
        )


class _Beside(Struct, frozen=True):
    """What stands in histories beside runs and markers; `shared`: also events of logs that concern the whole partition."""

    missing: MissingEntries
    findings: Mapping[int | None, Sequence[Finding]]
    events: TimelineEvents | None
    names: Mapping[int, str]
    shared: bool

    def of(
        self, ids: NDArray[np.int64], runs: _Grouped, markers: _Grouped
    ) -> tuple[list[int], list[Other], dict[int, str]]:
        """Return the producer of each entry, an index into `ids`, the entries, and the transactional ids of these producers."""
        found_ids = [number for number in self.findings if number is not None]
        concerned = self.missing.owners(runs, markers) | np.isin(ids, found_ids) | (self.events is not None)
        named = _of(self.names, ids)
        owners: list[int] = []
        entries: list[Other] = []
        for owner in np.flatnonzero(concerned).tolist():
            producer_id, its_runs, its_markers = int(ids[owner]), runs.of(owner), markers.of(owner)
            found = self.findings.get(producer_id, ())
            if (name := _transactional_id(found)) is not None:
                named.setdefault(producer_id, name)
            entries += [*self.missing.of_producer(its_runs, its_markers), *map(_finding, found)]
            if self.events is not None:
                entries += self.events.entries(producer_id, _batches(its_runs, its_markers), shared=self.shared)
            owners += [owner] * (len(entries) - len(owners))
        return owners, entries, named


def producer_ids_of(rows: KeptRows) -> NDArray[np.int64]:
    """Return the producer ids of a partition's rows, ascending: each has a timeline."""
    columns = [kept["producer_id"] for kept in (*rows.runs, *rows.markers)]
    ids: NDArray[np.int64] = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *columns]))
    begins: NDArray[np.bool_] = np.append(True, ids[1:] != ids[:-1])[: len(ids)]
    return ids[begins]  # np.unique takes ten times as long


def in_order(rows: KeptRows) -> tuple[Columns, Columns]:
    """Return the merged runs and the markers of a partition, by producer id and then offset; there are rows."""
    markers, runs = joined(rows.markers), joined(rows.runs)
    markers = markers[np.lexsort((markers["offset"], markers["producer_id"]))]
    runs = runs[np.lexsort((runs["first_offset"], runs["producer_id"]))]
    return merged_runs(runs, markers), markers


_NOTHING = dict.fromkeys(HistoryRow._fields, NONE) | {
    "min_timestamp": NO_TIMESTAMP,
    "max_timestamp": NO_TIMESTAMP,
    "is_transactional": False,
    "type": 0,
}


def history_rows(length: int, **columns: NDArray[Any] | int) -> Columns:
    """Return rows that have these columns and nothing else."""
    return Columns(HISTORY_ROW, length, {**_NOTHING, **columns})


def _run_rows(runs: Columns) -> Columns:
    names = (*RUN_FIELDS, "transaction_first_offset", "transaction_outcome")
    return history_rows(len(runs), row=RUN, **{name: runs[name] for name in names})


def other_rows(entries: Sequence[Other]) -> Columns:
    """Return the rows of entries that are neither runs nor markers."""

    def column(name: str, none: int = NONE) -> NDArray[np.int64]:
        values = (
            getattr(entry, name, getattr(entry, "offset", None) if "offset" in name else None) for entry in entries
        )
        return np.array([none if value is None else value for value in values], dtype=np.int64)

    times = column("timestamp", NO_TIMESTAMP)
    return history_rows(
        len(entries),
        row=OTHER,
        first_offset=column("first_offset"),
        last_offset=column("last_offset"),
        first_sequence=column("base_sequence"),
        producer_epoch=column("producer_epoch"),
        min_timestamp=times,
        max_timestamp=times,
    )


def _marker_rows(markers: Columns) -> Columns:
    kind = np.full(len(markers), TYPES.index("CLEANED"))
    for code, index in _CODES.items():
        kind[markers["type"] == code] = index
    epochs = np.where(markers["type"] == UNREPORTED_CONTROL, np.int64(NONE), markers["coordinator_epoch"])
    at, time = markers["offset"], markers["timestamp"]
    return history_rows(
        len(markers),
        row=MARKER,
        first_offset=at,
        last_offset=at,
        min_timestamp=time,
        max_timestamp=time,
        type=kind,
        producer_epoch=markers["producer_epoch"],
        coordinator_epoch=epochs,
    )


def _finding(finding: Finding) -> FindingEntry:
    return FindingEntry(finding.offset, finding.fingerprint, finding.code, finding.severity.value, finding.message)


def _batches(runs: Columns, markers: Columns) -> Columns:
    """Return the runs and markers of one producer id, by offset."""
    own_runs, own_markers = (_Grouped(rows, np.array([0, len(rows)])) for rows in (runs, markers))
    return _in_order_of_offsets(own_runs, own_markers, (), ())[0]


def _in_order_of_offsets(
    runs: _Grouped, markers: _Grouped, owners: Sequence[int], others: Sequence[Other]
) -> tuple[Columns, dict[int, Other]]:
    """Return the rows of all entries, producer by producer, and the others by row; `owners` are the others' producers.

    Entries at no offset come first, but events of logs last.
    """
    if not len(markers.rows) and not others:
        return _run_rows(runs.rows), {}
    rows = joined([_run_rows(runs.rows), _marker_rows(markers.rows), other_rows(others)])
    batches = len(rows) - len(others)
    whose = np.concatenate([runs.owners, markers.owners, np.array(owners, dtype=np.intp)])
    offsets, ranks, times = (
        rows["first_offset"].copy(),
        np.full(len(rows), _BATCHES),
        np.zeros(len(rows), dtype=np.int64),
    )
    for at, entry in enumerate(others, batches):
        ranks[at] = _RANKS[type(entry)]
        if isinstance(entry, EventEntry):
            times[at] = entry.timestamp or 0
            if entry.offset is None:
                offsets[at] = _LAST
    order = np.lexsort((times, ranks, offsets, whose))
    places = np.argsort(order)[batches:]
    return rows[order], dict(zip(places.tolist(), others, strict=True))


def _transactional_id(findings: Sequence[Finding]) -> str | None:
    names = (finding.evidence.transactional_id for finding in findings)
    return next((name for name in names if name is not None), None)


def _chosen(numbers: Mapping[int, int], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each id, NONE for those without."""
    return np.array([numbers.get(each, NONE) for each in ids.tolist()]) if numbers else np.full(len(ids), NONE)


def _states(runs: _Grouped, markers: _Grouped, open_since: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Return the states a broker would have after this log, from each producer's newest run and marker.

    Markers that compaction emptied do not count.
    """
    full = np.append(0, np.cumsum(markers.rows["record_count"] > 0))
    markers = _Grouped(with_records(markers.rows), full[markers.bounds])
    last_offset, own_epoch = runs.last("last_offset", NONE), runs.last("producer_epoch", NONE)
    epoch = np.where(markers.last("offset", NONE) > last_offset, markers.last("producer_epoch", NONE), own_epoch)
    same = epoch == own_epoch
    return {
        "producer_epoch": epoch,
        "last_sequence": np.where(same, runs.last("last_sequence", NONE), NONE),
        "last_offset": np.where(same, last_offset, NONE),
        "last_timestamp": np.maximum(runs.last("last_max_timestamp", NONE), markers.last("timestamp", NONE)),
        "coordinator_epoch": markers.last("coordinator_epoch", NONE),
        "current_txn_start_offset": open_since,
    }
