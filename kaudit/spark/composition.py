"""What the DataFrames of `kaudit.spark` make of replayed partitions, lazily and without a SparkContext.

Rows of STEPS: all outlines in one task -> evidence -> by topic partition: timelines, producers, or findings -> groups of these in one
task -> ids of incidents -> by topic partition: rows. Between the steps rows are moved to the task that `shard` numbers: shards ascend
in the order of findings. Every step takes rows sorted by STEP_ORDER.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.checks.doubled import About, without_doubled
from kaudit.errors import UnreadableInputError
from kaudit.listings.producer_histories import PartitionHistory
from kaudit.listings.timeline import by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited, ScanResult
from kaudit.model.severity import Severity
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.unread_segments import Failure
from kaudit.report.machine.tables import producer_table_rows, timeline_columns
from kaudit.scanning.audit import Audit
from kaudit.scanning.findings import CrossPartitionEvidence
from kaudit.scanning.result_parts import ResultWithoutFindings, ScanFindings
from kaudit.scanning.versions import newest_profile
from kaudit.source.layout import Unreadable
from kaudit.source.schemes import open_segment
from kaudit.spark.finding_rows import Stamp
from kaudit.spark.plan import KnownInput
from kaudit.spark.schemas import to_batch, to_batches
from kaudit.spark.task_findings import AllCounts, FindingCounts, FindingsInTasks, Found, TopicPartition, scan_wide
from kaudit.spark.tasks import (
    EVIDENCE,
    FINDINGS,
    GROUPS,
    INCIDENTS,
    LEFT_OUT,
    PLANNED,
    RESULT,
    SCAN_WIDE,
    WHOLE,
    Batches,
    cells,
    prepare_worker,
    shards_of,
    step,
    unpacked,
)

STEP_ORDER = ("shard", "job_index", "kind")
"""Rows of `findings` made at once: some 10 KB each."""


class Joined(Struct, frozen=True):
    """What all topic partitions show: ids of incidents that span several, by job and group, and the lines their findings show."""

    across: Mapping[int, Mapping[int, str]]
    lines: Mapping[About, Severity] | None
    """None where no logs of brokers and clients were read."""

    def findings(self, job_index: int, found: Found) -> Sequence[Finding]:
        """Return the findings of a topic partition, as they are reported."""
        given = found.given(self.across.get(job_index, {}))
        return given if self.lines is None else without_doubled(given, self.lines)


class Evidence(Struct, frozen=True):
    """Finds out what only all partitions together show; `shards` is the number of those of topic partitions.

    `kept`: the type of what is kept of each replica.
    """

    shards: int
    kept: Any = None

    def __call__(self, rows: Batches) -> Batches:
        """Take the plan and the outlines, which come to one task, and yield what each shard needs; other rows stay as they are."""
        known: list[KnownInput] = []
        outlines: dict[int, PartitionAudit | None] = {}
        for batch in rows:
            about_all = pc.equal(batch.column("shard"), SCAN_WIDE)
            for kind, job_index, data in cells(iter([batch.filter(about_all)]), "kind", "job_index", "data"):
                if kind == PLANNED:
                    known.append(unpacked(data))
                else:
                    outlines[job_index] = None if kind == LEFT_OUT else unpacked(data)
            others = batch.filter(pc.invert(about_all))
            if others.num_rows:
                yield others
        for given in known:
            yield from self._rows(given, outlines)

    def _rows(self, known: KnownInput, outlines: Mapping[int, PartitionAudit | None]) -> Batches:
        places = known.layout.partitions
        chosen = {number: outline for number in sorted(outlines) if (outline := outlines[number]) is not None}
        left_out = [places[number] for number in outlines if number not in chosen]
        for number, outline in chosen.items():
            outline.directory = places[number]
        layout = replace(
            known.layout,
            partitions=[outline.directory for outline in chosen.values()],
            unchosen=[*known.layout.unchosen, *left_out],
        )
        audit = Audit(known.options, layout, open_segment, known.histories)
        for outline in chosen.values():
            audit.add_compared(outline)
        cross = audit.cross_partition()
        where = shards_of(places, self.shards)
        by_shard: dict[int, dict[int, CrossPartitionEvidence]] = {}
        for number, evidence in zip(chosen, cross.others, strict=True):
            by_shard.setdefault(where[number], {})[number] = evidence
        for shard, others in by_shard.items():
            in_tasks = FindingsInTasks(cross.context, others, newest_profile(cross.stated), open_segment, self.kept)
            yield step(shard, WHOLE, EVIDENCE, in_tasks)
        yield step(SCAN_WIDE, WHOLE, RESULT, audit.without_findings(cross))
        yield from _found(SCAN_WIDE, scan_wide(cross))


def _found(shard: int, partition: TopicPartition) -> Batches:
    """Yield the findings of a topic partition, and for one task what incidents of several partitions need."""
    yield step(SCAN_WIDE, partition.job_index, GROUPS, (shard, partition.counts()))
    yield step(shard, partition.job_index, FINDINGS, partition.reported())


def _topic_partitions(shard: Iterator[pa.RecordBatch]) -> Iterator[tuple[TopicPartition, Profile]]:
    """Yield the topic partitions of a shard's rows: what they need of all others, then audits by job index."""
    first = next(shard)
    in_tasks: FindingsInTasks = unpacked(first.column("data")[0].as_py())
    for made in in_tasks.topic_partitions(chain([first.slice(1)], shard)):
        yield made, in_tasks.newest


def _by_shard(rows: Batches) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yield each shard's number and rows."""

    def pieces() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in rows:
            start = 0
            for shard, same in groupby(batch.column("shard").to_pylist()):
                count = sum(1 for _ in same)
                yield shard, batch.slice(start, count)
                start += count

    for shard, own in groupby(pieces(), key=lambda piece: piece[0]):
        yield shard, (batch for _, batch in own)


