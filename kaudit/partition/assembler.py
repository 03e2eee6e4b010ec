"""Putting the ranges of a partition together again, as every engine does."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.model.result import StateUse
from kaudit.partition.audit import Needs, PartitionAudit, close_partition
from kaudit.partition.job import Job
from kaudit.partition.replay import PartitionReplay, RowSink
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, with_saved
from kaudit.reading.chunk_reader import read_parts, read_serially
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.range_reader import read_planned
from kaudit.reading.run_batches import RunFetcher
from kaudit.reading.saved_partition import DamagedStateError, SavedPartition
from kaudit.reading.unread_segments import Failure, UnreadSegments, failure
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from kaudit.partition.range_saver import RangeSaver


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
        """Ranges that could not be read, and whether that is for good."""
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

    def ask_for(self, needs: Needs) -> None:
        """Say what `at_end` is to return."""
        self._job = replace(self._job, needs=needs)

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
