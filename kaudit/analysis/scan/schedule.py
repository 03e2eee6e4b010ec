"""What every engine does alike: choose and plan the input, read a range, and put a partition together again."""

import sys
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.analysis.coordinator.transaction_state_reader import TRANSACTION_STATE
from kaudit.analysis.producer_ids.block_book import BlockBook
from kaudit.analysis.scan.audit import latest_modification
from kaudit.analysis.scan.chunk_plan import cut, settle, whole_segments
from kaudit.analysis.scan.chunk_reader import CHUNK_BYTES, ChunkSpec, OpenSource, read_chunk, read_parts, read_serially
from kaudit.analysis.scan.options import Depth, NothingToAuditError, ScanOptions, UsageError
from kaudit.analysis.scan.partition_assembler import PartitionReplay, RowSink
from kaudit.analysis.scan.partition_audit import Needs, PartitionAudit, close_partition
from kaudit.analysis.scan.rows import ChunkRows
from kaudit.analysis.scan.run_batches import RunFetcher
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.layout import Layout, PartitionDirectory, Unreadable
from kaudit.source.pattern import LayoutPattern, PatternError
from kaudit.source.schemes import open_segment
from kaudit.source.uri import UrlError

_DAY_MS = 86_400_000
LONGEST_TEXT_BYTES = 64 << 20
"""Longest text of a segment that is read as one range: its batches take up to a third of that in memory."""


class Failure(Struct, frozen=True):
    """A range whose file could not be read. `vanished`: it is gone, as retention makes files go."""

    path: str
    reason: str
    vanished: bool


Outcome = ChunkRows | Failure


class Job(Struct, frozen=True):
    """One partition replica's work: its directory, one spec a segment, whole, and what is wanted of it.

    `compacted`: the user says so.
    """

    directory: PartitionDirectory
    plan: Sequence[ChunkSpec]
    chunk_bytes: int = CHUNK_BYTES
    compacted: bool = False
    needs: Needs = field(default_factory=Needs)

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(spec.stop - spec.start for spec in self.plan)

    @property
    def in_pieces(self) -> Sequence[ChunkSpec]:
        """What can be cut into ranges: nothing where a text is too long to be one range, as a text cannot be cut."""
        longest = max((spec.stop - spec.start for spec in self.plan if spec.file.text is not None), default=0)
        return self.plan if longest <= LONGEST_TEXT_BYTES else ()

    def ranges(self) -> list[ChunkSpec]:
        """Return what to read in pieces, in order."""
        return [part for spec in self.in_pieces for part in cut(spec, self.chunk_bytes)]


def find_input(options: ScanOptions) -> Layout:
    """List the input once and leave the partitions asked for.

    Raises:
        UsageError: a path does not exist, a URL cannot be read from, or the layout pattern is wrong.
        NothingToAuditError: no segment was found.

    """
    try:
        pattern = LayoutPattern.parse(options.layout) if options.layout is not None else None
        layout = discover(options.paths, pattern)
    except PathNotFoundError as error:
        raise UsageError(f"no such file or directory: {error}") from error
    except (UrlError, PatternError) as error:
        raise UsageError(str(error)) from error
    layout = replace(layout, partitions=[_named(directory, options) for directory in layout.partitions])
    chosen = [
        directory
        for directory in layout.partitions
        if (not options.topics or directory.topic in options.topics)
        and (not options.partitions or directory.partition in options.partitions)
    ]
    unchosen = [directory for directory in layout.partitions if directory not in chosen]
    if options.log_start_offset is not None:
        chosen = [replace(directory, log_start_offset=options.log_start_offset) for directory in chosen]
    if not any(directory.segments for directory in chosen):
        raise NothingToAuditError(_nothing(options, layout))
    return replace(layout, partitions=chosen, unchosen=unchosen)


def _named(directory: PartitionDirectory, options: ScanOptions) -> PartitionDirectory:
    """Give batches that no name places the topic and partition asked for, if it is one."""
    if directory.named:
        return directory
    return replace(
        directory,
        topic=options.topics[0] if len(options.topics) == 1 else directory.topic,
        partition=options.partitions[0] if len(options.partitions) == 1 else directory.partition,
    )


def _nothing(options: ScanOptions, layout: Layout) -> str:
    where = ", ".join(options.paths)
    if layout.unreadable:
        return f"nothing to audit under {where}: {layout.unreadable[0].path}: {layout.unreadable[0].reason}"
    if layout.leftover_files:
        return f"nothing to audit under {where}: only {layout.leftover_files[0].relative} ({layout.leftover_files[0].kind})"
    if layout.partitions:
        names = sorted({directory.topic for directory in layout.partitions})
        return f"nothing to audit under {where}: no segment matches; topics there: {', '.join(names[:10])}"
    if layout.skipped:
        return f"nothing to audit under {where}: {layout.skipped[0].path}: {layout.skipped[0].reason}"
    return f"nothing to audit under {where}: no segment (a file such as 00000000000000000000.log) was found"


