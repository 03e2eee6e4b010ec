"""Sessions of producers - an id and epoch - that follow on one another (session_copies.py compares their records).

Only non-transactional sessions: what a transaction wrote and aborted is written again by right.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from kaudit.model.columns import Columns
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.model.sequence import MAX_SEQUENCE

MAX_SESSIONS = 20_000
"""Sessions of one partition kept to be compared; more are counted."""
PREDECESSORS = 8
"""Sessions that ended most recently before one began, with which it is compared."""


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


def unlike_others(tail: Sequence[object], head: Sequence[object], length: int) -> int:
    """Return how many of the first `length` of `head` are found once on either side: what is common around proves nothing."""
    before, after = Counter(tail), Counter(head)
    return sum(before[one] == after[one] == 1 for one in head[:length])


def merged_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of bytes ascending and apart."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found
