"""Refusals that logs of brokers and clients show: batches out of order or not allowed, producers that are forgotten or fenced."""

from collections.abc import Iterator, Sequence

from kaudit.checks.broker_state.log_meanings import AHEAD, ANEW, BACK, MEANINGS, Meaning, rule_of
from kaudit.checks.broker_state.logged import (
    Account,
    SequencesEvidence,
    harmless,
    is_answered_by_bytes,
    log_check,
    logged_finding,
    where,
    who,
)
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.checks.log_causes import (
    BUMPED,
    ELECTED,
    HEAD_REMOVED,
    MOVED,
    NOT_LEADER,
    OUT_OF_SYNC,
    RETRIED,
    SUCCEEDED,
    TIMED_OUT,
    UNCLEAN_STOP,
)
from kaudit.model.finding import Explanation, Finding
from kaudit.model.logged_incidents import Consequence, LoggedIncident, Outcome
from kaudit.model.sequence import distance, next_sequence, subtract
from kaudit.model.severity import Severity

_NOTE = "note where the logs show that it was repaired or intended"


@log_check(
    "KA810",
    severity=Severity.ERROR,
    severity_note=f"{_NOTE}; warning where a producer was refused under one epoch after another",
    summary="a broker refused batches, and no log shows that they were written later",
    caused_by=(NOT_LEADER, ELECTED, RETRIED, UNCLEAN_STOP, MOVED, OUT_OF_SYNC),
)
def batches_refused(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report what was refused for its sequences or its content, once for each producer, partition and error."""
    yield from _refusals(batches_refused, context, evidence, Consequence.REFUSED)


@log_check(
    "KA811",
    severity=Severity.ERROR,
    severity_note=_NOTE,
    summary="a broker had forgotten a producer, and refused it",
    caused_by=(HEAD_REMOVED, ELECTED, UNCLEAN_STOP, MOVED),
)
def producer_forgotten(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report producers that brokers or coordinators do not know, once for each partition."""
    yield from _refusals(producer_forgotten, context, evidence, Consequence.FORGOTTEN)


@log_check(
    "KA812",
    severity=Severity.ERROR,
    severity_note=_NOTE,
    summary="a producer was fenced, and no log shows the instance that took over",
    caused_by=(TIMED_OUT, SUCCEEDED, BUMPED),
)
def producer_fenced(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report fenced producers, once for each partition."""
    yield from _refusals(producer_fenced, context, evidence, Consequence.FENCED)


def _refusals(reported: Check, context: Context, evidence: Evidence, consequence: Consequence) -> Iterator[Finding]:
    for incident in evidence.of(LoggedIncident):
        if incident.consequence is consequence and not is_answered_by_bytes(incident):
            yield _refusal(reported, context, incident)


def _refusal(reported: Check, context: Context, incident: LoggedIncident) -> Finding:
    meaning = MEANINGS.get(incident.error)
    if meaning is not None:
        account = _refused(incident, meaning)
    else:
        account = _forgotten(incident) if incident.consequence is Consequence.FORGOTTEN else _unexplained(incident)
    return logged_finding(reported, context, incident, account)


def _unexplained(incident: LoggedIncident) -> Account:
    """Return the account of a refusal whose error is not among the lines, or is none of the protocol."""
    named = ", ".join(sorted({event.error for event in incident.events if event.error is not None}))
    why = f" with {named}" if named else ", and no line says why"
    return Account(
        message=f"the broker refused batches{where(incident)}{why}",
        severity=Severity.ERROR,
        rule="a broker logs the exception of a failed append below its line about it, and answers the client with its error "
        "(ReplicaManager.appendToLocalLog)",
        explanations=[] if named else _OFTEN,
    )


_OFTEN = (
    Explanation("the lines below it were not copied, or a collector made other entries of them"),
    Explanation(
        "the exceptions that most often follow: a batch out of order, too few replicas in sync, the epoch of a fenced producer, a record "
        "that breaks a setting of its topic"
    ),
)


_EXPIRY = (
    "a producer is forgotten when it was idle for producer.id.expiration.ms (1 day; before 3.4 7 days), a transactional id when it was "
    "idle for transactional.id.expiration.ms (7 days)"
)


def _forgotten(incident: LoggedIncident) -> Account:
    """Return the account of an expiry, which refuses nothing."""
    return Account(
        message=f"the broker forgot {who(incident)}",
        severity=Severity.NOTE,
        rule=_EXPIRY,
        explanations=[Explanation("the producer is done", innocent=True)],
    )


def _refused(incident: LoggedIncident, meaning: Meaning) -> Account:
    sequences, detail, causes = _sequences(incident)
    refused = meaning.refused if meaning.refused.startswith(":") else f" {meaning.refused}"
    mended = harmless(incident)
    return Account(
        message=f"the broker refused {'requests' if incident.topic is None else 'batches'}{_of(incident)}{where(incident)}{refused}{detail}{_epochs(incident)}"
        f"{_LATER.get(incident.outcome, '')}",
        severity=_severity(incident, mended=bool(mended)),
        rule=rule_of(incident.error),
        explanations=mended
        or [*_not_leader(incident), *(map(Explanation, causes) if causes else meaning.explanations)],
        sequences=sequences,
    )


_LAST_ERROR = "last partition error NOT_LEADER_"
"""librdkafka's fatal error names what the partition was answered with before."""


def _not_leader(incident: LoggedIncident) -> Sequence[Explanation]:
    """Return the cause that the refusal's own line names."""
    said = next((event for event in incident.events if _LAST_ERROR in event.text), None)
    return [] if said is None else [Explanation(NOT_LEADER.text, speaks_for=(said.line_name,))]


_MANY_EPOCHS = 3
"""A producer that is refused in so many epochs does not recover by raising them."""


def _severity(incident: LoggedIncident, *, mended: bool) -> Severity:
    epochs = {event.producer_epoch for event in incident.events if event.producer_epoch is not None}
    if incident.consequence is Consequence.REFUSED and mended and len(epochs) >= _MANY_EPOCHS:
        return Severity.WARNING
    return Severity.NOTE if mended else Severity.ERROR


_LATER = {
    Outcome.NEVER_LANDED: "; they are not in the partition's log",
    Outcome.LANDED: "; they were written later",
    Outcome.SUPERSEDED: "; it went on under a new epoch or id",
    Outcome.MENDED: "; replicas were in sync again later",
    Outcome.FENCED: "; another instance had taken over",
}


def _of(incident: LoggedIncident) -> str:
    """Return ` of producer 7`, nothing where the lines name no producer."""
    named = (incident.producer_id, incident.transactional_id, incident.client_id)
    return "" if named == (None, None, None) else f" of {who(incident)}"


def _epochs(incident: LoggedIncident) -> str:
    first = incident.events[0]
    if incident.consequence is not Consequence.FENCED or first.producer_epoch is None or first.expected_epoch is None:
        return ""
    if first.producer_epoch < first.expected_epoch:
        return f"; it has epoch {first.producer_epoch}, where epoch {first.expected_epoch} had written"
    return f"; its epoch {first.producer_epoch} is not the current one, {first.expected_epoch}"


def _sequences(incident: LoggedIncident) -> tuple[SequencesEvidence, str, Sequence[str]]:
    """Return the sequences of the first refusal that names them: as evidence, as text, and the causes that fit them."""
    for event in incident.events:
        base = event.base_sequence
        if incident.error != "OUT_OF_ORDER_SEQUENCE_NUMBER" or base is None:
            continue
        expected = event.expected_sequence
        if event.last_sequence is not None:
            expected = next_sequence(event.last_sequence)
        elif expected is None and event.expected_epoch is not None and event.producer_epoch is not None:
            expected = 0  # a new epoch begins at 0
        if expected is None:
            continue
        came = f": sequence {base} came where {expected} was due"
        missing = distance(expected, base)
        if missing <= 0:
            return SequencesEvidence(expected, base), came, ANEW if base == 0 else BACK
        last = subtract(base, 1)
        between = f"{expected} is" if last == expected else f"{expected}..{last} are"
        return SequencesEvidence(expected, base, expected, last), f"{came}, {between} missing", AHEAD
    return SequencesEvidence(), "", ()
