"""From a topic partition that was read to its findings: what needs of the others only what is known of all by then.

So it can be done where the partition's evidence is, in any process.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaudit.bugs.matching import with_known_bugs
from kaudit.checks.context import Context
from kaudit.checks.notes import fold_notes
from kaudit.checks.registry import run_checks
from kaudit.model.finding import Finding
from kaudit.model.other_copies import HeldRecords
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


class FromOthers(Struct, frozen=True):
    """What the other partitions show of one replica of a topic partition.

    `moment` is an index into the contexts, `found` evidence, `grants` of how many grants the blocks of producer ids are.
    """

    moment: int
    found: Sequence[object] = ()
    grants: Mapping[int, int] = {}


class Surroundings(Struct, frozen=True):
    """What is the same for every partition: the options, the scan's own context and that of each moment, logs' events."""

    options: ScanOptions
    scan_wide: Context
    moments: Sequence[Context]
    events: "EventsOfLogs | None" = None


class JudgedPartition(Struct, frozen=True):
    """A topic partition's findings, in their order and without incidents, and the records that only other copies hold."""

    findings: Sequence[Finding]
    held: Sequence[tuple[str, HeldRecords]] = ()


def replicas_of(directories: Sequence[PartitionDirectory]) -> list[list[int]]:
    """Return the replicas of each topic partition, as places in `directories`, in the order of findings."""

    def key(number: int) -> tuple[str, int]:
        return directories[number].topic, directories[number].partition

    return [list(same) for _, same in groupby(sorted(range(len(directories)), key=key), key=key)]


def judge(
    replicas: Sequence[PartitionAudit],
    others: Sequence[FromOthers],
    surroundings: Surroundings,
    open_source: OpenSource,
) -> JudgedPartition:
    """Run the checks over all replicas of one topic partition; `others` says of each what the other partitions show."""
    changes = other_copies(replicas, open_source)
    findings: list[Finding] = []
    for part, other, own_changes in zip(replicas, others, changes, strict=True):
        around = surroundings.moments[other.moment]
        context = partition_context(
            around,
            part.directory,
            compacted=part.compacted,
            log_end_offset=part.log_end_offset,
            asked=asked_of(part.directory, around.asked, surroundings.options),
        )
        shared = [replace(found, grants=other.grants.get(found.producer_id, 0)) for found in part.shared]
        found = [*other.found, *shared, *own_changes]
        findings += fold_notes(run_checks(context, partition_evidence(part, found, open_source, around.versions)))
    compacted = {(part.directory.topic, part.directory.partition) for part in replicas if part.compacted}
    held = [
        (part.directory.name, held)
        for part, own in zip(replicas, changes, strict=True)
        for change in own
        for held in change.held_by
    ]
    return JudgedPartition(complete_findings(findings, surroundings, compacted), held)


def complete_findings(
    findings: Sequence[Finding],
    surroundings: Surroundings,
    compacted: "frozenset[tuple[str, int]] | set[tuple[str, int]]",
) -> list[Finding]:
    """Return of one topic partition's findings those asked for, in order, with what logs and known bugs explain."""
    kept = sorted((found for found in findings if _wanted(found, surroundings.options)), key=Finding.sort_key)
    if surroundings.events is not None:
        kept = surroundings.events.all_explained(kept)
    return with_known_bugs(kept, surroundings.scan_wide.versions, compacted)


def _wanted(finding: Finding, options: ScanOptions) -> bool:
    chosen = options.producer_ids
    if chosen and finding.producer_id is not None and finding.producer_id not in chosen:
        return False
    if options.since_ms is None and options.until_ms is None:
        return True
    offending = finding.evidence.get("offending")
    at = offending.get("timestamp") if isinstance(offending, dict) else finding.evidence.get("last_timestamp")
    if not isinstance(at, int):
        return True
    return (options.since_ms is None or at >= options.since_ms) and (options.until_ms is None or at <= options.until_ms)
