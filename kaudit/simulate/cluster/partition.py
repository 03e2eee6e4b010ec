"""A partition over its replicas: leader, ISR, high watermark, delayed produce, fetching, truncation.

Source: Partition, ReplicaManager, DelayedProduce, AbstractFetcherThread; leader epochs after KIP-101 and KIP-279.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.config import TopicLimits
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.truncation import truncation_offset
from kaudit.broker.producer_state.append_result import AppendResult, Outcome
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch, ProducerStateEntry
from kaudit.broker.response import TopicPartition
from kaudit.simulate import encoding
from kaudit.simulate.cluster.brokers import Brokers, RunContext
from kaudit.simulate.cluster.replica_log import LogConfig, ReplicaLog, StoredBatch
from kaudit.simulate.producer_batch import ProducerBatch
from kaudit.simulate.trace import Copy, EventKind, TraceEvent

_NO_OFFSET = -1
_FETCH_MAX_BATCHES = 512
_RETRY_MS = 50
"""How long a follower waits before it asks a leader again that did not answer."""


class PartitionConfig(Struct, frozen=True):
    """Topic configuration; times in ms."""

    limits: TopicLimits
    log: LogConfig
    min_insync_replicas: int
    unclean_elections: bool
    replica_lag_ms: int


class ProduceCompletion(NamedTuple):
    """The end of a produce: the error and base offset the client gets, -1 with an error, and why there is one."""

    error: KafkaError
    base_offset: int
    why: str = ""


class _DelayedProduce(NamedTuple):
    """A produce with acks=all that waits for replicas. Source: DelayedProduce."""

    required_offset: int
    epoch: int
    base_offset: int
    complete: Callable[[ProduceCompletion], None]


class Truncation(Struct, frozen=True):
    """A replica cut its log back to `offset` at `at` (ms), because the leader of `leader_epoch` lacks what followed."""

    broker: int
    offset: int
    log_end: int
    leader_epoch: int
    at: int


class Election(Struct, frozen=True):
    """A leader was elected; `lost_from_offset`: the old leader had more, from there on."""

    at: int
    epoch: int
    leader: int | None
    unclean: bool
    log_end: int | None
    lost_from_offset: int | None
    old_leader: int | None
    regained: bool
    """Whether the new leader has records the old one lacked: an earlier leader's, cut off and back again."""

    @property
    def moved(self) -> bool:
        """Whether another broker leads than before."""
        return self.leader is not None and self.old_leader not in (None, self.leader)


def election_that_lost(write: StoredBatch, elections: Iterable[Election]) -> Election | None:
    """Return the election after which a batch was gone from the leader's log, None if there is none."""
    for election in elections:
        lost = election.lost_from_offset
        if election.epoch > write.leader_epoch and lost is not None and lost <= write.last_offset:
            return election
    return None


class _ReplicaState(Struct):
    """What the leader knows about a follower: a new one with each election. Source: Replica, ReplicaState.

    Fetches that belong to an older one are ignored.
    """

    caught_up_at: int
    lag_check_scheduled: bool = False
    log_end: int = 0
    waiting: Callable[[], None] | None = None
    """The follower's fetch that waits for data."""


