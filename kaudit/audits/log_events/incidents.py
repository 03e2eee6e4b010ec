"""What logs of brokers and clients say went wrong, by producer and partition, and whether the same logs show it mended."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import TypeVar

from msgspec import Struct, field, structs
from msgspec.structs import replace

from kaudit.audits.log_events.placement import in_order
from kaudit.audits.log_events.producer_names import ProducerNames
from kaudit.audits.log_events.refused import States, outcome_in_log
from kaudit.broker.producer_state.rules import is_nearly_exhausted
from kaudit.formats.protocol_errors import error_named
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.model.logged_incidents import MAX_EPOCH, Consequence, EpochUse, LoggedIncident, Outcome
from kaudit.model.sequence import distance

_Kind = LogEventKind
CONSEQUENCES: Mapping[str, Consequence] = {
    **dict.fromkeys(
        (
            *("OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER"),
            *("INVALID_RECORD", "CORRUPT_MESSAGE", "INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"),
            *("UNSUPPORTED_FOR_MESSAGE_FORMAT", "UNSUPPORTED_COMPRESSION_TYPE", "POLICY_VIOLATION"),
            *("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "INVALID_REQUIRED_ACKS"),
            *("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
        ),
        Consequence.REFUSED,
    ),
    **dict.fromkeys(("UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_ID_MAPPING"), Consequence.FORGOTTEN),
    **dict.fromkeys(("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"), Consequence.FENCED),
    **dict.fromkeys(
        (
            *("INVALID_TXN_STATE", "TRANSACTION_ABORTABLE", "INVALID_TRANSACTION_TIMEOUT"),
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ),
        Consequence.ROLLED_BACK,
    ),
}
"""By error: those after which a client does not simply try again. Others, such as NOT_LEADER_OR_FOLLOWER, are retried."""
_BY_ERROR = frozenset(
    {
        *(_Kind.OUT_OF_ORDER_SEQUENCE, _Kind.DUPLICATE_SEQUENCE, _Kind.INVALID_PRODUCER_EPOCH, _Kind.FENCED_PRODUCER),
        *(_Kind.UNKNOWN_PRODUCER_ID, _Kind.INVALID_TXN_STATE, _Kind.INVALID_PRODUCER_ID_MAPPING, _Kind.RECORD_REJECTED),
        *(_Kind.REQUEST_ERROR, _Kind.FATAL_ERROR, _Kind.DELIVERY_FAILED),
    }
)
_BY_KIND: Mapping[LogEventKind, Consequence] = {
    _Kind.PRODUCER_EXPIRED: Consequence.FORGOTTEN,
    _Kind.TRANSACTIONAL_ID_EXPIRED: Consequence.FORGOTTEN,
    _Kind.TRANSACTION_TIMEOUT: Consequence.ROLLED_BACK,
    _Kind.DELIVERY_TIMEOUT: Consequence.UNDELIVERED,
    _Kind.DELIVERY_FAILED: Consequence.UNDELIVERED,
    _Kind.FATAL_ERROR: Consequence.UNDELIVERED,
    _Kind.TRUNCATED: Consequence.TRUNCATED,
    _Kind.REPLICATION_FAILED: Consequence.TRUNCATED,
    _Kind.CORRUPTION: Consequence.TRUNCATED,
    _Kind.LOG_DIR_FAILED: Consequence.DIRECTORY_FAILED,
    _Kind.UNCLEAN_LEADER_ELECTED: Consequence.UNCLEAN,
    _Kind.SNAPSHOT_UNREADABLE: Consequence.STATE_REBUILT,
}
_MARKERS_STOPPED = "marker-stopped"
"""The pattern of the only line about a marker after which none follows."""
_APPEND_FAILED = frozenset({"append-failed", "append-failed-topic-id"})
"""The patterns of a line that says why on the lines that follow."""
_NEAR_LINES, _NEAR, _AT_ONCE_MS = 3, 5, 1000
"""Lines, events and milliseconds within which entries are about the same."""
_NAMES = ("producer_id", "transactional_id", "client_id", "topic", "partition")
_names, _NOBODY = attrgetter(*_NAMES), (None,) * len(_NAMES)
_THREAD_FENCED = "streams-fenced"
"""The pattern of the line after which a thread of Kafka Streams gives its tasks up, and initialises its producer anew."""
_OF_REPLICAS = (Consequence.TRUNCATED, Consequence.UNCLEAN, Consequence.STATE_REBUILT)
_NO_TRUNCATION = "truncated-nothing"
"""The pattern of the line by which a truncation changes nothing."""
_ROUTINE = frozenset(
    {
        *("truncated", "truncated-old", "truncated-leader-epoch", "truncated-high-watermark"),
        *("truncated-to-high-watermark", "truncated-unknown-epoch", "truncated-leader-older", "quorum-truncated"),
        *("truncated-epoch-not-known", "truncated-epoch-below-all", "fetch-offset-out-of-range"),
    }
)
"""Patterns of what a follower does at every new leader: one incident for all partitions of a broker."""
_RETRIED = frozenset(
    {
        *(
            "NOT_LEADER_OR_FOLLOWER",
            "LEADER_NOT_AVAILABLE",
            "REQUEST_TIMED_OUT",
            "NETWORK_EXCEPTION",
            "NOT_COORDINATOR",
        ),
        *("UNKNOWN_TOPIC_OR_PARTITION", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
        *("CONCURRENT_TRANSACTIONS", "FENCED_LEADER_EPOCH", "KAFKA_STORAGE_ERROR"),
    }
)
"""Errors after which clients log a failed attempt, and try again."""
_STARTS_ANEW = (_Kind.EPOCH_BUMPED, _Kind.SEQUENCE_RESET, _Kind.PRODUCER_ID_ASSIGNED)
_GIVEN_UP = (_Kind.DELIVERY_FAILED, _Kind.DELIVERY_TIMEOUT, _Kind.FATAL_ERROR)
_DIRECTORY = re.compile(
    r"\b(?:dirs?(?: in)?|log directory) (/[^ ,]*[^ ,.])|checkpoint file (/[^ ]*?)(?:/[^/ ]+-\d+)?/[^/ ]+(?: |$)"
)
"""The log directory that a line names, or that the checkpoint lies in."""
_COORDINATOR = re.compile(r"\b__transaction_state-(\d{1,9})\b")
TOO_FEW_REPLICAS = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")


_MANY_RAISES = 100
"""Epochs that a producer raised in its logs, from which on their rate says when none will be left."""
_DAY_MS = 86_400_000


def consequence_of(event: LogEvent) -> Consequence | None:
    """Return what an event comes to, None where nothing went wrong by it."""
    if event.pattern == _NO_TRUNCATION or (event.event is _Kind.DELIVERY_FAILED and event.error in _RETRIED):
        return None
    if event.pattern == _MARKERS_STOPPED:
        return Consequence.MARKERS_STOPPED
    found = CONSEQUENCES.get(event.error or "") if event.event in _BY_ERROR else None
    if found is not None:
        # of a batch, not of a transaction's end
        refused = found is Consequence.ROLLED_BACK and event.error == "INVALID_TXN_STATE" and event.topic is not None
        return Consequence.REFUSED if refused else found
    return Consequence.REFUSED if _is_unexplained(event) else _BY_KIND.get(event.event)


def _is_unexplained(event: LogEvent) -> bool:
    """Whether a broker says that it refused a batch, and no error of the protocol is among its lines."""
    return event.pattern in _APPEND_FAILED and (event.error is None or error_named(event.error) is None)


def logged_incidents(events: Iterable[LogEvent], states: States) -> Sequence[LoggedIncident]:
    """Return what the events come to. `states`: of each partition that was read, what its log holds of each producer id."""
    return _Incidents(in_order(_one_of_a_line(events)), states).all()


def _one_of_a_line(events: Iterable[LogEvent]) -> Iterable[LogEvent]:
    """Return one event of each entry, the one that says more: a log that holds broker's and client's lines is read as both.

    A collector may have made an entry of the exception: then it counts in place of the line before it.
    """
    by_line: dict[tuple[str, int], LogEvent] = {}
    for event in events:
        before = by_line.get((event.path, event.line))
        if before is None or _facts(before) < _facts(event):
            by_line[event.path, event.line] = event
    found = list(by_line.values())
    return [
        _named(event, [*found[at + 1 : at + _NEAR + 1], *found[max(at - _NEAR, 0) : at]])
        for at, event in enumerate(found)
        if not _is_unexplained(event) or not any(_says_why(after, event) for after in found[at + 1 : at + 2])
    ]


def _named(event: LogEvent, near: Sequence[LogEvent]) -> LogEvent:
    """Return an event that names nobody with the names of one of the same error: Flink's writer and its task log one exception."""
    if event.error is None or _names(event) != _NOBODY:
        return event
    at = event.timestamp_ms or 0
    alike = (
        other for other in near if (other.path, other.error) == (event.path, event.error) and _names(other) != _NOBODY
    )
    at_once = (other for other in alike if abs((other.timestamp_ms or 0) - at) <= _AT_ONCE_MS)
    return replace(event, **dict(zip(_NAMES, _names(next(at_once, event)), strict=True)))


