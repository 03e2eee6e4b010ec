"""Where a follower cuts its log when it begins to follow a leader (KIP-101, KIP-279): the only copy of this rule.

Source: `LeaderEpochFileCache.endOffsetFor` and `truncateFromEnd`, `AbstractFetcherThread.getOffsetTruncationState` of
Apache Kafka 2.0 to 3.9. From 2.7 on the leader puts the same answer into the response to a fetch (`divergingEpoch`).
"""

from bisect import bisect_right
from collections.abc import Sequence

from kaudit.model.leader_epochs import EpochEntry

_EpochEnd = tuple[int, int]
"""An epoch, and the offset after its last record."""


def end_offset_for(epochs: Sequence[EpochEntry], log_end_offset: int, requested: int) -> _EpochEnd | None:
    """Answer OffsetsForLeaderEpoch: the greatest known epoch <= `requested` and where it ends; None if undefined.

    `epochs` ascend. Undefined: there are no epochs, or `requested` is newer than all of them. A leader whose epochs are all
    newer answers the requested epoch with its first epoch's start.
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

    None where epochs do not decide: the follower has none, or the leader knows none as new as the follower's (an empty
    log, a leader before 2.1 that has not written yet: KAFKA-7415). The follower then truncates to its high watermark.
    """
    known, end = list(follower), follower_end
    while known:
        answer = end_offset_for(leader, leader_end, known[-1].epoch)
        if answer is None:
            return None
        leader_epoch, leader_offset = answer
        own_epoch, own_offset = end_offset_for(known, end, leader_epoch) or answer
        if own_epoch == leader_epoch:
            return min(own_offset, leader_offset, end)
        # the leader skipped epochs that this replica wrote under: cut those and ask again with an older one
        end = min(own_offset, end)
        known = [entry for entry in known if entry.start_offset < end]
    return None