class ReplicatedPartition:
    """One partition of a topic on all of its brokers."""

    def __init__(
        self,
        key: TopicPartition,
        replicas: tuple[int, ...],
        config: PartitionConfig,
        brokers: Brokers,
        context: RunContext,
    ) -> None:
        self.key = key
        self.name = f"{key[0]}-{key[1]}"
        self.replicas = replicas
        self.config = config
        self._brokers = brokers
        self._clock = context.clock
        self._delay = context.network.delay
        self._trace = context.trace
        self.logs = {broker: ReplicaLog(config.log) for broker in replicas}
        self.leader: int | None = None
        self.last_leader: int | None = None
        self.leader_epoch = -1
        self.isr: list[int] = list(replicas)
        self.elections: list[Election] = []
        self.truncations: list[Truncation] = []
        self.writes: dict[int, list[StoredBatch]] = {}
        """Every copy of a client's batch a leader wrote, by the batch's identity, kept or not."""
        self._followers = {broker: _ReplicaState(context.clock.now) for broker in replicas}
        self._delayed: list[_DelayedProduce] = []

    # -- leadership --------------------------------------------------------------------------------------------------
    def elect(self, leader: int | None, isr: list[int], *, unclean: bool) -> Election:
        """Apply the controller's decision at all replicas. Source: makeLeader, makeFollower."""
        old = self.last_leader
        self.leader_epoch += 1
        self.isr = isr
        self.leader = leader
        end = None
        lost = None
        regained = False
        if leader is not None:
            log = self.logs[leader]
            end = log.log_end
            log.begin_epoch(self.leader_epoch, log.log_end)
            if old is not None and old != leader:
                log.memory.next_sweep = self.logs[old].memory.next_sweep
                log.memory.verifications = {}
                lost = _truncation(log, self.logs[old])
                regained = bool(log.batches) and not self.logs[old].holds(log.batches[-1])
            self.last_leader = leader
        election = Election(self._clock.now, self.leader_epoch, leader, unclean, end, lost, old, regained)
        self.elections.append(election)
        self._fail_delayed()
        for broker, before in self._followers.items():
            self._followers[broker] = _ReplicaState(self._clock.now, before.lag_check_scheduled)
            if leader is not None and broker != leader:
                self._fetch(broker)
        if leader is not None:
            self._advance_high_watermark()
        return election

    def follow_again(self, broker: int) -> None:
        """Let a restarted broker fetch again."""
        self.stop_following(broker)
        if self.leader is not None and broker != self.leader:
            self._fetch(broker)

    def stop_following(self, broker: int) -> None:
        """Ignore the fetches of a broker that is gone."""
        self._followers[broker] = replace(self._followers[broker], waiting=None)

    def leave_isr(self, broker: int) -> None:
        """Take a broker that stopped out of the ISR, unless it is the last one."""
        if broker in self.isr and len(self.isr) > 1:
            self.isr.remove(broker)
            self._advance_high_watermark()

    # -- producing ---------------------------------------------------------------------------------------------------
    def refuse_produce(self, broker: int, acks: int) -> ProduceCompletion | None:
        """Return why a broker rejects a produce request before it validates the batch, None when it does not."""
        if broker != self.leader:
            leader = "no broker" if self.leader is None else f"broker {self.leader}"
            why = f"{leader} leads {self.name}, leader epoch {self.leader_epoch}"
            return ProduceCompletion(KafkaError.NOT_LEADER_OR_FOLLOWER, _NO_OFFSET, why)
        if acks == -1 and len(self.isr) < self.config.min_insync_replicas:
            return ProduceCompletion(KafkaError.NOT_ENOUGH_REPLICAS, _NO_OFFSET, self._too_few)
        return None

    @property
    def _too_few(self) -> str:
        return f"{len(self.isr)} in-sync replicas, min.insync.replicas is {self.config.min_insync_replicas}"

    def leader_log(self) -> ReplicaLog:
        """Return the leader's log; only while there is a leader."""
        assert self.leader is not None
        return self.logs[self.leader]

    def appended(self, stored: StoredBatch, before: ProducerStateEntry) -> None:
        """Replicate what the leader just wrote."""
        self.leader_log().store(stored, before)
        if stored.sent is not None:
            self.writes.setdefault(id(stored.sent), []).append(stored)
        self._complete_fetches()
        self._advance_high_watermark()

    def copies_of(self, batch: ProducerBatch) -> tuple[Copy, ...]:
        """Return the batches with the same records in the leader's log."""
        kept = {id(stored) for stored in self.leader_log().batches} if id(batch) in self.writes else ()
        return tuple(
            Copy(stored.base_offset, -1, -1)
            if stored.state is None
            else Copy(stored.base_offset, stored.state.producer_id, stored.state.producer_epoch)
            for stored in self.writes.get(id(batch), ())
            if id(stored) in kept
        )

    def append_marker(self, marker: MarkerBatch) -> AppendResult:
        """Write an end of transaction marker at the leader, if its producer state allows."""
        log = self.leader_log()
        result = log.memory.append_marker(marker)
        if result.outcome is Outcome.APPENDED:
            data = encoding.marker(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.timestamp,
                commit=marker.commit,
            )
            self.append_internal(data, marker, result.state, marker.timestamp)
        return result

    def append_internal(
        self, data: bytes, state: MarkerBatch | None, before: ProducerStateEntry, timestamp: int
    ) -> None:
        """Write one record of a coordinator at the leader's end; memory knows of it already."""
        end = self.leader_log().log_end - 1
        self.appended(StoredBatch(end, end, self.leader_epoch, timestamp, data, state, None), before)

    def replicate_at_once(self) -> None:
        """Copy all of the log to every in-sync replica, without delays: for the transaction log, which is not traced."""
        log = self.leader_log()
        for broker in self.isr:
            mine = self.logs[broker]
            reached = broker != self.leader and self._brokers.is_up(broker) and self._reaches(broker)
            if reached and _truncation(log, mine) is None:
                mine.follow(log.batches[log.position(mine.log_end) :])
                self._followers[broker].log_end = mine.log_end
        self._advance_high_watermark()

    def _reaches(self, broker: int) -> bool:
        """Return whether the leader and a follower can reach one another."""
        return self.leader is not None and self._brokers.reaches(self.leader, broker)

    def await_replicas(
        self, base_offset: int, last_offset: int, timeout_ms: int, complete: Callable[[ProduceCompletion], None]
    ) -> None:
        """Complete an acks=all produce when the high watermark passes it, or fail it after the request's timeout."""
        delayed = _DelayedProduce(last_offset + 1, self.leader_epoch, base_offset, complete)
        self._delayed.append(delayed)
        self._advance_high_watermark()
        if delayed in self._delayed:
            self._clock.after(timeout_ms, partial(self._time_out, delayed))

    def _time_out(self, delayed: _DelayedProduce) -> None:
        if delayed in self._delayed:
            self._delayed.remove(delayed)
            why = f"not every in-sync replica had it within request.timeout.ms; broker {self.leader} has written it"
            delayed.complete(ProduceCompletion(KafkaError.REQUEST_TIMED_OUT, _NO_OFFSET, why))

    def _fail_delayed(self) -> None:
        waiting, self._delayed = self._delayed, []
        for delayed in waiting:
            why = f"leadership of {self.name} moved before every in-sync replica had it"
            delayed.complete(ProduceCompletion(KafkaError.NOT_LEADER_OR_FOLLOWER, _NO_OFFSET, why))

    def _advance_high_watermark(self) -> None:
        """Move the high watermark to what all of the ISR has, and answer who waited for it."""
        if self.leader is None:
            return
        log = self.leader_log()
        ends = [log.log_end]
        ends += [self._followers[broker].log_end for broker in self.isr if broker != self.leader]
        reached = min(ends)
        log.high_watermark = max(log.high_watermark, reached)
        if not self._delayed:
            return
        still: list[_DelayedProduce] = []
        done: list[_DelayedProduce] = []
        for delayed in self._delayed:
            (done if log.high_watermark >= delayed.required_offset else still).append(delayed)
        self._delayed = still
        enough = len(self.isr) >= self.config.min_insync_replicas
        for delayed in done:
            if enough:
                delayed.complete(ProduceCompletion(KafkaError.NONE, delayed.base_offset))
            else:
                error = KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND
                delayed.complete(ProduceCompletion(error, _NO_OFFSET, f"written, but {self._too_few}"))

    # -- replication -------------------------------------------------------------------------------------------------
    def _fetch(self, broker: int) -> None:
        """Send a follower's fetch to the leader."""
        if not self._brokers.is_up(broker):
            return
        self._clock.after(self._delay(), partial(self._fetch_arrives, broker, self._followers[broker]))

    def _fetch_arrives(self, broker: int, follower: _ReplicaState) -> None:
        leader = self.leader
        if self._followers[broker] is not follower or leader is None:
            return
        brokers = self._brokers
        if not (brokers.is_running(leader) and brokers.is_running(broker) and brokers.reaches(leader, broker)):
            self._clock.after(_RETRY_MS, partial(self._fetch_arrives, broker, follower))
            return
        log, mine = self.leader_log(), self.logs[broker]
        cut = _truncation(log, mine)
        if cut is not None:
            self._clock.after(self._delay(), partial(self._truncate, broker, follower, cut))
            return
        if all(entry.epoch != mine.last_epoch for entry in log.epochs):
            mine.drop_empty_epochs()  # it led without writing, and the leader does not know that epoch
        follower.log_end = mine.log_end
        if mine.log_end >= log.log_end:
            follower.caught_up_at = self._clock.now
        if mine.log_end >= log.high_watermark and broker not in self.isr and mine.log_end >= log.log_end:
            self.isr.append(broker)
        self._advance_high_watermark()
        if mine.log_end < log.log_end:
            self._send_data(broker, follower)
        else:
            follower.waiting = partial(self._send_data, broker, follower)
            mine.high_watermark = max(mine.high_watermark, min(log.high_watermark, mine.log_end))

    def _send_data(self, broker: int, follower: _ReplicaState) -> None:
        log, mine = self.leader_log(), self.logs[broker]
        first = log.position(mine.log_end)
        batches = log.batches[first : first + _FETCH_MAX_BATCHES]
        wait = self._delay() + self._brokers.disk_delay_ms(broker)
        self._clock.after(wait, partial(self._receive, broker, follower, batches, log.high_watermark, log.log_start))

    def _receive(
        self, broker: int, follower: _ReplicaState, batches: list[StoredBatch], high_watermark: int, log_start: int
    ) -> None:
        """Append what the leader sent, and take over its high watermark and log start offset."""
        if self._followers[broker] is not follower:
            return
        if not self._brokers.is_running(broker):
            again = partial(self._receive, broker, follower, batches, high_watermark, log_start)
            self._clock.after(_RETRY_MS, again)
            return
        if not self._reaches(broker):
            self._clock.after(_RETRY_MS, partial(self._fetch_arrives, broker, follower))
            return
        mine = self.logs[broker]
        mine.follow([batch for batch in batches if batch.base_offset >= mine.log_end])
        mine.high_watermark = max(mine.high_watermark, min(high_watermark, mine.log_end))
        # a follower's log begins where its leader's does (ReplicaFetcherThread.processPartitionData)
        mine.delete_records(min(log_start, mine.high_watermark), self._brokers.timestamp(broker))
        if batches:
            self._trace_replication(broker, mine.log_end - 1)
        self._fetch(broker)

    def _trace_replication(self, broker: int, last_offset: int) -> None:
        trace, now = self._trace, self._clock.now
        if trace.is_full:
            trace.omitted += 1
            return
        text = f"{self.name} up to offset {last_offset}"
        leader, follower = f"broker {self.leader}", f"broker {broker}"
        trace.add(TraceEvent(EventKind.REPLICATION, now, now, leader, follower, text, partitions=(self.name,)))

    def _complete_fetches(self) -> None:
        for broker, follower in self._followers.items():
            if follower.waiting is not None:
                follower.caught_up_at = self._clock.now
                waiting, follower.waiting = follower.waiting, None
                waiting()
            if not follower.lag_check_scheduled and broker in self.isr and broker != self.leader:
                follower.lag_check_scheduled = True
                self._clock.after(self.config.replica_lag_ms, partial(self._check_lag, broker))

    def _check_lag(self, broker: int) -> None:
        """Take a follower out of the ISR that has not caught up for replica.lag.time.max.ms. Source: maybeShrinkIsr."""
        follower = self._followers[broker]
        follower.lag_check_scheduled = False
        leader = self.leader
        if leader is None or broker == leader or broker not in self.isr or not self._brokers.is_running(leader):
            return
        if follower.log_end >= self.leader_log().log_end:
            return
        lag = self._clock.now - follower.caught_up_at
        if lag >= self.config.replica_lag_ms and len(self.isr) > 1:
            self.isr.remove(broker)
            text = f"{self.name}: broker {broker} lags, ISR {self.isr}"
            self._trace.note(self._clock.now, f"broker {leader}", text, self.name)
            self._advance_high_watermark()
        elif lag < self.config.replica_lag_ms:
            follower.lag_check_scheduled = True
            self._clock.after(self.config.replica_lag_ms - lag, partial(self._check_lag, broker))

    # -- truncation --------------------------------------------------------------------------------------------------
    def _truncate(self, broker: int, follower: _ReplicaState, offset: int) -> None:
        if self._followers[broker] is not follower:
            return
        log = self.logs[broker]
        self.truncations.append(Truncation(broker, offset, log.log_end, self.leader_epoch, self._clock.now))
        self._trace.note(
            self._clock.now,
            f"broker {broker}",
            f"{self.name}: truncates from {log.log_end} to {offset}, leader epoch {self.leader_epoch}",
            self.name,
        )
        log.truncate(offset, self._brokers.timestamp(broker))
        self._fetch(broker)


def _truncation(leader: ReplicaLog, mine: ReplicaLog) -> int | None:
    """Return the offset a follower truncates its log to, None when it cuts nothing."""
    cut = truncation_offset(mine.epochs, mine.log_end, leader.epochs, leader.log_end)
    if cut is None:
        cut = mine.high_watermark
    return cut if cut < mine.log_end else None