def _says_why(after: LogEvent, event: LogEvent) -> bool:
    is_next = after.path == event.path and 0 < after.line - event.line <= _NEAR_LINES and after.error is not None
    return is_next and (after.topic, after.partition) in {(event.topic, event.partition), (None, None)}


def _facts(event: LogEvent) -> int:
    return sum(value is not None for value in structs.astuple(event))


_Where = tuple[str | None, int | None]


def _key(event: LogEvent, consequence: Consequence, names: ProducerNames) -> Hashable:
    if consequence in {Consequence.ROLLED_BACK, Consequence.MARKERS_STOPPED}:
        return consequence, names.of(event)
    if event.pattern in _ROUTINE:
        return consequence, event.path.rpartition("/")[0]
    if consequence is Consequence.DIRECTORY_FAILED:
        return consequence, _log(event), _directory(event)
    if consequence in _OF_REPLICAS:
        return consequence, event.topic, event.partition
    error = event.error if event.error in CONSEQUENCES else None
    return consequence, names.of(event), error, names.producer_id(event), event.topic, event.partition


def _log(event: LogEvent) -> str:
    """Return what the parts of a log that is rolled have in common."""
    return event.path.partition(".log")[0]


def _directory(event: LogEvent) -> str:
    found = _DIRECTORY.search(event.text)
    return "of an unknown path" if found is None else found[1] or found[2]


