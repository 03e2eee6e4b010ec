"""Markers on their way to partition leaders, held to TransactionMarkerChannelManager and what its callers do."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from kaudit.broker.coordinator.requests import EndOfTransaction
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.response import TopicPartition
from kaudit.simulate.cluster.transaction_marker_channel_manager import TransactionMarkerChannelManager
from kaudit.simulate.network import MarkerLoss
from kaudit.simulate.trace import EventKind
from tests.simulate.test_cluster_parts import Replicated, context
from tests.simulate.test_sender import NoFaults

KEY = ("orders", 0)
BEGIN = 10
"""When the partition is ready."""


@dataclass
class Losses(NoFaults):
    """Loses WriteTxnMarkers by their number."""

    by_number: dict[int, MarkerLoss] = field(default_factory=dict)

    def marker(self, partition, number):
        assert partition == "orders-0"
        return self.by_number.get(number)


class Markers:
    """A partition led by broker 1 of a cluster whose coordinator is broker `coordinator`."""

    def __init__(self, losses: dict[int, MarkerLoss] | None = None, coordinator=1):
        self.replicated = Replicated(shared=context(Losses(losses or {})))
        self.clock, self.brokers = self.replicated.clock, self.replicated.brokers
        self.partition, self.recorder = self.replicated.partition, self.replicated.context.recorder
        self.manager = TransactionMarkerChannelManager({KEY: self.partition}, self.brokers, self.replicated.context)
        self.manager.coordinator = lambda: coordinator
        self.complete: list[EndOfTransaction] = []
        self.manager.on_complete = self.complete.append

    def end(self, producer_id=7, *, epoch=0, commit=True, partitions: tuple[TopicPartition, ...] = (KEY,)):
        """End a transaction; returns it, and whether it is complete."""
        ended = EndOfTransaction("x", producer_id, epoch, commit, 0, self.clock.timestamp, partitions)
        return ended, self.manager.write(ended, 3)

    def run(self, until):
        self.replicated.run(until)

    @property
    def written(self):
        """Offset, producer id and whether it commits of each marker in the leader's log."""
        states = [batch.state for batch in self.partition.leader_log().batches]
        return [(each.offset, each.producer_id, each.commit) for each in states if isinstance(each, MarkerBatch)]

    def events(self, kind):
        return [
            (event.at, event.source, event.text) for event in self.replicated.context.trace.events if event.kind is kind
        ]


def test_a_marker_says_what_its_transaction_was():
    markers = Markers()
    markers.run(25)
    ended, complete = markers.end(commit=False, epoch=2)
    assert complete
    (batch,) = markers.partition.leader_log().batches
    assert batch.state == MarkerBatch(7, 2, 3, 0, ended.at, False, 0)
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (0, 0, ended.at)
    _, complete = markers.end(8)
    assert (complete, markers.written) == (True, [(0, 7, False), (1, 8, True)])
    assert markers.complete == []  # `write` has said so
    assert markers.events(EventKind.NOTE) == [
        (25, "broker 1", "orders-0: abort marker, id 7 epoch 2, offset 0"),
        (25, "broker 1", "orders-0: commit marker, id 8 epoch 0, offset 1"),
    ]


@pytest.mark.parametrize(("silent", "wait"), [(False, 100), (True, 30_000)])
@pytest.mark.parametrize(("response", "copies"), [(False, 0), (True, 1)])
def test_a_lost_marker_is_sent_again_at_once_or_when_its_request_has_timed_out(silent, wait, response, copies):
    """request.timeout.ms of the broker, 30 s. One whose response is lost is in the log already, and is written twice."""
    markers = Markers({1: MarkerLoss(response, silent)})
    ended, complete = markers.end()
    assert (complete, len(markers.written)) == (False, copies)
    markers.run(BEGIN + wait - 1)
    assert (markers.complete, len(markers.written)) == ([], copies)
    markers.run(BEGIN + wait)
    assert (markers.complete, len(markers.written)) == ([ended], copies + 1)
    markers.run(BEGIN + 100_000)
    assert (markers.complete, len(markers.written)) == ([ended], copies + 1)
    what = "the response to WriteTxnMarkers" if response else "WriteTxnMarkers"
    assert markers.events(EventKind.FAULT) == [(BEGIN, "broker 1", f"orders-0: {what} is lost, id 7 epoch 0")]
    assert markers.recorder.ended_because == "WriteTxnMarkers of orders-0 was lost, and sent again later"


def test_each_time_a_marker_is_lost_it_is_sent_again():
    markers = Markers({1: MarkerLoss(False, False), 2: MarkerLoss(False, True), 3: MarkerLoss(False, False)})
    ended, _ = markers.end()
    markers.run(BEGIN + 100 + 30_000 + 100 - 1)
    assert (markers.complete, markers.written) == ([], [])
    markers.run(BEGIN + 100 + 30_000 + 100)
    assert (markers.complete, markers.written) == ([ended], [(0, 7, True)])


