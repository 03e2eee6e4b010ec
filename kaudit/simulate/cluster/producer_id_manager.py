"""How brokers allocate producer ids: blocks from a znode (0.11 to 2.8) or from the controller (3.0 and later).

The rules are those of kaudit/broker/producer_ids; here every exchange takes time and its response can get lost.
"""

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

from kaudit.broker.producer_ids.allocators import (
    Controller,
    ControllerBroker,
    Exchange,
    ExchangeOutcome,
    Grant,
    Znode,
    acquire,
)
from kaudit.broker.producer_ids.block_history import BLOCK_SIZE
from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.brokers import RunContext
from kaudit.simulate.trace import EventKind, TraceEvent

_RETRY_MS = 50
ZNODE = "znode"
CONTROLLER = "controller"

OnProducerId = Callable[[int | None], None]
"""Called with a producer id, or with None: no block yet, ask again (COORDINATOR_LOAD_IN_PROGRESS)."""


class GrantedBlocks:
    """Every block the znode or the controller granted, as lines `kaudit producers --blocks` reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: list[dict[str, Any]] = []

    def znode(self, data: bytes, version: int) -> None:
        """Record a value written to the znode."""
        self._lines.append({"data": data.decode(), "version": version, "mtime": self._clock.timestamp})

    def granted(self, grant: Grant) -> None:
        """Record a block granted by the controller."""
        length = grant.end - grant.start + 1
        self._lines.append(
            {
                "producer_id_start": grant.start,
                "producer_id_len": length,
                "broker": grant.broker,
                "at_ms": self._clock.timestamp,
            }
        )

    def text(self) -> str:
        """Return blocks.jsonl."""
        return "".join(json.dumps(line) + "\n" for line in self._lines)


class ProducerIdManager(ABC):
    """One broker's allocator of producer ids."""

    def __init__(self, broker: int, granted: GrantedBlocks, context: RunContext) -> None:
        self._number = broker
        self._granted_blocks = granted
        self._clock = context.clock
        self._delay = context.network.delay
        self._trace = context.trace
        self._lost = 0

    @abstractmethod
    def generate(self, use: OnProducerId) -> None:
        """Hand out the next producer id."""

    @abstractmethod
    def restart(self) -> None:
        """Forget the blocks, as a new process does."""

    def lose_response(self) -> None:
        """Lose the response to the next allocation: its block is granted and never used."""
        self._lost += 1


class ZkProducerIdManager(ProducerIdManager):
    """ProducerIdManager of 0.11 to 2.8 (later ZkProducerIdManager): one exchange with the znode after the other."""

    def __init__(self, broker: int, znode: Znode, granted: GrantedBlocks, context: RunContext) -> None:
        super().__init__(broker, granted, context)
        self._znode = znode
        self._waiting: deque[OnProducerId] = deque()
        self._steps: Generator[Exchange, ExchangeOutcome, Grant] | None = None
        self._ids: Iterator[int] = iter(())
        """What is left of its block."""

    def generate(self, use: OnProducerId) -> None:
        """Hand out the next id, once there is a block to take it from."""
        self._waiting.append(use)
        self._serve()

    def restart(self) -> None:
        """Drop the rest of the block and whoever waits."""
        self._ids = iter(())
        self._steps = None
        self._waiting.clear()

    def _serve(self) -> None:
        while self._waiting and (producer_id := next(self._ids, None)) is not None:
            self._waiting.popleft()(producer_id)
        if self._waiting and self._steps is None:
            self._steps = acquire(self._number, self._znode)
            self._ask(self._steps, next(self._steps))

    def _ask(self, steps: Generator[Exchange, ExchangeOutcome, Grant], exchange: Exchange) -> None:
        """Send an exchange to ZooKeeper, where it is carried out half a round trip later."""
        self._clock.after(self._delay(), partial(self._carry_out, steps, exchange))

    def _carry_out(self, steps: Generator[Exchange, ExchangeOutcome, Grant], exchange: Exchange) -> None:
        if steps is not self._steps:
            return
        outcome = ExchangeOutcome.ANSWERED
        if self._lost and exchange.grant is not None:
            self._lost -= 1
            outcome = ExchangeOutcome.ANSWER_LOST
        before = self._znode.version
        sent_at = self._clock.now
        try:
            following = steps.send(outcome)
        except StopIteration as finished:
            self._record(exchange, outcome, before, sent_at)
            grant: Grant = finished.value
            self._clock.after(self._delay(), partial(self._granted, steps, grant))
            return
        self._record(exchange, outcome, before, sent_at)
        wait = self._delay() + (_RETRY_MS if outcome is not ExchangeOutcome.ANSWERED else 0)
        self._clock.after(wait, partial(self._ask, steps, following))

    def _record(self, exchange: Exchange, outcome: ExchangeOutcome, before: int | None, at: int) -> None:
        if self._znode.version != before:
            assert self._znode.data is not None
            assert self._znode.version is not None
            self._granted_blocks.znode(self._znode.data, self._znode.version)
        broker = f"broker {self._number}"
        written = self._znode.version != before
        what = exchange.what if exchange.grant is None else f"{exchange.what}: {'written' if written else 'refused'}"
        kind = EventKind.REQUEST if outcome is ExchangeOutcome.ANSWERED else EventKind.LOST
        text = what if outcome is ExchangeOutcome.ANSWERED else f"{what}, the answer is lost"
        self._trace.add(TraceEvent(kind, at, at, broker, ZNODE, text))

    def _granted(self, steps: Generator[Exchange, ExchangeOutcome, Grant], grant: Grant) -> None:
        if steps is not self._steps:
            return
        self._steps = None
        self._ids = iter(range(grant.start, grant.end + 1))
        self._trace.note(self._clock.now, f"broker {self._number}", f"takes the block {grant.start} to {grant.end}")
        self._serve()


class RPCProducerIdManager(ProducerIdManager):
    """RPCProducerIdManager of 3.0 and later: blocks are fetched from the controller ahead of need."""

    def __init__(self, broker: int, controller: Controller, granted: GrantedBlocks, context: RunContext) -> None:
        super().__init__(broker, granted, context)
        self._controller = controller
        self.restart()

    def generate(self, use: OnProducerId) -> None:
        """Hand out the next id, or None while there is no block."""
        producer_id = self._broker.generate()
        known = len(self._controller.committed)
        self._controller.commit()
        if len(self._controller.committed) > known:
            record = self._controller.committed[-1]
            end = record.next_producer_id - 1
            granted = Grant(record.broker_id, record.next_producer_id - BLOCK_SIZE, end)
            self._granted_blocks.granted(granted)
            text = f"AllocateProducerIds: {granted.start} to {end}"
            kind = EventKind.REQUEST
            if self._lost:
                self._lost -= 1
                self._broker.lose_answer()
                kind, text = EventKind.LOST, f"{text}, the answer is lost"
            else:
                self._clock.after(2 * self._delay(), partial(self._receive, self._broker))
            now = self._clock.now
            self._trace.add(TraceEvent(kind, now, now, f"broker {self._number}", CONTROLLER, text))
        use(producer_id)

    def _receive(self, broker: ControllerBroker) -> None:
        if broker is self._broker:
            broker.receive()

    def restart(self) -> None:
        """Drop the blocks; a process's broker epoch is later than that of the one before."""
        self._broker = ControllerBroker(self._number, self._clock.now, self._controller)
