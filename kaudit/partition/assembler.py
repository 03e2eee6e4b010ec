"""Reading a range of a segment, and putting the ranges of a partition together again, as every engine does."""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.model.result import StateUse
from kaudit.partition.audit import PartitionAudit, close_partition
from kaudit.partition.job import Job
from kaudit.partition.replay import PartitionReplay, RowSink
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, cut, settle, with_saved
from kaudit.reading.chunk_reader import CHUNK_BYTES, read_chunk, read_parts, read_serially
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.run_batches import RunFetcher
from kaudit.reading.saved_partition import DamagedStateError, SavedPartition
from kaudit.reading.small_segments import apart, read_together
from kaudit.reading.unread_segments import Failure, UnreadSegments, failure, require_whole
from kaudit.source.kafka.fetched_segment import RemovedByRetentionError
from kaudit.source.layout import FetchedRange
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from kaudit.partition.range_saver import RangeSaver


def read_range(spec: ChunkSpec, most_batches: int = sys.maxsize, open_source: OpenSource = open_segment) -> Outcome:
    """Read, verify and compress one range of a segment where its bytes are, its ends settled on batch boundaries.

    The rows' `stop` is short of the range's if there are more batches than that: the rest is a range of its own.
    """
    try:
        with closing(open_source(spec.file)) as source:
            rows = read_chunk(settle(spec, source), source, most_batches)
            require_whole(spec.file, source)
            return rows
    except RemovedByRetentionError as error:
        return _from_log_start(spec, error.log_start, most_batches, open_source)
    except OSError as error:
        return _failed(spec, error)


def read_planned(
    spec: ChunkSpec, most_batches: int = sys.maxsize, open_source: OpenSource = open_segment
) -> list[Outcome]:
    """Read a range as `read_range` does, or small segments: together if they allow it, else each by itself.

    One that is saved comes from the state, in as many ranges as it was saved; from the log where that is damaged.
    """
    if spec.saved is not None:
        from kaudit.reading.state_files import load_rows  # noqa: PLC0415 - few audits have a state

        try:
            return [*load_rows(spec)]
        except (OSError, DamagedStateError):
            spec = replace(spec, saved=None, limit=None if spec.joined else spec.stop)
            return [
                outcome for part in cut(spec, CHUNK_BYTES) for outcome in read_planned(part, open_source=open_source)
            ]
    if not spec.joined:
        return [read_range(spec, most_batches, open_source)]
    together = read_together(spec, open_source)
    if together is not None:
        return [together]
    return [read_range(part, most_batches, open_source) for part in apart(spec)]


def _from_log_start(spec: ChunkSpec, log_start: int, most_batches: int, open_source: OpenSource) -> Outcome:
    """Read what retention, which overtook the reader, has left of a range."""
    place = spec.file.fetched
    assert place is not None
    start = min(place.position(log_start), spec.stop)
    reason = f"removed by retention before kaudit read them: the log begins at offset {log_start} by now"
    removed = Failure(spec.file.path, reason, offsets=_offsets(replace(spec, stop=start), place))
    if start == spec.stop:
        return removed
    left = replace(place, readable_from=max(place.readable_from, log_start))
    outcome = read_range(replace(spec, start=start, file=replace(spec.file, fetched=left)), most_batches, open_source)
    if isinstance(outcome, ChunkRows):
        outcome.not_read = removed
    return outcome


def _failed(spec: ChunkSpec, error: OSError) -> Failure:
    failed, place = failure(spec.file.path, error), spec.file.fetched
    if place is None:
        return failed
    reason = f"{error.filename}: {failed.reason}" if error.filename else failed.reason
    return replace(failed, reason=reason, offsets=_offsets(spec, place))


def _offsets(spec: ChunkSpec, place: FetchedRange) -> tuple[int, int]:
    return max(place.offset(spec.start), place.readable_from), min(place.offset(spec.stop), place.end_offset) - 1


