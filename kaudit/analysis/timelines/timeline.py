"""Producers' histories for people: runs, markers, missing offsets and findings in offset order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from kaudit.analysis.scan.audit import Audit
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.partition_replay import KeptRows
from kaudit.analysis.scan.rows import SILENCE_MS
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, UNREPORTED_CONTROL
from kaudit.model.columns import Columns, Row, joined
from kaudit.model.continuity import MissingCause, MissingOffsets
from kaudit.model.finding import Finding
from kaudit.model.result import Timeline, TimelineResult
from kaudit.model.sequence import next_sequence

Entry = dict[str, Any]
_OUTCOMES = {ABORT_MARKER: "aborted", COMMIT_MARKER: "committed"}


def build_timelines(audit: Audit, kept: Sequence[KeptRows]) -> TimelineResult:
    """Build one timeline a producer id and partition replica, from the rows kept while reading, in the audit's order."""
    scan = audit.result()
    findings = by_replica(scan.findings)
    timelines: list[Timeline] = []
    for partition, rows in zip(audit.partitions, kept, strict=True):
        place = partition.directory
        own = findings.get((place.topic, place.partition, place.replica), ())
        timelines += partition_timelines(partition, rows, own)
    transactional = {timeline.producer_id for timeline in timelines if any(map(_is_transactional, timeline.entries))}
    names = audit.transactional_ids(transactional.__contains__) if transactional else {}
    return TimelineResult(
        scan,
        [replace(entry, transactional_id=names.get(entry.producer_id, entry.transactional_id)) for entry in timelines],
    )


def _is_transactional(entry: Mapping[str, object]) -> bool:
    return entry["kind"] == "marker" or entry.get("is_transactional") is True


def by_replica(findings: Sequence[Finding]) -> dict[tuple[object, ...], list[Finding]]:
    """Group findings by (topic, partition, replica)."""
    grouped: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        grouped.setdefault((finding.topic, finding.partition, finding.replica), []).append(finding)
    return grouped


def partition_timelines(partition: PartitionAudit, rows: KeptRows, findings: Sequence[Finding]) -> Iterator[Timeline]:
    """Yield one timeline a producer id; `findings` are this partition replica's."""
    if not rows.runs:
        return
    by_producer: dict[int | None, list[Finding]] = {}
    for finding in findings:
        by_producer.setdefault(finding.producer_id, []).append(finding)
    runs, markers = joined(rows.runs), joined(rows.markers)
    runs = runs[np.lexsort((runs["first_offset"], runs["producer_id"]))]
    markers = markers[np.lexsort((markers["offset"], markers["producer_id"]))]
    ids = np.union1d(runs["producer_id"], markers["producer_id"])
    directory = partition.directory
    for producer_id in ids.tolist():
        own_runs = runs[_slice(runs, producer_id)]
        own_markers = markers[_slice(markers, producer_id)]
        own = by_producer.get(producer_id, [])
        entries = _entries(own_runs, own_markers)
        entries += _missing(partition, own_runs, own_markers)
        entries += [_finding(finding) for finding in own]
        entries.sort(key=_offset_of)
        yield Timeline(
            topic=directory.topic,
            partition=directory.partition,
            replica=directory.replica,
            producer_id=producer_id,
            transactional_id=_transactional_id(own),
            entries=entries,
            state=_state(partition, producer_id, own_runs, own_markers),
        )


def _slice(rows: Columns, producer_id: int) -> slice:
    first, last = np.searchsorted(rows["producer_id"], (producer_id, producer_id + 1))
    return slice(int(first), int(last))


def _entries(runs: Columns, markers: Columns) -> list[Entry]:
    offsets = markers["offset"]
    merged: list[Entry] = []
    for run in runs:
        after = int(np.searchsorted(offsets, run["first_offset"]))
        before = merged[-1] if merged else None
        if before is not None and _goes_on(before, run, after):
            _extend(before, run)
            continue
        merged.append(_run(run, markers[after] if after < len(markers) else None, after))
    _transaction_starts(merged)
    for entry in merged:
        del entry["_marker"], entry["_last_timestamp"]
    return merged + [_marker(marker) for marker in markers]


def _goes_on(before: Entry, run: Row, after: int) -> bool:
    """Tell whether a run only goes on with the one before it: chunks are cut anywhere."""
    last: int = before["last_sequence"]
    return (
        before["_marker"] == after
        and before["producer_epoch"] == int(run["producer_epoch"])
        and before["is_transactional"] == bool(run["is_transactional"])
        and last >= 0
        and next_sequence(last) == int(run["first_sequence"])
        and int(run["min_timestamp"]) - before["_last_timestamp"] < SILENCE_MS
    )


def _run(run: Row, marker: Row | None, after: int) -> Entry:
    entry: Entry = {"kind": "run", "_marker": after, "_last_timestamp": int(run["last_max_timestamp"])}
    for name in ("first_offset", "last_offset", "first_sequence", "last_sequence", "producer_epoch"):
        entry[name] = int(run[name])
    for name in ("batches", "records", "bytes", "min_timestamp", "max_timestamp"):
        entry[name] = int(run[name])
    entry["is_transactional"] = bool(run["is_transactional"])
    entry["first_leader_epoch"] = int(run["first_leader_epoch"])
    entry["last_leader_epoch"] = int(run["last_leader_epoch"])
    entry["transaction"] = None
    if run["is_transactional"]:
        outcome = "open" if marker is None else _OUTCOMES.get(int(marker["type"]), "unknown")
        entry["transaction"] = {"first_offset": int(run["first_offset"]), "outcome": outcome}
    return entry


