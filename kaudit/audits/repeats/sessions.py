"""Sessions of producers - an id and epoch - that follow on one another, and whether the next repeats the last's records.

Only non-transactional sessions: what a transaction wrote and aborted is written again by right.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from kaudit.formats.errors import WireError
from kaudit.formats.log.records import read_records
from kaudit.model.columns import Columns
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.record_content import MAX_BATCH_BYTES, batch_bytes, content_of
from kaudit.source.layout import PartitionDirectory

MAX_SESSIONS = 20_000
"""Sessions of one partition kept to be compared; more are counted."""
PREDECESSORS = 8
"""Sessions that ended most recently before one began, with which it is compared."""
MIN_RECORDS = 3
"""Fewer equal records in a row may be chance, unless their timestamps are equal too."""


class Session(Struct):
    """A producer id and epoch in one partition: its first and last five batches. `head` is empty if it begins elsewhere."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    head: list[BoundaryBatch]
    tail: list[BoundaryBatch] = field(default_factory=list)


class Handover(Struct, frozen=True):
    """A session and those that had ended just before it began, the latest first."""

    session: Session
    before: Sequence[Session]


class SessionTracker(Struct):
    """Takes a partition's runs, chunks in offset order."""

    unlisted: int = 0
    _sessions: dict[tuple[int, int], Session] = field(default_factory=dict)

    def feed(self, runs: Columns, boundary: Columns) -> None:
        """Take a chunk's runs and their boundary batches."""
        for run in runs[~runs["is_transactional"]]:
            key = (int(run["producer_id"]), int(run["producer_epoch"]))
            start = int(run["boundary_start"])
            batches = [
                BoundaryBatch._make(batch) for batch in boundary[start : start + int(run["boundary_count"])].tolist()
            ]
            session = self._sessions.get(key)
            if session is None:
                if len(self._sessions) >= MAX_SESSIONS:
                    self.unlisted += 1
                    continue
                head = batches[: int(run["head_count"])] if int(run["first_sequence"]) == 0 else []
                session = Session(*key, int(run["first_offset"]), int(run["last_offset"]), head)
                self._sessions[key] = session
            elif _is_head(session) and _goes_on(session.head[-1], int(run["first_sequence"])):
                # the log was cut within its first batches
                session.head = [*session.head, *batches[: int(run["head_count"])]][:NUM_BATCHES_TO_RETAIN]
            session.last_offset = int(run["last_offset"])
            session.tail = [*session.tail, *batches][-NUM_BATCHES_TO_RETAIN:]

    def handovers(self) -> list[Handover]:
        """Return each session whose beginning is here, with its predecessors; those without any are left out."""
        ended = sorted(self._sessions.values(), key=lambda session: session.last_offset)
        ends = [session.last_offset for session in ended]
        found = []
        for session in sorted(self._sessions.values(), key=lambda session: session.first_offset):
            at = bisect_left(ends, session.first_offset)
            before = ended[max(at - PREDECESSORS, 0) : at]
            if session.head and before:
                found.append(Handover(session, before[::-1]))
        return found


def _is_head(session: Session) -> bool:
    """Whether all of a session so far are its first batches."""
    return bool(session.head) and session.head[-1].base_offset == session.tail[-1].base_offset


def _goes_on(batch: BoundaryBatch, first_sequence: int) -> bool:
    return first_sequence == (batch.last_sequence + 1) & MAX_SEQUENCE


class _Record(Struct, frozen=True):
    """One record: its content, its time, its offset."""

    content: int
    timestamp: int
    offset: int


