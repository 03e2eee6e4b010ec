"""An audit as one chain of DataFrames, which the functions of `kaudit.spark` collect. It is lazy, and needs no SparkContext.

plans and chunks -> by partition: `replay` -> all outlines in one task: `evidence` -> by topic partition: findings, timelines or
producers -> one task: incidents. Between the steps rows are exchanged by `shard`: shard 0 is what the driver of
`--engine spark` does, the others are topic partitions. Every step takes rows sorted by shard, job index and kind.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.checks.incident_groups import with_incidents
from kaudit.engines.kept_rows import HISTORIES
from kaudit.engines.memory import prepare_worker
from kaudit.engines.rows import NO_ROWS, Rows
from kaudit.errors import UnreadableInputError
from kaudit.listings.producer_histories import PartitionHistory
from kaudit.listings.timeline import by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.job import Job
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.report.machine.streamed_tables import producer_table_rows, timeline_table_rows
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.audit import Audit, ScanFindings
from kaudit.scanning.block_histories import ask_here, read_blocks
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.versions import newest_profile
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.schemes import open_segment
from kaudit.spark.schemas import to_batches
from kaudit.spark.task_findings import FindingsInTasks
from kaudit.spark.tasks import Batches, Given, audit_rows, replay_given

KEY = ("topic", "partition", "replica")
PLAN_SCHEMA = (
    "topic string, partition int, replica string, kind int, segment_number int, first_position bigint, data binary"
)
PLAN_ROWS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replica", pa.string()),
        ("kind", pa.int32()),
        ("segment_number", pa.int32()),
        ("first_position", pa.int64()),
        ("data", pa.binary()),
    ]
)
"""Rows of the input's layout, of the plan of each partition replica, and of its chunks."""
LAYOUT, JOB, CHUNK = range(3)
"""Kinds of these rows, in the order of a partition's rows."""
PLAN_ORDER = (*KEY, "kind", "segment_number", "first_position")
STEP_SCHEMA = "shard int, job_index int, kind int, data binary, audit binary, kept binary"
STEP_ROWS = pa.schema(
    [
        ("shard", pa.int32()),
        ("job_index", pa.int32()),
        ("kind", pa.int32()),
        ("data", pa.binary()),
        ("audit", pa.binary()),
        ("kept", pa.binary()),
    ]
)
"""Rows between the steps after the replay."""
STEP_ORDER = ("shard", "job_index", "kind")
_SCAN_WIDE, _SHARDS = 0, 256
"""The shard of what needs all partitions; topic partitions have the shards from 1 to _SHARDS."""
_WHOLE = -1
"""The job index of rows about the whole scan, before those of all partitions."""
_LAYOUT, _OUTLINE, _LEFT_OUT, _EVIDENCE, _AUDIT, _RESULT, _FINDINGS = range(7)
FINDINGS_AT_ONCE = 500
"""Rows of `findings` made at once: some 10 KB each."""


def plan_row(
    kind: int, data: bytes, key: tuple[object, ...] = ("", -1, ""), segment: int = -1, position: int = -1
) -> pa.RecordBatch:
    """Return one row of the plan, or of a chunk."""
    fields = dict(zip(KEY, key, strict=True))
    fields |= {"kind": kind, "segment_number": segment, "first_position": position, "data": data}
    return pa.RecordBatch.from_pylist([fields], PLAN_ROWS)


def _step_row(shard: int, job_index: int, kind: int, value: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"shard": shard, "job_index": job_index, "kind": kind, "data": pack(value)}], STEP_ROWS
    )


def _shard_of(directory: PartitionDirectory) -> int:
    return 1 + zlib.crc32(f"{directory.topic}-{directory.partition}".encode()) % _SHARDS


def replay(rows: Batches, keeps: Rows) -> Batches:
    """Replay the partitions of plan rows, which are sorted. Rows of a partition that was not planned are passed over."""
    prepare_worker()
    single = chain.from_iterable(map(_cells, rows))
    for _, own in groupby(single, key=lambda row: row[0]):
        kind, data = next((row[1], row[3]) for row in own)
        if kind == LAYOUT:
            yield _step_row(_SCAN_WIDE, _WHOLE, _LAYOUT, unpack(data))
        elif kind == JOB:
            job_index, job = unpack(data)
            yield from _replayed_rows(job_index, job, ((row[2], row[3]) for row in own), keeps)


_Cells = tuple[tuple[object, ...], int, int, bytes]


def _cells(batch: pa.RecordBatch) -> Iterator[_Cells]:
    columns = [batch.column(name) for name in (*KEY, "kind", "segment_number", "data")]
    for index in range(batch.num_rows):
        topic, partition, replica, kind, number, data = (column[index].as_py() for column in columns)
        yield (topic, partition, replica), kind, number, data


