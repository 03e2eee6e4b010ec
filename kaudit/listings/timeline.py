"""Producers' histories for people: runs, markers, missing offsets and findings in offset order.

The missing offsets that a producer's timeline lists; the producer's own rows bound their number.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise, starmap
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.log_events.timeline_entries import MAX_SHARED, TimelineEvents
from kaudit.listings.merged_runs import MergedRun, merged_runs
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, UNREPORTED_CONTROL
from kaudit.model.columns import Columns, joined
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.finding import Finding
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.result import TimelineResult
from kaudit.model.timeline import (
    OUTCOMES,
    EndState,
    Entry,
    EntryTransaction,
    EventEntry,
    FindingEntry,
    MarkerEntry,
    MissingEntry,
    RunEntry,
    Timeline,
)
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.replay import KeptRows
from kaudit.reading.producer_grouping import with_records
from kaudit.scanning.audit import Audit

LISTED = 10
"""After one run or marker starts, at most this many ranges of a cause have their own entries; the rest is one entry."""
_FIRST_OFFSET = attrgetter("first_offset")


class MissingEntries:
    """The missing offsets of a partition, as entries of timelines."""

    def __init__(self, partition: PartitionAudit) -> None:
        directory = partition.directory
        start = directory.segments[0].base_offset if directory.segments else 0
        self._start = max(start, directory.log_start_offset or 0)
        by_cause: dict[MissingCause, list[MissingOffsets]] = {}
        for gap in sorted(partition.missing, key=_FIRST_OFFSET):
            by_cause.setdefault(gap.cause, []).append(gap)
        self._by_cause = [(gaps, [0, *accumulate(gap.count for gap in gaps)]) for gaps in by_cause.values()]

    def __bool__(self) -> bool:
        return self._start > 0 or bool(self._by_cause)

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


_LAST = 2**63
_EVENTS, _MISSING, _BATCHES, _FINDINGS = range(4)
_RANKS = {
    EventEntry: _EVENTS,
    MissingEntry: _MISSING,
    RunEntry: _BATCHES,
    MarkerEntry: _BATCHES,
    FindingEntry: _FINDINGS,
}
"""Of entries at one offset the lower comes first."""
_run_fields = itemgetter(*map(MergedRun._fields.index, RunEntry.__struct_fields__[:-1]))
"""Returns the fields that an entry has from a merged run."""
_IS_TRANSACTIONAL = MergedRun._fields.index("is_transactional")
_MARKERS = {ABORT_MARKER: "ABORT", COMMIT_MARKER: "COMMIT", UNREPORTED_CONTROL: None}

_FEW = 64
"""Up to this many entries take less memory as objects than the sources that would make them on demand."""
_AT_A_TIME = 256
"""Entries made together: each column of the rows is accessed once for all of them."""


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
            parts.append(_Part(bare, rows, own, events))
    return TimelineResult(scan, _Timelines(parts, names))


class _Part(NamedTuple):
    """The arguments of `partition_timelines` for a partition replica."""

    partition: PartitionAudit
    rows: KeptRows
    findings: Sequence[Finding]
    events: TimelineEvents | None


class _Timelines(Sequence[Timeline]):
    """The timelines of all partitions, each made whenever it is read: those of many ids would not fit into memory."""

    def __init__(self, parts: Sequence[_Part], names: Mapping[int, str]) -> None:
        self._parts = parts
        self._names = names
        self._length = sum(len(producer_ids_of(part.rows)) for part in parts)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Timeline]:
        made = chain.from_iterable(starmap(partition_timelines, self._parts))
        return (_named(timeline, self._names) for timeline in made)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - one or some, as of a list
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def with_names(audit: Audit, timelines: Sequence[Timeline]) -> list[Timeline]:
    """Return the timelines with the transactional ids that __transaction_state names."""
    transactional = {timeline.producer_id for timeline in timelines if _is_transactional(timeline.entries)}
    names = audit.transactional_ids(transactional) if transactional else {}
    return [_named(timeline, names) for timeline in timelines]


def _named(timeline: Timeline, names: Mapping[int, str]) -> Timeline:
    name = names.get(timeline.producer_id)
    return timeline if name is None else replace(timeline, transactional_id=name)


def _is_transactional(entries: Sequence[Entry]) -> bool:
    if isinstance(entries, _TimelineEntries):
        return entries.is_transactional
    return any(
        isinstance(entry, MarkerEntry) or (isinstance(entry, RunEntry) and entry.is_transactional) for entry in entries
    )


def by_replica(findings: Sequence[Finding]) -> dict[tuple[object, ...], list[Finding]]:
    """Group findings by (topic, partition, replica)."""
    grouped: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        grouped.setdefault((finding.topic, finding.partition, finding.replica), []).append(finding)
    return grouped


def partition_timelines(
    partition: PartitionAudit, rows: KeptRows, findings: Sequence[Finding], events: TimelineEvents | None = None
) -> Iterator[Timeline]:
    """Yield one timeline a producer id; `findings` are this partition replica's, `events` what logs say of it."""
    if not rows.runs:
        return
    by_producer = _by_producer(findings)
    runs, markers = in_order(rows)
    ids = producer_ids_of(rows)
    opened = {entry.producer_id: entry.first_offset for entry in reversed(partition.opened)}
    missing = MissingEntries(partition)
    tuples = _RowTuples(runs), _RowTuples(markers)
    for producer_id, of_runs, of_markers in zip(ids.tolist(), _slices(runs, ids), _slices(markers, ids), strict=True):
        own = by_producer.get(producer_id, [])
        # cut only where they are needed: a million ids have a run or two each
        gaps = list(missing.of_producer(runs[of_runs], markers[of_markers])) if missing else []
        entries: Sequence[Entry]
        if (
            events is None
            and of_runs.stop - of_runs.start + of_markers.stop - of_markers.start + len(gaps) + len(own) > _FEW
        ):
            own_runs, own_markers = runs[of_runs], markers[of_markers]
            entries = _made_when_asked_for(own_runs, own_markers, gaps, own)
            newest = own_runs[-1:].tolist(), with_records(own_markers)[-1:].tolist()
        else:
            newest = tuples[0].tuples(of_runs), tuples[1].tuples(of_markers)
            batches: list[RunEntry | MarkerEntry] = [*map(_run, newest[0]), *map(_marker, newest[1])]
            shown: list[Entry] = [*batches, *gaps, *map(_finding, own)]
            if events is not None:
                batches.sort(key=_offset_of)
                shown += events.entries(producer_id, batches, shared=len(ids) <= MAX_SHARED)
            # runs come by offset
            entries = shown if len(shown) == len(newest[0]) else sorted(shown, key=_offset_of)
        yield Timeline(
            topic=partition.directory.topic,
            partition=partition.directory.partition,
            replica=partition.directory.replica,
            producer_id=producer_id,
            transactional_id=_transactional_id(own) if own else None,
            entries=entries,
            state=_state(*newest, opened.get(producer_id)),
        )


