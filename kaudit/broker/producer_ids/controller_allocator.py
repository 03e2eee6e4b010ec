"""ProducerIdManager of 3.0 and later as a model: the controller grants blocks, brokers fetch them ahead of need.

Source: ProducerIdControlManager, RPCProducerIdManager (3.6+, which refuses instead of waiting); ids recorded on 3.9.1
and 4.2.0. The metadata log has the record before the broker has the answer, so a lost answer costs a block.
"""

from msgspec import Struct

from kaudit.broker.producer_ids.block_history import ProducerIdsRecord
from kaudit.broker.producer_ids.blocks import BLOCK_SIZE, FIRST_BLOCK_START, MAX_PRODUCER_ID
from kaudit.broker.producer_ids.zookeeper_allocator import AllocationError, Grant

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
