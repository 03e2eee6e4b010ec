"""What every engine does alike: choose and plan the input, read a range, and put a partition together again."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.audits.coordinator.transaction_state_reader import TRANSACTION_STATE
from kaudit.deferred import Deferred
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.digests import ranges_each
from kaudit.model.internal_topics import GROUPS
from kaudit.partition.audit import Needs
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import ChunkSpec, whole_segments
from kaudit.reading.chunk_reader import CHUNK_BYTES
from kaudit.scanning.block_histories import BlockHistories
from kaudit.scanning.not_covered import inputs_without_choice, missing_from_inputs, missing_partitions
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.discover import NO_SEGMENT, PathNotFoundError, discover
from kaudit.source.layout import CLUSTER_METADATA, Layout, PartitionDirectory
from kaudit.source.pattern import LayoutPattern, PatternError
from kaudit.source.schemes import close_archives, open_segment
from kaudit.source.uri import UrlError

if TYPE_CHECKING:
    from kaudit.audits.replicas import partition_leaders
    from kaudit.scanning import remote_choice, remote_segments
else:
    partition_leaders = Deferred("kaudit.audits.replicas.partition_leaders")
    remote_choice = Deferred("kaudit.scanning.remote_choice")
    remote_segments = Deferred("kaudit.scanning.remote_segments")

_DAY_MS = 86_400_000


def find_evidence(options: ScanOptions) -> tuple[ScanOptions, Layout]:
    """List the input once, leave the partitions asked for, and read the logs of brokers and clients: they are in the options then.

    Raises:
        NothingToAuditError: there is neither a segment nor a log, or not all that --require-all requires.
        UsageError, UnreadableInputError: as `find_input`; a log that cannot be read is only noted.

    """
    if not options.takes_logs:
        return options, find_input(options)
    layout = chosen_input(options)
    if layout.logs or layout.other_logs or options.server_logs or options.client_logs:
        from kaudit.audits.log_events.application_logs import (  # noqa: PLC0415 - its patterns take 30 ms
            given_logs,
            read_application_logs,
        )

        given = given_logs(layout, options.server_logs, options.client_logs)
        options = replace(options, logs=read_application_logs(given, [entry.name for entry in layout.partitions]))
    if options.logs is None or not options.logs.files:
        _require_segments(options, layout)
    return options, _required(options, layout)


def find_input(options: ScanOptions) -> Layout:
    """List the input once and leave the partitions asked for.

    Raises:
        UsageError: a path does not exist, a URL cannot be read from, or the layout pattern is wrong.
        NothingToAuditError: no segment was found, or not all that --require-all requires.
        UnreadableInputError: what was given cannot be read.

    """
    layout = chosen_input(options)
    _require_segments(options, layout)
    return _required(options, layout)


def chosen_input(options: ScanOptions) -> Layout:
    """List the input and leave the partitions asked for; there may be no segment. Raises UsageError as `find_input`."""
    layout = input_without_remote(options)
    if options.remote is None:
        if options.remote_keys:
            raise UsageError("--remote-key needs --remote")
        return layout
    return remote_segments.with_remote(layout, remote_choice.choose_remote(options.remote, options, layout))


def input_without_remote(options: ScanOptions) -> Layout:
    """List the input as `chosen_input` does, without the segments in remote storage."""
    close_archives()
    try:
        pattern = LayoutPattern.parse(options.layout) if options.layout is not None else None
        layout = discover(options.paths, pattern, options.cluster)
    except PathNotFoundError as error:
        raise UsageError(f"no such file or directory: {error}") from error
    except (UrlError, PatternError) as error:
        raise UsageError(str(error)) from error
    layout = replace(layout, partitions=[_named(directory, options) for directory in layout.partitions])
    chosen: list[PartitionDirectory] = []
    unchosen: list[PartitionDirectory] = []
    for directory in layout.partitions:
        (chosen if options.asks_for(directory.topic, directory.partition) else unchosen).append(directory)
    if options.log_start_offset is not None:
        chosen = [replace(directory, log_start_offset=options.log_start_offset) for directory in chosen]
    return replace(layout, partitions=_with_remote_storage(chosen, layout), unchosen=unchosen)


def _with_remote_storage(chosen: list[PartitionDirectory], layout: Layout) -> list[PartitionDirectory]:
    """Return the partitions, those that lack their first offsets with what __cluster_metadata says of their topics' remote storage."""
    metadata = [entry for entry in layout.partitions if entry.topic == CLUSTER_METADATA]
    if not metadata or not any(entry.offsets_elsewhere for entry in chosen):
        return chosen
    known = partition_leaders.remote_storage(metadata, open_segment)
    return [replace(entry, is_tiered=known.get(entry.topic_id or "", entry.is_tiered)) for entry in chosen]


def _require_segments(options: ScanOptions, layout: Layout) -> None:
    if not any(directory.segments for directory in layout.partitions):
        skipped = () if options.logs is None else options.logs.skipped
        is_unreadable = bool(layout.unreadable) or any(log.unreadable for log in skipped)
        given = ", ".join(options.given)
        failure = UnreadableInputError if is_unreadable else NothingToAuditError
        raise failure(f"nothing to audit under {given}: {_instead(options, layout)}")