def plan_jobs(options: ScanOptions, layout: Layout, needs: Callable[[PartitionDirectory], Needs]) -> list[Job]:
    """Plan the reading of every partition of `layout`, in its order."""
    latest = latest_modification(layout) + _DAY_MS
    decode = options.depth is Depth.RECORDS
    jobs: list[Job] = []
    for directory in layout.partitions:
        plan = whole_segments(
            directory,
            log_start_offset=directory.log_start_offset,
            verify=options.depth is not Depth.HEADERS,
            latest_timestamp=latest,
        )
        plan = [replace(spec, decode=True) for spec in plan] if decode else plan
        compacted = options.says_compacted(directory.topic)
        jobs.append(Job(directory, plan, options.chunk_bytes or CHUNK_BYTES, compacted, needs(directory)))
    return jobs


def audit_needs(layout: Layout, book: BlockBook) -> Callable[[PartitionDirectory], Needs]:
    """Return what an audit needs of a partition: its ids where blocks are known, its markers where decisions are."""
    decided = any(entry.topic == TRANSACTION_STATE for entry in layout.everything)

    def needs(directory: PartitionDirectory) -> Needs:
        return Needs(producer_ids=book.of(directory.log_dir) is not None, markers=decided)

    return needs


def all_needs(directory: PartitionDirectory) -> Needs:  # noqa: ARG001 - the same of every partition
    """Return that everything is needed, as for a list of producer ids."""
    return Needs()


def read_range(spec: ChunkSpec, most_batches: int = sys.maxsize) -> Outcome:
    """Read, verify and compress one range of a segment where its bytes are, its ends settled on batch boundaries.

    The rows' `stop` is short of the range's if there are more batches than that: the rest is a range of its own.
    """
    try:
        source = open_segment(spec.file)
        try:
            return read_chunk(settle(spec, source), source, most_batches)
        finally:
            source.close()
    except OSError as error:
        return _failure(spec.file.path, error)


def _failure(path: str, error: OSError) -> Failure:
    return Failure(path, error.strerror or type(error).__name__, isinstance(error, FileNotFoundError))


class PartitionAssembler:
    """Takes the outcomes of one partition's ranges in order; what cannot be taken in pieces is read again in order."""

    def __init__(self, job: Job, kept: RowSink | None, open_source: OpenSource = open_segment) -> None:
        self._job = job
        self._open = open_source
        self.kept = kept
        self._replay = self._fresh()
        self._failures: dict[str, Unreadable] = {}
        self._serially = bool(job.plan) and not job.in_pieces
        self._stopped = False

    @property
    def producer_ids(self) -> int:
        """How many producer ids of the partition are known so far."""
        return len(self._replay.transitions.table)

    def take(self, outcome: Outcome) -> None:
        """Take the next range's rows, or why there are none."""
        if isinstance(outcome, Failure):
            self._replay.continuity.skip()
            self._fail(outcome)
        elif not self._serially and not self._stopped:
            try:
                self._serially = outcome.read_to != outcome.stop or not all(
                    map(self._replay.feed, self._parts(outcome))
                )
            except OSError as error:
                self._stop(error, self._job.directory.segments[outcome.segment].path)

    def close(self) -> PartitionAudit:
        """The last range has been taken: return what the findings need."""
        if self._serially and not self._failures:
            self._read_in_order()
        self._replay.finish()
        return close_partition(
            self._replay,
            self._open,
            compacted=self._job.compacted,
            needs=self._job.needs,
            unreadable=list(self._failures.values()),
        )

    def _parts(self, rows: ChunkRows) -> Iterator[ChunkRows]:
        """Yield a range's rows, those of a range with snapshots taken inside it cut there, for which it is read again."""
        cuts = self._replay.snapshots.inside(rows)
        if not cuts or not rows.ordered:
            yield rows
            return
        whole = next(spec for spec in self._job.plan if spec.segment == rows.segment)
        source = self._open(whole.file)
        try:
            yield from read_parts(replace(whole, start=rows.start, stop=rows.stop), source, cuts)
        finally:
            source.close()

    def _fresh(self) -> PartitionReplay:
        directory = self._job.directory
        return PartitionReplay(directory, RunFetcher(directory, self._open), self.kept)

    def _read_in_order(self) -> None:
        """Read from front to back: offsets do not ascend, or damage crosses a cut."""
        if self.kept is not None:
            self.kept.clear()
        self._replay = self._fresh()
        try:
            for rows in read_serially(self._job.plan, self._open, self._replay.snapshots.offsets):
                if not self._replay.feed(rows):
                    raise AssertionError(f"batches of {self._job.directory.directory} are out of order after ordering")
        except OSError as error:
            self._stop(error, self._job.directory.directory)

    def _stop(self, error: OSError, path: str) -> None:
        """A file read before cannot be read again: what is known so far is all there will be."""
        self._stopped = True
        self._fail(_failure(str(error.filename or path), error))

    def _fail(self, failure: Failure) -> None:
        if not failure.vanished:
            self._failures.setdefault(failure.path, Unreadable(failure.path, failure.reason))
