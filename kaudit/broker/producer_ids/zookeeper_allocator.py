"""ProducerIdManager of 0.11 to 2.8 as a model: blocks by a conditional update of one znode.

Every exchange with ZooKeeper is a step of its own, so that a scheduler can put other brokers' steps, lost messages and
crashes in between. Source: ProducerIdManager.scala, KafkaZkClient.conditionalUpdatePath; answers recorded on 1.1.1,
2.0.1 and 2.8.2.
"""

import json
from collections.abc import Generator
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from kaudit.broker.producer_ids.blocks import BLOCK_SIZE, FIRST_BLOCK_START, LAST_CONTINUABLE_END
from kaudit.formats.errors import WireError
from kaudit.formats.zookeeper.pid_block import VALUE_VERSION, parse_pid_block


class Fate(StrEnum):
    """What happens to one exchange with ZooKeeper."""

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
    """What a broker is about to ask ZooKeeper; a write carries its value and condition."""

    what: str
    grant: Grant | None = None
    expected_version: int | None = None


def acquire(broker: int, store: Store) -> Generator[Exchange, Fate, Grant]:
    """Get the next block, one exchange at a time: yields what is asked, is sent its fate, returns the block.

    Raises AllocationError when the ids are exhausted or the value cannot be read. Goes on for ever while the znode is
    missing, as brokers do.
    """
    while True:
        fate = yield Exchange("reads the block")
        if fate is not Fate.ANSWERED:
            continue
        data, version = store.read()
        grant = _following(broker, data)
        if (yield from _write(grant, version, store)):
            return grant
        fate = yield Exchange("reads whether the write was its own")
        while fate is not Fate.ANSWERED:
            fate = yield Exchange("reads whether the write was its own")
        # The lost answer of the broker's own write: its value is there, so the block is its own.
        if store.read()[0] == grant.value():
            return grant


def _write(grant: Grant, version: int | None, store: Store) -> Generator[Exchange, Fate, bool]:
    """Write until an answer arrives: a repeated write after a lost answer fails on its own version."""
    while True:
        fate = yield Exchange(f"writes {grant.start}-{grant.end}", grant, version)
        if fate is Fate.REQUEST_LOST:
            continue
        written = store.update(grant.value(), version)
        if fate is Fate.ANSWERED:
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
