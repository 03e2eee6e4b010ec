"""Leader epochs of a partition: where each begins, and what producers and other copies show at a change."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kaudit.model.json_record import JsonRecord
from kaudit.model.observation import Observation


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
