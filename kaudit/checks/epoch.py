"""KA201-KA205: producer and coordinator epochs."""

from collections.abc import Sequence

from msgspec.structs import replace

from kaudit.checks.catalogue import OBSERVERS
from kaudit.checks.context import Context
from kaudit.checks.judged import judged_finding
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.observation import Observation, ObservationKind

_MAX_EPOCH = 32767


def report_epochs(context: Context, facts: Sequence[Observation]) -> list[Finding]:
    """Report the epoch facts of one partition."""
    tv2 = context.versions.all(lambda profile: profile.transaction_version2)
    found: list[Finding] = []
    for fact in facts:
        code = None if fact.explained else OBSERVERS[fact.kind]
        if code == "KA201":
            found.append(_stale(context, fact))
        elif code == "KA202":
            found.append(_bump_nonzero(context, fact))
        elif code == "KA203" and not (tv2 and fact.is_transactional):
            found.append(_fencing(context, fact))
        elif code == "KA204":
            found.append(_nearly_exhausted(context, fact))
        elif code == "KA205":
            found.append(_coordinator_regression(context, fact))
    return found


def _stale(context: Context, fact: Observation) -> Finding:
    state = fact.remembered
    assert state is not None
    what = "batch" if fact.batch is not None else "end marker"
    return judged_finding(
        context,
        fact,
        f"the {what} at offset {fact.offset} has epoch {fact.producer_epoch}, but producer {fact.producer_id} had moved on to "
        f"epoch {state.epoch}",
        "an epoch below the current one is fenced: a leader answers INVALID_PRODUCER_EPOCH (ProducerAppendInfo.checkProducerEpoch); "
        "replicas and recovery only warn, and brokers up to 2.4.0 fail on such a marker",
        explanations=(
            Explanation("a zombie: a fenced instance of the producer wrote after its successor had begun"),
            Explanation(
                "the leader had forgotten the newer epoch: expiry, a lost tail, or a restart without its snapshot"
            ),
            Explanation("brokers up to 2.4.0 forget a producer known by a marker alone (KAFKA-9144)"),
        ),
    )


def _bump_nonzero(context: Context, fact: Observation) -> Finding:
    assert fact.batch is not None
    return judged_finding(
        context,
        fact,
        f"epoch {fact.producer_epoch} of producer {fact.producer_id} begins at sequence {fact.batch.first_sequence}, not at 0",
        "a new epoch starts at sequence 0 (ProducerAppendInfo.checkSequence)",
        explanations=(
            Explanation("the first records of the new epoch were lost"),
            Explanation("a client raised its epoch without resetting its sequences"),
        ),
        extra={"missing_sequences": fact.missing_sequences, "missing_offsets": fact.missing_offsets},
    )


_CLASSES = {
    ObservationKind.RESTART_BUMP: "a new instance of the transactional producer was initialised",
    ObservationKind.TIMEOUT_ABORT: "the coordinator aborted its transaction and fenced it (timeout, or a new instance)",
    ObservationKind.CLIENT_BUMP: "the client raised its own epoch after an error it could not resolve (2.5 and later)",
}


def _fencing(context: Context, fact: Observation) -> Finding:
    state = fact.remembered
    assert state is not None
    where = f"at offset {fact.offset}" if fact.offset >= 0 else "at the end of the log"
    before = "" if fact.kind is ObservationKind.TIMEOUT_ABORT else f" from {state.epoch}"
    found = judged_finding(
        context,
        fact,
        f"the epoch of producer {fact.producer_id} rose{before} to {fact.producer_epoch} {where}: {_CLASSES[fact.kind]}",
        "a higher epoch fences every writer of the lower one",
        confidence=Confidence.LIKELY,
        explanations=(Explanation(_CLASSES[fact.kind], innocent=True),),
    )
    if fact.kind is not ObservationKind.TIMEOUT_ABORT or fact.position > 0 or fact.batch is not None:
        return found
    gone = dict.fromkeys(("file", "segment", "position"), "only the marker's offset is kept to the end")
    return replace(found, file=None, segment=None, position=None, absent=gone)


def _nearly_exhausted(context: Context, fact: Observation) -> Finding:
    left = _MAX_EPOCH - fact.producer_epoch
    return judged_finding(
        context,
        fact,
        f"producer {fact.producer_id} is at epoch {fact.producer_epoch}: {left} before the last",
        "a transactional id moves to a new producer id at epoch 32766; a client that raises its own epoch may overflow",
        severity=Severity.NOTE if fact.is_transactional else Severity.WARNING,
        explanations=(
            Explanation("the transactional id was initialised very often (an instance per message, a crash loop)"),
            Explanation("the client raises its epoch at every failed send"),
        ),
    )


def _coordinator_regression(context: Context, fact: Observation) -> Finding:
    state, marker = fact.remembered, fact.marker
    assert state is not None
    assert marker is not None
    return judged_finding(
        context,
        fact,
        f"the marker at offset {marker.offset} comes from coordinator epoch {marker.coordinator_epoch}, after one of "
        f"{state.coordinator_epoch}",
        "a marker of an older coordinator is refused with TRANSACTION_COORDINATOR_FENCED; replicas only log it, and brokers up to "
        "2.4.0 fail on it (ProducerAppendInfo.checkCoordinatorEpoch)",
        confidence=Confidence.LIKELY,
        explanations=(
            Explanation("an old coordinator wrote after the partition of __transaction_state had moved"),
            Explanation("the leader had forgotten the producer (KAFKA-9144) and took the old coordinator's marker"),
            Explanation("__transaction_state was recreated, which starts its leader epochs anew", innocent=True),
        ),
    )
