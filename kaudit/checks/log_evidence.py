"""Chooses the events that are evidence for a finding, and the causes that they show.

What clients' logs say of a producer id's epochs: which sends failed, and which instance was fenced by another while it was at work.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.audits.log_events.broker_clocks import BrokerClock
from kaudit.audits.log_events.leader_history import Shown, leader_histories
from kaudit.audits.log_events.placement import in_order
from kaudit.checks.log_causes import FENCED, LogCause
from kaudit.checks.registry import CHECKS
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.finding import Explanation, Finding
from kaudit.model.logged_incidents import LoggedIncident
from kaudit.model.producer_patterns import GivenUpSends

_FENCING = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})
_GAVE_UP = (LogEventKind.EPOCH_BUMPED, LogEventKind.SEQUENCE_RESET)
Place = tuple[str, int]
"""Topic and partition."""


class _Client(NamedTuple):
    path: str
    client_id: str | None


def given_up_sends(events: Iterable[LogEvent]) -> Mapping[Place, Mapping[int, list[GivenUpSends]]]:
    """Return what clients gave up, by partition and producer id; events of one file in the order of its lines.

    Source: TransactionManager.maybeResolveSequences, which says so when nothing is in flight to the partition any more. What it calls
    the last acknowledged sequence may be that of an older epoch: no more than that was acknowledged. What is in flight when the epoch
    rises goes on under new sequences (ProducerBatch.resetProducerState); what had sequences below is over.
    """
    current: dict[_Client, tuple[int, int]] = {}
    found: dict[Place, dict[int, list[GivenUpSends]]] = {}
    for event in events:
        client = _Client(event.path, event.client_id)
        if event.event is LogEventKind.PRODUCER_ID_ASSIGNED:
            if event.producer_id is not None and event.producer_epoch is not None:
                current[client] = event.producer_id, event.producer_epoch
            continue
        if event.client_id is None:  # the batch's own logger does not name its client
            client = next((each for each in reversed(current) if each.path == event.path), client)
        if event.event not in _GAVE_UP or client not in current or event.topic is None or event.partition is None:
            continue
        producer_id, epoch = current[client]
        sends = found.setdefault((event.topic, event.partition), {}).setdefault(producer_id, [])
        if event.expected_sequence is not None and event.last_sequence is not None:
            sends.append(GivenUpSends(epoch, event.last_sequence, event.expected_sequence - 1))
        elif event.base_sequence is not None and event.last_sequence is not None:
            if not sends or sends[-1].producer_epoch != epoch - 1 or not sends[-1].moved:
                sends.append(GivenUpSends(epoch - 1, None, -1))
            moved = (*sends[-1].moved, (event.last_sequence, event.base_sequence))
            sends[-1] = replace(sends[-1], last_assigned=event.last_sequence, moved=moved)
    return found


def fenced_instances(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """Yield the lines in which an instance is fenced that another has already taken over from, with the producer id and epoch it had.

    An instance that fails by itself, as after a transaction that timed out, is fenced before there is another.
    """
    current: dict[_Client, LogEvent] = {}
    newest: dict[int, tuple[int, _Client]] = {}
    for event in in_order(event for event in events if event.origin == "client"):
        client = _Client(event.path, event.client_id)
        producer_id, epoch = event.producer_id, event.producer_epoch
        if event.event is LogEventKind.PRODUCER_ID_ASSIGNED and producer_id is not None and epoch is not None:
            current[client], newest[producer_id] = event, (epoch, client)
        elif event.error in _FENCING and (own := current.get(client)) is not None and own.producer_id in newest:
            after, other = newest[own.producer_id]
            if other != client and after > (own.producer_epoch or 0):
                yield replace(event, producer_id=own.producer_id, producer_epoch=own.producer_epoch)


MAX_EVENTS = 5
"""Most events that are listed in one finding."""
_BEFORE_MS, _AFTER_MS = 600_000, 600_000
"""An election, a recovery or a timeout is evidence if it happened within this time before or after the finding's batches."""

_JUST_BEFORE_MS = 120_000
"""An error that made a batch come late is evidence this long before: a client gives a batch up after delivery.timeout.ms."""


