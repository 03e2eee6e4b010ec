"""Where a follower cuts its log when it begins to follow a leader (KIP-101, KIP-279).

Source of the rules: `LeaderEpochFileCache.endOffsetFor` and `AbstractFetcherThread.getOffsetTruncationState` of Apache
Kafka 3.9.
"""

from bisect import bisect_right
from collections.abc import Sequence

from kaudit.model.leader_epochs import EpochEntry

_EpochEnd = tuple[int, int]
"""An epoch, and the offset after its last record."""


def end_offset_for(epochs: Sequence[EpochEntry], log_end_offset: int, requested: int) -> _EpochEnd | None:
    """Answer OffsetsForLeaderEpoch: the greatest known epoch <= `requested` and where it ends; None if undefined.

    `epochs` ascend. A leader that knows no epoch that old answers the requested epoch with its first epoch's start.
    """
    if not epochs:
        return None
    if requested == epochs[-1].epoch:
        return requested, log_end_offset
    higher = bisect_right(epochs, requested, key=lambda row: row.epoch)
    if higher == len(epochs):
        return None  # an epoch this replica does not have
    start = epochs[higher].start_offset
    return (epochs[higher - 1].epoch if higher else requested), start


def truncation_offset(
    follower: Sequence[EpochEntry], follower_end: int, leader: Sequence[EpochEntry], leader_end: int
) -> int | None:
    """Return the offset a follower truncates to, its own log end where it cuts nothing.

    None where epochs cannot decide (no epochs at all, as before 0.11: the follower then truncates to its high watermark).
    """
    if not follower:
        return None
    epoch = follower[-1].epoch
    reached = follower_end
    while True:
        answer = end_offset_for(leader, leader_end, epoch)
        if answer is None:
            return None
        leader_epoch, leader_offset = answer
        own = end_offset_for(follower, follower_end, leader_epoch)
        if own is None:
            return min(leader_offset, reached)
        own_epoch, own_offset = own
        if own_epoch == leader_epoch or own_epoch >= epoch:
            return min(own_offset, leader_offset, reached)
        # the leader has skipped epochs this replica wrote under: cut those, ask again with an older one
        epoch, reached = own_epoch, min(own_offset, reached)