class _Producer(Struct):
    """What all events of a producer say of it; a place is a number in the order of events."""

    began: int = -1
    """The last place where it began its sequences anew, under another epoch or id."""
    epoch: int = -1
    epochs_assigned: set[tuple[int | None, int]] = field(default_factory=set)
    """Producer ids and epochs, each once: the coordinator and the client may log the same."""
    ids_assigned: dict[int | None, int] = field(default_factory=dict)
    """The last place where it got a producer id, by id."""
    given_up: dict[_Where, int] = field(default_factory=dict)
    """The last place where the client gave records up, by partition."""
    timed_out: bool = False
    transactional_ids: set[str] = field(default_factory=set)
    client_ids: set[str] = field(default_factory=set)
    coordinators: set[int] = field(default_factory=set)

    def add(self, place: int, event: LogEvent) -> None:
        """Take an event into account."""
        if event.event in _STARTS_ANEW:
            self.began = place
        if event.event is _Kind.PRODUCER_ID_ASSIGNED and event.producer_epoch is not None:
            self.epochs_assigned.add((event.producer_id, event.producer_epoch))
            self.ids_assigned[event.producer_id] = place
        if event.event in _GIVEN_UP:
            self.given_up[event.topic, event.partition] = place
        self.timed_out |= event.event is _Kind.TRANSACTION_TIMEOUT
        self.epoch = max(
            self.epoch, *(-1 if one is None else one for one in (event.producer_epoch, event.expected_epoch))
        )
        if event.transactional_id is not None:
            self.transactional_ids.add(event.transactional_id)
            self.coordinators.update(int(found[1]) for found in _COORDINATOR.finditer(event.text))
        if event.client_id is not None:
            self.client_ids.add(event.client_id)

    def went_on(self, place: int, event: LogEvent) -> bool:
        """Whether it began anew after an event, and gave up nothing of the event's partition."""
        given_up = max(self.given_up.get(where, -1) for where in ((event.topic, event.partition), (None, None)))
        if given_up >= place:
            return False
        return self.began > place or (event.producer_epoch is not None and self.epoch > event.producer_epoch)

    def was_replaced(self, event: LogEvent) -> bool:
        """Whether the coordinator gave its transactional id to another instance, and did not just end a transaction."""
        if self.timed_out:
            return False
        if event.producer_epoch is None:
            return len(self.epochs_assigned) > 1
        return any(epoch > event.producer_epoch for _, epoch in self.epochs_assigned)