def _replayed_rows(job_index: int, job: Job, chunks: Iterator[tuple[int, bytes]], keeps: Rows) -> Batches:
    sink = keeps.make_sink()
    replayed = replay_given(job, chunks, sink)
    if replayed is None:
        yield _step_row(_SCAN_WIDE, job_index, _LEFT_OUT, job.directory)
        return
    part = replayed.partition
    yield _step_row(_SCAN_WIDE, job_index, _OUTLINE, (job.directory, part.outline()))
    for row in audit_rows(job_index, part, (replayed.given, keeps.seal(part, sink))):
        yield pa.RecordBatch.from_pylist([{**row, "shard": _shard_of(job.directory), "kind": _AUDIT}], STEP_ROWS)


class Evidence(Struct, frozen=True):
    """Finds out what only all partitions together show, by the options of an audit."""

    options: ScanOptions

    def __call__(self, rows: Batches) -> Batches:
        """Take the outlines, which come to one task, and yield what each shard needs; other rows stay as they are."""
        held: dict[int, list[tuple[int, Any]]] = {_LAYOUT: [], _OUTLINE: [], _LEFT_OUT: []}
        for batch in rows:
            about_all = pc.equal(batch.column("shard"), _SCAN_WIDE)
            for row in batch.filter(about_all).to_pylist():
                held[row["kind"]].append((row["job_index"], unpack(row["data"])))
            others = batch.filter(pc.invert(about_all))
            if others.num_rows:
                yield others
        for _, layout in held[_LAYOUT]:
            outlines = [(job_index, *value) for job_index, value in held[_OUTLINE]]
            yield from self._rows(layout, outlines, [directory for _, directory in held[_LEFT_OUT]])

    def _rows(
        self,
        layout: Layout,
        outlines: Sequence[tuple[int, PartitionDirectory, PartitionAudit]],
        left_out: Sequence[PartitionDirectory],
    ) -> Batches:
        chosen = [directory for _, directory, _ in outlines]
        layout = replace(layout, partitions=chosen, unchosen=[*layout.unchosen, *left_out])
        audit = Audit(self.options, layout, open_segment, read_blocks(self.options, layout, ask_here(open_segment)))
        for _, directory, outline in outlines:
            outline.directory = directory
            audit.add_compared(outline)
        cross = audit.cross_partition()
        shards: dict[int, dict[int, Any]] = {}
        for (job_index, directory, _), evidence in zip(outlines, cross.others, strict=True):
            shards.setdefault(_shard_of(directory), {})[job_index] = evidence
        newest = newest_profile(cross.stated)
        for shard, others in shards.items():
            yield _step_row(shard, _WHOLE, _EVIDENCE, (cross.context, others, newest))
        yield _step_row(_SCAN_WIDE, _WHOLE, _RESULT, audit.without_findings(cross))
        yield _step_row(_SCAN_WIDE, _WHOLE, _FINDINGS, _Found(cross.findings))


class _Found(Struct, frozen=True):
    """Findings of a topic partition; those in `left_out`, by their places, are about batches that a filter left out."""

    findings: Sequence[Finding]
    left_out: frozenset[int] = frozenset()
    held: Sequence[Any] = ()

    @property
    def given(self) -> list[Finding]:
        """The findings that are reported."""
        return [finding for place, finding in enumerate(self.findings) if place not in self.left_out]


class _TopicPartition(Struct, frozen=True):
    """A topic partition with its findings, and what was kept of each replica."""

    job_index: int
    found: _Found
    kept: Sequence[object]
    newest: Profile


def _topic_partitions(shard: Iterator[pa.RecordBatch]) -> Iterator[_TopicPartition]:
    """Yield the topic partitions of a shard's rows: its evidence, then audits by job index."""
    first = next(shard)
    context, others, newest = unpack(first.column("data")[0].as_py())
    findings_in_tasks = FindingsInTasks(context, others, open_segment)
    for made in findings_in_tasks.topic_partitions(chain([first.slice(1)], shard)):
        given: dict[tuple[object, ...], tuple[PartitionAudit, Given]] = {
            (part.directory.topic, part.directory.partition, part.directory.replica): (part, own)
            for part, (own, _) in zip(made.replicas, made.kept, strict=True)
            if own is not None
        }
        findings = made.found.findings
        left_out = frozenset(place for place, finding in enumerate(findings) if not _is_given(finding, given))
        found = _Found(findings, left_out, made.found.held)
        yield _TopicPartition(made.job_index, found, [kept for _, kept in made.kept], newest)