class EventsOfLogs:
    """Events of logs by producer, transactional id and partition."""

    def __init__(self, events: Iterable[LogEvent], clocks: Iterable[BrokerClock]) -> None:
        self._clocks = {path: clock for clock in clocks for path in clock.paths}
        self._of_producer: dict[int, list[LogEvent]] = defaultdict(list)
        self._of_transaction: dict[str, list[LogEvent]] = defaultdict(list)
        self._of_partition: dict[tuple[str, int], list[LogEvent]] = defaultdict(list)
        self._of_nobody: list[LogEvent] = []
        events = list(events)
        self.histories = leader_histories(events, Shown(self.as_evidence, self.known_time))
        """By topic and partition, the leaders and followers that lines of brokers name, and what they cut off."""
        self.given_up = given_up_sends(events)
        """The sends that clients say failed, by topic and partition, and by producer id."""
        self.removed_topics = {
            event.topic_id: f"{event.path.rpartition('/')[2]}:{event.line}"
            for event in events
            if event.event is LogEventKind.TOPIC_REMOVED and event.topic_id is not None
        }
        """The line that says that a topic was deleted, by topic id."""
        for event in events:
            if event.producer_id is not None:
                self._of_producer[event.producer_id].append(event)
            if event.transactional_id is not None:
                self._of_transaction[event.transactional_id].append(event)
            if event.topic is not None and event.partition is not None:
                self._of_partition[event.topic, event.partition].append(event)
            elif event.producer_id is None and event.transactional_id is None:
                self._of_nobody.append(event)
        fenced: dict[int, list[LogEvent]] = defaultdict(list)
        for event in (*(event for event in events if event.event in FENCED.kinds), *fenced_instances(events)):
            if event.producer_id is not None:
                fenced[event.producer_id].append(event)
        self.fenced: Mapping[int, Sequence[LogEvent]] = fenced
        """The events of instances that were fenced, by producer id."""

    def all_explained(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings in their order, each as `explained` returns it."""
        return [self.explained(finding) for finding in findings]

    def explained(self, finding: Finding) -> Finding:
        """Return the finding with the events that speak for its causes; these causes come first."""
        causes: list[Explanation] = []
        own = finding.evidence.events
        shown: list[EventEvidence] = [] if own is None else list(own.events)
        count = 0 if own is None else own.count
        own_lines = {(event.path, event.line) for event in shown}
        for cause in CHECKS[finding.code].causes if finding.code in CHECKS else ():
            events = [event for event in self._of(cause, finding) if (event.path, event.line) not in own_lines]
            if not events:
                continue
            count += len(events)
            shown += map(self.as_evidence, events[: max(MAX_EVENTS - len(shown), 1)])
            first = events[0]
            several = (
                f", and {len(events) - 1} more lines" if len(events) > 2 else ", and 1 more line" if events[1:] else ""
            )
            causes.append(Explanation(cause.text, speaks_for=(f"{first.line_name}{several}",)))
        if not causes:
            return finding
        evidence = replace(finding.evidence, events=ShownEvents(shown, count))
        return replace(finding, evidence=evidence, explanations=[*causes, *finding.explanations])

    def as_evidence(self, event: LogEvent) -> EventEvidence:
        """Return an event as evidence has it; `timestamp` is by the batches' clock where the log's is known, ms."""
        time, text = self.batch_time(event), event.text.partition("\n")[0]
        return EventEvidence(event.path, event.line, time, event.event.value, text)

    def by_batches(self, event: LogEvent) -> LogEvent:
        """Return an event with its time by the clock of the batches; itself where that is not known."""
        clock = self._clocks.get(event.path)
        if clock is None or not clock.offsets or not clock.is_known:
            return event
        return replace(event, timestamp_ms=self.batch_time(event), zone_known=True)

    def batch_time(self, event: LogEvent) -> int | None:
        """Return when it happened by the clock of the batches, as far as that is known."""
        clock = self._clocks.get(event.path)
        return event.timestamp_ms if clock is None else clock.batch_time(event)

    def known_time(self, event: LogEvent) -> int | None:
        """Return when it happened by the clock of the batches, None where the log's clock is not known."""
        clock = self._clocks.get(event.path)
        known = event.zone_known or (clock is not None and clock.is_known)
        return self.batch_time(event) if known else None

    def _same_clock(self, path: str, other: str) -> bool:
        """Whether one broker, or one client, wrote both logs: logs of clients in one directory that nothing aligns are one's."""
        one, two = self._clocks.get(path), self._clocks.get(other)
        is_alike = one is two or (_is_unaligned_client(one) and _is_unaligned_client(two))
        return is_alike and path.rpartition("/")[0] == other.rpartition("/")[0]

    def _of(self, cause: LogCause, finding: Finding) -> list[LogEvent]:
        if cause.of_producer:
            return [
                event for event in self._of_its_producer(finding) if cause.is_shown_by(event) and _fits(event, finding)
            ]
        near = [
            *self._of_partition.get(finding.partition_key, ()),
            *(self._of_nobody if finding.topic is not None else ()),
        ]
        return [
            event
            for event in near
            if cause.is_shown_by(event)
            and (
                _is_above(event, finding)
                if cause.at_any_time
                else self._at_the_time(event, finding, before=bool(cause.errors))
            )
        ]

    def _of_its_producer(self, finding: Finding) -> list[LogEvent]:
        named = finding.evidence.transactional_id
        own = self._of_producer.get(finding.producer_id, []) if finding.producer_id is not None else []
        if named is None:
            return own
        known = {id(event) for event in own}
        return own + [event for event in self._of_transaction.get(named, ()) if id(event) not in known]

    def _at_the_time(self, event: LogEvent, finding: Finding, *, before: bool) -> bool:
        first, last = _times(finding)
        at = self.batch_time(event)
        if at is None or first is None or last is None:
            return False
        clock = self._clocks.get(event.path)
        known = event.zone_known or (clock is not None and clock.is_known)
        known = known or any(self._same_clock(str(own.path), event.path) for own in finding.evidence.log_events)
        return known and (
            first - _JUST_BEFORE_MS <= at <= first if before else first - _BEFORE_MS <= at <= last + _AFTER_MS
        )


def _is_above(event: LogEvent, finding: Finding) -> bool:
    return event.offset is None or finding.offset is None or event.offset > finding.offset


def _is_unaligned_client(clock: BrokerClock | None) -> bool:
    return clock is not None and not clock.offsets and clock.directory in clock.paths


def as_incident(incident: LoggedIncident, events: EventsOfLogs) -> LoggedIncident:
    """Return an incident with times by the batches' clock where it is known, and events as evidence: one of each kind, and the last."""
    kinds = {(event.event, event.error): event for event in reversed(incident.events)}
    kept = {id(event) for event in (*list(kinds.values())[1 - MAX_EVENTS :], incident.events[-1])}
    shown = [replace(events.as_evidence(event), text=_said(event)) for event in incident.events if id(event) in kept]
    return replace(incident, shown=shown, events=[events.by_batches(event) for event in incident.events])


def _said(event: LogEvent) -> str:
    """Return the line of an entry that says why: its exception, which stands below a message without one."""
    first, _, rest = event.text.partition("\n")
    exception = rest.partition("\n")[0]
    return exception if "Exception: " in exception and "Exception: " not in first else first


def _fits(event: LogEvent, finding: Finding) -> bool:
    """Whether an event of the producer is of the finding's partition and epoch, as far as it names them."""
    if event.topic is not None and (event.topic, event.partition) != (finding.topic, finding.partition):
        return False
    epochs = [epoch for epoch in (event.producer_epoch, event.expected_epoch) if epoch is not None]
    return not epochs or finding.producer_epoch is None or min(epochs) - 1 <= finding.producer_epoch <= max(epochs) + 1


def _times(finding: Finding) -> tuple[int | None, int | None]:
    """The times of the batches around a finding, ms."""
    evidence = finding.evidence
    batches = (evidence.previous, evidence.offending, evidence.next)
    times = [batch.timestamp for batch in batches if batch is not None]
    times += [evidence.first_timestamp, evidence.last_timestamp]
    known = [time for time in times if time is not None and time >= 0]
    return (min(known), max(known)) if known else (None, None)
