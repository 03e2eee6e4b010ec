"""Findings of one topic partition. All that is needed from other partitions is passed in, so any process can compute them.

Folds notes: at most one per (code, partition, producer id, class), because a note is only informational.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.replicas.broker_copies import BrokerCopies
from kaudit.audits.sequences.expired_producers import evicted_producers
from kaudit.audits.sequences.raised_epochs import raised_epochs, repeated_starts
from kaudit.audits.transactions.marker_outcomes import compare_outcomes
from kaudit.broker.releases.profile import VersionRange
from kaudit.checks.check import Evidence
from kaudit.checks.command_line import CommandLine
from kaudit.checks.context import Context
from kaudit.checks.doubled import bounded_by_lines, kept_by_others
from kaudit.checks.registry import run_checks
from kaudit.deferred import Deferred
from kaudit.model.finding import Finding
from kaudit.model.producer_patterns import EvictedProducer, RaisedEpochs, RepeatedStarts
from kaudit.model.result import CoverageGap
from kaudit.model.side_files import SnapshotComparison
from kaudit.model.transactions import IllegalTransition, MismatchedMarker
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.find_repeats import step_mismatches
from kaudit.partition.open_at_end import remembered
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.cut_off import dated_ahead, leaders_if_needed, what_was_cut_off, who_led
from kaudit.scanning.options import ScanOptions, deciding_options
from kaudit.scanning.other_copies import compared_replicas, other_copies
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory, RemoteFault
from kaudit.source.uri import Uri

if TYPE_CHECKING:
    from kaudit.audits.coordinator import transaction_state_reader
    from kaudit.audits.replicas import comparison
    from kaudit.audits.sidefiles import snapshot_check
    from kaudit.bugs import matching
    from kaudit.checks.log_evidence import EventsOfLogs
    from kaudit.scanning import remote_segments
else:
    comparison = Deferred("kaudit.audits.replicas.comparison")
    snapshot_check = Deferred("kaudit.audits.sidefiles.snapshot_check")
    matching = Deferred("kaudit.bugs.matching")
    remote_segments = Deferred("kaudit.scanning.remote_segments")


from kaudit.model.evidence_parts import FoldedNotes
from kaudit.model.severity import Severity


def fold_notes(findings: Iterable[Finding]) -> list[Finding]:
    """Fold notes of one partition replica that say the same into the first of them, with count and offsets."""
    kept: list[Finding] = []
    alike: dict[tuple[object, ...], list[int | None]] = {}
    first: dict[int, list[int | None]] = {}
    for finding in findings:
        if finding.severity is Severity.NOTE and finding.evidence.count is None:
            key = (finding.code, finding.producer_id, finding.evidence.kind)
            ends = alike.setdefault(key, [])
            ends.append(finding.last_offset)
            if len(ends) > 1:
                continue
            first[len(kept)] = ends
        kept.append(finding)
    for place, ends in first.items():
        finding = kept[place]
        folded = FoldedNotes(len(ends), finding.offset, ends[-1])
        kept[place] = replace(finding, evidence=replace(finding.evidence, folded=folded))
    return kept


class CrossPartitionEvidence(Struct, frozen=True):
    """Evidence from the other partitions about one replica of a topic partition.

    `context` is an index into ScanContext.contexts. `grants`: by producer id, the number of broker grants of its block.
    """

    context: int
    evidence: Sequence[object] = ()
    grants: Mapping[int, int] = {}


class ScanContext(Struct, frozen=True):
    """What is the same for every partition: options, the context of the whole scan, one context per group of copies, log events.

    `copies` are those of one broker's log directory at different times, `metadata` the replicas of __cluster_metadata. Partitions that were copied at the same time share a context: coordinator and clock differ from group to group.
    """

    options: ScanOptions
    scan_wide: Context
    contexts: Sequence[Context]
    copies: Sequence[BrokerCopies] = ()
    events: "EventsOfLogs | None" = None
    metadata: Sequence[PartitionDirectory] = ()


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
) -> tuple[list[Finding], int]:
    """Run the checks over all replicas of one topic partition; `others` says of each what the other partitions show.

    Returns the findings in their order and without incidents, and how many are left out because of the time asked for.
    """
    changes = other_copies(replicas, open_source)
    logged = {} if scan.events is None else scan.events.histories
    compared = compared_replicas(
        replicas, scan.copies, open_source, lambda: who_led(replicas[0].directory, logged, scan.metadata, open_source)
    )
    leaders = leaders_if_needed(replicas, compared, logged, scan.metadata, open_source)
    compared = None if compared is None else replace(compared, leaders=leaders)
    cuts = what_was_cut_off(replicas, compared, logged, leaders, open_source)
    followers = frozenset() if compared is None else compared.comparison.followers
    findings: list[Finding] = []
    contexts: dict[str, Context] = {}
    for part, other, own_changes, own_cuts in zip(replicas, others, changes, cuts, strict=True):
        around = scan.contexts[other.context]
        context = partition_context(
            replace(
                around,
                append_times={each.offset: each for each in part.append_times},
                places_known=CoverageGap.POSITIONS not in part.coverage_gaps,
            ),
            part.directory,
            compacted=part.compacted,
            log_end_offset=part.log_end_offset,
            asked=asked_of(part.directory, around.asked, scan.options),
        )
        contexts[part.directory.replica] = context
        # whether a transaction has ended is in the leader's log, of which a follower lacks the end
        judged = replace(part, opened=()) if part.directory.replica in followers else part
        shared = [replace(found, grants=other.grants.get(found.producer_id, 0)) for found in part.shared]
        found = [
            *(*other.evidence, *shared, *own_changes, *own_cuts),
            *dated_ahead(part, around.clock, open_source),
            *_in_distress(part, scan.events),
        ]
        findings += fold_notes(run_checks(context, partition_evidence(judged, found, open_source, around.versions)))
    if compared is not None and (divergence := comparison.without_lag(compared)) is not None:
        context = replace(next(iter(contexts.values())), replicas=contexts)
        findings += run_checks(context, Evidence([divergence]))
    if compared is not None:
        findings = kept_by_others(findings, compared.comparison)
    compacted = {(part.directory.topic, part.directory.partition) for part in replicas if part.compacted}
    return complete_findings(bounded_by_lines(findings), scan, compacted)


def _in_distress(part: PartitionAudit, events: "EventsOfLogs | None") -> Iterator[RaisedEpochs | RepeatedStarts]:
    place = part.directory.topic, part.directory.partition
    given_up, fenced = ({}, {}) if events is None else (events.given_up.get(place, {}), events.fenced)
    yield from raised_epochs(part.observations, part.last_states, given_up, fenced)
    yield from repeated_starts(part.repeated_sessions)


def complete_findings(
    findings: Iterable[Finding],
    scan: ScanContext,
    compacted: "frozenset[tuple[str, int]] | set[tuple[str, int]]",
) -> tuple[list[Finding], int]:
    """Return of one topic partition's findings those asked for, in order, with what logs and known bugs explain.

    The number is of those that are left out because of the time asked for.
    """
    chosen = [found for found in findings if _is_chosen(found, scan.options)]
    kept = sorted((found for found in chosen if _is_in_time(found, scan.options)), key=Finding.sort_key)
    outside = len(chosen) - len(kept)
    if scan.events is not None:
        kept = scan.events.all_explained(kept)
    return matching.with_known_bugs(kept, scan.scan_wide.versions, compacted) if kept else [], outside


def _is_chosen(finding: Finding, options: ScanOptions) -> bool:
    chosen = options.producer_ids
    return not chosen or finding.producer_id is None or finding.producer_id in chosen


def _is_in_time(finding: Finding, options: ScanOptions) -> bool:
    since, until = options.since_ms, options.until_ms
    if since is None and until is None:
        return True
    evidence = finding.evidence
    if evidence.coordinator is not None:  # an open transaction lasts from its first batch to the end of the log
        began = evidence.first_timestamp
        return until is None or began is None or began <= until
    began, ended = evidence.first_timestamp, evidence.last_timestamp
    if evidence.offending is not None:  # what goes on for a while, such as a series of rises, has an end too
        began = evidence.offending.timestamp
        ended = max((at for at in (began, ended) if at is not None), default=None)
    first, last = ended if began is None else began, began if ended is None else ended
    return (since is None or last is None or last >= since) and (until is None or first is None or first <= until)


def partition_context(
    scan_wide: Context,
    directory: PartitionDirectory,
    *,
    log_end_offset: int | None,
    compacted: bool = False,
    asked: CommandLine | None = None,
) -> Context:
    """Return the context of one partition replica; versions, coordinator and clock are those of the scan."""
    texts = any(segment.text is not None for segment in directory.segments)
    return replace(
        scan_wide,
        **{
            name: getattr(directory, name)
            for name in ("topic", "partition", "replica", "log_dir", "directory", "relative")
        },
        segments=[segment.name for segment in directory.segments],
        segment_sizes=[] if texts or directory.is_fetched else [segment.size for segment in directory.segments],
        compacted=compacted,
        asked=asked or scan_wide.asked,
        log_end_offset=log_end_offset,
        paths=[segment.path for segment in directory.segments],
        side_files=[file.name for file in directory.side_files],
        elsewhere=_elsewhere(directory) if directory.remote_segments else {},
        lone_files=[] if directory.whole_directory else sorted({segment.path for segment in directory.segments}),
        texts=texts,
        fetched=directory.segments[0].fetched if directory.is_fetched else None,
    )


def _elsewhere(directory: PartitionDirectory) -> Mapping[str, str]:
    """Return the paths of the files that do not lie in a partition's directory under their names."""
    files = (*directory.segments[: directory.remote_segments], *directory.side_files)
    return {file.name: file.path for file in files if file.path != f"{directory.directory}/{file.name}"}