def _required(options: ScanOptions, layout: Layout) -> Layout:
    if options.require_all:
        missing = missing_from_inputs(options, layout)
        for entry in (*missing, *inputs_without_choice(options, layout.partitions, layout.unchosen)):
            raise NothingToAuditError(f"--require-all: {entry.path}: {entry.reason}")
    return layout


def _named(directory: PartitionDirectory, options: ScanOptions) -> PartitionDirectory:
    """Give batches that no name places the topic and partition asked for, if it is one."""
    if directory.named:
        return directory
    return replace(
        directory,
        topic=options.topics[0] if len(options.topics) == 1 else directory.topic,
        partition=options.partitions[0] if len(options.partitions) == 1 else directory.partition,
    )


def _instead(options: ScanOptions, layout: Layout) -> str:
    """Return what the inputs hold instead of segments."""
    if layout.leftover_files and not layout.unreadable:
        return f"only {layout.leftover_files[0].relative} ({layout.leftover_files[0].kind})"
    for path, reason in _other_contents(options, layout):
        return reason if [path] == list(options.paths) else f"{path}: {reason}"
    return NO_SEGMENT


def _other_contents(options: ScanOptions, layout: Layout) -> Iterator[tuple[str, str]]:
    """Yield what is no segment, and what it is, that which most likely was to be audited first."""
    yield from ((entry.path, entry.reason) for entry in layout.unreadable)
    yield from ((entry.path, entry.reason) for entry in missing_partitions(options, layout.everything))
    yield from ((entry.path, entry.reason) for entry in (*layout.skipped, *layout.empty_inputs))
    if options.logs is not None:
        yield from ((entry.path, entry.reason) for entry in options.logs.skipped)
    yield from (
        (
            log.name,
            "a log of a broker or a client, which shows no batches: kaudit scan, timeline and attempts read it by itself",
        )
        for log in layout.logs
    )


def plan_jobs(options: ScanOptions, layout: Layout, needs: Callable[[PartitionDirectory], Needs]) -> list[Job]:
    """Plan the reading of every partition of `layout`, in its order."""
    latest = layout.latest_modification + _DAY_MS
    decode = options.depth is Depth.RECORDS
    several = held_several_times(layout)
    jobs: list[Job] = []
    for directory in layout.partitions:
        plan = whole_segments(
            directory,
            log_start_offset=directory.log_start_offset,
            verify=options.verifies,
            latest_timestamp=latest,
        )
        if decode:
            plan = [replace(spec, decode=True) for spec in plan]
        needed = needs(directory)
        if options.digests or needed.digest_ranges or (directory.topic, directory.partition) in several:
            plan = [replace(spec, digests=spec.file.text is None) for spec in plan]
            needed = replace(needed, digest_ranges=ranges_each(len(layout.partitions)))
        compacted = options.says_compacted(directory.topic)
        jobs.append(Job(directory, plan, options.chunk_bytes or CHUNK_BYTES, compacted, needed))
    return jobs


def held_several_times(layout: Layout) -> set[tuple[str, int]]:
    """Return the partitions of which there are several copies: the digests of their batches show which of these differ."""
    counted = Counter((entry.topic, entry.partition) for entry in layout.partitions if not entry.is_fetched)
    return {partition for partition, count in counted.items() if count > 1}


def share_rate(jobs: Sequence[Job], readers: int) -> list[Job]:
    """Divide the bytes a second that are fetched from a cluster among the readers."""
    return [replace(job, plan=[_with_share(spec, readers) for spec in job.plan]) for job in jobs]


def _with_share(spec: ChunkSpec, readers: int) -> ChunkSpec:
    fetched = spec.file.fetched
    if fetched is None or fetched.max_bytes_per_second is None:
        return spec
    rate = max(fetched.max_bytes_per_second // readers, 1)
    return replace(spec, file=replace(spec.file, fetched=replace(fetched, max_bytes_per_second=rate)))


def audit_needs(
    options: ScanOptions, layout: Layout, histories: BlockHistories
) -> Callable[[PartitionDirectory], Needs]:
    """Return what an audit needs of a partition: its ids where they are looked up, its markers where decisions, commits or logs are."""
    decided = any(entry.topic in {TRANSACTION_STATE, GROUPS} for entry in layout.everything)
    decided = decided or options.logs is not None or options.listed_transactions > 0
    named = () if options.logs is None else options.logs.producer_ids
    several, ranges = held_several_times(layout), ranges_each(len(layout.partitions))

    def needs(directory: PartitionDirectory) -> Needs:
        looked_up = bool(options.producer_ids) or histories.of(directory.log_dir) is not None
        digests = ranges if (directory.topic, directory.partition) in several else 0
        return Needs(looked_up, decided, named, digests)

    return needs


def all_needs(directory: PartitionDirectory) -> Needs:  # noqa: ARG001 - the same of every partition
    """Return that everything is needed, as for a list of producer ids."""
    return Needs()
