"""The clock of each client's log, by what the client and a broker say of the same request.

A client logs the answer to a request right after the broker has given it (Sender, TransactionManager, ConsumerCoordinator): the same
batch refused, the same producer id and epoch handed out, the same generation of a group. How long records waited in a client says
nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kaudit.audits.log_events.broker_clocks import BrokerClock
from kaudit.audits.log_events.clock import Anchor, AnchorSource, Unaligned, estimate_clock
from kaudit.model.application_logs import LogEvent, LogEventKind

_ANSWERED_MS, _EARLY_MS = 900, 100
"""A client's line comes at most so long after the broker's, or before it."""
_Key = tuple[object, ...]


def client_clocks(events: Iterable[LogEvent], brokers: Sequence[BrokerClock]) -> list[BrokerClock]:
    """Return the clock of each client's log; `brokers` are those of the brokers' logs among `events`."""
    known = {path: clock for clock in brokers if clock.is_known for path in clock.paths}
    known_times: dict[_Key, list[int]] = {}
    files: dict[str, list[LogEvent]] = {}
    for event in events:
        if event.timestamp_ms is None:
            continue
        if event.origin == "client":
            files.setdefault(event.path, []).append(event)
        elif (clock := known.get(event.path)) is not None and (key := _key(event)) is not None:
            at = clock.batch_time(event)
            known_times.setdefault(key, []).extend([] if at is None else [at])
    return [_clock(path, own, known_times.get) for path, own in sorted(files.items())]


def _clock(path: str, events: Sequence[LogEvent], known_times: Callable[[_Key], list[int] | None]) -> BrokerClock:
    zone_known = all(event.zone_known for event in events)
    found = estimate_clock(_anchors(events, known_times), zone_known=zone_known)
    clock = BrokerClock(path, None, frozenset({path}), zone_known)
    if isinstance(found, Unaligned):
        clock.anchors = found.anchors
    else:
        clock.offsets = found
    return clock


def _anchors(events: Iterable[LogEvent], known_times: Callable[[_Key], list[int] | None]) -> Iterator[Anchor]:
    """Yield the bounds of the lines about a request of which the brokers have as many lines."""
    own: dict[_Key, list[int]] = {}
    for event in events:
        key = _key(event)
        if key is not None and event.timestamp_ms is not None:
            own.setdefault(key, []).append(event.timestamp_ms)
    for key, logged in own.items():
        answered = known_times(key) or ()
        if len(answered) == len(logged):
            for at, given in zip(sorted(logged), sorted(answered), strict=True):
                yield Anchor(at, given - _EARLY_MS, given + _ANSWERED_MS, AnchorSource.BROKERS)


def _key(event: LogEvent) -> _Key | None:
    """Return what is the same in both lines of one request, None if a line does not tell it from others."""
    if event.event is LogEventKind.PRODUCER_ID_ASSIGNED and event.transactional_id is not None:
        return event.event, event.transactional_id, event.producer_id, event.producer_epoch
    if event.event is LogEventKind.GROUP_STABILIZED:
        return event.event, event.group, event.generation
    if event.error is None or event.producer_id is None or event.base_sequence is None:
        return None
    return event.error, event.topic, event.partition, event.producer_id, event.base_sequence