def make_findings(rows: Batches) -> Batches:
    """Yield what is found in each topic partition; rows about all of them stay as they are."""
    prepare_worker()
    for shard, own in _by_shard(rows):
        if shard == SCAN_WIDE:
            yield from own
            continue
        for made, _ in _topic_partitions(own):
            yield from _found(shard, made)


def join_incidents(rows: Batches) -> Batches:
    """Give each shard what all topic partitions show, in the task that has all groups; other rows stay as they are."""
    for shard, own in _by_shard(rows):
        if shard != SCAN_WIDE:
            yield from own
            continue
        results: list[ResultWithoutFindings] = []
        counts: dict[int, tuple[int, FindingCounts]] = {}
        for batch in own:
            for kind, job_index, data in cells(iter([batch]), "kind", "job_index", "data"):
                if kind == GROUPS:
                    counts[job_index] = unpacked(data)
                elif kind == RESULT:
                    results.append(unpacked(data))
            yield batch.filter(pc.equal(batch.column("kind"), FINDINGS))
        for result in results:
            yield from _joined(result, dict(sorted(counts.items())))


def _joined(result: ResultWithoutFindings, found: Mapping[int, tuple[int, FindingCounts]]) -> Batches:
    counts = AllCounts({job_index: own for job_index, (_, own) in found.items()})
    across: dict[int, dict[int, dict[int, str]]] = {shard: {} for shard, _ in found.values()}
    for job_index, ids in counts.incident_ids().items():
        across[found[job_index][0]][job_index] = ids
    lines: dict[About, Severity] = {}
    for about, severity in (line for own in counts.partitions.values() for line in own.lines):
        lines[about] = max(lines.get(about, severity), severity)
    shown = None if result.result.log_events is None else lines
    for shard, own_ids in across.items():
        yield step(shard, WHOLE, INCIDENTS, Joined(own_ids, shown))
    yield step(SCAN_WIDE, WHOLE, RESULT, (result, counts.of_scan()))


class FindingRows(Struct, frozen=True):
    """Makes the rows of `findings`, in the order of `kaudit scan`."""

    allow_incomplete: bool = False
    stamp: Stamp = field(default_factory=Stamp)

    def __call__(self, rows: Batches) -> Batches:
        """Yield the rows. Raises UnreadableInputError where something could not be read."""
        prepare_worker()
        for _, own in _by_shard(rows):
            joined = Joined({}, None)
            for kind, job_index, data in cells(own, "kind", "job_index", "data"):
                if kind == INCIDENTS:
                    joined = unpacked(data)
                elif kind == FINDINGS:
                    yield from self.stamp.rows(joined.findings(job_index, unpacked(data)))
                elif not self.allow_incomplete:
                    result, found = unpacked(data)
                    require_complete(result.with_findings(found))


class Histories(Struct, frozen=True):
    """Makes the rows of `timelines` or `producers` of each partition replica."""

    table: str
    allow_incomplete: bool = False

    def __call__(self, rows: Batches) -> Batches:
        """Yield the rows. Raises UnreadableInputError where something could not be read."""
        prepare_worker()
        for shard, own in _by_shard(rows):
            if shard != SCAN_WIDE:
                for made, newest in _topic_partitions(own):
                    if made.failed and not self.allow_incomplete:
                        raise incomplete(made.failed)
                    yield from self._rows(made, newest)
            elif not self.allow_incomplete:
                for result in (unpacked(data) for kind, data in cells(own, "kind", "data") if kind == RESULT):
                    require_complete(result.with_findings(ScanFindings((), result.options.producer_ids)))

    def _rows(self, made: TopicPartition, newest: Profile) -> Batches:
        findings = by_replica(made.reported().findings)
        for history in made.kept:
            yield from history_rows(self.table, history, findings.get(history.key, ()), newest=newest)


def history_rows(
    table: str, history: PartitionHistory, findings: Sequence[Finding], *, newest: Profile
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `timelines` or `producers` of one partition replica, `findings` being its own."""
    if table == "timelines":
        return (to_batch(table, timeline_columns(each)) for each in history.histories(findings))
    return to_batches(table, producer_table_rows(history, findings, newest=newest))


def scan_result(rows: Iterable[pa.RecordBatch]) -> ScanResult:
    """Return the result of the scan, from all rows of `join_incidents`, by shard and job index."""
    held = list(cells(iter(rows), "shard", "job_index", "kind", "data"))
    ((result, found),) = (unpacked(data) for *_, kind, data in held if kind == RESULT)
    joined = {shard: unpacked(data) for shard, _, kind, data in held if kind == INCIDENTS}
    findings = [
        finding
        for shard, job_index, kind, data in held
        if kind == FINDINGS
        for finding in joined[shard].findings(job_index, unpacked(data))
    ]
    whole: ScanResult = result.with_findings(replace(found, findings=findings))
    return whole


def require_complete(result: ScanResult) -> ScanResult:
    """Return a result of which everything could be read.

    Raises:
        UnreadableInputError: something could not be read.

    """
    unread = [note for note in result.not_audited if note.unreadable]
    if unread:
        raise incomplete(unread)
    return result


def incomplete(unread: Sequence[NotAudited | Unreadable | Failure]) -> UnreadableInputError:
    """Return the error that something could not be read: rows cannot say so."""
    more = f", and {len(unread) - 1} more" if len(unread) > 1 else ""
    return UnreadableInputError(
        f"{unread[0].path}: {unread[0].reason}{more}; with allow_incomplete=True the functions of kaudit.spark give what is "
        "found in the rest"
    )