def partition_evidence(
    part: PartitionAudit, found: Iterable[object], open_source: OpenSource, versions: VersionRange
) -> Evidence:
    """Gather the evidence; `found` is what comparing partitions with one another shows of this one."""
    return Evidence(
        found,
        part.unreadable,
        part.observations,
        step_mismatches(part.observations),
        part.missing,
        part.damages,
        part.regressions,
        part.directory.leftover_files,
        part.malformed,
        part.side_facts,
        _snapshots(part, open_source, versions),
        part.repeats.repeated,
        part.repeats.reordered,
        part.repeats.regrouped,
        [] if part.repeats.at_most is None else [part.repeats.at_most],
        part.repeated_sessions,
        part.repeated_epochs,
        part.leader_changes,
        remembered(part.opened, versions.newest),
        part.idle,
        _evicted(part, open_source, versions),
        [] if part.empty_marker is None else [part.empty_marker],
        _remote_faults(part) if part.directory.remote_segments else [],
    )


def _remote_faults(part: PartitionAudit) -> list[RemoteFault]:
    """Return what is wrong with objects in remote storage: by their sizes, and where the log that they hold is damaged."""
    return [*part.directory.remote_faults, *remote_segments.chunk_faults(part.directory, part.damages)]


def transaction_evidence(
    parts: Sequence[PartitionAudit], history: "transaction_state_reader.DecisionHistory"
) -> list[list[IllegalTransition | MismatchedMarker]]:
    """Return, for each partition, what contradicts the coordinator's decisions, and what its own log contradicts."""
    found: list[list[IllegalTransition | MismatchedMarker]] = [
        [transition for path, transition in history.transitions if path == part.directory.directory] for part in parts
    ]
    with_markers = [(own, part.markers) for own, part in zip(found, parts, strict=True) if part.markers is not None]
    mismatched = compare_outcomes([markers for _, markers in with_markers], history.decisions)
    for (own, _), markers in zip(with_markers, mismatched, strict=True):
        own.extend(markers)
    return found


