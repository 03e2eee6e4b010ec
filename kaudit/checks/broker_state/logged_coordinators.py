"""What lines show of transaction markers that no coordinator writes any more, of producer states built again, and of epochs used up."""

from collections.abc import Iterator, Sequence

from kaudit.checks.broker_state.logged import Account, log_check, logged_finding, where, who, with_consequence
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import EPOCHS_USED_UP, LOGGED, OF_DISTRESS
from kaudit.checks.log_causes import BUMPED, COORDINATED, MOVED, REFUSED, SUCCEEDED, TIMED_OUT, UNCLEAN_STOP
from kaudit.checks.texts import duration
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.finding import Explanation, Finding
from kaudit.model.logged_incidents import MAX_EPOCH, Consequence, EpochUse, LoggedIncident, Outcome
from kaudit.model.severity import Severity

_STALE = "TRANSACTION_COORDINATOR_FENCED"
_MARKERS_RULE = (
    "a coordinator that is refused for its epoch or the producer's sends no more markers of that transaction: its state stays "
    "PrepareCommit or PrepareAbort until the coordinator is loaded again (TransactionMarkerRequestCompletionHandler)"
)


@log_check(
    "KA817",
    severity=Severity.WARNING,
    severity_note="note where the coordinator had been replaced: its successor writes the markers",
    summary="a coordinator gave up writing the markers of a transaction: it stays open where one is missing",
    caused_by=(COORDINATED, MOVED),
    transactional=True,
)
def markers_stopped(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each transactional id once."""
    for incident in with_consequence(evidence, Consequence.MARKERS_STOPPED):
        errors = sorted({event.error or "an error" for event in incident.events})
        is_stale = errors == [_STALE]
        name = who(incident) if incident.transactional_id is None else f"transactional id {incident.transactional_id}"
        then = "its successor writes them" if is_stale else "its transaction stays open where one is missing"
        yield logged_finding(
            markers_stopped,
            context,
            incident,
            Account(
                message=f"a coordinator gave up writing the markers of {name}{where(incident)} ({', '.join(errors)}): {then}",
                severity=Severity.NOTE if is_stale else Severity.WARNING,
                rule=_MARKERS_RULE,
                explanations=[_REPLACED] if is_stale else _OVERTAKEN,
            ),
        )


_REPLACED = Explanation(
    "another broker had taken over the coordinator's partition of __transaction_state", innocent=True
)
_OVERTAKEN = (
    Explanation(
        "the partition had seen a newer epoch of the producer than the coordinator: after a timeout with transaction version 2 (KAFKA-19999), "
        "or after __transaction_state had lost its newest records"
    ),
    Explanation("the transactional id moved on in the meantime, and its transaction had ended there", innocent=True),
)


@log_check(
    "KA818",
    severity=Severity.NOTE,
    summary="a broker could not read a producer snapshot, and builds the state of its producers again",
    caused_by=(UNCLEAN_STOP,),
)
def state_rebuilt(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition once."""
    for incident in with_consequence(evidence, Consequence.STATE_REBUILT):
        offsets = sorted({event.offset for event in incident.events if event.offset is not None})
        at = f" at offset {offsets[-1]}" if len(offsets) == 1 else f"s up to offset {offsets[-1]}" if offsets else ""
        yield logged_finding(
            state_rebuilt,
            context,
            incident,
            Account(
                message=f"a broker could not read the producer snapshot{at}{where(incident)}: it deletes it and reads the log again from "
                "the one before, or from the beginning",
                severity=Severity.NOTE,
                rule="a snapshot holds the producers up to its offset; one that does not decode is deleted, and the batches since the one before "
                "are read (ProducerStateManager.loadFromSnapshot)",
                explanations=[
                    Explanation("the host lost power before the snapshot was on disk (KAFKA-9892, KAFKA-5747)"),
                    Explanation("the file was damaged, or copied while it was written"),
                ],
            ),
        )


@log_check(
    "KA819",
    severity=Severity.ERROR,
    severity_note="warning while epochs are left, note for transactional ids or where the logs show another producer id in its place",
    summary="a producer id has no or few epochs left, or will soon",
    incident=(EPOCHS_USED_UP, LOGGED, OF_DISTRESS),
    caused_by=(BUMPED, REFUSED, TIMED_OUT, SUCCEEDED),
)
def epochs_exhausted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each producer id once, with the rate at which its epochs rose."""
    for incident in with_consequence(evidence, Consequence.EPOCHS_EXHAUSTED):
        said = [event for event in incident.events if event.event is LogEventKind.EPOCHS_EXHAUSTED]
        wrapped = any(event.expected_epoch == MAX_EPOCH != event.producer_epoch for event in incident.events)
        is_replaced = incident.outcome is Outcome.SUPERSEDED
        severity = Severity.ERROR if wrapped or any(event.origin == "server" for event in said) else Severity.WARNING
        is_healthy = incident.transactional_id is not None and severity is Severity.WARNING
        yield logged_finding(
            epochs_exhausted,
            context,
            incident,
            Account(
                message=_used_up(incident, wrapped=wrapped, said=said) + (_REPLACED_ID if is_replaced else ""),
                severity=Severity.NOTE if is_replaced or is_healthy else severity,
                rule=_EPOCHS_RULE,
                explanations=_OF_TRANSACTIONS if incident.transactional_id is not None else _OF_IDEMPOTENT,
            ),
        )


_REPLACED_ID = "; it went on under another producer id"
_EPOCHS_RULE = (
    f"a producer epoch is a 16-bit number: {MAX_EPOCH} is the last; a transactional id gets another producer id at {MAX_EPOCH - 1}, an "
    "idempotent client has to ask for one by itself (TransactionMetadata.isProducerEpochExhausted, KIP-360)"
)
_OF_TRANSACTIONS = (
    Explanation(
        "transactions of version 2 (Kafka 4.0) and every start of the application use an epoch each: the id is replaced in time",
        innocent=True,
    ),
    Explanation(
        "a transaction was aborted in its last epoch: brokers 4.0 to 4.2 raise it twice then (KAFKA-19367, KAFKA-20090)"
    ),
    Explanation(
        "attempts to fence the producer failed while the transaction log was unavailable, and used an epoch each (before 2.7.0: KAFKA-9666)"
    ),
)
_OF_IDEMPOTENT = (
    Explanation(
        "the client raises its epoch after every failed send: the error before each raise is what to mend; librdkafka does not ask for "
        "another id at the end (librdkafka issue 3720), sarama does since 1.33 (sarama 2178), Java since 2.5"
    ),
    Explanation(
        "one partition after the other is refused because others have begun the new epoch at a sequence above 0"
    ),
)


def _used_up(incident: LoggedIncident, *, wrapped: bool, said: Sequence[LogEvent]) -> str:
    use = incident.epochs
    if wrapped:
        refused = f"of {who(incident)} began again below epoch {MAX_EPOCH}, the last, which had written"
        return f"the epochs {refused}: the broker refuses whatever it sends{_rise(use)}"
    if said:
        name = who(incident)
        return f"the epochs of {name} are used up: it needs another producer id{_rise(use)}"
    assert use is not None
    if use.left:
        return f"{who(incident)} is at epoch {use.last}, {use.left} below the maximum{_rise(use)}"
    return f"{who(incident)} is at epoch {use.last}, the last{_rise(use)}"


def _rise(use: EpochUse | None) -> str:
    if use is None or use.last <= use.first or use.milliseconds is None:
        return ""
    soon = use.exhausted_in_ms
    end = f": at that rate none is left {duration(soon)} later" if use.left and soon is not None else ""
    return f"; it rose by {use.last - use.first} in {duration(use.milliseconds)}{end}"
