"""A broker of 0.11 to 2.8 that takes its blocks without delays or losses, for recorded answers."""

from kaudit.broker.producer_ids.allocators import ExchangeOutcome, Grant, Store, acquire
from kaudit.broker.producer_ids.block_history import MIN_INT64


class ZooKeeperBroker:
    """One broker process with its block: it takes one when it starts and drops the rest of it when it ends."""

    def __init__(self, broker: int, store: Store, patience: int = 100) -> None:
        self._broker = broker
        self._store = store
        self._patience = patience
        self.grant = self._acquired()
        self._next = self.grant.start

    def generate(self) -> int:
        """Return the next producer id (int64).

        The last id of all is followed by negative ones: the comparison with the block's end is a signed one. Raises
        AllocationError as `acquire` does, TimeoutError when the znode stays missing.
        """
        if self._next > self.grant.end:
            self.grant = self._acquired()
            self._next = self.grant.start
        producer_id = self._next
        self._next = (self._next + 1 - MIN_INT64) % 2**64 + MIN_INT64  # Java's long arithmetic
        return producer_id

    def _acquired(self) -> Grant:
        steps = acquire(self._broker, self._store)
        try:
            next(steps)
            for _ in range(self._patience):
                steps.send(ExchangeOutcome.ANSWERED)
        except StopIteration as finished:
            grant: Grant = finished.value
            return grant
        raise TimeoutError(f"broker {self._broker} got no block in {self._patience} exchanges")
