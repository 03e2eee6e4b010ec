"""The coordinator's entry of a transactional id, and the legal transitions between its states."""

from msgspec import Struct, field

from kaudit.broker.producer_state.producer_append_info import MAX_EPOCH
from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kaudit.model.coordinator import TransactionStatus, TransactionValue

EXHAUSTED_EPOCH = MAX_EPOCH - 1
"""The last epoch a producer gets; the one above is kept for fencing it."""
_LONG_AGO = -(2**63)

# Names of the module: reading a member from its Enum costs as much as the rest of a request.
ONGOING = TransactionStatus.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
PREPARED = {PREPARE_COMMIT: True, PREPARE_ABORT: False}
COMPLETE = {COMPLETE_COMMIT: True, COMPLETE_ABORT: False}
"""States of a decided and of an ended transaction: whether it was committed."""


class TransactionMetadata(Struct):
    """The coordinator's entry of one transactional id. Times in ms, None while unknown."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    epoch: int = NO_PRODUCER_EPOCH
    last_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    state: TransactionStatus = TransactionStatus.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    started_at: int | None = None
    home: TopicPartition | None = None
    """The partition whose attempts it appeared in last."""
    updated_at: int | None = None
    transaction_version: int = 0
    """Transaction version of the end that was decided last."""
    transition_pending: bool = False
    """Whether a transition is pending, which no request may interrupt: its markers are being written, or its state was not."""

    @property
    def due(self) -> int:
        """When the open transaction times out (ms); long ago if its start is unknown."""
        return _LONG_AGO if self.started_at is None else self.started_at + self.timeout_ms

    def may_be_of(self, producer_id: int, epoch: int) -> bool:
        """Return whether a client with this producer id and epoch can own the transactional id (KIP-360)."""
        return (
            self.epoch == NO_PRODUCER_EPOCH
            or producer_id == self.producer_id
            or (producer_id == self.previous_producer_id and epoch >= EXHAUSTED_EPOCH)
        )


_S = TransactionStatus
_VALID_PREVIOUS: dict[TransactionStatus, frozenset[TransactionStatus]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_ABORT, _S.COMPLETE_COMMIT}),
}
_ABORT_OF_NOTHING = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""States from which transaction version 2 may abort: a client may not know whether its transaction began."""


def why_illegal(before: TransactionValue, after: TransactionValue) -> str | None:
    """Return why no coordinator goes from `before` to `after`, None if one may."""
    if after.producer_id == before.producer_id and after.producer_epoch < before.producer_epoch:
        return f"epoch {after.producer_epoch} after epoch {before.producer_epoch}"
    allowed = _VALID_PREVIOUS.get(after.status)
    if allowed is None or before.status is _S.UNKNOWN or before.status in allowed:
        return None
    # transaction version 2 shows in the flexible value it is written with
    if after.version > 0 and after.status is _S.PREPARE_ABORT and before.status in _ABORT_OF_NOTHING:
        return None
    return f"{after.status_name} after {before.status_name}"
