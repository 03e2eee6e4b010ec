"""End of transaction markers on their way to partition leaders. Source: TransactionMarkerChannelManager.

A marker for a partition whose leader does not answer waits for one that does. A marker that got lost, or that cannot reach
its leader, is sent again; until then its transaction is not complete (TransactionMarkerRequestCompletionHandler).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from kaudit.broker.attempts import WriteMarker
from kaudit.broker.coordinator.requests import EndOfTransaction
from kaudit.broker.producer_state.append_result import AppendResult, Outcome
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.response import TopicPartition
from kaudit.simulate.cluster.brokers import Brokers, RunContext
from kaudit.simulate.cluster.partition import ReplicatedPartition

_RETRY_MS = 100
_REQUEST_TIMEOUT_MS = 30_000
"""request.timeout.ms of brokers."""


class TransactionMarkerChannelManager:
    """Writes markers to the leaders of `partitions`."""

    def __init__(
        self,
        partitions: dict[TopicPartition, ReplicatedPartition],
        brokers: Brokers,
        context: RunContext,
    ) -> None:
        self._partitions = partitions
        self._brokers = brokers
        self._clock = context.clock
        self._recorder = context.recorder
        self._trace = context.trace
        self._faults = context.network.faults
        self._numbers: Counter[TopicPartition] = Counter()
        self._written: dict[TopicPartition, list[MarkerBatch]] = {}
        self._waiting: dict[TopicPartition, list[MarkerBatch]] = {}
        """Markers no leader has written yet."""
        self._late: dict[int, set[TopicPartition]] = {}
        """By identity of an ended transaction: where its markers are late."""
        self.on_complete: Callable[[EndOfTransaction], None] = lambda _: None
        """Called when the last late marker of a transaction has been written."""
        self.coordinator: Callable[[], int | None] = lambda: None
        """Returns the broker that coordinates transactions."""

    def waiting(self) -> Iterator[tuple[TopicPartition, int]]:
        """Yield partition and producer id of the markers that no leader has written yet."""
        return ((key, marker.producer_id) for key, markers in self._waiting.items() for marker in markers)

    def write(self, ended: EndOfTransaction, coordinator_epoch: int) -> bool:
        """Write a transaction's markers; return whether it is complete: none was rejected, none is late.

        One that waits for a leader counts as written.
        """
        accepted = True
        late: set[TopicPartition] = set()
        for key in ended.partitions:
            marker = MarkerBatch(
                ended.producer_id,
                ended.marker_epoch,
                coordinator_epoch,
                -1,
                ended.at,
                ended.commit,
                ended.transaction_version,
            )
            wait = self._send(key, marker)
            if wait is None:
                self._waiting.setdefault(key, []).append(marker)
                accepted = self.write_waiting(key) and accepted
            else:
                late.add(key)
                self._clock.after(wait, partial(self._send_again, key, marker, ended))
        if late:
            self._late[id(ended)] = late
        return accepted and not late

    def _send(self, key: TopicPartition, marker: MarkerBatch) -> int | None:
        """Send a marker; return after how many ms to send it again, None where it arrives and so does the response."""
        partition = self._partitions[key]
        coordinator, leader = self.coordinator(), partition.leader
        if leader is not None and coordinator is not None and not self._brokers.reaches(coordinator, leader):
            self._recorder.end(f"a marker of {partition.name} could not reach its leader for a while")
            return _RETRY_MS
        self._numbers[key] += 1
        loss = self._faults.marker(partition.name, self._numbers[key])
        if loss is None:
            return None
        self._recorder.end(f"WriteTxnMarkers of {partition.name} was lost, and sent again later")
        what = "the response to WriteTxnMarkers" if loss.response else "WriteTxnMarkers"
        self._trace.fault(
            self._clock.now,
            "controller" if coordinator is None else f"broker {coordinator}",
            f"{partition.name}: {what} is lost, id {marker.producer_id} epoch {marker.producer_epoch}",
            partition.name,
        )
        if loss.response and leader is not None and self._brokers.is_running(leader):
            self._append(key, marker)
        return _REQUEST_TIMEOUT_MS if loss.silent else _RETRY_MS

    def _send_again(self, key: TopicPartition, marker: MarkerBatch, ended: EndOfTransaction) -> None:
        if key not in self._late.get(id(ended), ()):
            return
        leader = self._partitions[key].leader
        running = all(
            broker is not None and self._brokers.is_running(broker) for broker in (self.coordinator(), leader)
        )
        wait = self._send(key, marker) if running else _RETRY_MS
        if wait is not None:
            self._clock.after(wait, partial(self._send_again, key, marker, ended))
            return
        if self._append(key, marker).outcome is not Outcome.APPENDED:
            return  # not sent again: the transaction stays as it is
        missing = self._late[id(ended)]
        missing.discard(key)
        if not missing:
            del self._late[id(ended)]
            self.on_complete(ended)

    def forget_late(self) -> None:
        """Send no late marker again: another coordinator, or the same one started again, sends it from the beginning."""
        self._late.clear()

    def write_waiting(self, key: TopicPartition) -> bool:
        """Write a partition's waiting markers if its leader handles requests; return whether none was rejected."""
        leader = self._partitions[key].leader
        if leader is None or not self._brokers.is_running(leader):
            return True
        results = [self._append(key, marker) for marker in self._waiting.pop(key, ())]
        return all(result.outcome is Outcome.APPENDED for result in results)

    def write_lost(self, key: TopicPartition, lost_from: int, committed: int) -> None:
        """Write the markers again that a partition's new leader lacks from offset `lost_from` on, and those that wait.

        Only those at or above `committed`, the old high watermark: the coordinator had no response to them yet.
        """
        written = self._written.get(key, [])
        lost = [marker for marker in written if marker.offset >= max(lost_from, committed)]
        self._written[key] = [marker for marker in written if marker.offset < lost_from]
        for marker in [*lost, *self._waiting.pop(key, ())]:
            attempt = self._recorder.attempt(
                WriteMarker,
                key,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=0,  # attempts know of one coordinator, which never moves
                transaction_version=marker.transaction_version,
            )
            result = self._append(key, replace(marker, timestamp=self._now()))
            outcome = "ok" if result.outcome is Outcome.APPENDED else "rejected"
            self._recorder.record(
                attempt, {"outcome": outcome, "error": result.error.name, "error_code": int(result.error)}
            )

    def _now(self) -> int:
        """The wall clock of the coordinator, which markers get their times of."""
        coordinator = self.coordinator()
        return self._clock.timestamp if coordinator is None else self._brokers.timestamp(coordinator)

    def _append(self, key: TopicPartition, marker: MarkerBatch) -> AppendResult:
        partition = self._partitions[key]
        marker = replace(marker, offset=partition.leader_log().memory.log_end)
        result = partition.append_marker(marker)
        if result.outcome is Outcome.APPENDED:
            self._written.setdefault(key, []).append(marker)
        kind = "commit" if marker.commit else "abort"
        self._trace.note(
            self._clock.now,
            f"broker {partition.leader}",
            f"{partition.name}: {kind} marker, id {marker.producer_id} epoch {marker.producer_epoch}, "
            f"offset {marker.offset}",
            partition.name,
        )
        return result
