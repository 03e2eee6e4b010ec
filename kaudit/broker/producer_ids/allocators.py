"""Models of the allocators of producer id blocks: a znode up to 2.8, the controller of KRaft."""

import json
from collections.abc import Generator
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from kaudit.broker.producer_ids.block_history import (
    BLOCK_SIZE,
    FIRST_BLOCK_START,
    LAST_CONTINUABLE_END,
    MAX_PRODUCER_ID,
    ProducerIdsRecord,
)
from kaudit.formats.errors import WireError
from kaudit.formats.zookeeper.pid_block import VALUE_VERSION, parse_pid_block


class ExchangeOutcome(StrEnum):
    """The outcome of one exchange with ZooKeeper."""

    ANSWERED = "answered"
    ANSWER_LOST = "answer-lost"  # done, but the broker does not learn of it and asks again
    REQUEST_LOST = "request-lost"  # never done; the broker asks again


class AllocationError(Exception):
    """The broker answers InitProducerId with UNKNOWN_SERVER_ERROR, and tries again at the next one."""


class Store(Protocol):
    """The znode as brokers see it."""

    def read(self) -> tuple[bytes | None, int | None]:
        """Return value and version; the version is None when there is no znode."""
        ...

    def update(self, data: bytes, expected_version: int | None) -> bool:
        """Write `data`, and return whether it was written."""
        ...


class Znode:
    """A znode with ZooKeeper's conditional update. `version` is None while the znode does not exist."""

    def __init__(self, data: bytes | None = None, version: int | None = 0) -> None:
        self.data = data
        self.version = version

    def read(self) -> tuple[bytes | None, int | None]:
        """Return value and version."""
        return self.data, self.version

    def update(self, data: bytes, expected_version: int | None) -> bool:
        """Write only when nobody wrote since `expected_version` was read."""
        if self.version is None or self.version != expected_version:
            return False
        self.set_by_hand(data)
        return True

    def set_by_hand(self, data: bytes) -> None:
        """Write without a condition, as an administrator does; creates the znode."""
        self.version = 0 if self.version is None else self.version + 1
        self.data = data


class Grant(Struct, frozen=True):
    """A block a broker believes to be its own: ids `start`..`end`, inclusive."""

    broker: int
    start: int
    end: int

    def value(self) -> bytes:
        """Return the block as brokers write it into the znode."""
        fields = {
            "version": VALUE_VERSION,
            "broker": self.broker,
            "block_start": str(self.start),
            "block_end": str(self.end),
        }
        return json.dumps(fields, separators=(",", ":")).encode()


class Exchange(Struct, frozen=True):
    """The next request of a broker to ZooKeeper; a write carries its value and condition."""

    what: str
    grant: Grant | None = None
    expected_version: int | None = None


def acquire(broker: int, store: Store) -> Generator[Exchange, ExchangeOutcome, Grant]:
    """Get the next block, one exchange at a time: yields what is asked, is sent its outcome, returns the block.

    Raises AllocationError when the ids are exhausted or the value cannot be read. Goes on for ever while the znode is
    missing, as brokers do.
    """
    while True:
        outcome = yield Exchange("reads the block")
        if outcome is not ExchangeOutcome.ANSWERED:
            continue
        data, version = store.read()
        grant = _following(broker, data)
        if (yield from _write(grant, version, store)):
            return grant
        outcome = yield Exchange("reads whether the write was its own")
        while outcome is not ExchangeOutcome.ANSWERED:
            outcome = yield Exchange("reads whether the write was its own")
        # The lost answer of the broker's own write: its value is there, so the block is its own.
        if store.read()[0] == grant.value():
            return grant


def _write(grant: Grant, version: int | None, store: Store) -> Generator[Exchange, ExchangeOutcome, bool]:
    """Write until an answer arrives: a repeated write after a lost answer fails on its own version."""
    while True:
        outcome = yield Exchange(f"writes {grant.start}-{grant.end}", grant, version)
        if outcome is ExchangeOutcome.REQUEST_LOST:
            continue
        written = store.update(grant.value(), version)
        if outcome is ExchangeOutcome.ANSWERED:
            return written


