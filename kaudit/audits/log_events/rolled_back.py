"""The records of transactions that logs say were rolled back, in the partitions that were read."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import ABORT_MARKER, NO_OFFSET
from kaudit.model.coordinator import CoordinatorEntry
from kaudit.model.logged_incidents import AbortedRecords, Consequence, LoggedIncident

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
