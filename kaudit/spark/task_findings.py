"""Findings and timelines made in Spark's tasks, where a partition's evidence lies; the driver gets numbers, and the first of them."""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.broker.releases.profile import Profile
from kaudit.checks.doubled import About, shown_lines
from kaudit.checks.incident_groups import (
    Group,
    PartitionIncidents,
    Reach,
    ids_across,
    marked_with,
    partition_incidents,
)
from kaudit.listings.timeline import by_replica, partition_histories
from kaudit.model.finding import Finding
from kaudit.model.limits import FINDINGS_OF_CHECK
from kaudit.model.result import UnlistedFindings
from kaudit.model.severity import Severity
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.failed_reads import FailedReads
from kaudit.reading.shuffle_codec import unpack
from kaudit.scanning.findings import CrossPartitionEvidence, ScanContext, partition_findings
from kaudit.scanning.result_parts import ScanFindings
from kaudit.source.layout import Unreadable
from kaudit.spark.tasks import AUDIT, WHOLE, Batches, Given, Replayed, cells, packed, row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kaudit.scanning.audit import CrossPartition
    from kaudit.scanning.log_comparison import ComparedLogs

FOUND = "job_index int, found binary"

Counted = tuple[str, Severity]
"""A check's code, and the severity of some of its findings."""


class Found(Struct, frozen=True):
    """Findings of a topic partition, with the incidents that it shows alone, and the group of each."""

    findings: Sequence[Finding]
    group_of: Sequence[int]

    def given(self, across: Mapping[int, str]) -> list[Finding]:
        """Return the findings as they are reported; `across`: the ids of groups whose incidents span partitions."""
        return [
            replace(finding, incident=across[group]) if group in across else finding
            for finding, group in zip(self.findings, self.group_of, strict=True)
        ]


class FindingCounts(Struct, frozen=True):
    """A topic partition's findings as numbers: their fingerprints by check and severity, in order, and what incidents need.

    `groups` are those that reach other partitions, by their numbers among the partition's.
    """

    topic: str
    fingerprints: Mapping[Counted, NDArray[np.uint64]]
    groups: Mapping[int, Group]
    reaches: NDArray[np.int64]
    producer_ids: frozenset[int]
    failed: Sequence[Unreadable] = ()
    """Files that could not be read for them."""
    outside: int = 0
    """Findings that are left out because of the time asked for."""
    lines: Sequence[tuple[About, Severity]] = ()
    """Lines of logs that they show."""
    found: Found | None = None
    """Themselves, where they are few."""


class AllCounts(Struct, frozen=True):
    """The counts of every topic partition, by the index of its first job, in the order of findings."""

    partitions: Mapping[int, FindingCounts]

    def incident_ids(self) -> dict[int, dict[int, str]]:
        """Return the ids of incidents that take more than one topic partition: by first job, and group."""
        jobs = list(self.partitions)
        groups = [counts.groups for counts in self.partitions.values()]
        reaches = [[Reach(*row) for row in counts.reaches.tolist()] for counts in self.partitions.values()]
        return {jobs[number]: ids for number, ids in ids_across(groups, reaches).items()}

    def of_scan(self, findings: Sequence[Finding] = (), unlisted: Sequence[UnlistedFindings] = ()) -> ScanFindings:
        """Return these findings of the scan, and what all of them say of it."""
        every = self.partitions.values()
        return ScanFindings(
            findings,
            {producer_id for own in every for producer_id in own.producer_ids},
            unlisted,
            [entry for own in every for entry in own.failed],
            sum(own.outside for own in every),
        )

    def to_list(self) -> dict[int, dict[Counted, int]]:
        """Return how many findings of each check are listed of each topic partition: the first ones of each check."""
        left: dict[Counted, int] = {}
        chosen: dict[int, dict[Counted, int]] = {}
        for job_index, counts in self.partitions.items():
            for counted, prints in counts.fingerprints.items():
                take = min(len(prints), left.get(counted, FINDINGS_OF_CHECK))
                left[counted] = left.get(counted, FINDINGS_OF_CHECK) - take
                if take:
                    chosen.setdefault(job_index, {})[counted] = take
        return chosen

    def unlisted(self, listed: Mapping[int, Mapping[Counted, int]]) -> list[UnlistedFindings]:
        """Return what is counted only."""
        rest: dict[tuple[Counted, str], list[NDArray[np.uint64]]] = {}
        for job_index, counts in self.partitions.items():
            for counted, prints in counts.fingerprints.items():
                more = prints[listed.get(job_index, {}).get(counted, 0) :]
                if len(more):
                    rest.setdefault((counted, counts.topic), []).append(more)
        return [
            UnlistedFindings(code, severity, topic, np.concatenate(prints))
            for ((code, severity), topic), prints in sorted(
                rest.items(), key=lambda entry: (entry[0][1], entry[0][0][0])
            )
        ]


