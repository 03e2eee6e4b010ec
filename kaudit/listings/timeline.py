"""Producers' histories for people: runs, markers, missing offsets and findings in offset order."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, starmap
from typing import Any, NamedTuple, overload

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.log_events.timeline_entries import MAX_SHARED, TimelineEvents
from kaudit.listings.merged_runs import NO_MARKER, MergedRun, merged_runs
from kaudit.listings.missing_entries import MissingEntries, MissingEntry, missing_entry
from kaudit.listings.timeline_entries import FEW, Entry, EntrySource, RowTuples, TimelineEntries
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, UNREPORTED_CONTROL
from kaudit.model.columns import Columns, joined
from kaudit.model.finding import Finding
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.result import Timeline, TimelineResult
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.replay import KeptRows
from kaudit.reading.producer_grouping import with_records
from kaudit.scanning.audit import Audit

_LAST = 2**63
_EVENTS, _MISSING, _BATCHES, _FINDINGS = range(4)
_RANKS = {"event": _EVENTS, "missing": _MISSING, "run": _BATCHES, "marker": _BATCHES, "finding": _FINDINGS}
"""Of entries at one offset the lower comes first."""
_OUTCOMES = {ABORT_MARKER: "aborted", COMMIT_MARKER: "committed"}
_MARKERS = {ABORT_MARKER: "ABORT", COMMIT_MARKER: "COMMIT", UNREPORTED_CONTROL: None}


def build_timelines(audit: Audit, kept: Sequence[KeptRows]) -> TimelineResult:
    """Build one timeline a producer id and partition replica, from the rows kept while reading, in the audit's order."""
    scan = audit.result()
    findings = by_replica(scan.findings)
    logs = audit.compared_logs()
    parts = []
    transactional: set[int] = set()
    for partition, rows in zip(audit.partitions, kept, strict=True):
        if rows.runs:
            place = partition.directory
            own = findings.get((place.topic, place.partition, place.replica), ())
            events = None if logs is None else logs.of_partition(place.topic, place.partition)
            bare = replace(partition, observations=(), suspects=(), shared=(), damages=())  # of these are the findings
            parts.append(_Part(bare, rows, own, events))
            transactional.update(*(markers["producer_id"].tolist() for markers in rows.markers))
            transactional.update(*(runs["producer_id"][runs["is_transactional"]].tolist() for runs in rows.runs))
    names = audit.transactional_ids(transactional) if transactional else {}
    return TimelineResult(scan, _Timelines(parts, names))


class _Part(NamedTuple):
    """What the timelines of a partition replica are made of: the arguments of `partition_timelines`."""

    partition: PartitionAudit
    rows: KeptRows
    findings: Sequence[Finding]
    events: TimelineEvents | None


class _Timelines(Sequence[Timeline]):
    """The timelines of all partitions, each made whenever its turn comes: together those of many ids are memory."""

    def __init__(self, parts: Sequence[_Part], names: Mapping[int, str]) -> None:
        self._parts = parts
        self._names = names
        self._length = sum(len(producer_ids_of(part.rows)) for part in parts)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Timeline]:
        made = chain.from_iterable(starmap(partition_timelines, self._parts))
        return (_named(timeline, self._names) for timeline in made)

    @overload
    def __getitem__(self, index: int) -> Timeline: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Timeline]: ...
    def __getitem__(self, index: int | slice) -> Timeline | Sequence[Timeline]:
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


def _is_transactional(entries: Sequence[Mapping[str, object]]) -> bool:
    if isinstance(entries, TimelineEntries):
        return entries.is_transactional
    return any(entry["kind"] == "marker" or entry.get("is_transactional") is True for entry in entries)


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
    tuples = RowTuples(runs), RowTuples(markers)
    for producer_id, *places in zip(ids.tolist(), _slices(runs, ids), _slices(markers, ids), strict=True):
        own_runs, own_markers = runs[places[0]], markers[places[1]]
        own = by_producer.get(producer_id, [])
        gaps = list(missing.of_producer(own_runs, own_markers))
        entries: Sequence[Mapping[str, object]]
        if events is None and len(own_runs) + len(own_markers) + len(gaps) + len(own) > FEW:
            entries = _made_when_asked_for(own_runs, own_markers, markers, gaps, own)
            newest = own_runs[-1:].tolist(), with_records(own_markers)[-1:].tolist()
        else:
            newest = tuples[0].tuples(places[0]), tuples[1].tuples(places[1])
            placed = [_run(row, markers) for row in newest[0]]
            placed += map(_marker, newest[1])
            placed += map(missing_entry, gaps)
            shown = [*placed, *map(_finding, own)]
            if events is not None:
                placed.sort(key=_offset_of)
                shown += events.entries(producer_id, placed, shared=len(ids) <= MAX_SHARED)
            entries = sorted(shown, key=_offset_of)
        yield Timeline(
            topic=partition.directory.topic,
            partition=partition.directory.partition,
            replica=partition.directory.replica,
            producer_id=producer_id,
            transactional_id=_transactional_id(own),
            entries=entries,
            state=_state(*newest, opened.get(producer_id)),
        )


