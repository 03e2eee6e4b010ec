"""The logs of brokers and clients held against audited partitions: what they say of findings, and what was refused.

The records of transactions that logs say were rolled back, in the partitions that were read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.log_events.broker_clocks import broker_clocks, client_clocks, log_clocks, unaligned_logs
from kaudit.audits.log_events.incidents import TOO_FEW_REPLICAS, logged_incidents
from kaudit.audits.log_events.producer_names import ProducerNames
from kaudit.audits.log_events.refused import refused_batches
from kaudit.audits.log_events.timeline_entries import TimelineEvents
from kaudit.audits.replicas.cut_records import has_one_replica, lines_told
from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.checks.log_evidence import EventsOfLogs, as_incident
from kaudit.model.application_logs import ApplicationLogs, LogEvent, LogEventKind, LogEventSummary
from kaudit.model.batch_fields import ABORT_MARKER, NO_OFFSET, NO_TIMESTAMP
from kaudit.model.coordinator import CoordinatorEntry
from kaudit.model.logged_incidents import AbortedRecords, Consequence, LoggedIncident, Outcome
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import INTERNAL_TOPICS

_NEAR_MS = 60_000
"""A coordinator's line and the markers that it writes lie at most so far apart."""


def with_transaction(
    incident: LoggedIncident, markers: Iterable[Markers], entries: Mapping[int, CoordinatorEntry]
) -> LoggedIncident:
    """Return an incident with the timeout of its transactional id and what its last timeout aborted, as far as the bytes show it.

    `entries` are the newest states in __transaction_state by producer id. Times of the incident are by the clock of the bytes.
    """
    if incident.consequence is not Consequence.ROLLED_BACK or incident.producer_id is None:
        return incident
    entry = entries.get(incident.producer_id)
    timeouts = [event for event in incident.events if event.event is LogEventKind.TRANSACTION_TIMEOUT]
    aborted = dict.fromkeys(_aborted(incident.producer_id, timeouts[-1], markers)) if timeouts else ()
    known = entry is not None and entry.transactional_id == (incident.transactional_id or entry.transactional_id)
    timeout = entry.value.timeout_ms if entry is not None and known else None
    return replace(incident, timeout_ms=timeout, aborted=tuple(aborted))


def _aborted(producer_id: int, timeout: LogEvent, markers: Iterable[Markers]) -> Iterator[AbortedRecords]:
    """Yield in each partition the transaction that ended nearest to the line; where the line's clock is not known, the only one."""
    for own in markers:
        rows = own.rows
        chosen = rows[
            (rows["producer_id"] == producer_id) & (rows["type"] == ABORT_MARKER) & (rows["first_offset"] != NO_OFFSET)
        ]
        if timeout.timestamp_ms is not None and timeout.zone_known:
            apart = np.abs(chosen["timestamp"] - timeout.timestamp_ms)
            chosen = chosen[apart == apart.min(initial=_NEAR_MS)]
        if len(chosen) == 1:
            first, last = int(chosen["first_offset"][0]), int(chosen["marker_offset"][0]) - 1
            yield AbortedRecords(own.directory.topic, own.directory.partition, first, last)


def _with_later_appends(incident: LoggedIncident, appended: Mapping[tuple[str, int], int]) -> LoggedIncident:
    """Return an incident as mended where a coordinator was refused for want of replicas, and has written to its partition since.

    `appended` has the greatest timestamp of each partition's batches, ms; coordinators write theirs with acks=all and their own clock.
    """
    if incident.topic not in INTERNAL_TOPICS or incident.error not in TOO_FEW_REPLICAS or incident.partition is None:
        return incident
    last = max((event.timestamp_ms or 0 for event in incident.events if event.zone_known), default=None)
    is_over = last is not None and appended.get((incident.topic, incident.partition), NO_TIMESTAMP) > last
    return replace(incident, outcome=Outcome.MENDED) if is_over else incident


