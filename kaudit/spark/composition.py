"""What the DataFrames of `kaudit.spark` make of replayed partitions, lazily and without a SparkContext.

Rows of STEPS: all outlines in one task -> evidence -> by topic partition: findings, timelines or producers -> one task or the driver:
incidents. Between the steps rows are exchanged by `shard`. Every step takes rows sorted by STEP_ORDER.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.checks.incident_groups import with_incidents
from kaudit.errors import UnreadableInputError
from kaudit.listings.producer_histories import PartitionHistory
from kaudit.listings.timeline import by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited, ScanResult
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.shuffle_codec import unpack
from kaudit.reading.unread_segments import Failure
from kaudit.report.machine.tables import finding_row, producer_table_rows, timeline_table_rows
from kaudit.scanning.audit import Audit
from kaudit.scanning.block_histories import read_blocks
from kaudit.scanning.findings import CrossPartitionEvidence, ScanContext
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.result_parts import ResultWithoutFindings, ScanFindings
from kaudit.scanning.versions import newest_profile
from kaudit.source.layout import Layout, Unreadable
from kaudit.source.schemes import open_segment
from kaudit.spark.schemas import to_batches
from kaudit.spark.task_findings import FindingsInTasks, SentFinding, TopicPartition, sent
from kaudit.spark.tasks import (
    EVIDENCE,
    FINDINGS,
    LAYOUT,
    LEFT_OUT,
    RESULT,
    SCAN_WIDE,
    WHOLE,
    Batches,
    prepare_worker,
    shard_of,
    step,
)

STEP_ORDER = ("shard", "job_index", "kind")
_Value = TypeVar("_Value")
FINDINGS_AT_ONCE = 500
"""Rows of `findings` made at once: some 10 KB each."""


class Found(Struct, frozen=True):
    """Findings of a topic partition; those in `left_out`, by their places, are about batches that a filter left out."""

    findings: Sequence[SentFinding]
    left_out: frozenset[int] = frozenset()
    failed: Sequence[Unreadable] = ()

    @property
    def given(self) -> list[Finding]:
        """The findings that are reported."""
        return [finding for place, finding in enumerate(self.findings) if place not in self.left_out]


class ShardEvidence(Struct, frozen=True):
    """What the findings of a shard's topic partitions need from all others, by job index."""

    context: ScanContext
    others: Mapping[int, CrossPartitionEvidence]
    newest: Profile


class Evidence(Struct, frozen=True):
    """Finds out what only all partitions together show, by the options of an audit."""

    options: ScanOptions

    def __call__(self, rows: Batches) -> Batches:
        """Take the outlines, which come to one task, and yield what each shard needs; other rows stay as they are."""
        layouts: list[Layout] = []
        outlines: dict[int, PartitionAudit | None] = {}
        for batch in rows:
            about_all = pc.equal(batch.column("shard"), SCAN_WIDE)
            for row in batch.filter(about_all).to_pylist():
                if row["kind"] == LAYOUT:
                    layouts.append(unpack(row["data"], Layout))
                else:
                    left_out = row["kind"] == LEFT_OUT
                    outlines[row["job_index"]] = None if left_out else unpack(row["data"], PartitionAudit)
            others = batch.filter(pc.invert(about_all))
            if others.num_rows:
                yield others
        for layout in layouts:
            yield from self._rows(layout, outlines)

    def _rows(self, layout: Layout, outlines: Mapping[int, PartitionAudit | None]) -> Batches:
        chosen = {number: outline for number, outline in outlines.items() if outline is not None}
        left_out = [layout.partitions[number] for number in outlines if number not in chosen]
        for number, outline in chosen.items():
            outline.directory = layout.partitions[number]
        layout = replace(
            layout,
            partitions=[outline.directory for outline in chosen.values()],
            unchosen=[*layout.unchosen, *left_out],
        )
        audit = Audit(self.options, layout, open_segment, read_blocks(self.options, layout, open_segment))
        for outline in chosen.values():
            audit.add_compared(outline)
        cross = audit.cross_partition()
        shards: dict[int, dict[int, CrossPartitionEvidence]] = {}
        for (number, outline), evidence in zip(chosen.items(), cross.others, strict=True):
            shards.setdefault(shard_of(outline.directory), {})[number] = evidence
        newest = newest_profile(cross.stated)
        for shard, others in shards.items():
            yield step(shard, WHOLE, EVIDENCE, ShardEvidence(cross.context, others, newest))
        yield step(SCAN_WIDE, WHOLE, RESULT, audit.without_findings(cross))
        yield step(SCAN_WIDE, WHOLE, FINDINGS, Found(sent(cross.findings)))


