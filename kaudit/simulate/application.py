"""An application: what it hands to its producers, when, and how it cuts that into transactions."""

import random
from collections.abc import Callable
from enum import Enum
from functools import partial

from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.cluster import Cluster
from kaudit.simulate.network import Network
from kaudit.simulate.payload import Payload
from kaudit.simulate.producer.batch import ProducerBatch
from kaudit.simulate.producer.config import ApiVersions
from kaudit.simulate.producer.producer import Producer
from kaudit.simulate.producer.sequences import NO_PRODUCER
from kaudit.simulate.producer.transactions import TransactionState
from kaudit.simulate.requests import InitProducerIdRequest
from kaudit.simulate.scenario.model import ProducerSpec


class End(Enum):
    """How a transaction of an application ended, as far as the application knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Application:
    """One application and its producers, one after the other."""

    def __init__(
        self,
        spec: ProducerSpec,
        partitions: int,
        versions: ApiVersions,
        clock: Clock,
        network: Network,
        cluster: Cluster,
        chance: random.Random,
    ) -> None:
        self.spec = spec
        self._partitions = partitions
        self._versions = versions
        self._clock = clock
        self._network = network
        self._cluster = cluster
        self._chance = chance
        self._keys = [(spec.topic, number) for number in range(partitions)]
        self._producer: Producer | None = None
        self._payload = Payload(spec.application, spec.record_bytes, spec.name, 0)
        self._next = 0
        self._session_end = spec.records
        self._requests = 0
        self.sessions = 0
        self.batches: list[ProducerBatch] = []
        """Every batch that is finished, in the order they were, and those whose process died."""
        self.transactions: list[tuple[int, int, End]] = []
        """First and last record number of each transaction, and its end."""
        self._transaction: tuple[int, int] | None = None
        self._aborting_deliberately = False
        self._failed = False

    def start(self) -> None:
        """Open the first producer when its time has come."""
        self._clock.at(self.spec.start_ms, self._open)

    def finish(self) -> None:
        """Take note of what is still under way when the run ends."""
        if self._producer is not None:
            self.batches += self._producer.incomplete()
        if self._transaction is not None:
            self._end_transaction(End.UNKNOWN)

    # -- sessions ----------------------------------------------------------------------------------------------------
    def _open(self) -> None:
        spec = self.spec
        self.sessions += 1
        session = self.sessions
        share = -(-spec.records // spec.sessions)
        self._session_end = min(share * session, spec.records) if session < spec.sessions else spec.records
        self._payload = Payload(spec.application, spec.record_bytes, spec.name, session)
        producer = Producer(
            spec.name,
            spec.config,
            self._versions,
            self._clock,
            self._network,
            self._cluster,
            dict(self._cluster.brokers),
            self._keys[0],
            self._chance,
            self._next_request,
            partial(self._settled, session),
        )
        self._producer = producer
        if session > 1:
            producer.say(f"session {session} begins")
        if spec.config.transactional_id is not None:
            assert producer.transactions is not None
            producer.transactions.on_change = self._once(self._advance)
            producer.transactions.initialize()
        else:
            self._tick(session)

    def _once(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what lets `action` happen after the event under way, if the session still lasts."""
        session = self.sessions

        def later() -> None:
            if session == self.sessions:
                self._clock.after(0, partial(self._if_current, session, action))

        return later

    def _if_current(self, session: int, action: Callable[[], None]) -> None:
        if session == self.sessions and self._producer is not None:
            self._producer.do(action)

    def _next_request(self) -> int:
        self._requests += 1
        return self._requests

    def kill(self, restart_after_ms: int | None, resend: int) -> None:
        """Let the process die; a new one begins `resend` records before where this one was."""
        if self._producer is None:
            return
        self._network.trace.fault(self._clock.now, self.spec.name, "killed")
        self.batches += self._producer.incomplete()
        self._producer.die()
        self._producer = None
        if self._transaction is not None:
            self._next = self._transaction[0]
            self._end_transaction(End.UNKNOWN)
        self._next = max(self._next - resend, 0)
        if restart_after_ms is not None:
            self._clock.after(restart_after_ms, self._open)

    def pause(self, for_ms: int) -> None:
        """Stop the process for a while."""
        producer = self._producer
        if producer is None:
            return
        self._network.trace.fault(self._clock.now, self.spec.name, f"paused for {for_ms} ms")
        producer.pause()
        self._clock.after(for_ms, partial(self._resume, producer))

    def _resume(self, producer: Producer) -> None:
        self._network.trace.fault(self._clock.now, self.spec.name, "goes on")
        producer.resume()

    # -- records -----------------------------------------------------------------------------------------------------
    def _tick(self, session: int) -> None:
        """Send a burst and come back for the next one."""
        if session != self.sessions or self._producer is None or self._failed:
            return
        last = self._session_end if self._transaction is None else self._transaction[1] + 1
        for _ in range(self.spec.burst):
            if self._next >= last:
                break
            self._producer.send(self._keys[self._next % self._partitions], self._payload, self._next)
            self._next += 1
        if self._next < last:
            self._clock.after(self.spec.every_ms, partial(self._if_current, session, partial(self._tick, session)))
        elif self._transaction is not None:
            assert self.spec.transaction is not None
            self._clock.after(self.spec.transaction.pause_ms, partial(self._if_current, session, self._end_as_planned))

    def _settled(self, session: int, batch: ProducerBatch) -> None:
        self.batches.append(batch)
        if session != self.sessions or self.spec.sessions <= session or self.spec.config.transactional_id is not None:
            return
        if self._next >= self._session_end and self._producer is not None and self._producer.is_idle:
            self._clock.after(self.spec.every_ms, partial(self._if_current, session, self._reopen))

    def _reopen(self) -> None:
        assert self._producer is not None
        self._producer.die()
        self._open()

    # -- transactions ------------------------------------------------------------------------------------------------
    def _advance(self) -> None:
        """Do what comes next in the state the producer is in now."""
        producer = self._producer
        if producer is None or producer.transactions is None:
            return
        match producer.transactions.state:
            case TransactionState.READY:
                self._ready(producer)
            case TransactionState.ABORTABLE_ERROR:
                self._aborting_deliberately = False
                producer.say("aborts the transaction after an error")
                producer.transactions.end(commit=False)
            case TransactionState.FATAL_ERROR:
                self._failed = True
                if self._transaction is not None:
                    self._end_transaction(End.UNKNOWN)
            case _:
                pass

    def _ready(self, producer: Producer) -> None:
        spec = self.spec
        if self._transaction is not None:
            first, _ = self._transaction
            committed = self._committing
            if not committed and not self._aborting_deliberately:
                self._next = first  # a failed transaction is sent again
            self._end_transaction(End.COMMITTED if committed else End.ABORTED)
        if self._burn():
            return
        if self._next >= spec.records:
            return
        assert spec.transaction is not None
        assert producer.transactions is not None
        self._transaction = (self._next, min(self._next + spec.transaction.records, spec.records) - 1)
        self._committing = False
        producer.transactions.begin()
        session = self.sessions
        self._clock.after(spec.every_ms, partial(self._if_current, session, partial(self._tick, session)))

    _committing = False

    def _end_as_planned(self) -> None:
        producer = self._producer
        if producer is None or producer.transactions is None or self._transaction is None:
            return
        if producer.transactions.state is not TransactionState.IN_TRANSACTION:
            return
        assert self.spec.transaction is not None
        outcomes = self.spec.transaction.outcomes
        commit = outcomes[len(self.transactions) % len(outcomes)]
        self._committing, self._aborting_deliberately = commit, not commit
        producer.transactions.end(commit=commit)

    def _end_transaction(self, end: End) -> None:
        assert self._transaction is not None
        self.transactions.append((*self._transaction, end))
        self._transaction = None

    def _burn(self) -> bool:
        """Call initTransactions as often as the scenario asks before the first record; tell whether to wait for it."""
        if self.sessions > 1 or self.spec.initializations <= 1 or self._burnt:
            return False
        self._burnt = True
        config = self.spec.config
        request = InitProducerIdRequest(
            config.transactional_id,
            config.transaction_timeout_ms,
            NO_PRODUCER,
            self._versions.init_producer_id,
            self._keys[0],
        )
        for _ in range(self.spec.initializations - 2):
            self._cluster.coordination.init_producer_id(request, None)
        assert self._producer is not None
        self._producer.say(f"initTransactions {self.spec.initializations - 2} times more")
        self._producer.die()
        self._open()
        return True

    _burnt = False
