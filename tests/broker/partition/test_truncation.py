"""KIP-101 and KIP-279 on the stories of the KIPs themselves, on Kafka's own test of the epoch cache, and on random logs."""

from itertools import accumulate, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_a_leader_that_knows_no_epoch_as_new_leaves_the_follower_to_its_high_watermark():
    # LeaderEpochFileCache.endOffsetFor: "The requested epoch is larger than any known epoch" is undefined (KAFKA-7415)
    assert truncation_offset(epochs((0, 0), (2, 5)), 10, epochs((0, 0), (1, 8)), 20) is None


def test_an_epoch_without_records_is_dropped_where_the_log_is_cut():
    # the cut at 50 removes epoch 1 too (LeaderEpochFileCache.truncateFromEnd), so epoch 0 is asked for next
    follower = epochs((0, 0), (1, 50), (3, 50))
    leader = epochs((0, 0), (1, 30), (2, 40), (4, 70))
    assert truncation_offset(follower, 80, leader, 100) == 30


class Broker:
    """A replica as KIP-101 and KIP-279 describe it, written without kaudit: a log end and a map of leader epochs."""

    def __init__(self, entries: list[EpochEntry], end: int) -> None:
        self.starts = {entry.epoch: entry.start_offset for entry in entries}
        self.end = end

    def answer(self, requested: int) -> tuple[int, int] | None:
        """OffsetsForLeaderEpoch."""
        if not self.starts or requested > max(self.starts):
            return None
        newer = {start for epoch, start in self.starts.items() if epoch > requested}
        older = {epoch for epoch in self.starts if epoch <= requested}
        return max(older, default=requested), min(newer, default=self.end)

    def truncate(self, offset: int) -> None:
        """Cut records off, and the epochs that began with them or later."""
        self.end = min(self.end, offset)
        self.starts = {epoch: start for epoch, start in self.starts.items() if start < self.end}

    def follow(self, leader: "Broker") -> bool:
        """Truncate to a leader; False where its high watermark decides instead."""
        while self.starts:
            answer = leader.answer(max(self.starts))
            if answer is None:
                return False
            epoch, offset = answer
            mine = self.answer(epoch)
            assert mine is not None
            if mine[0] == epoch:
                self.truncate(min(offset, mine[1]))
                return True
            self.truncate(min(start for known, start in self.starts.items() if known > epoch))
        return False


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[EpochEntry], int]:
    """Any epochs with any ascending starts, and a log end: no two of them need ever have met."""
    known = sorted(draw(st.sets(st.integers(0, 8), max_size=6)))
    first = draw(st.integers(0, 5))
    lengths = draw(st.lists(st.integers(0, 6), min_size=len(known), max_size=len(known)))
    starts = list(accumulate(lengths, initial=first))
    return [EpochEntry(epoch, start) for epoch, start in zip(known, starts, strict=False)], starts[-1]


@settings(max_examples=2000, deadline=None)
@given(logs(), logs())
def test_any_two_logs_are_cut_as_two_brokers_would(follower, leader):
    broker = Broker(*follower)
    decided = broker.follow(Broker(*leader))
    assert truncation_offset(*follower, *leader) == (broker.end if decided else None)


@st.composite
def replicas(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """The leader epochs of the records of two replicas that wrote the same at first, then each as leader by itself."""
    shared = sorted(draw(st.lists(st.integers(0, 4), max_size=8)))
    newest = shared[-1] if shared else 0
    ours = sorted(draw(st.lists(st.sampled_from((newest + 2, newest + 4, newest + 6)), max_size=6)))
    theirs = sorted(draw(st.lists(st.sampled_from((newest + 1, newest + 3, newest + 5)), max_size=6)))
    return [*shared, *ours], [*shared, *theirs]


@settings(max_examples=500, deadline=None)
@given(replicas(), st.booleans())
def test_a_follower_keeps_just_what_its_new_leader_holds_as_well(made, swapped):
    mine, theirs = made[::-1] if swapped else made
    known = [epochs(*((epoch, log.index(epoch)) for epoch in sorted(set(log)))) for log in (mine, theirs)]
    leader = [*known[1], EpochEntry(20, len(theirs))]  # a leader begins an epoch before it answers anybody
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))
    assert truncation_offset(known[0], len(mine), leader, len(theirs)) == (shared if mine else None)
