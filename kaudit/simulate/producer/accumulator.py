"""Queues of batches, one per partition. Source: RecordAccumulator."""

import random
from collections import deque
from collections.abc import Iterable, Mapping

from kaudit.broker.response import TopicPartition
from kaudit.simulate.producer.config import ProducerConfig
from kaudit.simulate.producer.transaction_manager import TransactionManager
from kaudit.simulate.producer_batch import Payload, ProducerBatch

_JITTER = 0.2
"""RETRY_BACKOFF_JITTER of CommonClientConfigs."""
_MOST_DOUBLINGS = 31


class RecordAccumulator:
    """Batches being filled and batches waiting to be sent, again perhaps."""

    def __init__(self, config: ProducerConfig, source: random.Random) -> None:
        """`source` gives the jitter of backoffs."""
        self._config = config
        self._source = source
        self._new_leader_skips_backoff = config.client.new_leader_skips_backoff
        self.queues: dict[TopicPartition, deque[ProducerBatch]] = {}
        """Batches that wait, by partition, the next to be sent first."""
        self.muted: set[TopicPartition] = set()
        """Partitions nothing more is sent to for now."""
        self._drain_index: dict[int, int] = {}
        """Where the next request begins in the partitions of a broker: by broker, or by 0 where all have one."""
        self._leaders: Mapping[TopicPartition, int | None] = {}
        self._led_by: dict[int, list[TopicPartition]] = {}
        """The partitions of each broker by `_leaders`."""
        self.incomplete: dict[int, ProducerBatch] = {}
        """All batches that are neither acknowledged nor failed, by identity, oldest first."""

    # -- appending ---------------------------------------------------------------------------------------------------
    def append(self, partition: TopicPartition, payload: Payload, number: int, timestamp: int, now: int) -> bool:
        """Add a record; return whether the sender should wake up, since a batch is full or new. Source: append."""
        queue = self.queues.get(partition)
        if queue is None:
            queue = self.queues[partition] = deque()
        size = payload.encoded_size(number)
        last = queue[-1] if queue else None
        if last is not None and not last.closed:
            if last.size + size <= self._config.batch_size:
                last.append(number, timestamp, size, now)
                return last.size >= self._config.batch_size
            last.closed = True
        batch = ProducerBatch.created(partition, payload, now)
        batch.append(number, timestamp, size, now)
        self.incomplete[id(batch)] = batch
        queue.append(batch)
        return True

    # -- what is ready -----------------------------------------------------------------------------------------------
    def ready(
        self, leaders: Mapping[TopicPartition, int | None], now: int, *, flush: bool
    ) -> tuple[list[int], int | None, bool]:
        """Find the brokers with a partition whose first batch is full, lingered or to be sent again. Source: ready.

        Return them, when to look again (ms from now, None: nothing waits), and whether nobody knows the leader of some partition.
        """
        nodes: dict[int, None] = {}
        next_check: int | None = None
        unknown = False
        for partition, queue in self.queues.items():
            if not queue:
                continue
            leader = leaders.get(partition)
            if leader is None:
                unknown = True
                continue
            if partition in self.muted or leader in nodes:
                continue
            wait = self._wait(queue, leader, now, flush=flush)
            if wait <= 0:
                nodes[leader] = None
            elif next_check is None or wait < next_check:
                next_check = wait
        return list(nodes), next_check, unknown

    def _wait(self, queue: deque[ProducerBatch], leader: int, now: int, *, flush: bool) -> int:
        """Return how long the queue's first batch is not to be sent yet, in ms."""
        first = queue[0]
        if first.attempts > 0:
            return first.retry_at - now if self._backs_off(first, leader, now) else 0
        return 0 if self._is_full(first) or flush else self._config.linger_ms - (now - first.last_attempt_at)

    def _is_full(self, batch: ProducerBatch) -> bool:
        return batch.closed or batch.size >= self._config.batch_size  # a batch with others after it is closed

    def _backs_off(self, batch: ProducerBatch, leader: int, now: int) -> bool:
        """Return whether a batch that failed waits, unless its partition has moved meanwhile. Source: shouldBackoff."""
        if batch.retry_at <= now:
            return False
        return not (self._new_leader_skips_backoff and batch.sent_to != leader)

    def backoff(self, attempts: int) -> int:
        """Draw how long a batch waits after `attempts` failed attempts, in ms. Source: ExponentialBackoff."""
        config = self._config
        if not config.client.backoff_grows:
            return config.retry_backoff_ms
        most = config.retry_backoff_max_ms
        first = min(config.retry_backoff_ms, most)
        if first == most:
            return first
        mean = most if attempts > _MOST_DOUBLINGS else min(first << (attempts - 1), most)
        return min(int(mean * (1 - _JITTER + 2 * _JITTER * self._source.random())), most)

    # -- draining ----------------------------------------------------------------------------------------------------
    def drain(
        self, leaders: Mapping[TopicPartition, int | None], node: int, manager: TransactionManager | None, now: int
    ) -> list[ProducerBatch]:
        """Take one batch of each partition led by `node`, up to max.request.size, or to one that has to wait.

        Source: drainBatchesForOneNode, which ends a request at the first partition whose batch may not be sent yet.
        """
        mine = self._partitions_of(node, leaders)
        if not mine:
            return []
        client = self._config.client
        index = node if client.drain_index_per_node else 0
        start = self._drain_index.get(index, 0) % len(mine)
        drained: list[ProducerBatch] = []
        size = 0
        visited = start
        stopped = False
        for visited in range(start, start + len(mine)):
            partition = mine[visited % len(mine)]
            queue = self.queues.get(partition)
            if not queue or partition in self.muted:
                continue
            first = queue[0]
            if first.attempts > 0 and self._backs_off(first, node, now):
                continue
            too_large = drained and size + first.size > self._config.max_request_size
            if too_large or (manager is not None and manager.must_wait(first)):
                stopped = True
                break
            queue.popleft()
            if manager is not None:
                manager.assign(first)
            first.closed = True
            first.sent_to = node
            size += first.size
            drained.append(first)
        stays = client.drain_index_per_node or (stopped and not client.drain_passes_stopped_partition)
        self._drain_index[index] = (visited if stays else visited + 1) % len(mine)
        return drained

    def _partitions_of(self, node: int, leaders: Mapping[TopicPartition, int | None]) -> list[TopicPartition]:
        """Return the partitions a broker leads, in the order of the metadata."""
        if leaders is not self._leaders:
            self._leaders, self._led_by = leaders, {}
            for partition, leader in leaders.items():
                if leader is not None:
                    self._led_by.setdefault(leader, []).append(partition)
        return self._led_by.get(node, [])

    # -- coming back -------------------------------------------------------------------------------------------------
    def reenqueue(self, batch: ProducerBatch, first_in_order: bool, now: int) -> None:  # noqa: FBT001 - a fact, not a mode
        """Put a batch back to be sent again; `first_in_order`: it has a sequence and has to find its place."""
        batch.reenqueued(now)
        batch.retry_at = batch.last_attempt_at + self.backoff(batch.attempts)
        if first_in_order:
            self.insert_in_sequence_order(batch)
        else:
            self.queues[batch.partition].appendleft(batch)

    def insert_in_sequence_order(self, batch: ProducerBatch) -> None:
        """Put a batch with a sequence before those with higher ones. Source: insertInSequenceOrder."""
        queue = self.queues[batch.partition]
        lower: list[ProducerBatch] = []
        while queue and queue[0].has_sequence and queue[0].base_sequence < batch.base_sequence:
            lower.append(queue.popleft())
        queue.appendleft(batch)
        queue.extendleft(reversed(lower))

    def split_and_reenqueue(self, batch: ProducerBatch, now: int) -> list[ProducerBatch]:
        """Send a batch that was too large as several; returns them. Source: splitAndReenqueue.

        The parts are of batch.size, which may be what it had; where the client knows better, a part is halved when it
        comes back again (KAFKA-8350: 4.2).
        """
        halves = batch.is_split and self._config.client.halves_split_batches
        parts = batch.split(batch.size // 2 if halves else self._config.batch_size, now)
        for part in reversed(parts):
            self.incomplete[id(part)] = part
            if part.has_sequence:
                self.insert_in_sequence_order(part)
            else:
                self.queues[part.partition].appendleft(part)
        self.complete(batch)
        return parts

    # -- giving up ---------------------------------------------------------------------------------------------------
    def expired(self, now: int) -> list[ProducerBatch]:
        """Take the batches that waited too long out of the queues. Source: expiredBatches, of 2.0 and of 2.1+."""
        gone: list[ProducerBatch] = []
        for partition, queue in self.queues.items():
            if self._config.delivery_timeout_ms is None and partition in self.muted:
                continue
            while queue and self._expires_at(queue[0]) <= now:
                gone.append(queue.popleft())
        return gone

    def _expires_at(self, batch: ProducerBatch) -> int:
        """Return when a batch has waited too long. Source: hasReachedDeliveryTimeout; ProducerBatch.maybeExpire of 2.0."""
        config = self._config
        if config.delivery_timeout_ms is not None:
            return batch.created_at + config.delivery_timeout_ms
        since = batch.created_at + config.linger_ms
        if batch.in_retry:
            since = batch.last_attempt_at + config.retry_backoff_ms
        elif self._is_full(batch):
            since = min(since, batch.last_appended_at)
        return since + config.request_timeout_ms + 1

    def next_expiry(self) -> int | None:
        """Return when the first batch in a queue expires, None if none ever does."""
        return min((self._expires_at(queue[0]) for queue in self.queues.values() if queue), default=None)

    def abort_undrained(self) -> list[ProducerBatch]:
        """Take out the batches without a sequence: they belong to a transaction that is being aborted."""
        gone: list[ProducerBatch] = []
        for partition, queue in self.queues.items():
            gone += [batch for batch in queue if not batch.has_sequence]
            self.queues[partition] = deque(batch for batch in queue if batch.has_sequence)
        return gone

    def complete(self, batch: ProducerBatch) -> None:
        """Forget a batch that is finished."""
        self.incomplete.pop(id(batch), None)

    # -- order -------------------------------------------------------------------------------------------------------
    def mute(self, batches: Iterable[ProducerBatch]) -> None:
        """Send nothing more to these batches' partitions. Source: mutePartition."""
        self.muted.update(batch.partition for batch in batches)

    def unmute(self, partition: TopicPartition) -> None:
        """Let a partition be sent to again. Source: unmutePartition."""
        self.muted.discard(partition)