class _Contents:
    """Reads records of sessions' heads and tails, each once."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource) -> None:
        self._directory = directory
        self._open = open_source
        self._batches: dict[tuple[int, int], list[_Record]] = {}

    def of(self, batches: Sequence[BoundaryBatch]) -> list[_Record]:
        """Return the records of these batches; a batch that cannot be read has none."""
        return [record for batch in batches for record in self._batch(batch)]

    def _batch(self, batch: BoundaryBatch) -> list[_Record]:
        key = (batch.segment, batch.position)
        if key not in self._batches:
            self._batches[key] = self._read(batch)
            if len(self._batches) > 4 * NUM_BATCHES_TO_RETAIN * PREDECESSORS:
                self._batches.pop(next(iter(self._batches)))
        return self._batches[key]

    def _read(self, batch: BoundaryBatch) -> list[_Record]:
        data = batch_bytes(batch, self._directory, self._open)
        if data is None:
            return []
        try:
            records = read_records(memoryview(data), MAX_BATCH_BYTES)
            return [_Record(content_of(record), record.timestamp, record.offset) for record in records]
        except WireError:
            return []  # reported by the audit itself


def compare_sessions(
    handovers: Sequence[Handover], directory: PartitionDirectory, open_source: OpenSource
) -> tuple[list[RepeatedSession], list[RepeatedEpoch]]:
    """Return the sessions that begin with records a predecessor ended with: another producer id's, and its own last epoch."""
    contents = _Contents(directory, open_source)
    sessions: list[RepeatedSession] = []
    epochs: list[RepeatedEpoch] = []
    for handover in handovers:
        head = contents.of(handover.session.head)
        best: tuple[int, Session, list[_Record]] | None = None
        for before in handover.before:
            copied = _longest_copy(head, contents.of(before.tail))
            if copied and (best is None or len(copied) > best[0]):
                best = (len(copied), before, copied)
        if best is None:
            continue
        length, before, copied = best
        if before.producer_id == handover.session.producer_id:
            epochs.append(_repeated_epoch(handover.session, before, (head, contents.of(before.tail)), copied))
        else:
            sessions.append(_repeated(handover.session, before, head[:length], copied))
    return sessions, epochs


def _longest_copy(head: Sequence[_Record], tail: Sequence[_Record]) -> list[_Record]:
    """The records of `tail` that `head` begins with, in order; none where it may be chance."""
    best: list[_Record] = []
    for start, record in enumerate(tail):
        if not head or record.content != head[0].content:
            continue
        length = 1
        while (
            length < len(head) and start + length < len(tail) and head[length].content == tail[start + length].content
        ):
            length += 1
        if length > len(best):
            best = list(tail[start : start + length])
    distinct = len({record.content for record in best})
    if distinct >= MIN_RECORDS:
        return best
    # one record is enough if it is the only one like it, and its time is the same to the millisecond
    unlike = len({record.content for record in tail}) == len(tail) > 1
    return best if best and unlike and _same_times(head, best) else []


def _same_times(head: Sequence[_Record], copied: Sequence[_Record]) -> bool:
    return all(
        mine.timestamp == theirs.timestamp >= 0 for mine, theirs in zip(head[: len(copied)], copied, strict=True)
    )


def _repeated(
    session: Session, before: Session, again: Sequence[_Record], copied: Sequence[_Record]
) -> RepeatedSession:
    return RepeatedSession(
        producer_id=session.producer_id,
        producer_epoch=session.producer_epoch,
        first_offset=again[0].offset,
        last_offset=again[-1].offset,
        previous_id=before.producer_id,
        previous_epoch=before.producer_epoch,
        copied_first=copied[0].offset,
        copied_last=copied[-1].offset,
        records=len(copied),
        same_times=_same_times(again, copied),
        previous=next(batch for batch in before.tail if batch.last_offset >= copied[0].offset),
        batch=session.head[0],
        copied=_batches_of(before.tail, copied),
        again=_batches_of(session.head, again),
    )


def _repeated_epoch(
    session: Session, before: Session, sides: tuple[Sequence[_Record], Sequence[_Record]], copied: Sequence[_Record]
) -> RepeatedEpoch:
    """`sides`: the first records of `session` and the last ones of `before`."""
    head, tail = sides
    again = head[: len(copied)]
    same_times = _same_times(again, copied)
    head_keys, tail_keys = (
        [(record.content, record.timestamp if same_times else 0) for record in side] for side in sides
    )
    return RepeatedEpoch(
        producer_id=session.producer_id,
        producer_epoch=session.producer_epoch,
        previous_epoch=before.producer_epoch,
        first_offset=again[0].offset,
        last_offset=again[-1].offset,
        copied_first=copied[0].offset,
        copied_last=copied[-1].offset,
        copied=_batches_of(before.tail, copied),
        again=_batches_of(session.head, again),
        records=len(copied),
        distinct=unlike_others(tail_keys, head_keys, len(copied)),
        same_times=same_times,
        to_the_end=copied[-1] == tail[-1] or again[-1] == head[-1],
    )


def _batches_of(batches: Sequence[BoundaryBatch], records: Sequence[_Record]) -> list[BoundaryBatch]:
    return [
        batch for batch in batches if batch.last_offset >= records[0].offset and batch.base_offset <= records[-1].offset
    ]


def unlike_others(tail: Sequence[object], head: Sequence[object], length: int) -> int:
    """Return how many of the first `length` of `head` are found once on either side: what is common around proves nothing."""
    before, after = Counter(tail), Counter(head)
    return sum(before[one] == after[one] == 1 for one in head[:length])