def _by_producer(findings: Sequence[Finding]) -> dict[int | None, list[Finding]]:
    grouped: dict[int | None, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(finding.producer_id, []).append(finding)
    return grouped


def _made_when_asked_for(
    runs: Columns, markers: Columns, all_markers: Columns, missing: list[MissingEntry], findings: list[Finding]
) -> TimelineEntries:
    """Return the entries of one producer id; `all_markers` are those of every producer id."""
    sources = [
        EntrySource(partial(_run, markers=all_markers), runs, runs["first_offset"], _BATCHES),
        EntrySource(_marker, markers, markers["offset"], _BATCHES),
        EntrySource(missing_entry, missing, [gap.first_offset for gap in missing], _MISSING),
        EntrySource(_finding, findings, [finding.offset for finding in findings], _FINDINGS),
    ]
    is_transactional = len(markers) > 0 or bool(runs["is_transactional"].any())
    return TimelineEntries(sources, is_transactional=is_transactional)


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


def _run(row: Sequence[Any], markers: Columns) -> Entry:
    run = MergedRun._make(row)
    transaction = None
    if run.is_transactional:
        marker = run.next_marker
        outcome = "open" if marker == NO_MARKER else _OUTCOMES.get(markers.value("type", marker), "unknown")
        transaction = {"first_offset": run.transaction_first_offset, "outcome": outcome}
    return {
        "kind": "run",
        "first_offset": run.first_offset,
        "last_offset": run.last_offset,
        "first_sequence": run.first_sequence,
        "last_sequence": run.last_sequence,
        "producer_epoch": run.producer_epoch,
        "batches": run.batches,
        "records": run.records,
        "bytes": run.bytes,
        "min_timestamp": run.min_timestamp,
        "max_timestamp": run.max_timestamp,
        "is_transactional": run.is_transactional,
        "first_leader_epoch": run.first_leader_epoch,
        "last_leader_epoch": run.last_leader_epoch,
        "transaction": transaction,
    }


def _marker(row: Sequence[Any]) -> Entry:
    marker = EndTxnMarker._make(row)
    unreported = marker.type == UNREPORTED_CONTROL
    return {
        "kind": "marker",
        "offset": marker.offset,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": None if unreported else marker.coordinator_epoch,
        "type": _MARKERS.get(marker.type, "CLEANED"),
        "timestamp": marker.timestamp,
    }


def _finding(finding: Finding) -> Entry:
    return {
        "kind": "finding",
        "fingerprint": finding.fingerprint,
        "code": finding.code,
        "offset": finding.offset,
        "severity": finding.severity.value,
        "message": finding.message,
    }


def _offset_of(entry: Mapping[str, Any]) -> tuple[int, int, int]:
    offset = entry.get("first_offset", entry.get("offset"))
    unplaced = _LAST if entry["kind"] == "event" else -1
    at = (entry["timestamp"] or 0) if entry["kind"] == "event" else 0
    return (offset if isinstance(offset, int) else unplaced, _RANKS[entry["kind"]], at)


def _transactional_id(findings: Sequence[Finding]) -> str | None:
    names = (finding.evidence.transactional_id for finding in findings)
    return next((name for name in names if name is not None), None)


def _state(runs: Sequence[Sequence[Any]], markers: Sequence[Sequence[Any]], open_since: int | None) -> Entry:
    """What a broker would hold after this log: the newest batch's fields, the newest marker's coordinator epoch.

    The rows are the producer's, the newest are enough; markers that compaction emptied do not count.
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
    return {
        "producer_epoch": epoch,
        "last_sequence": run.last_sequence if same and run is not None else None,
        "last_offset": last_offset if same else None,
        "last_timestamp": max(timestamps, default=None),
        "coordinator_epoch": None if marker is None else marker.coordinator_epoch,
        "current_txn_start_offset": open_since,
    }