def test_the_response_of_a_leader_that_does_not_run_is_lost_with_the_marker():
    markers = Markers({1: MarkerLoss(True, False)})
    markers.brokers.paused = {1}
    markers.end()
    assert markers.written == []
    markers.run(BEGIN + 350)
    assert (markers.complete, markers.written) == ([], [])
    markers.brokers.paused = set()
    markers.run(BEGIN + 400)
    assert (len(markers.complete), markers.written) == (1, [(0, 7, True)])


def test_a_marker_that_cannot_reach_its_leader_is_sent_every_hundred_ms():
    markers = Markers(coordinator=2)
    markers.brokers.cut = {2}
    ended, complete = markers.end()
    assert not complete
    assert markers.recorder.ended_because == "a marker of orders-0 could not reach its leader for a while"
    markers.run(BEGIN + 450)
    markers.brokers.cut = set()
    markers.run(BEGIN + 499)
    assert (markers.complete, markers.written) == ([], [])
    markers.run(BEGIN + 500)
    assert (markers.complete, markers.written) == ([ended], [(0, 7, True)])
    assert markers.events(EventKind.FAULT) == []


def test_another_coordinator_sends_late_markers_itself():
    markers = Markers({1: MarkerLoss(False, False)})
    markers.end()
    markers.manager.forget_late()
    markers.run(BEGIN + 1000)
    assert (markers.complete, markers.written) == ([], [])


@pytest.mark.parametrize("waits_for", ["leader", "process"])
def test_a_marker_waits_for_a_leader_that_answers(waits_for):
    """It counts as written meanwhile."""
    markers = Markers()
    if waits_for == "leader":
        markers.partition.elect(None, [1, 2, 3], unclean=False)
    else:
        markers.brokers.paused = {1}
    for producer_id in (7, 8):
        _, complete = markers.end(producer_id)
        assert complete
    assert list(markers.manager.waiting()) == [(KEY, 7), (KEY, 8)]
    assert markers.manager.write_waiting(KEY)
    assert list(markers.manager.waiting()) == [(KEY, 7), (KEY, 8)]
    markers.brokers.paused = set()
    if waits_for == "leader":
        markers.partition.elect(1, [1, 2, 3], unclean=False)
    assert markers.manager.write_waiting(KEY)
    assert markers.written == [(0, 7, True), (1, 8, True)]
    assert list(markers.manager.waiting()) == []


def test_a_transaction_with_a_marker_that_is_refused_is_not_complete():
    """ProducerAppendInfo.checkProducerEpoch: the producer has a newer epoch already."""
    markers = Markers({3: MarkerLoss(False, False)})
    markers.end(epoch=5)
    _, complete = markers.end(epoch=4)
    assert not complete
    markers.end(epoch=4)  # a late one that is refused is not sent again
    markers.run(BEGIN + 1000)
    assert (markers.complete, markers.written) == ([], [(0, 7, True)])


@pytest.mark.parametrize(
    ("lost_from", "committed", "again"),
    [(1, 0, [8, 9]), (1, 1, [8, 9]), (1, 2, [9]), (2, 0, [9]), (1, 3, []), (3, 0, []), (0, 2, [9]), (0, 0, [7, 8, 9])],
)
def test_markers_that_a_new_leader_lacks_are_written_again_unless_they_were_answered(lost_from, committed, again):
    """Below the high watermark of the old leader the coordinator had its response: what is lost there stays so."""
    markers = Markers()
    for producer_id in (7, 8, 9):
        markers.end(producer_id, commit=producer_id != 8)
    before = markers.written
    assert before == [(0, 7, True), (1, 8, False), (2, 9, True)]
    markers.partition.leader_log().truncate(lost_from, 0)
    markers.manager.write_lost(KEY, lost_from, committed)
    expected = [*before[:lost_from], *((lost_from + n, one, one != 8) for n, one in enumerate(again))]
    assert markers.written == expected
    recorded: list[Any] = [attempt for attempt, _ in markers.recorder.lines]
    assert [(each.producer_id, each.producer_epoch, each.commit, each.coordinator_epoch) for each in recorded] == [
        (one, 0, one != 8, 0) for one in again
    ]
    assert [answer for _, answer in markers.recorder.lines] == [
        {"outcome": "ok", "error": "NONE", "error_code": 0} for _ in again
    ]
    # and from there on they are markers like all others
    markers.partition.leader_log().truncate(0, 0)
    markers.manager.write_lost(KEY, 0, 0)
    assert [producer_id for _, producer_id, _ in markers.written] == [one for _, one, _ in expected]


def test_a_new_leader_is_given_the_markers_that_waited_behind_those_it_lacks():
    markers = Markers()
    markers.end(7)
    markers.brokers.paused = {1}
    markers.end(8)
    markers.brokers.paused = set()
    markers.partition.leader_log().truncate(0, 0)
    markers.manager.write_lost(KEY, 0, 0)
    assert markers.written == [(0, 7, True), (1, 8, True)]
    assert list(markers.manager.waiting()) == []
