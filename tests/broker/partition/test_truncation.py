"""KIP-101 and KIP-279 on the stories of the KIPs themselves, and on Kafka's own test of the epoch cache."""

import pytest

from kaudit.broker.partition.truncation import end_offset_for, truncation_offset
from kaudit.model.leader_epochs import EpochEntry


def epochs(*rows: tuple[int, int]) -> list[EpochEntry]:
    return [EpochEntry(epoch, start) for epoch, start in rows]


# org.apache.kafka.storage.internals.epoch.LeaderEpochFileCacheTest: what endOffsetFor answers
@pytest.mark.parametrize(
    ("known", "end", "requested", "answer"),
    [
        (epochs((2, 6), (3, 8)), 9, 3, (3, 9)),
        (epochs((2, 6), (3, 8)), 9, 2, (2, 8)),
        (epochs((2, 6)), 9, 4, None),
        (epochs((5, 11), (6, 12)), 13, 4, (4, 11)),
        (epochs((2, 6), (4, 9)), 13, 3, (2, 9)),
        ([], 0, 0, None),
    ],
)
def test_the_end_offset_of_an_epoch(known, end, requested, answer):
    assert end_offset_for(known, end, requested) == answer


def test_kip_101_a_follower_ahead_of_the_new_leader_cuts_what_the_leader_never_had():
    # epoch 0: A wrote 0..9, B fetched 0..4 and leads from 5 on in epoch 1
    assert truncation_offset(epochs((0, 0)), 10, epochs((0, 0), (1, 5)), 20) == 5


def test_kip_101_a_follower_of_the_same_epoch_cuts_nothing():
    assert truncation_offset(epochs((0, 0)), 5, epochs((0, 0)), 20) == 5


def test_kip_279_fast_fail_over_with_an_epoch_the_leader_skipped():
    # KAFKA-6361: the follower wrote under epoch 1 what the leader never saw; the leader went on in epoch 2
    follower = epochs((0, 0), (1, 100))
    leader = epochs((0, 0), (2, 90))
    assert truncation_offset(follower, 120, leader, 200) == 90


def test_kip_279_asks_again_until_both_know_an_epoch():
    # follower: 0, 1, 3; leader: 0, 2, 4; they part within epoch 0
    follower = epochs((0, 0), (1, 50), (3, 60))
    leader = epochs((0, 0), (2, 40), (4, 70))
    assert truncation_offset(follower, 80, leader, 100) == 40


def test_without_epochs_the_truncation_is_unknown():
    assert truncation_offset([], 10, epochs((0, 0)), 20) is None
    assert truncation_offset(epochs((0, 0)), 10, [], 20) is None
