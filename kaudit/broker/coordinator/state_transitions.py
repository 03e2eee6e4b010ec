"""Which states of a transactional id may follow one another.

Source: TransactionMetadata.validPreviousStates (TransactionState.validPreviousStates from 4.0 on).
"""

from kaudit.model.coordinator import TransactionStatus, TransactionValue

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
