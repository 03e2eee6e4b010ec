"""How findings of lines of logs alone are worded: who, where, when, and what to fetch to be certain."""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.check import Check, Evidence, check, none_because
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import LOGGED, OF_DISTRESS
from kaudit.checks.kafka_tools import describe_transaction
from kaudit.checks.texts import counted
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import ShownEvents
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.json_record import rfc3339
from kaudit.model.logged_incidents import AbortedRecords, Consequence, LoggedIncident, Outcome
from kaudit.model.severity import Severity

log_check = partial(
    check,
    needs=(LoggedIncident,),
    incident=(LOGGED, OF_DISTRESS),
    simulated=none_because("schedules write the logs of partitions, not those of brokers and clients"),
)
_TRANSACTION_STATE = "__transaction_state"
_PARTITIONS = 3
_STANDARD_INPUT = "-"
"""No command can read it again."""
MENDED = {
    Outcome.FENCED: "the log shows the instance that took over: the older one was turned away as intended",
    Outcome.LANDED: "the broker has these sequences by now: the batches were sent again, or had been written before",
    Outcome.SUPERSEDED: "the log shows the producer continue under a new epoch or id, in which it may have sent the records again",
    Outcome.MENDED: "replicas were in sync again afterwards: clients that tried again were not refused",
}
"""Why a refusal is harmless, by what the logs show of its outcome."""
_ABSENT = dict.fromkeys(
    ("replica", "log_dir", "file", "segment", "position", "last_offset"), "known from lines of logs, not from a segment"
)


def with_consequence(evidence: Evidence, consequence: Consequence) -> Iterator[LoggedIncident]:
    """Yield the incidents with this consequence."""
    return (incident for incident in evidence.of(LoggedIncident) if incident.consequence is consequence)


class LoggedEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence of lines of logs: `kind` is the error, or the class of the events; times by the batches' clock where that is known."""

    rule: str
    kind: str
    subject: str
    outcome: str
    lines: int
    first_timestamp: int | None
    last_timestamp: int | None
    transactional_id: str | None = None
    client_id: str | None = None
    expected_sequence: int | None = None
    refused_sequence: int | None = None
    first_missing_sequence: int | None = None
    last_missing_sequence: int | None = None
    to_be_certain: str | None = None
    transaction_timeout_ms: int | None = None
    aborted_offsets: str | None = None


class SequencesEvidence(Struct, frozen=True):
    """Of a batch out of order: the sequence that the broker waited for, the batch's first, and those between them."""

    expected: int | None = None
    refused: int | None = None
    first_missing: int | None = None
    last_missing: int | None = None


class Account(Struct, frozen=True, kw_only=True):
    """What a check says of an incident; `message` is completed by how often it happened, and when."""

    message: str
    severity: Severity
    rule: str
    explanations: Sequence[Explanation]
    sequences: SequencesEvidence = SequencesEvidence()
    impact: Impact = Impact()


def logged_finding(reported: Check, context: Context, incident: LoggedIncident, account: Account) -> Finding:
    """Build a finding of an incident."""
    first = incident.events[0]
    certain, commands = _to_be_certain(context, incident)
    return reported.finding(
        replace(context, topic=incident.topic, partition=incident.partition),
        f"{account.message}; {_seen(incident)}",
        severity=account.severity,
        offset=first.offset if len({event.offset for event in incident.events}) == 1 else None,
        producer_id=incident.producer_id,
        producer_epoch=incident.producer_epoch,
        anchor=" ".join(
            filter(None, [incident.error or first.event.value, incident.transactional_id or incident.client_id])
        ),
        evidence=LoggedEvidence(
            rule=account.rule,
            kind=incident.error or first.event.value,
            subject=incident.subject,
            outcome=incident.outcome.value,
            lines=len(incident.events),
            first_timestamp=min(incident.times, default=None),
            last_timestamp=max(incident.times, default=None),
            transactional_id=incident.transactional_id,
            client_id=incident.client_id,
            to_be_certain=certain,
            transaction_timeout_ms=incident.timeout_ms,
            aborted_offsets=aborted_text(incident.aborted) or None,
            events=ShownEvents(incident.shown, len(incident.events)),
            expected_sequence=account.sequences.expected,
            refused_sequence=account.sequences.refused,
            first_missing_sequence=account.sequences.first_missing,
            last_missing_sequence=account.sequences.last_missing,
        ),
        explanations=account.explanations,
        impact=account.impact,
        following=[*commands, *((f"kaudit explain {incident.error}",) if incident.error else ())],
        absent=_ABSENT,
    )


def harmless(incident: LoggedIncident) -> Sequence[Explanation]:
    """Return why a refusal is harmless, nothing where the logs do not show it."""
    text = MENDED.get(incident.outcome)
    return [] if text is None else [Explanation(text, innocent=True)]


