"""What clients' logs say of a producer id's epochs: which sends failed, and which instance was fenced by another while it was at work."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.audits.log_events.placement import in_order
from kaudit.model.application_logs import LogEvent, LogEventKind
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