def _with_replica(incident: LoggedIncident, partitions: Iterable[PartitionAudit]) -> LoggedIncident:
    """Return an incident about a log directory with the replica that is its copy: of the same broker, with the same last name."""
    if incident.consequence is not Consequence.DIRECTORY_FAILED:
        return incident
    brokers = {event.broker_id for event in incident.events} - {None}
    copies = {
        copy.replica
        for copy in (partition.directory for partition in partitions)
        if copy.identity is not None and {copy.identity.broker_id} == brokers
        if (copy.log_dir or "").rpartition("/")[2] == incident.subject.rpartition("/")[2]
    }
    return replace(incident, replica=copies.pop()) if len(copies) == 1 else incident


class ComparedLogs(Struct, frozen=True):
    """The events, what became of refused batches, and what went wrong by the lines alone."""

    logs: ApplicationLogs
    events: EventsOfLogs
    summary: LogEventSummary
    not_audited: Sequence[NotAudited]
    incidents: Sequence[LoggedIncident]
    names: ProducerNames

    @property
    def names_transactional_ids(self) -> bool:
        """Whether any event names one."""
        return any(event.transactional_id is not None for event in self.logs.kept)

    def named(self, transactional_ids: Mapping[int, str]) -> "ComparedLogs":
        """Return the same with the transactional ids that __transaction_state has of producer ids."""
        return replace(self, names=ProducerNames(self.logs.kept, transactional_ids))

    def of_partition(self, topic: str, partition: int) -> TimelineEvents:
        """Return the events that stand on timelines of a partition."""
        return TimelineEvents(self.logs.kept, topic, partition, self.events.batch_time, self.names.producer_id)


def compare_logs(
    logs: ApplicationLogs,
    partitions: Sequence[PartitionAudit],
    open_source: OpenSource,
    coordinator: Mapping[int, CoordinatorEntry] = MappingProxyType({}),
) -> ComparedLogs:
    """Estimate the logs' clocks, and find out what became of what was refused.

    `coordinator` has what __transaction_state says of producer ids that the logs name.
    """
    clocks = broker_clocks(logs.kept, [partition.directory for partition in partitions], open_source)
    clocks += client_clocks(logs.kept, clocks)
    states: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
    for partition in partitions:
        own = states.setdefault((partition.directory.topic, partition.directory.partition), {})
        for producer_id, state in partition.last_states.items():
            own[producer_id] = max(own.get(producer_id, state), state)  # of several replicas the one that got further
    refused, more = refused_batches(logs.kept, states)
    summary = LogEventSummary(
        files=logs.files,
        events=logs.events,
        clocks=list(log_clocks(clocks)),
        refused=refused,
        refused_not_listed=more,
        unaligned=unaligned_logs(clocks),
    )
    notes = [NotAudited(log.path, log.reason, unreadable=log.unreadable, asked_for=True) for log in logs.skipped]
    if logs.not_kept:
        notes.append(NotAudited("logs of brokers and clients", f"{logs.not_kept:,} more events are only counted"))
    events = EventsOfLogs(logs.kept, clocks)
    reported = lines_told(events.histories.values(), lambda topic, partition: (topic, partition) in states)
    others = [event for event in logs.kept if (event.path, event.line) not in reported]
    alone = {place for place, history in events.histories.items() if has_one_replica(history)}
    markers = [partition.markers for partition in partitions if partition.markers is not None]
    appended: dict[tuple[str, int], int] = {}
    for partition in partitions:
        place = partition.directory.topic, partition.directory.partition
        appended[place] = max(appended.get(place, NO_TIMESTAMP), partition.counts.max_timestamp)
    incidents = [
        _with_replica(
            _with_later_appends(with_transaction(as_incident(incident, events), markers, coordinator), appended),
            partitions,
        )
        for incident in logged_incidents(others, states)
        if incident.consequence is not Consequence.UNCLEAN or (incident.topic, incident.partition) not in alone
    ]
    return ComparedLogs(logs, events, summary, notes, incidents, ProducerNames(logs.kept))