def _is_given(finding: Finding, filtered: Mapping[tuple[object, ...], tuple[PartitionAudit, Given]]) -> bool:
    """Return whether a finding is at batches that were given; damaged bytes are in no row."""
    entry = filtered.get((finding.topic, finding.partition, finding.replica))
    if entry is None or finding.position is None or finding.segment is None:
        return True
    partition, given = entry
    names = [segment.name for segment in partition.directory.segments]
    number = names.index(finding.segment) if finding.segment in names else -1
    position = finding.position
    if any(damage.damage.position == position for damage in partition.damages):
        return True
    return any(first <= position < stop for first, stop in given.get(number, ()))


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
        if shard == _SCAN_WIDE:
            yield from own
            continue
        for made in _topic_partitions(own):
            yield _step_row(_SCAN_WIDE, made.job_index, _FINDINGS, made.found)


class Histories(Struct, frozen=True):
    """Makes the rows of `timelines` or `producers` of each partition replica."""

    table: str
    options: ScanOptions
    allow_incomplete: bool = False

    def __call__(self, rows: Batches) -> Batches:
        """Yield the rows. Raises UnreadableInputError where something could not be read."""
        prepare_worker()
        for shard, own in _by_shard(rows):
            if shard != _SCAN_WIDE:
                for made in _topic_partitions(own):
                    yield from self._rows(made)
            elif not self.allow_incomplete:
                for result in _values(own, _RESULT):
                    require_complete(result.with_findings(ScanFindings((), producer_ids=self.options.producer_ids)))

    def _rows(self, made: _TopicPartition) -> Batches:
        findings = by_replica(made.found.given)
        for history in made.kept:
            assert isinstance(history, PartitionHistory)
            yield from history_rows(self.table, history, findings.get(history.key, ()), newest=made.newest)


def history_rows(
    table: str, history: PartitionHistory, findings: Sequence[Finding], *, newest: Profile
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `timelines` or `producers` of one partition replica, `findings` being its own."""
    if table == "timelines":
        return to_batches(table, timeline_table_rows(history, findings))
    return to_batches(table, producer_table_rows(history, findings, newest=newest))


def _values(rows: Iterable[pa.RecordBatch], kind: int) -> Iterator[Any]:
    for batch in rows:
        for row in batch.to_pylist():
            if row["kind"] == kind:
                yield unpack(row["data"])


def _scan_result(rows: Batches) -> ScanResult:
    """Return the result of the scan, from the rows of `make_findings` by job index, all of them in one task."""
    held = list(rows)
    (result,) = _values(held, _RESULT)
    found: list[_Found] = list(_values(held, _FINDINGS))
    marked = iter(with_incidents([finding for own in found for finding in own.findings]))
    given = [
        finding
        for own in found
        for place, finding in enumerate(next(marked) for _ in own.findings)
        if place not in own.left_out
    ]
    ids = {finding.producer_id for own in found for finding in own.findings if finding.producer_id is not None}
    whole: ScanResult = result.with_findings(ScanFindings(given, [held for own in found for held in own.held], ids))
    return whole


def scan_result(rows: Batches) -> Batches:
    """Yield the result of the scan as one row."""
    yield _step_row(_SCAN_WIDE, _WHOLE, _RESULT, _scan_result(rows))


class WithIncidents(Struct, frozen=True):
    """Joins the findings of all topic partitions to incidents."""

    allow_incomplete: bool = False

    def __call__(self, rows: Batches) -> Batches:
        """Yield rows of `findings` in the order of `kaudit scan`. Raises UnreadableInputError where something could not be read."""
        result = _scan_result(rows)
        if not self.allow_incomplete:
            require_complete(result)
        yield from to_batches("findings", map(finding_row, result.findings), FINDINGS_AT_ONCE)


def require_complete(result: ScanResult) -> ScanResult:
    """Return a result of which everything could be read.

    Raises:
        UnreadableInputError: something could not be read; rows cannot say so.

    """
    unread = [note for note in result.not_audited if note.unreadable]
    if unread:
        more = f", and {len(unread) - 1} more" if len(unread) > 1 else ""
        raise UnreadableInputError(
            f"{unread[0].path}: {unread[0].reason}{more}; with allow_incomplete=True the functions of kaudit.spark give what is "
            "found in the rest"
        )
    return result


REPLAY: Callable[[Batches], Batches] = partial(replay, keeps=NO_ROWS)
REPLAY_WITH_HISTORIES: Callable[[Batches], Batches] = partial(replay, keeps=HISTORIES)