def _following(broker: int, data: bytes | None) -> Grant:
    if not data:
        return Grant(broker, FIRST_BLOCK_START, FIRST_BLOCK_START + BLOCK_SIZE - 1)
    try:
        end = parse_pid_block(data).end
    except WireError as error:
        raise AllocationError(str(error)) from error
    if end > LAST_CONTINUABLE_END:
        raise AllocationError(f"exhausted: the last block ends at {end}")
    return Grant(broker, end + 1, end + BLOCK_SIZE)


PREFETCH_TENTHS = 9
"""A broker asks for its next block when it hands out the first id of the last tenth of its current one."""


class Ticket(Struct, frozen=True):
    """A request under way; `offset` is where its record will be in the metadata log, `term` the controller's."""

    grant: Grant
    offset: int
    term: int


class Controller:
    """The quorum's leader over the metadata log: `committed` survives it, `_uncommitted` does not."""

    def __init__(self) -> None:
        self.committed: list[ProducerIdsRecord] = []
        self._uncommitted: list[ProducerIdsRecord] = []
        self._term = 0

    def request(self, broker: int, broker_epoch: int) -> Ticket:
        """Append the record of the next block. Raises AllocationError when the ids are exhausted."""
        records = self._uncommitted or self.committed
        start = records[-1].next_producer_id if records else FIRST_BLOCK_START
        if start > MAX_PRODUCER_ID - BLOCK_SIZE:
            raise AllocationError(f"exhausted: the next block would start at {start}")
        offset = len(self.committed) + len(self._uncommitted)
        self._uncommitted.append(ProducerIdsRecord(offset, None, broker, broker_epoch, start + BLOCK_SIZE))
        return Ticket(Grant(broker, start, start + BLOCK_SIZE - 1), offset, self._term)

    def commit(self) -> None:
        """Replicate what was appended."""
        self.committed += self._uncommitted
        self._uncommitted = []

    def fail_over(self) -> None:
        """Lose the leader: the next one knows the committed records only."""
        self._uncommitted = []
        self._term += 1

    def answer(self, ticket: Ticket) -> Grant | None:
        """Return the block once its record is committed; None while it is not, or when a fail-over lost it."""
        record = self.committed[ticket.offset] if ticket.offset < len(self.committed) else None
        if record is None or ticket.term != self._term or record.next_producer_id != ticket.grant.end + 1:
            return None
        return ticket.grant


class ControllerBroker:
    """One broker process: hands out ids of `grant`, asks for the next block before it ends."""

    def __init__(self, broker: int, broker_epoch: int, controller: Controller) -> None:
        self._broker = broker
        self._epoch = broker_epoch
        self._controller = controller
        self._ticket: Ticket | None = None
        self._fetched: Grant | None = None
        self.grant: Grant | None = None
        self._next = 0

    def generate(self) -> int | None:
        """Return the next producer id, or None for COORDINATOR_LOAD_IN_PROGRESS: no block yet, ask again."""
        if self.grant is None or self._next > self.grant.end:
            if self._fetched is None:
                self._ask()
                return None
            self.grant, self._fetched = self._fetched, None
            self._next = self.grant.start
        producer_id = self._next
        self._next += 1
        if producer_id == self.grant.start + BLOCK_SIZE * PREFETCH_TENTHS // 10:
            self._ask()
        return producer_id

    def receive(self) -> Grant | None:
        """Take the controller's answer when there is one; returns the block that arrived."""
        if self._ticket is None:
            return None
        arrived = self._controller.answer(self._ticket)
        if arrived is not None:
            self._fetched, self._ticket = arrived, None
        return arrived

    def lose_answer(self) -> None:
        """Let the request time out: the next call asks anew, whatever the controller did."""
        self._ticket = None

    def _ask(self) -> None:
        if self._ticket is None:
            self._ticket = self._controller.request(self._broker, self._epoch)