def _snapshots(part: PartitionAudit, open_source: OpenSource, versions: VersionRange) -> list[SnapshotComparison]:
    # what damage did to the log it also did to this comparison: one damage, one finding
    if part.damages or not part.suspects:
        return []

    holes = part.compacted or bool(part.missing)
    return snapshot_check.compare_snapshots(part.directory, part.suspects, open_source, versions, holes=holes)


def _evicted(part: PartitionAudit, open_source: OpenSource, versions: VersionRange) -> list[EvictedProducer]:
    """Look for producers that were forgotten, where every version in question forgets them."""
    if not versions.all(lambda profile: profile.forgets_on_log_start_advance):
        return []
    try:
        return evicted_producers(part.directory, open_source)
    except OSError:
        return []  # reported when the segment was read for the audit


def asked_for(options: ScanOptions, layout: Layout) -> CommandLine:
    """Return what was asked for, without what chooses partitions, producers and times."""
    return CommandLine(
        inputs=options.paths,
        paths=[str(Uri.parse(path)) for path in options.paths],
        options=[text for pair in deciding_options(options) for text in pair],
        evidence=[entry.directory for entry in layout.everything if entry.topic in INTERNAL_TOPICS],
    )


def asked_of(partition: PartitionDirectory, asked: CommandLine, options: ScanOptions) -> CommandLine:
    """Return what was asked for, of one partition: beside it, files of others that no name places would take its name."""
    compacted = ["--compacted"] if options.says_compacted(partition.topic) else []
    decided = [*asked.options, *compacted]
    if partition.named:
        return CommandLine(asked.inputs, asked.paths, decided, asked.evidence)
    own = [partition.directory] if partition.whole_directory else [segment.path for segment in partition.segments]
    return CommandLine(own, own, decided, asked.evidence, named=bool(options.topics or options.partitions))