class TopicPartition(Struct, frozen=True):
    """A topic partition with its findings, made in this task: the index of its first job, its replicas, what was kept of each.

    What is found about the whole scan has no replica.
    """

    job_index: int
    replayed: Sequence[Replayed]
    kept: Sequence[Any]
    found: Sequence[Finding]
    outside: int
    """Findings that are left out because of the time asked for."""
    incidents: PartitionIncidents
    asked: Sequence[int]
    """The producer ids that are asked for."""
    failed: Sequence[Unreadable] = ()
    """Files that could not be read for the findings."""

    @property
    def topic(self) -> str:
        """The topic; nothing for the whole scan."""
        return self.replayed[0].partition.directory.topic if self.replayed else ""

    def counts(self, few: int = -1) -> FindingCounts:
        """Return the findings as numbers; up to `few` of them go along."""
        prints: dict[Counted, list[int]] = {}
        for finding in self.found:
            prints.setdefault((finding.code, finding.severity), []).append(int(finding.fingerprint, 16))
        found = {finding.producer_id for finding in self.found} if self.asked else set()
        return FindingCounts(
            self.topic,
            {counted: np.array(own, dtype=np.uint64) for counted, own in prints.items()},
            {reach.group: self.incidents.groups[reach.group] for reach in self.incidents.reaches},
            np.array(self.incidents.reaches, dtype=np.int64).reshape(-1, len(Reach._fields)),
            frozenset(found & set(self.asked)),  # type: ignore[arg-type]  # None is not among those asked for
            self.failed,
            self.outside,
            list(shown_lines(self.found).items()),
            self.reported() if len(self.found) <= few else None,
        )

    def reported(self) -> Found:
        """Return the findings, without those about batches that a filter left out."""
        filtered: dict[tuple[object, ...], tuple[PartitionAudit, Given]] = {}
        for part, given in ((each.partition, each.given) for each in self.replayed):
            if given is not None:
                filtered[part.directory.topic, part.directory.partition, part.directory.replica] = part, given
        marked = zip(marked_with(self.found, self.incidents, {}), self.incidents.group_of, strict=True)
        own = [(finding, group) for finding, group in marked if _is_given(finding, filtered)]
        return Found([finding for finding, _ in own], [group for _, group in own])

    def findings(self, across: Mapping[int, Mapping[int, str]]) -> list[Finding]:
        """Return the findings with their incidents; `across`: those that take other partitions too, by first job."""
        return self.reported().given(across.get(self.job_index, {}))


def scan_wide(cross: "CrossPartition") -> TopicPartition:
    """Return what is found about no partition, before all of these."""
    incidents, asked = partition_incidents(cross.findings), cross.context.options.producer_ids
    return TopicPartition(WHOLE, (), (), cross.findings, cross.outside, incidents, asked)


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


class FindingsInTasks(Struct, frozen=True):
    """Makes findings in tasks: with the context that is the same for all, and what the others show of each job's partition."""

    context: ScanContext
    others: Mapping[int, CrossPartitionEvidence]
    newest: Profile
    """Of the releases that may have written the log."""
    open_source: OpenSource
    kept: Any = None
    """The type of what is kept of each replica beside its audit."""
    across: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    """The ids of incidents that span partitions, by first job and group; nothing before all findings were counted."""

    def topic_partitions(self, rows: Batches, chosen: Container[int] | None = None) -> Iterator[TopicPartition]:
        """Yield the topic partitions of rows with audits, which come in the order of jobs, replicas beside one another.

        Those with none of the `chosen` jobs are left out; None chooses all.
        """

        def key(replica: tuple[int, Replayed, Any]) -> tuple[str, int]:
            directory = replica[1].partition.directory
            return directory.topic, directory.partition

        for _, same in groupby(replicas(rows, self.kept), key=key):
            numbers, replayed, kept = zip(*same, strict=True)
            if chosen is not None and not any(number in chosen for number in numbers):
                continue
            parts = [each.partition for each in replayed]
            others = [self.others[number] for number in numbers]
            reads = FailedReads(self.open_source)
            found, outside = partition_findings(parts, others, self.context, reads)
            incidents, asked = partition_incidents(found), self.context.options.producer_ids
            yield TopicPartition(numbers[0], replayed, kept, found, outside, incidents, asked, reads.unreadable)


