"""End of transaction markers on their way to partition leaders. Source: TransactionMarkerChannelManager.

A marker for a partition whose leader does not answer waits for one that does.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.broker.attempts import WriteMarker
from kaudit.broker.coordinator.transaction_coordinator import EndOfTransaction
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.producer_state.verdict import Outcome, Verdict
from kaudit.broker.response import TopicPartition
from kaudit.simulate.cluster.partition import BrokerStatus, ReplicatedPartition
from kaudit.simulate.run_context import RunContext


class TransactionMarkerChannelManager:
    """Writes markers to the leaders of `partitions`."""

    def __init__(
        self, partitions: dict[TopicPartition, ReplicatedPartition], brokers: BrokerStatus, context: RunContext
    ) -> None:
        self._partitions = partitions
        self._brokers = brokers
        self._clock = context.clock
        self._recorder = context.recorder
        self._trace = context.trace
        self._written: dict[TopicPartition, list[MarkerBatch]] = {}
        self._waiting: dict[TopicPartition, list[MarkerBatch]] = {}
        """Markers no leader has written yet."""

    def waiting(self) -> Iterator[tuple[TopicPartition, int]]:
        """Yield partition and producer id of the markers that no leader has written yet."""
        return ((key, marker.producer_id) for key, markers in self._waiting.items() for marker in markers)

    def write(self, ended: EndOfTransaction, coordinator_epoch: int) -> bool:
        """Write a transaction's markers; return whether none was rejected. One that waits counts as written."""
        accepted = True
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
            self._waiting.setdefault(key, []).append(marker)
            accepted = self.write_waiting(key) and accepted
        return accepted

    def write_waiting(self, key: TopicPartition) -> bool:
        """Write a partition's waiting markers if its leader handles requests; return whether none was rejected."""
        leader = self._partitions[key].leader
        if leader is None or not self._brokers.is_running(leader):
            return True
        verdicts = [self._append(key, marker) for marker in self._waiting.pop(key, ())]
        return all(verdict.outcome is Outcome.APPENDED for verdict in verdicts)

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
            verdict = self._append(key, replace(marker, timestamp=self._clock.timestamp))
            outcome = "ok" if verdict.outcome is Outcome.APPENDED else "rejected"
            self._recorder.record(
                attempt, {"outcome": outcome, "error": verdict.error.name, "error_code": int(verdict.error)}
            )

    def _append(self, key: TopicPartition, marker: MarkerBatch) -> Verdict:
        partition = self._partitions[key]
        marker = replace(marker, offset=partition.leader_log().memory.log_end)
        verdict = partition.append_marker(marker)
        if verdict.outcome is Outcome.APPENDED:
            self._written.setdefault(key, []).append(marker)
        kind = "commit" if marker.commit else "abort"
        self._trace.note(
            self._clock.now,
            f"broker {partition.leader}",
            f"{partition.name}: {kind} marker, id {marker.producer_id} epoch {marker.producer_epoch}, "
            f"offset {marker.offset}",
            partition.name,
        )
        return verdict
