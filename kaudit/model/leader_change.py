"""A change of the partition's leader, and what producers did at it."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.model.observation import Observation


class LeaderChange(Struct, frozen=True):
    """A leader epoch under which clients began epochs of their own, having written under an older leader epoch before.

    `start_offset` is that of the leader epoch's first batch in this log. `bumps` are those client bumps, in offset order.
    `continued` is how many producers wrote before and after its beginning and have the next sequence of one epoch there.
    """

    leader_epoch: int
    start_offset: int
    bumps: Sequence[Observation]
    continued: int