def _by_producer(findings: Sequence[Finding]) -> dict[int | None, list[Finding]]:
    grouped: dict[int | None, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(finding.producer_id, []).append(finding)
    return grouped


def _made_when_asked_for(
    runs: Columns, markers: Columns, missing: list[MissingEntry], findings: list[Finding]
) -> "_TimelineEntries":
    """Return the entries of one producer id."""
    sources = [
        _EntrySource(_run, runs, runs["first_offset"], _BATCHES),
        _EntrySource(_marker, markers, markers["offset"], _BATCHES),
        _EntrySource(_itself, missing, [gap.first_offset for gap in missing], _MISSING),
        _EntrySource(_finding, findings, [finding.offset for finding in findings], _FINDINGS),
    ]
    is_transactional = len(markers) > 0 or bool(runs["is_transactional"].any())
    return _TimelineEntries(sources, is_transactional=is_transactional)


def producer_ids_of(rows: KeptRows) -> NDArray[np.int64]:
    """Return the producer ids of a partition's rows, ascending: each has a timeline."""
    columns = [kept["producer_id"] for kept in (*rows.runs, *rows.markers)]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *columns]))


def in_order(rows: KeptRows) -> tuple[Columns, Columns]:
    """Return the merged runs and the markers of a partition, by producer id and then offset; there are rows."""
    markers, runs = joined(rows.markers), joined(rows.runs)
    markers = markers[np.lexsort((markers["offset"], markers["producer_id"]))]
    runs = runs[np.lexsort((runs["first_offset"], runs["producer_id"]))]
    return merged_runs(runs, markers), markers


def _slices(rows: Columns, producer_ids: NDArray[np.int64]) -> Iterator[slice]:
    """Yield where each producer id's rows are; both ascend."""
    firsts = np.searchsorted(rows["producer_id"], producer_ids)
    stops = np.searchsorted(rows["producer_id"], producer_ids, side="right")
    return map(slice, firsts.tolist(), stops.tolist())


def _itself(entry: MissingEntry) -> MissingEntry:
    return entry


def _run(row: Sequence[Any]) -> RunEntry:
    transaction = None
    if row[_IS_TRANSACTIONAL]:
        run = MergedRun._make(row)
        transaction = EntryTransaction(run.transaction_first_offset, OUTCOMES[run.transaction_outcome])
    values: list[Any] = [*_run_fields(row), transaction]
    return RunEntry(*values)


def _marker(row: Sequence[Any]) -> MarkerEntry:
    marker = EndTxnMarker._make(row)
    coordinator_epoch = None if marker.type == UNREPORTED_CONTROL else marker.coordinator_epoch
    kind = _MARKERS.get(marker.type, "CLEANED")
    return MarkerEntry(marker.offset, marker.producer_epoch, coordinator_epoch, kind, marker.timestamp)


def _finding(finding: Finding) -> FindingEntry:
    return FindingEntry(finding.offset, finding.fingerprint, finding.code, finding.severity.value, finding.message)


