"""The logs of brokers and clients held against audited partitions: what they say of findings, and what was refused."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.log_events.broker_clocks import broker_clocks, log_clocks, unaligned_logs
from kaudit.audits.log_events.client_clocks import client_clocks
from kaudit.audits.log_events.incidents import TOO_FEW_REPLICAS, logged_incidents
from kaudit.audits.log_events.producer_names import ProducerNames
from kaudit.audits.log_events.refused import refused_batches
from kaudit.audits.log_events.rolled_back import with_transaction
from kaudit.audits.log_events.timeline_entries import TimelineEvents
from kaudit.audits.replicas.cut_records import has_one_replica, lines_told
from kaudit.checks.log_evidence import EventsOfLogs, as_incident
from kaudit.model.application_logs import ApplicationLogs, LogEventSummary
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.coordinator import CoordinatorEntry
from kaudit.model.logged_incidents import Consequence, LoggedIncident, Outcome
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import INTERNAL_TOPICS


def _with_later_appends(incident: LoggedIncident, appended: Mapping[tuple[str, int], int]) -> LoggedIncident:
    """Return an incident as mended where a coordinator was refused for want of replicas, and has written to its partition since.

    `appended` has the greatest timestamp of each partition's batches, ms; coordinators write theirs with acks=all and their own clock.
    """
    if incident.topic not in INTERNAL_TOPICS or incident.error not in TOO_FEW_REPLICAS or incident.partition is None:
        return incident
    last = max((event.timestamp_ms or 0 for event in incident.events if event.zone_known), default=None)
    is_over = last is not None and appended.get((incident.topic, incident.partition), NO_TIMESTAMP) > last
    return replace(incident, outcome=Outcome.MENDED) if is_over else incident


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
        _with_later_appends(with_transaction(as_incident(incident, events), markers, coordinator), appended)
        for incident in logged_incidents(others, states)
        if incident.consequence is not Consequence.UNCLEAN or (incident.topic, incident.partition) not in alone
    ]
    return ComparedLogs(logs, events, summary, notes, incidents, ProducerNames(logs.kept))
