"""The local engine: schedules ranges over processes and feeds their rows to each partition in order."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from kaudit.engines.memory import keep_freed_memory, keep_freed_memory_small
from kaudit.engines.progress import Progress
from kaudit.engines.ranges import PROCESSES_PAY_BYTES, RangeRead, ranges, read_here, with_rest
from kaudit.errors import UsageError
from kaudit.listings.query import Query
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.partition.assembler import PartitionAssembler
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.job import Job
from kaudit.partition.replay import KeptRows, RowSink
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.chunk_size import ChunkSize, RecentSizes, fixed_size
from kaudit.scanning.audit import Audit
from kaudit.scanning.block_histories import metadata_of, read_blocks
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.scanning.plan import all_needs, audit_needs, find_input, plan_jobs, share_rate
from kaudit.source.layout import INTERNAL_TOPICS, Layout
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri

if TYPE_CHECKING:
    from kaudit.audits.repeats.suspects import PartitionDuplicates
    from kaudit.listings.duplicates import DuplicateListing
    from kaudit.listings.producer_histories import HistoryRows, HistoryWriter, Piece, RecordedScan
    from kaudit.listings.producer_listing import ListedProducers
    from kaudit.partition.batch_export import BatchWriter
    from kaudit.scanning.opened_state import OpenedState

_Keeper = TypeVar("_Keeper", bound=RowSink | None)
_RECORD_PIECE_BYTES = 4 << 20
"""What decompressed records of a piece are reduced to is held at once."""
_SMALL_PIECE_BYTES = 1 << 20
"""For a million producer ids in memory: what is made while a piece is read must stay small beside them."""


def scan(options: ScanOptions, progress: Progress) -> ScanResult:
    """Audit everything under the given paths.

    Raises:
        UsageError: a path does not exist, or an option does not fit.
        NothingToAuditError: no segment was found.

    """
    keep_freed_memory()
    return _run(options, progress, _no_rows).result()


def timeline(options: ScanOptions, progress: Progress) -> TimelineResult:
    """Audit, and return the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
    from kaudit.listings.timeline import build_timelines  # noqa: PLC0415 - a scan needs no histories

    keep_freed_memory()
    chosen = frozenset(options.producer_ids) or None
    kept: list[KeptRows] = []
    audit = _run(options, progress, lambda: _appended(kept, KeptRows(chosen)))
    return build_timelines(audit, kept)


def producers(options: ScanOptions, progress: Progress, query: Query) -> ProducersResult:
    """Audit, and list the producer ids that `query` chooses.

    Raises as `scan` does.
    """
    from kaudit.listings.activity import ActivityRows  # noqa: PLC0415 - a scan lists no producers
    from kaudit.listings.producer_listing import list_producers  # noqa: PLC0415

    keep_freed_memory_small()
    kept: list[ActivityRows] = []
    audit = _run(options, progress, lambda: _appended(kept, ActivityRows()), _SMALL_PIECE_BYTES, ids=True)
    return list_producers(audit, kept, query)


@contextmanager
def listed_producers(options: ScanOptions, progress: Progress, query: Query) -> "Iterator[ListedProducers]":
    """Audit, and list the producer ids that `query` chooses, all of them.

    Raises as `scan` does.
    """
    from kaudit.listings.producer_listing import ListedProducers  # noqa: PLC0415 - as above

    yield ListedProducers(producers(options, progress, query))


def duplicates(options: ScanOptions, progress: Progress) -> "DuplicateListing":
    """Audit, and compare every batch of data with those before it, or every record with `--depth records`.

    Raises as `scan` does.
    """
    from kaudit.audits.repeats.suspects import Room, SuspectRows  # noqa: PLC0415
    from kaudit.listings.duplicates import duplicate_listing  # noqa: PLC0415

    keep_freed_memory()
    room = Room()
    found: list[tuple[PartitionAudit, PartitionDuplicates]] = []

    def close(partition: PartitionAudit, kept: SuspectRows) -> None:
        if partition.directory.topic not in INTERNAL_TOPICS:
            found.append((partition, kept.of(partition.directory, compacted=partition.compacted)))

    asked = replace(options, contents=True)
    pieces = _RECORD_PIECE_BYTES if options.depth is Depth.RECORDS else None
    audit = _run(asked, progress, lambda: SuspectRows(room), pieces, on_close=close)
    return duplicate_listing(audit.result(), found, open_segment)