class _Incidents:
    """Finds the incidents in events that are in order."""

    def __init__(self, events: Sequence[LogEvent], states: States) -> None:
        self._states = states
        self._names = names = ProducerNames(events)
        self._producers: dict[str, _Producer] = {}
        self._mended: dict[_Where, int] = {}
        """The last place where replicas of a partition were in sync again, by what a line says or needs."""
        self._begun: dict[str, int] = {}
        """The last place where a producer was given an epoch, by log."""
        self._started: dict[str, int] = {}
        """The last place where the broker started, by log."""
        self._groups: dict[Hashable, list[tuple[int, LogEvent]]] = {}
        self._epochs: dict[tuple[str, int | None], list[tuple[int, LogEvent]]] = {}
        """The events that state an epoch, or that there is none left, by producer and producer id."""
        for place, event in enumerate(events):
            if event.event in _STARTS_ANEW:
                self._begun[event.path] = place
            if event.event is _Kind.STARTED:
                self._started[_log(event)] = place
            self._producers.setdefault(names.of(event), _Producer()).add(place, event)
            if event.event is _Kind.ISR_EXPANDED:
                self._mended[event.topic, event.partition] = place
            elif event.event is _Kind.PRODUCER_ID_ASSIGNED and (at := _COORDINATOR.search(event.text)):
                self._mended["__transaction_state", int(at[1])] = place  # the coordinator had appended it there
            consequence = consequence_of(event)
            if consequence is not None:
                self._groups.setdefault(_key(event, consequence, names), []).append((place, event))
            if event.event is _Kind.EPOCHS_EXHAUSTED or _epochs_of(event):
                self._epochs.setdefault((names.of(event), names.producer_id(event)), []).append((place, event))

    def all(self) -> list[LoggedIncident]:
        """Return the incidents in the order of their first events, then those of epochs."""
        found = [self._incident(events) for events in self._groups.values()]
        found += filter(None, map(self._exhausted, self._epochs.values()))
        named = any(one.consequence is Consequence.UNCLEAN and one.topic is not None for one in found)
        # from 3.6 on a second line names the partition by its topic's id alone
        return [one for one in found if not (named and one.consequence is Consequence.UNCLEAN and one.topic is None)]

    def _incident(self, events: Sequence[tuple[int, LogEvent]]) -> LoggedIncident:
        own = [event for _, event in events]
        first = own[0]
        consequence = consequence_of(first)
        assert consequence is not None
        producer, producer_id = self._producers[self._names.of(first)], self._names.producer_id(first)
        topic, partition = _same((event.topic, event.partition) for event in own) or (None, None)
        state = None if topic is None or partition is None else self._states.get((topic, partition))
        outcomes = [Outcome.UNKNOWN]
        if consequence is Consequence.FENCED:
            outcomes = [
                Outcome.SUPERSEDED
                if event.pattern == _THREAD_FENCED and self._begun.get(event.path, -1) > place
                else _outcome_of_fenced(event, producer, partition_read=state is not None)
                for place, event in events
            ]
        elif consequence is Consequence.DIRECTORY_FAILED and self._started.get(_log(first), -1) > events[-1][0]:
            outcomes = [Outcome.MENDED]
        elif consequence in {Consequence.REFUSED, Consequence.FORGOTTEN}:
            read = None if producer_id is None else state
            outcomes = list(self._outcomes(events, producer, producer_id, read))
        return LoggedIncident(
            consequence=consequence,
            subject=_directory(first)
            if consequence is Consequence.DIRECTORY_FAILED
            else f"replicas {first.path}"
            if first.pattern in _ROUTINE
            else self._names.of(first),
            events=own,
            error=_same(event.error or "" for event in own if event.error in CONSEQUENCES) or "",
            outcome=max(outcomes, key=list(Outcome).index),
            partition_read=any((event.topic, event.partition) in self._states for event in own),
            topic=topic,
            partition=partition,
            producer_id=producer_id,
            producer_epoch=_same(event.producer_epoch for event in own),
            transactional_id=_same(producer.transactional_ids),
            client_id=_same(producer.client_ids),
            coordinator_partition=_same(producer.coordinators),
        )

    def _exhausted(self, events: Sequence[tuple[int, LogEvent]]) -> LoggedIncident | None:
        """Return what the epochs of a producer id come to, None where enough are left."""
        own = [event for _, event in events]
        (last, first), producer = events[-1], self._producers[self._names.of(own[0])]
        use = _epoch_use(own)
        if not any(event.event is _Kind.EPOCHS_EXHAUSTED for event in own) and not _is_nearly_exhausted(
            use, is_transactional=bool(producer.transactional_ids)
        ):
            return None
        producer_id = self._names.producer_id(first)
        others = [place for given, place in producer.ids_assigned.items() if given not in {producer_id, NO_PRODUCER_ID}]
        begun = self._begun.get(first.path, -1) if producer_id is None else max(others, default=-1)
        return LoggedIncident(
            consequence=Consequence.EPOCHS_EXHAUSTED,
            subject=self._names.of(first),
            events=own,
            error="",
            outcome=Outcome.SUPERSEDED if begun > last else Outcome.UNKNOWN,
            producer_id=producer_id,
            producer_epoch=None if use is None else use.last,
            transactional_id=_same(producer.transactional_ids),
            client_id=_same(producer.client_ids),
            epochs=use,
        )

    def _outcomes(
        self,
        events: Sequence[tuple[int, LogEvent]],
        producer: _Producer,
        producer_id: int | None,
        state: Mapping[int, tuple[int, int]] | None,
    ) -> Iterator[Outcome]:
        """Yield what became of each refused batch, the last one first; `state` is what the partition's log holds, if read."""
        reached: int | None = None
        for place, event in reversed(events):
            base, last = event.base_sequence, event.last_sequence
            if event.event is _Kind.DUPLICATE_SEQUENCE:
                yield Outcome.LANDED
            elif state is not None:
                yield outcome_in_log(replace(event, producer_id=producer_id), base, state)
            elif event.error in TOO_FEW_REPLICAS and self._mended.get((event.topic, event.partition), -1) > place:
                yield Outcome.MENDED
            elif base is not None and last is not None and reached is not None and _between(last, base, reached):
                yield Outcome.LANDED
            else:
                yield Outcome.SUPERSEDED if producer.went_on(place, event) else Outcome.UNKNOWN
            reached = reached if last is None else last