def _topic_partitions(shard: Iterator[pa.RecordBatch], kept: Any) -> Iterator[tuple[TopicPartition, Found, Profile]]:  # noqa: ANN401 - a type
    """Yield the topic partitions of a shard's rows: its evidence, then audits by job index."""
    first = next(shard)
    evidence = unpack(first.column("data")[0].as_py(), ShardEvidence)
    in_tasks = FindingsInTasks(evidence.context, evidence.others, open_segment, kept)
    for made in in_tasks.topic_partitions(chain([first.slice(1)], shard)):
        yield made, Found(sent(made.found), made.left_out(), made.failed), evidence.newest


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
    """Yield the findings of each topic partition, for the task that joins incidents."""
    prepare_worker()
    for shard, own in _by_shard(rows):
        if shard == SCAN_WIDE:
            yield from own
            continue
        for made, found, _ in _topic_partitions(own, None):
            yield step(SCAN_WIDE, made.job_index, FINDINGS, found)


class Histories(Struct, frozen=True):
    """Makes the rows of `timelines` or `producers` of each partition replica."""

    table: str
    options: ScanOptions
    allow_incomplete: bool = False

    def __call__(self, rows: Batches) -> Batches:
        """Yield the rows. Raises UnreadableInputError where something could not be read."""
        prepare_worker()
        for shard, own in _by_shard(rows):
            if shard != SCAN_WIDE:
                for made, found, newest in _topic_partitions(own, PartitionHistory):
                    if made.failed and not self.allow_incomplete:
                        raise incomplete(made.failed)
                    yield from self._rows(made, found, newest)
            elif not self.allow_incomplete:
                for result in _values(own, RESULT, ResultWithoutFindings):
                    require_complete(result.with_findings(ScanFindings((), producer_ids=self.options.producer_ids)))

    def _rows(self, made: TopicPartition, found: Found, newest: Profile) -> Batches:
        findings = by_replica(found.given)
        for history in made.kept:
            yield from history_rows(self.table, history, findings.get(history.key, ()), newest=newest)


def history_rows(
    table: str, history: PartitionHistory, findings: Sequence[Finding], *, newest: Profile
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `timelines` or `producers` of one partition replica, `findings` being its own."""
    if table == "timelines":
        return to_batches(table, timeline_table_rows(history, findings))
    return to_batches(table, producer_table_rows(history, findings, newest=newest))


def _values(rows: Iterable[pa.RecordBatch], kind: int, of: type[_Value]) -> Iterator[_Value]:
    for batch in rows:
        for row in batch.to_pylist():
            if row["kind"] == kind:
                yield unpack(row["data"], of)


def scan_result(rows: Iterable[pa.RecordBatch]) -> ScanResult:
    """Return the result of the scan, from all rows of `make_findings`, by job index."""
    held = list(rows)
    (result,) = _values(held, RESULT, ResultWithoutFindings)
    found = list(_values(held, FINDINGS, Found))
    marked = iter(with_incidents([finding for own in found for finding in own.findings]))
    given = [
        finding
        for own in found
        for place, finding in enumerate(next(marked) for _ in own.findings)
        if place not in own.left_out
    ]
    ids = {finding.producer_id for own in found for finding in own.findings if finding.producer_id is not None}
    failed = [entry for own in found for entry in own.failed]
    return result.with_findings(ScanFindings(given, ids, (), failed))


class WithIncidents(Struct, frozen=True):
    """Joins the findings of all topic partitions to incidents."""

    allow_incomplete: bool = False

    def __call__(self, rows: Batches) -> Batches:
        """Yield rows of `findings` in the order of `kaudit scan`. Raises UnreadableInputError where something could not be read."""
        result = scan_result(rows)
        if not self.allow_incomplete:
            require_complete(result)
        yield from to_batches("findings", map(finding_row, result.findings), FINDINGS_AT_ONCE)


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