def _offset_of(entry: Entry) -> tuple[int, int, int]:
    unplaced, at = (_LAST, entry.timestamp or 0) if isinstance(entry, EventEntry) else (-1, 0)
    return unplaced if entry.first_offset is None else entry.first_offset, _RANKS[type(entry)], at


def _transactional_id(findings: Sequence[Finding]) -> str | None:
    names = (finding.evidence.transactional_id for finding in findings)
    return next((name for name in names if name is not None), None)


def _state(runs: Sequence[Sequence[Any]], markers: Sequence[Sequence[Any]], open_since: int | None) -> EndState:
    """Return the state a broker would have after this log, from the producer's newest run and marker.

    Markers that compaction emptied do not count.
    """
    run = MergedRun._make(runs[-1]) if runs else None
    marker = next((marker for marker in map(EndTxnMarker._make, reversed(markers)) if marker.record_count > 0), None)
    last_offset = None if run is None else run.last_offset
    epoch = own_epoch = None if run is None else run.producer_epoch
    if marker is not None and (last_offset is None or marker.offset > last_offset):
        epoch = marker.producer_epoch
    same = run is not None and epoch == own_epoch
    timestamps = [] if run is None else [run.last_max_timestamp]
    if marker is not None:
        timestamps.append(marker.timestamp)
    return EndState(
        producer_epoch=epoch,
        last_sequence=run.last_sequence if same and run is not None else None,
        last_offset=last_offset if same else None,
        last_timestamp=max(timestamps, default=None),
        coordinator_epoch=None if marker is None else marker.coordinator_epoch,
        current_txn_start_offset=open_since,
    )


class _RowTuples:
    """Rows as tuples of their fields, made in groups: accessing every column costs as much as ten rows."""

    def __init__(self, rows: Columns) -> None:
        self._rows = rows
        self._first = 0
        self._made: list[tuple[Any, ...]] = []

    def tuples(self, wanted: slice) -> list[tuple[Any, ...]]:
        """Return these rows; calls must ask for ascending rows."""
        first, stop = wanted.start, wanted.stop
        if first < stop and stop > self._first + len(self._made):
            self._first = first
            self._made = self._rows[first : max(stop, first + _AT_A_TIME)].tolist()
        return self._made[first - self._first : stop - self._first] if first < stop else []


class _EntrySource(Struct, frozen=True):
    """Entries of one kind: the items they are made of, and their offsets (shape (n,)), None for those at no offset.

    `make` takes one item; an item of Columns is the tuple of its fields. Of entries at one offset a lower `rank` comes first.
    """

    make: Callable[[Any], Entry]
    items: Columns | Sequence[Any]
    offsets: Sequence[int | None] | NDArray[np.int64]
    rank: int

    def made(self) -> list[Entry]:
        """Return all of them."""
        return list(map(self.make, self.items.tolist() if isinstance(self.items, Columns) else self.items))

    def chosen(self, numbers: NDArray[np.int32]) -> "_EntrySource":
        """Return those of these numbers."""
        items = self.items[numbers] if isinstance(self.items, Columns) else [self.items[at] for at in numbers.tolist()]
        return replace(self, items=items, offsets=())


class _TimelineEntries(Sequence[Entry]):
    """Entries of several sources by offset, then by rank; those at no offset come before all others."""

    def __init__(self, sources: Sequence[_EntrySource], *, is_transactional: bool) -> None:
        self._sources = sources
        self.is_transactional = is_transactional
        counts = [len(source.items) for source in sources]
        offsets = np.concatenate([np.empty(0, dtype=np.int64), *(_offsets(source.offsets) for source in sources)])
        ranks = np.repeat(np.array([source.rank for source in sources], dtype=np.int8), counts)
        order = np.lexsort((ranks, offsets))
        self._source = np.repeat(np.arange(len(sources), dtype=np.int8), counts)[order]
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        self._item = (np.arange(len(order)) - starts)[order].astype(np.int32)

    def __reduce__(self) -> tuple[type[list[Entry]], tuple[list[Entry]]]:
        return list, (list(self),)

    def __len__(self) -> int:
        return len(self._item)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - one or some, as of a list
        if isinstance(index, slice):
            return self._made(np.arange(len(self))[index])
        return self._made(np.arange(len(self))[index : index + 1 or None])[0]

    def __iter__(self) -> Iterator[Entry]:
        for first in range(0, len(self), _AT_A_TIME):
            yield from self[first : first + _AT_A_TIME]

    def _made(self, chosen: NDArray[np.intp]) -> list[Entry]:
        entries: dict[int, Entry] = {}
        of_sources = self._source[chosen]
        for number, source in enumerate(self._sources):
            places = np.flatnonzero(of_sources == number)
            made = source.chosen(self._item[chosen[places]]).made() if len(places) else ()
            entries.update(zip(places.tolist(), made, strict=True))
        return [entries[place] for place in range(len(chosen))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def _offsets(offsets: Sequence[int | None] | NDArray[np.int64]) -> NDArray[np.int64]:
    if isinstance(offsets, np.ndarray):
        return offsets
    return np.array([-1 if offset is None else offset for offset in offsets], dtype=np.int64)