def is_answered_by_bytes(incident: LoggedIncident) -> bool:
    """Whether the partition's log was read, and says that nothing of it is missing, or cannot say."""
    if not incident.partition_read or incident.outcome in {Outcome.NEVER_LANDED, Outcome.MENDED}:
        return False
    return incident.outcome is not Outcome.UNKNOWN or incident.producer_id is not None


def who(incident: LoggedIncident) -> str:
    """Return the producer of an incident, as far as its lines name it."""
    if incident.producer_id is not None:
        return f"producer {incident.producer_id}"
    if incident.transactional_id is not None:
        return f"the producer of transactional id {incident.transactional_id}"
    return "a producer" if incident.client_id is None else f"client {incident.client_id}"


def where(incident: LoggedIncident) -> str:
    """Return ` in orders-0`, nothing where the lines name no partition."""
    if incident.topic is None:
        return ""
    return f" in {incident.topic}" + ("" if incident.partition is None else f"-{incident.partition}")


def clock_text(at_ms: int, incident: LoggedIncident) -> str:
    """Return `2026-08-18 10:15:02.113`, with UTC where the log states its zone."""
    text = (rfc3339(at_ms) or str(at_ms)).replace("T", " ").removesuffix("Z")
    return f"{text} UTC" if all(event.zone_known for event in incident.events) else text


def _seen(incident: LoggedIncident) -> str:
    lines = counted(len(incident.events), "line")
    if not incident.times:
        return lines
    first, last = clock_text(min(incident.times), incident), clock_text(max(incident.times), incident)
    return f"{lines}, {first}" if first == last else f"{lines}, {first} to {last}"


def _to_be_certain(context: Context, incident: LoggedIncident) -> tuple[str, Sequence[str]]:
    """Return what to fetch, and commands that name only what the lines name."""
    first = incident.events[0]
    own_logs = {event.path: event.origin for event in incident.events if event.path != _STANDARD_INPUT}
    logs = "".join(f"--{origin}-log {quote(path)} " for path, origin in own_logs.items())
    commands: list[str] = []
    if incident.transactional_id is not None:
        commands += describe_transaction(context, incident.transactional_id)
    if incident.topic is not None and incident.partition is not None:
        name = f"{incident.topic}-{incident.partition}"
        if incident.partition_read:
            ids = () if incident.producer_id is None else ("--producer-id", str(incident.producer_id))
            given = (text for path, origin in own_logs.items() for text in (f"--{origin}-log", path))
            chosen = ("--topic", incident.topic, "--partition", str(incident.partition), *ids, *given)
            return "its log is among the inputs", [context.asked.command("timeline", (), (), chosen), *commands]
        whose = (
            "every replica, above all of the old leader" if incident.of_replica else f"{_broker(incident)} (log.dirs)"
        )
        what = f"copy the directory {name} of {whose}: it shows what became of these records"
        if incident.consequence is Consequence.REFUSED and not incident.error:
            what = f"get the lines after line {first.line} of {first.path}: they say why; and {what}"
        return what, [f"kaudit scan {logs}{quote(name)}", *commands]
    if incident.transactional_id is not None:
        return _about_transaction(incident, logs, commands)
    if first.origin == "client":
        return "get the brokers' server.log of that time: its lines name producer and partition", commands
    return "get the other brokers' server.log of that time, and the client's log", commands


def _about_transaction(incident: LoggedIncident, logs: str, commands: Sequence[str]) -> tuple[str, Sequence[str]]:
    decided = "what the coordinator decided, and which partitions to copy"
    if incident.aborted:
        return "its records are among the inputs: kaudit timeline shows them", commands
    if incident.coordinator_partition is None:
        return (
            f"copy the directories of {_TRANSACTION_STATE}: the one with this transactional id shows {decided}",
            commands,
        )
    name = f"{_TRANSACTION_STATE}-{incident.coordinator_partition}"
    return f"copy the directory {name} of its leader: it shows {decided}", [f"kaudit scan {logs}{name}", *commands]


def _broker(incident: LoggedIncident) -> str:
    ids = {event.broker_id for event in incident.events if event.origin == "server" and event.broker_id is not None}
    return f"broker {ids.pop()}" if len(ids) == 1 else "its leader"


def aborted_text(aborted: Sequence[AbortedRecords]) -> str:
    """Return `6..10 of orders-0`, nothing where it is not known."""
    found = [f"{one.first_offset}..{one.last_offset} of {one.topic}-{one.partition}" for one in aborted]
    return ", ".join(found[:_PARTITIONS]) + (
        f" and in {len(found) - _PARTITIONS} more partitions" if found[_PARTITIONS:] else ""
    )