@contextmanager
def record(options: ScanOptions, progress: Progress) -> "Iterator[RecordedScan]":
    """Audit, and keep the producers' histories on disk while the body runs.

    Raises as `scan` does.
    """
    # imported here: a scan needs no compression and no histories, and keeps nothing on disk
    import tempfile  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from kaudit.listings.producer_histories import HistoryRows, PartitionHistory, RecordedScan  # noqa: PLC0415
    from kaudit.listings.timeline import by_replica  # noqa: PLC0415
    from kaudit.partition.batch_export import segment_tasks, write_segment  # noqa: PLC0415
    from kaudit.reading.shuffle_codec import pack, unpack  # noqa: PLC0415
    from kaudit.scanning.versions import newest_profile  # noqa: PLC0415

    keep_freed_memory()
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        raise UsageError(f"{error.strerror}: TMPDIR names another") from error
    with tempfile.TemporaryDirectory(prefix="kaudit-") as directory:
        files: list[Path] = []

        def close(partition: PartitionAudit, kept: "HistoryRows") -> None:
            files.append(Path(directory, str(len(files))))
            # the audit goes on with all there is to report; of a history only the rest is looked at
            bare = replace(partition, observations=(), suspects=(), shared=(), damages=())
            files[-1].write_bytes(pack(PartitionHistory.of(bare, kept)))

        audit = _run(options, progress, HistoryRows, on_close=close)
        result = audit.result()

        def write_histories(writer: "HistoryWriter", findings: Sequence[Finding]) -> "Iterator[Piece]":
            own, newest = by_replica(findings), newest_profile(result.broker_version)
            for file in files:
                history: PartitionHistory = unpack(file.read_bytes())
                yield from writer(history, own.get(history.key, ()), newest)

        def write_batches(writer: "BatchWriter") -> "Iterator[Piece]":
            for task in segment_tasks(
                plan_jobs(options, audit.layout, audit_needs(options, audit.layout, audit.histories))
            ):
                yield from write_segment(task, open_segment, writer)

        yield RecordedScan(
            result,
            write_histories,
            write_batches,
            audit.high_watermarks,
            audit.transactional_ids,
        )


def _no_rows() -> None:
    """Return what takes the rows of a partition where only the audit needs them."""


def _appended(kept: list[_Keeper], keeper: _Keeper) -> _Keeper:
    kept.append(keeper)
    return keeper


def _run(  # noqa: PLR0913 - independent inputs, named at each call
    options: ScanOptions,
    progress: Progress,
    keeper: Callable[[], _Keeper],
    piece_bytes: int | None = None,
    *,
    ids: bool = False,
    on_close: Callable[[PartitionAudit, _Keeper], None] | None = None,
) -> Audit:
    """Read everything, `piece_bytes` at a time if given, else as the rows allow.

    `keeper` is asked once a partition, in order, for what takes its rows beside the audit. `ids`: those of every
    partition are wanted. `on_close` is called with each partition that has been read.
    """
    layout = find_input(options)
    audit = Audit(options, layout, open_segment, read_blocks(options, layout, metadata_of(open_segment)))
    jobs = plan_jobs(options, layout, all_needs if ids else audit_needs(options, layout, audit.histories))
    state = _state(options, layout)
    if state is not None:
        audit.state = state.use
        jobs = [state.matched(job, open_segment, resumes=keeper is _no_rows) for job in jobs]
    total = sum(job.bytes for job in jobs)
    progress.start(total)
    processes = options.jobs or os.cpu_count() or 1
    if total < PROCESSES_PAY_BYTES:
        processes = 1  # starting others costs more than it saves
    jobs = share_rate(jobs, processes)
    fixed = options.chunk_bytes or piece_bytes
    recent = RecentSizes()
    chunk_sizes = [ChunkSize(sharers=processes, recent=recent) if fixed is None else fixed_size(fixed) for _ in jobs]
    with closing(_read(jobs, chunk_sizes, processes, layout)) as outcomes:
        ahead = next(outcomes, None)
        for number, (job, chunk_size) in enumerate(zip(jobs, chunk_sizes, strict=True)):
            kept = keeper()
            feed = PartitionAssembler(job, kept)
            while ahead is not None and ahead.job == number:
                for read in with_rest(ahead, chunk_size):
                    progress.advance(read.spec.bytes_to_read)
                    feed.take(read.outcome)
                    if isinstance(read.outcome, ChunkRows):
                        chunk_size.update(read.outcome, feed.producer_ids)
                ahead = next(outcomes, None)
            partition = feed.close()
            if on_close is not None:
                on_close(partition, kept)
            audit.add(partition)
    if state is not None:
        state.sweep(layout)
    return audit


def _state(options: ScanOptions, layout: Layout) -> "OpenedState | None":
    if options.state is None:
        return None
    from kaudit.scanning.opened_state import open_state  # noqa: PLC0415 - few audits have one

    return open_state(options.state, options, layout)


def _read(
    jobs: Sequence[Job], chunk_sizes: Sequence[ChunkSize], processes: int, layout: Layout
) -> Generator[RangeRead]:
    """Read all ranges, in processes if there are several."""
    found = ranges(jobs, chunk_sizes)
    if processes == 1:
        return read_here(found)
    from kaudit.engines.processes import read_in_processes  # noqa: PLC0415 - a small log is read in less time

    return read_in_processes(found, processes, _start_method(layout))


def _start_method(layout: Layout) -> str:
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    local = all(Uri.parse(directory.directory).is_local for directory in layout.partitions)
    return "fork" if local else "spawn"
