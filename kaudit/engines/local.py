"""The local engine: schedules ranges over processes and feeds their rows to each partition in order."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property, partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from kaudit.deferred import Deferred
from kaudit.engines.engine import AuditedInput, Done, Engine, Task, listings
from kaudit.engines.engine import Job as PartitionJob
from kaudit.engines.memory import keep_freed_memory
from kaudit.engines.progress import Progress
from kaudit.engines.ranges import PROCESSES_PAY_BYTES, Range, RangeRead, ranges, read_here, with_rest
from kaudit.engines.rows import NO_ROWS, Rows, RowStore
from kaudit.listings.query import Query
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.partition.assembler import PartitionAssembler
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.job import Job
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.chunk_size import ChunkSize, RecentSizes, fixed_size
from kaudit.scanning.audit import Audit
from kaudit.scanning.block_histories import read_blocks
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, audit_needs, find_evidence, plan_jobs, share_rate
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri

if TYPE_CHECKING:
    from kaudit.engines import processes, threads
    from kaudit.listings.producer_histories import RecordedScan
    from kaudit.listings.producer_listing import ListedProducers
    from kaudit.listings.transactions import Query as TransactionQuery
    from kaudit.listings.transactions import TransactionListing
    from kaudit.scanning.opened_state import OpenedState
else:
    processes, threads = Deferred("kaudit.engines.processes"), Deferred("kaudit.engines.threads")

_Close = Callable[[PartitionAudit, Any], None]
"""Takes a partition that has been read, with its sink."""


class LocalEngine(Engine):
    """Reads in this process, and in others where that pays."""

    @contextmanager
    def audited(self, options: ScanOptions, progress: Progress, rows: Rows = NO_ROWS) -> Iterator[AuditedInput]:
        """Audit, and keep rows in memory, or in files where they are sealed."""
        keep_freed_memory()
        with ExitStack() as stack:
            kept = rows.open_store(stack)
            yield _LocalAudit(_audit(options, progress, rows, kept.take), kept)

    def each_partition(
        self, work: Sequence[Task], job: PartitionJob[Task, Done], options: ScanOptions, progress: Progress
    ) -> Iterator[Done]:
        """Yield the result of each task, in their order: from processes, where that pays."""
        jobs = min(options.jobs or os.cpu_count() or 1, len(work))
        forked = _start_method(directory for task in work for directory in task.directories) == "fork"
        one = partial(job, options=options, open_source=open_segment)
        if jobs < 2 or not forked or sum(task.bytes for task in work) < PROCESSES_PAY_BYTES:
            yield from _advancing(work, map(one, work), progress)
            return
        with processes.forked(jobs) as pool:
            yield from _advancing(work, pool.map(one, work), progress)


def _advancing(work: Sequence[Task], results: Iterable[Done], progress: Progress) -> Iterator[Done]:
    for task, result in zip(work, results, strict=True):
        progress.advance(task.bytes)
        yield result


class _LocalAudit(AuditedInput):
    def __init__(self, audit: Audit, kept: RowStore) -> None:
        self._audit = audit
        self._kept = kept

    @cached_property
    def result(self) -> ScanResult:
        return self._audit.result()

    def timelines(self) -> TimelineResult:
        made: TimelineResult = listings().build_timelines(self._audit, list(self._kept))
        return made

    def producers(self, query: Query) -> "ListedProducers":
        listed: ListedProducers = listings().listed_producers(self._audit, self._kept, query)
        return listed

    def recorded(self) -> "RecordedScan":
        recorded: RecordedScan = listings().recorded(self._audit, self.result, self._kept)
        return recorded

    def transactions(self, query: "TransactionQuery") -> "TransactionListing":
        make = import_module("kaudit.listings.transactions").transaction_listing
        listing: TransactionListing = make(self._audit, self.result, query)
        return listing


def _audit(options: ScanOptions, progress: Progress, rows: Rows, close: _Close) -> Audit:
    """Read everything; `close` takes each partition."""
    options, layout = find_evidence(options)
    audit = Audit(options, layout, open_segment, read_blocks(options, layout, open_segment))
    jobs = plan_jobs(options, layout, all_needs if rows.every_id else audit_needs(options, layout, audit.histories))
    state = _state(options, layout)
    if state is not None:
        audit.state = state.use
        jobs = [state.matched(job, open_segment, resumes=rows is NO_ROWS) for job in jobs]
    total = sum(job.bytes for job in jobs)
    progress.start(total)
    number = options.jobs or os.cpu_count() or 1
    if total < PROCESSES_PAY_BYTES:
        number = 1  # starting others costs more than it saves
    jobs = share_rate(jobs, number)
    fixed = options.chunk_bytes
    recent = RecentSizes()
    chunk_sizes = [ChunkSize(sharers=number, recent=recent) if fixed is None else fixed_size(fixed) for _ in jobs]
    with closing(_read(jobs, chunk_sizes, number, layout)) as outcomes:
        ahead = next(outcomes, None)
        for place, (job, chunk_size) in enumerate(zip(jobs, chunk_sizes, strict=True)):
            sink = rows.make_sink()
            feed = PartitionAssembler(job, sink)
            while ahead is not None and ahead.job == place:
                for read in with_rest(ahead, chunk_size):
                    feed.take(read.outcome)
                    if isinstance(read.outcome, ChunkRows):
                        progress.advance(read.spec.bytes_to_read)
                        chunk_size.update(read.outcome, feed.producer_ids)
                ahead = next(outcomes, None)
            partition = feed.close()
            close(partition, sink)
            audit.add(partition)
    if state is not None:
        state.sweep(layout)
    return audit


def _state(options: ScanOptions, layout: Layout) -> "OpenedState | None":
    if options.state is None:
        return None
    from kaudit.scanning.opened_state import open_state  # noqa: PLC0415 - few audits have one

    return open_state(options.state, options, layout)


def _read(jobs: Sequence[Job], chunk_sizes: Sequence[ChunkSize], number: int, layout: Layout) -> Generator[RangeRead]:
    """Read all ranges, as many at a time."""
    found = ranges(jobs, chunk_sizes)
    if number == 1:
        return read_here(found)
    return _read_side_by_side(found, number, _start_method(layout.partitions))


def _read_side_by_side(found: Iterator[Range], number: int, start_method: str) -> Generator[RangeRead]:
    """Read in threads while batches are large, from there on in processes."""
    rest = (yield from threads.read_in_threads(found, number)) if start_method == "fork" else next(found, None)
    if rest is not None:
        yield from processes.read_in_processes(chain([rest], found), number, start_method)


def _start_method(directories: Iterable[PartitionDirectory]) -> str:
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    firsts = (segment.path for directory in directories for segment in directory.segments[:1])
    return "fork" if all(Uri.parse(path).is_local for path in firsts) else "spawn"


LOCAL = LocalEngine()
scan, timeline, producers, record, transactions = (
    LOCAL.scan,
    LOCAL.timeline,
    LOCAL.producers,
    LOCAL.record,
    LOCAL.transactions,
)
