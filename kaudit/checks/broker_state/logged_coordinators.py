"""What lines of brokers show of transaction markers that no coordinator writes any more, and of producer states built again."""

from collections.abc import Iterator

from kaudit.checks.broker_state.logged import Account, log_check, logged_finding, where, who
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.log_causes import COORDINATED, MOVED, UNCLEAN_STOP
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.logged_incidents import Consequence, LoggedIncident

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
    for incident in _of(evidence, Consequence.MARKERS_STOPPED):
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
    for incident in _of(evidence, Consequence.STATE_REBUILT):
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


def _of(evidence: Evidence, consequence: Consequence) -> Iterator[LoggedIncident]:
    return (incident for incident in evidence.of(LoggedIncident) if incident.consequence is consequence)
