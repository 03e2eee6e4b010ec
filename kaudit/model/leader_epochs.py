"""Leader epochs of a partition: where each begins, and what producers and other copies show at a change."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from kaudit.model.json_record import JsonRecord
from kaudit.model.observation import Observation

NO_LEADER = -1
"""The leader of a partition that has none (LeaderConstants.NO_LEADER)."""


class EpochEntry(JsonRecord, frozen=True):
    """A leader epoch (>= 0) and the first offset written under it."""

    epoch: int
    start_offset: int


class LeaderChange(Struct, frozen=True):
    """A leader epoch under which clients began epochs of their own, having written under an older leader epoch before.

    `start_offset` is that of the leader epoch's first batch in this log. `bumps` are those client bumps, in offset order.
    `continued` is how many producers wrote before and after its beginning and have the next sequence of one epoch there.
    """

    leader_epoch: int
    start_offset: int
    bumps: Sequence[Observation]
    continued: int


class HeldRecords(JsonRecord, frozen=True):
    """Records of producers (no control records) at offsets `first_offset`..`last_offset` of one copy, `copy` its name.

    `leader_epoch` is the newest they were written under, `last_timestamp` the greatest of their timestamps, ms.
    """

    copy: str
    directory: str
    first_offset: int
    last_offset: int
    records: int
    leader_epoch: int
    last_timestamp: int


class OtherCopies(Struct, frozen=True):
    """Where a leader epoch begins in one copy of a partition, what the others hold: `offset` is its first batch's.

    `compared` names the other copies of the partition that a scan was given; empty: none was, and nothing is known.
    `held_by` are those that hold records at `offset` or later under an older leader epoch: the leader of this epoch
    began without them, and every replica that follows it cuts them off (KIP-101). Whether they had been acknowledged
    is not in a log: `records` is the most that was lost there.
    """

    leader_epoch: int
    offset: int
    compared: Sequence[str]
    held_by: Sequence[HeldRecords] = ()


def copies_between(changes: Iterable[OtherCopies], older: int, newer: int) -> list[OtherCopies]:
    """Return those of the changes to leader epochs above `older` and up to `newer`, in offset order.

    For the bump of a producer epoch these are the leader epochs of the old epoch's last batch and the new one's first.
    """
    return [change for change in changes if older < change.leader_epoch <= newer]


MOST_UNHEARD = 100
"""Leader epochs named of those between two: a damaged log may claim any epoch."""


def unheard(known: int, epoch: int, leaders: Mapping[int, int]) -> list[int]:
    """Return the leader epochs after `known` and before `epoch` under which a broker may have led, in order: the MOST_UNHEARD newest.

    `leaders` by leader epoch.
    """
    newest_first = (each for each in range(epoch - 1, known, -1) if leaders.get(each) != NO_LEADER)
    return list(islice(newest_first, MOST_UNHEARD))[::-1]


def log_end_of(epoch: int, leader: str | None) -> str:
    """Return what to fetch to know how long the log of a leader was that may have had more than any log that is known."""
    whose = f"the broker that led under leader epoch {epoch}" if leader is None else f"{leader} from before"
    return f"server.log of {whose}: where its log ended under leader epoch {epoch}, as a copy of its directory from then shows too"
