"""Findings of one topic partition. All that is needed from other partitions is passed in, so any process can compute them."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaudit.bugs.matching import with_known_bugs
from kaudit.checks.context import Context
from kaudit.checks.notes import fold_notes
from kaudit.checks.registry import run_checks
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Finding
from kaudit.model.leader_epochs import HeldRecords
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.command_line import asked_of
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.other_copies import other_copies
from kaudit.scanning.partition_context import partition_context
from kaudit.scanning.partition_evidence import partition_evidence
from kaudit.source.layout import PartitionDirectory

if TYPE_CHECKING:
    from kaudit.checks.log_evidence import EventsOfLogs


class CrossPartitionEvidence(Struct, frozen=True):
    """Evidence from the other partitions about one replica of a topic partition.

    `context` is an index into ScanContext.contexts. `grants`: by producer id, the number of broker grants of its block.
    """

    context: int
    evidence: Sequence[object] = ()
    grants: Mapping[int, int] = {}


class ScanContext(Struct, frozen=True):
    """What is the same for every partition: options, the context of the whole scan, one context per group of copies, log events.

    Partitions that were copied at the same time share a context: coordinator and clock differ from group to group.
    """

    options: ScanOptions
    scan_wide: Context
    contexts: Sequence[Context]
    events: "EventsOfLogs | None" = None


class PartitionFindings(Struct, frozen=True):
    """A topic partition's findings, in their order and without incidents, and the records that only other copies hold."""

    findings: Sequence[Finding]
    held: Sequence[tuple[str, HeldRecords]] = ()


def replicas_of(directories: Sequence[PartitionDirectory]) -> list[list[int]]:
    """Return the replicas of each topic partition, as places in `directories`, in the order of findings."""

    def key(number: int) -> tuple[str, int]:
        return directories[number].topic, directories[number].partition

    return [list(same) for _, same in groupby(sorted(range(len(directories)), key=key), key=key)]


def partition_findings(
    replicas: Sequence[PartitionAudit],
    others: Sequence[CrossPartitionEvidence],
    scan: ScanContext,
    open_source: OpenSource,
) -> PartitionFindings:
    """Run the checks over all replicas of one topic partition; `others` says of each what the other partitions show."""
    changes = other_copies(replicas, open_source)
    findings: list[Finding] = []
    for part, other, own_changes in zip(replicas, others, changes, strict=True):
        around = scan.contexts[other.context]
        context = partition_context(
            around,
            part.directory,
            compacted=part.compacted,
            log_end_offset=part.log_end_offset,
            asked=asked_of(part.directory, around.asked, scan.options),
        )
        shared = [replace(found, grants=other.grants.get(found.producer_id, 0)) for found in part.shared]
        found = [*other.evidence, *shared, *own_changes]
        findings += fold_notes(run_checks(context, partition_evidence(part, found, open_source, around.versions)))
    compacted = {(part.directory.topic, part.directory.partition) for part in replicas if part.compacted}
    held = [
        (part.directory.name, held)
        for part, own in zip(replicas, changes, strict=True)
        for change in own
        for held in change.held_by
    ]
    return PartitionFindings(complete_findings(findings, scan, compacted), held)


def complete_findings(
    findings: Sequence[Finding],
    scan: ScanContext,
    compacted: "frozenset[tuple[str, int]] | set[tuple[str, int]]",
) -> list[Finding]:
    """Return of one topic partition's findings those asked for, in order, with what logs and known bugs explain."""
    kept = sorted((found for found in findings if _wanted(found, scan.options)), key=Finding.sort_key)
    if scan.events is not None:
        kept = scan.events.all_explained(kept)
    return with_known_bugs(kept, scan.scan_wide.versions, compacted)


def _wanted(finding: Finding, options: ScanOptions) -> bool:
    chosen = options.producer_ids
    if chosen and finding.producer_id is not None and finding.producer_id not in chosen:
        return False
    if options.since_ms is None and options.until_ms is None:
        return True
    evidence = FindingEvidence(finding.evidence)
    at = evidence.last_timestamp if evidence.offending is None else evidence.offending.timestamp
    if at is None:
        return True
    return (options.since_ms is None or at >= options.since_ms) and (options.until_ms is None or at <= options.until_ms)
