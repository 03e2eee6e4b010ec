"""Sends that failed for an application, as clients' logs say: the sequences that were given out, and the last acknowledged one."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.producer_patterns import GivenUpSends

_GAVE_UP = (LogEventKind.EPOCH_BUMPED, LogEventKind.SEQUENCE_RESET)
Place = tuple[str, int]
"""Topic and partition."""


class _Client(NamedTuple):
    path: str
    client_id: str | None


def given_up_sends(events: Iterable[LogEvent]) -> Mapping[Place, Mapping[int, list[GivenUpSends]]]:
    """Return what clients gave up, by partition and producer id; events of one file in the order of its lines.

    Source: TransactionManager.maybeResolveSequences, which says so when nothing is in flight to the partition any more. What it calls
    the last acknowledged sequence may be that of an older epoch: no more than that was acknowledged.
    """
    current: dict[_Client, tuple[int, int]] = {}
    found: dict[Place, dict[int, list[GivenUpSends]]] = {}
    for event in events:
        client = _Client(event.path, event.client_id)
        if event.event is LogEventKind.PRODUCER_ID_ASSIGNED:
            if event.producer_id is not None and event.producer_epoch is not None:
                current[client] = event.producer_id, event.producer_epoch
        elif event.event in _GAVE_UP and client in current:
            producer_id, epoch = current[client]
            if (
                event.topic is None
                or event.partition is None
                or event.expected_sequence is None
                or event.last_sequence is None
            ):
                continue
            sends = GivenUpSends(epoch, event.last_sequence, event.expected_sequence - 1)
            found.setdefault((event.topic, event.partition), {}).setdefault(producer_id, []).append(sends)
    return found