def _epochs_of(event: LogEvent) -> Sequence[int]:
    return [epoch for epoch in (event.producer_epoch, event.expected_epoch) if epoch is not None and epoch >= 0]


def _epoch_use(events: Sequence[LogEvent]) -> EpochUse | None:
    stated = [(max(epochs), event.timestamp_ms) for event in events if (epochs := _epochs_of(event))]
    if not stated:
        return None
    (first, since), (last, until) = (choice(stated, key=itemgetter(0)) for choice in (min, max))
    return EpochUse(first, last, None if since is None or until is None or until < since else until - since)


def _is_nearly_exhausted(use: EpochUse | None, *, is_transactional: bool) -> bool:
    """Whether few epochs are left, or so many were raised that a client without transactions will have none within a day."""
    if use is None or use.last > MAX_EPOCH:
        return False
    if is_nearly_exhausted(use.last):
        return True
    soon = use.exhausted_in_ms
    return not is_transactional and use.last - use.first >= _MANY_RAISES and soon is not None and soon < _DAY_MS


def _outcome_of_fenced(event: LogEvent, producer: _Producer, *, partition_read: bool) -> Outcome:
    return Outcome.FENCED if partition_read or producer.was_replaced(event) else Outcome.UNKNOWN


_T = TypeVar("_T")


def _same(values: Iterable[_T]) -> _T | None:
    """Return the value that all have, None where they differ or there is none."""
    first, *others = dict.fromkeys(values) or (None,)
    return None if others else first


def _between(last: int, base: int, reached: int) -> bool:
    """Whether a batch that came too early, `base` after `last`, had been appended when the last sequence was `reached`."""
    return 0 < distance(last, base) <= distance(last, reached)