def _extend(before: Entry, run: Row) -> None:
    for name in ("batches", "records", "bytes"):
        before[name] += int(run[name])
    for name in ("last_offset", "last_sequence", "last_leader_epoch"):
        before[name] = int(run[name])
    before["min_timestamp"] = min(before["min_timestamp"], int(run["min_timestamp"]))
    before["max_timestamp"] = max(before["max_timestamp"], int(run["max_timestamp"]))
    before["_last_timestamp"] = int(run["last_max_timestamp"])


def _transaction_starts(runs: Sequence[Entry]) -> None:
    """A transaction of several runs starts at the first of them: those up to the same marker."""
    first: dict[object, object] = {}
    for entry in runs:
        transaction = entry["transaction"]
        if transaction is not None:
            transaction["first_offset"] = first.setdefault(entry["_marker"], transaction["first_offset"])


def _marker(marker: Row) -> Entry:
    names = {ABORT_MARKER: "ABORT", COMMIT_MARKER: "COMMIT", UNREPORTED_CONTROL: None}
    unreported = int(marker["type"]) == UNREPORTED_CONTROL
    return {
        "kind": "marker",
        "offset": int(marker["offset"]),
        "producer_epoch": int(marker["producer_epoch"]),
        "coordinator_epoch": None if unreported else int(marker["coordinator_epoch"]),
        "type": names.get(int(marker["type"]), "CLEANED"),
        "timestamp": int(marker["timestamp"]),
    }


def _missing(partition: PartitionAudit, runs: Columns, markers: Columns) -> list[Entry]:
    """MissingOffsets offsets within this producer's span, and those before the log if its first sequence is not 0."""
    entries: list[Entry] = []
    offsets = [int(rows[name][0]) for rows, name in ((runs, "first_offset"), (markers, "offset")) if len(rows)]
    ends = [int(rows[name][-1]) for rows, name in ((runs, "last_offset"), (markers, "offset")) if len(rows)]
    start = partition.directory.segments[0].base_offset if partition.directory.segments else 0
    start = max(start, partition.directory.log_start_offset or 0)
    if start > 0 and len(runs) and int(runs["first_sequence"][0]) > 0:
        entries.append(_missing_entry(0, start - 1, MissingCause.LOG_START))
    entries += [
        _missing_entry(gap.first_offset, gap.last_offset, _cause(partition, gap))
        for gap in partition.missing
        if offsets and min(offsets) <= gap.first_offset and gap.last_offset <= max(ends)
    ]
    return entries


def _cause(partition: PartitionAudit, gap: MissingOffsets) -> MissingCause:
    if partition.compacted and gap.cause in (MissingCause.UNKNOWN, MissingCause.MISSING_SEGMENT):
        return MissingCause.COMPACTION
    return gap.cause


def _missing_entry(first: int, last: int, cause: MissingCause) -> Entry:
    return {
        "kind": "missing",
        "first_offset": first,
        "last_offset": last,
        "offsets": last - first + 1,
        "cause": cause.value,
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


def _offset_of(entry: Entry) -> tuple[int, int]:
    order = {"missing": 0, "run": 1, "marker": 1, "finding": 2}
    offset = entry.get("first_offset", entry.get("offset"))
    return (offset if isinstance(offset, int) else -1, order[str(entry["kind"])])


def _transactional_id(findings: Sequence[Finding]) -> str | None:
    for finding in findings:
        name = finding.evidence.get("transactional_id")
        if isinstance(name, str):
            return name
    return None


def _state(partition: PartitionAudit, producer_id: int, runs: Columns, markers: Columns) -> Entry:
    """What a broker would hold after this log: the newest batch's fields, the newest marker's coordinator epoch."""
    marked = markers[markers["record_count"] > 0]
    newest_run = runs[-1] if len(runs) else None
    newest_marker = marked[-1] if len(marked) else None
    marker_later = newest_marker is not None and (
        newest_run is None or int(newest_marker["offset"]) > int(newest_run["last_offset"])
    )
    epoch = None
    if marker_later and newest_marker is not None:
        epoch = int(newest_marker["producer_epoch"])
    elif newest_run is not None:
        epoch = int(newest_run["producer_epoch"])
    same = newest_run is not None and epoch == int(newest_run["producer_epoch"])
    opened = [entry.first_offset for entry in partition.opened if entry.producer_id == producer_id]
    timestamps = [int(newest_run["last_max_timestamp"])] if newest_run is not None else []
    timestamps += [int(newest_marker["timestamp"])] if newest_marker is not None else []
    return {
        "producer_epoch": epoch,
        "last_sequence": int(newest_run["last_sequence"]) if same and newest_run is not None else None,
        "last_offset": int(newest_run["last_offset"]) if same and newest_run is not None else None,
        "last_timestamp": max(timestamps) if timestamps else None,
        "coordinator_epoch": int(newest_marker["coordinator_epoch"]) if newest_marker is not None else None,
        "current_txn_start_offset": opened[0] if opened else None,
    }
