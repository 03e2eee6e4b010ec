"""An application: which records it hands to its producers, when, and in which transactions."""

import random
from collections.abc import Callable
from enum import Enum
from functools import partial
from itertools import count

from kaudit.simulate.cluster.cluster import Cluster
from kaudit.simulate.network import Network
from kaudit.simulate.producer.config import negotiate_versions
from kaudit.simulate.producer.kafka_producer import KafkaProducer
from kaudit.simulate.producer.network_client import NetworkClient
from kaudit.simulate.producer.transaction_manager import NO_PRODUCER
from kaudit.simulate.producer.txn_request_handler import TransactionManagerState
from kaudit.simulate.producer_batch import Payload, ProducerBatch
from kaudit.simulate.requests import InitProducerIdRequest
from kaudit.simulate.scenario.model import ProducerSpec, TopicSpec


class TransactionEnding(Enum):
    """How a transaction ended, as far as the application knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Application:
    """One application and its producers, one after the other."""

    def __init__(
        self,
        spec: ProducerSpec,
        topic: TopicSpec,
        cluster: Cluster,
        network: Network,
        source: random.Random,
    ) -> None:
        self.spec = spec
        self._versions = negotiate_versions(spec.config.client, cluster.profile.version)
        self._clock = network.clock
        self._network = network
        self._cluster = cluster
        self._random = source
        self._partitions = [(topic.name, number) for number in range(topic.partitions)]
        self.producer: KafkaProducer | None = None
        """The one it has now, None before the first and after its process was killed."""
        self._payload: Payload
        self._next = 0
        self._session_end: int
        self._request_numbers = count(1)
        self.sessions = 0
        self.batches: list[ProducerBatch] = []
        """Every finished batch in order of completion, and those whose process died."""
        self.transactions: list[tuple[int, int, TransactionEnding]] = []
        """First and last record number of each transaction, and how it ended."""
        self._transaction: tuple[int, int] | None = None
        self._aborting_deliberately: bool
        self._committing: bool
        self._failed = False
        self._clock_offset_ms = 0

    def start(self) -> None:
        """Schedule the first producer."""
        self._clock.at(self.spec.start_ms, self._open)

    def finish(self) -> None:
        """Keep what is unfinished when the run ends."""
        if self.producer is not None:
            self.batches += self.producer.incomplete()
        if self._transaction is not None:
            self._end_transaction(TransactionEnding.UNKNOWN)

    # -- sessions ----------------------------------------------------------------------------------------------------
    def _open(self) -> None:
        spec = self.spec
        self.sessions += 1
        session = self.sessions
        share = -(-spec.records // spec.sessions)
        self._session_end = min(share * session, spec.records) if session < spec.sessions else spec.records
        self._payload = Payload(spec.application, spec.record_bytes, spec.name, session)
        client = NetworkClient(spec.name, spec.config, self._versions, self._cluster, self._network, self._random)
        producer = KafkaProducer(
            client,
            self._partitions[0],
            self._request_numbers,
            partial(self._batch_completed, session),
            spec.first_sequence if session == 1 else 0,
        )
        producer.clock_offset_ms = self._clock_offset_ms
        self.producer = producer
        if session > 1:
            producer.note(f"session {session} begins")
        if spec.config.transactional_id is not None:
            assert producer.transactions is not None
            producer.transactions.on_change = self._if_session_lasts(self._state_changed)
            producer.transactions.initialize()
        else:
            self._send_burst()

    def _if_session_lasts(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return a callback that schedules `action` right after the current event, if the session still lasts."""
        session = self.sessions

        def later() -> None:
            if session == self.sessions:
                self._clock.after(0, partial(self._if_current, session, action))

        return later

    def _if_current(self, session: int, action: Callable[[], None]) -> None:
        if session == self.sessions and self.producer is not None:
            self.producer.run(action)

    def kill(self, restart_after_ms: int | None, resend: int) -> None:
        """Kill the process; a new one begins `resend` records before where this one was."""
        if self.producer is None:
            return
        self._network.trace.fault(self._clock.now, self.spec.name, "killed")
        self.batches += self.producer.incomplete()
        self.producer.kill()
        self.producer = None
        if self._transaction is not None:
            self._next = self._transaction[0]
            self._end_transaction(TransactionEnding.UNKNOWN)
        self._next = max(self._next - resend, 0)
        if restart_after_ms is not None:
            self._clock.after(restart_after_ms, self._open)

    def pause(self, for_ms: int) -> None:
        """Stop the process for a while."""
        producer = self.producer
        if producer is None:
            return
        self._network.trace.fault(self._clock.now, self.spec.name, f"paused for {for_ms} ms")
        producer.pause()
        self._clock.after(for_ms, partial(self._resume, producer))

    def jump_clock(self, by_ms: int) -> None:
        """Set the wall clock of its machine: it gives the records their times, and says how long a batch has waited."""
        self._network.trace.fault(self._clock.now, self.spec.name, f"its clock jumps by {by_ms:+,} ms")
        self._clock_offset_ms += by_ms
        if self.producer is not None:
            self.producer.jump_clock(by_ms)

    def _resume(self, producer: KafkaProducer) -> None:
        self._network.trace.fault(self._clock.now, self.spec.name, "resumes")
        producer.resume()

    # -- records -----------------------------------------------------------------------------------------------------
    def _send_burst(self) -> None:
        """Send a burst and schedule the next one."""
        assert self.producer is not None
        if self._failed:
            return
        session = self.sessions
        last = self._session_end if self._transaction is None else self._transaction[1] + 1
        for _ in range(self.spec.burst):
            if self._next >= last:
                break
            self.producer.send(self._partitions[self._next % len(self._partitions)], self._payload, self._next)
            self._next += 1
        if self._next < last:
            self._clock.after(self.spec.every_ms, partial(self._if_current, session, self._send_burst))
        elif self._transaction is not None:
            assert self.spec.transaction is not None
            self._clock.after(self.spec.transaction.pause_ms, partial(self._if_current, session, self._end_as_planned))

    def _batch_completed(self, session: int, batch: ProducerBatch) -> None:
        self.batches.append(batch)
        if session != self.sessions or self.spec.sessions <= session or self.spec.config.transactional_id is not None:
            return
        if self._next >= self._session_end and self.producer is not None and self.producer.is_idle:
            self._clock.after(self.spec.every_ms, partial(self._if_current, session, self._reopen))

    def _reopen(self) -> None:
        assert self.producer is not None
        self.producer.kill()
        self._open()

    # -- transactions ------------------------------------------------------------------------------------------------
    def _state_changed(self) -> None:
        """React to the state the producer is in now."""
        producer = self.producer
        assert producer is not None
        assert producer.transactions is not None
        match producer.transactions.state:
            case TransactionManagerState.READY:
                self._ready(producer)
            case TransactionManagerState.ABORTABLE_ERROR:
                self._aborting_deliberately = False
                producer.note("aborts the transaction after an error")
                producer.transactions.end(commit=False)
            case TransactionManagerState.FATAL_ERROR:
                self._failed = True
                if self._transaction is not None:
                    self._end_transaction(TransactionEnding.UNKNOWN)
            case _:
                pass

    def _ready(self, producer: KafkaProducer) -> None:
        spec = self.spec
        if self._transaction is not None:
            first, _ = self._transaction
            committed = self._committing
            if not committed and not self._aborting_deliberately:
                self._next = first  # a failed transaction is repeated
            self._end_transaction(TransactionEnding.COMMITTED if committed else TransactionEnding.ABORTED)
        if self._repeat_initialization():
            return
        if self._next >= spec.records:
            return
        assert spec.transaction is not None
        assert producer.transactions is not None
        self._transaction = (self._next, min(self._next + spec.transaction.records, spec.records) - 1)
        self._committing = False
        producer.transactions.begin()
        self._clock.after(spec.every_ms, partial(self._if_current, self.sessions, self._send_burst))

    def _end_as_planned(self) -> None:
        producer = self.producer
        assert producer is not None
        assert producer.transactions is not None
        if producer.transactions.state is not TransactionManagerState.IN_TRANSACTION:
            return
        assert self.spec.transaction is not None
        outcomes = self.spec.transaction.outcomes
        commit = outcomes[len(self.transactions) % len(outcomes)] == "commit"
        self._committing, self._aborting_deliberately = commit, not commit
        producer.transactions.end(commit=commit)

    def _end_transaction(self, end: TransactionEnding) -> None:
        assert self._transaction is not None
        self.transactions.append((*self._transaction, end))
        self._transaction = None

    def _repeat_initialization(self) -> bool:
        """Call initTransactions as often as the scenario asks before the first record; return whether to wait for it."""
        if self.sessions > 1 or self.spec.initializations <= 1:
            return False
        config = self.spec.config
        request = InitProducerIdRequest(
            config.transactional_id,
            config.transaction_timeout_ms,
            NO_PRODUCER,
            self._versions.init_producer_id,
            self._partitions[0],
        )
        for _ in range(self.spec.initializations - 2):
            self._cluster.transactions.init_producer_id(request, None)
        assert self.producer is not None
        self.producer.note(f"initTransactions {self.spec.initializations - 2} times more")
        self.producer.kill()
        self._open()
        return True