def count_findings(rows: Batches, in_tasks: FindingsInTasks, few: int) -> Batches:
    """Give the driver the numbers of findings, and those of partitions that have few."""
    for partition in in_tasks.topic_partitions(rows):
        yield row(FOUND, partition.job_index, packed(partition.counts(few)))


def list_findings(rows: Batches, in_tasks: FindingsInTasks, listed: Mapping[int, Mapping[Counted, int]]) -> Batches:
    """Give the driver the first findings of each check, as many as `listed` says."""
    for partition in in_tasks.topic_partitions(rows, listed):
        chosen = first_of_each(partition.findings(in_tasks.across), listed[partition.job_index])
        yield row(FOUND, partition.job_index, packed(chosen))


def first_of_each(findings: Sequence[Finding], listed: Mapping[Counted, int]) -> list[Finding]:
    """Return so many findings of each check and severity, the first ones."""
    left = dict(listed)
    chosen: list[Finding] = []
    for finding in findings:
        counted = finding.code, finding.severity
        if left.get(counted, 0):
            left[counted] -= 1
            chosen.append(finding)
    return chosen


def audits_of(replayed: "DataFrame", *more: str) -> "DataFrame":
    """Return of rows of STEPS those with audits, and with the columns `more`."""
    return replayed.where(f"kind = {AUDIT}").select("job_index", "audit", *more)


def replicas(rows: Batches, kind: Any) -> Iterator[tuple[int, Replayed, Any]]:  # noqa: ANN401 - a type
    """Yield of rows with audits job index, audit, and what was kept beside it, of type `kind`, where the rows have that."""
    for job_index, slices in groupby(cells(rows, "job_index", "audit", "kept"), key=itemgetter(0)):
        audit: bytes | None = None
        kept: list[bytes] = []
        for _, first, part in slices:
            audit = audit or first
            if part is not None:
                kept.append(part)
        assert audit is not None, f"job {job_index}: its audit did not arrive"
        replayed = unpack(audit, Replayed)
        replayed.partition.relink_observations()
        yield job_index, replayed, unpack(b"".join(kept), kind) if kept else None


TIMELINE_ROWS = "job_index int, number long, timeline binary"


def first_timelines(counts: Sequence[int], most: int | None) -> dict[int, int]:
    """Return how many timelines of each job are listed: the first `most` of all, every one if None."""
    listed, left = {}, sum(counts) if most is None else most
    for job_index, count in enumerate(counts):
        if count and left:
            listed[job_index] = min(count, left)
            left -= listed[job_index]
    return listed


def make_timelines(
    rows: Batches,
    in_tasks: FindingsInTasks,
    listed: Mapping[int, int],
    logs: "ComparedLogs | None",
) -> Batches:
    """Make the first timelines of each replica, as many as `listed` says."""
    for partition in in_tasks.topic_partitions(rows, listed):
        own = by_replica(partition.findings(in_tasks.across))
        for job_index, (part, kept) in enumerate(
            zip((each.partition for each in partition.replayed), partition.kept, strict=True), partition.job_index
        ):
            place = part.directory
            findings = own.get((place.topic, place.partition, place.replica), ())
            events = None if logs is None else logs.of_partition(place.topic, place.partition)
            left = listed.get(job_index, 0)
            for number, made in enumerate(partition_histories(part, kept, findings, events) if left else ()):
                yield row(TIMELINE_ROWS, job_index, number, packed(made.where(made.owners < left)))
                left -= len(made.producer_ids)
                if left <= 0:
                    break