class PartitionAssembler:
    """Puts the ranges of one partition replica together, in the order of its log, whoever reads them.

    A scan feeds the outcomes of all planned ranges and closes. A watch feeds what it reads from where it left off, asks `at_end`
    as often as it likes, and calls `grow` in between. What cannot be taken in pieces is read again, from front to back.
    `open_source` opens the segments; `open_files`, if given, the files beside them.
    """

    def __init__(
        self,
        job: Job,
        kept: RowSink | None = None,
        open_source: OpenSource = open_segment,
        open_files: OpenSource | None = None,
    ) -> None:
        self._job = job
        self._open = open_source
        self._open_files = open_files or open_source
        self.kept = kept
        self.replay = self._new_replay()
        self._failures: dict[Failure, bool] = {}
        """What could not be read, and whether that is for good."""
        self.out_of_order = bool(job.plan) and not job.in_pieces
        """The ranges taken do not ascend, or damage crosses a cut: all must be read in order."""
        self.stopped = False
        """A file that was read before could not be read again: no more is taken."""
        saved = job.saved
        self._saver = None if saved is None else _saver(job, saved)
        self._state = None if saved is None else replace(saved.use)
        self._saved_to: dict[int, int] = {} if saved is None else {piece.segment: piece.stop for piece in saved.pieces}
        if saved is not None and saved.resumed:
            self._resume(saved)

    @property
    def producer_ids(self) -> int:
        """How many producer ids of the partition are known so far."""
        return len(self.replay.transitions.table)

    @property
    def failed(self) -> bool:
        """Whether something could not be read."""
        return bool(self._failures)

    def take(self, outcome: Outcome, spec: ChunkSpec | None = None) -> None:
        """Take the next range's rows, or why there are none. `spec`: what was read, where the plan does not say so."""
        if isinstance(outcome, Failure):
            self._save_nothing(outcome.reason)
            self.skip(outcome)
        elif not self.out_of_order and not self.stopped:
            if (
                self._state is not None
                and not outcome.is_saved
                and outcome.start < self._saved_to.get(outcome.segment, 0)
            ):
                self._state.damaged += 1
            if outcome.not_read is not None:
                self.skip(outcome.not_read)
            # ranges of a plan meet where batches do; a `spec` may end inside of one
            torn = spec is None and outcome.read_to != outcome.stop
            try:
                self.out_of_order = torn or not all(map(self._feed, self._parts(outcome, spec)))
            except OSError as error:
                self._stop(error, self._job.directory.segments[outcome.segment].path)

    def skip(self, failed: Failure, *, for_good: bool = True) -> None:
        """Leave out a range that could not be read; unless `for_good`, the log is read on from there later."""
        self._failures.setdefault(failed, for_good)
        if for_good:
            self.replay.skip()

    def grow(self, job: Job) -> None:
        """Take more of a log that has grown; the segments taken so far keep their numbers.

        Raises:
            OSError: the snapshots cannot be listed.

        """
        self._job = job
        self.replay.grow(job.directory, RunFetcher(job.directory, self._open))

    def read_again(self, segment: int) -> None:
        """Forget what was found after the last valid batch of a segment, and why it could not be read: it is read again."""
        continuity, path = self.replay.continuity, self._job.directory.segments[segment].path
        continuity.pending = [entry for entry in continuity.pending if entry[0] != segment]
        for failed in [each for each, for_good in self._failures.items() if each.path == path and not for_good]:
            del self._failures[failed]

    def at_end(self) -> PartitionAudit:
        """Return what the findings need if the log ends here. To be used before more is taken."""
        unread = UnreadSegments(self._job.directory.segments)
        for failed in self._failures:
            unread.add(failed)
        return close_partition(
            self.replay.at_end(),
            self._open_files,
            compacted=self._job.compacted,
            needs=self._job.needs,
            unread=unread,
        )

    def close(self) -> PartitionAudit:
        """The last range has been taken: read in order if need be, save, and return what the findings need."""
        if self.out_of_order and not self._failures:
            try:
                for _ in self.read_in_order():
                    pass
            except OSError as error:
                self._stop(error, self._job.directory.directory)
        closed = self.at_end()
        closed.state = self._save()
        return closed

    def read_in_order(self) -> Iterator[ChunkRows]:
        """Read the partition from front to back, putting batches in order; yield the rows after they were taken.

        Raises:
            OSError: a segment cannot be read.

        """
        if self.kept is not None:
            self.kept.clear()
        self.replay = self._new_replay()
        for rows in read_serially(self._job.plan, self._open, self.replay.snapshots.offsets):
            if not self.replay.feed(rows):
                raise AssertionError(f"batches of {self._job.directory.directory} are out of order after ordering")
            yield rows

    def _feed(self, rows: ChunkRows) -> bool:
        if self._saver is not None:
            try:
                self._saver.add(rows)
            except (OSError, DamagedStateError) as error:
                self._save_nothing(_reason(error))
        return self.replay.feed(rows)

    def _save_nothing(self, reason: str) -> None:
        """Leave the state as it is: that of the ranges it has stays true."""
        if self._state is not None and self._saver is not None:
            self._state.not_saved = reason, 1
            self._saver.close()
        self._saver = None

    def _save(self) -> StateUse | None:
        if self.out_of_order:
            self._save_nothing("batches are out of order, or damage lies where ranges meet")
        if self._saver is not None:
            with closing(self._saver) as saver:
                try:
                    saver.save(self.replay)
                except (OSError, DamagedStateError) as error:
                    self._save_nothing(_reason(error))
        return self._state

    def _resume(self, saved: SavedPartition) -> None:
        """Go on from the checkpoint of the first ranges; take the ranges themselves where it is damaged."""
        assert self._saver is not None
        assert self._state is not None
        try:
            self.replay = self._saver.resume(RunFetcher(self._job.directory, self._open))
        except (OSError, DamagedStateError):
            self._state.damaged += 1
            plan = with_saved(self._job.in_pieces, replace(saved, resumed=0))
            for spec in [spec for spec in plan if spec.saved is not None][: saved.resumed]:
                for outcome in read_planned(spec, open_source=self._open):
                    self.take(outcome)

    def _parts(self, rows: ChunkRows, spec: ChunkSpec | None) -> Iterator[ChunkRows]:
        """Yield a range's rows; a range with snapshots taken inside it is read again and cut there."""
        cuts = [] if rows.joined else self.replay.snapshots.inside(rows)
        if not cuts or not rows.ordered:
            yield rows
            return
        if spec is None:
            whole = next(spec for spec in self._job.plan if spec.segment == rows.segment)
            spec = replace(whole, start=rows.start, stop=rows.stop)
        with closing(self._open(spec.file)) as source:
            yield from read_parts(spec, source, cuts)

    def _new_replay(self) -> PartitionReplay:
        directory = self._job.directory
        return PartitionReplay(directory, RunFetcher(directory, self._open), self.kept)

    def _stop(self, error: OSError, path: str) -> None:
        """A file read before cannot be read again: what is known so far is all there will be."""
        self.stopped = True
        self._failures.setdefault(replace(failure(str(error.filename or path), error), log_start=None), True)


def _saver(job: Job, saved: SavedPartition) -> "RangeSaver":
    from kaudit.partition.range_saver import RangeSaver  # noqa: PLC0415 - few audits have a state, which needs compression

    return RangeSaver(job.directory, job.plan, saved)


def _reason(error: OSError | DamagedStateError) -> str:
    return str((isinstance(error, OSError) and error.strerror) or error)
