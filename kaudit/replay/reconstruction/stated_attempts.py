"""Attempts in partitions of which no bytes are given: a line about a refusal states what was sent, and what the broker had by then."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.audits.log_events.placement import Certainty, Placement, states_log_end
from kaudit.audits.log_events.producer_names import ProducerNames
from kaudit.broker.releases.version import RELEASES, Version
from kaudit.broker.response import TopicPartition
from kaudit.formats.application_log.patterns import read_patterns
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import NO_COORDINATOR_EPOCH, NO_LEADER_EPOCH
from kaudit.model.sequence import subtract
from kaudit.replay.reconstruction.log_rows import LogRow
from kaudit.replay.reconstruction.partition_lines import Line, PartitionLines, TimedLine, placed_at
from kaudit.replay.reconstruction.refusals import ERRORS, REFUSALS

_NO_TIME = -1


def newest_writing(events: Iterable[LogEvent]) -> str:
    """Return the newest release that writes all these lines of brokers, else the newest of all."""
    last = {pattern.id: pattern.until for pattern in read_patterns("server")}
    of_brokers = [last.get(one.pattern) for one in events if one.origin == "server"]
    ends = [Version.parse(until).line for until in of_brokers if until is not None]
    return str(max((one for one in RELEASES if not ends or one.line <= min(ends)), default=RELEASES[-1]))


def stated_refusals(
    events: Sequence[LogEvent], asked: Callable[[str, int], bool], read: Iterable[TopicPartition]
) -> Mapping[TopicPartition, Sequence[LogEvent]]:
    """Return the refusals in each partition that is asked for and was not read, with the producer ids that other lines name.

    What a client says of a batch is left out where a broker says it too.
    """
    names, found = ProducerNames(events), dict[TopicPartition, list[LogEvent]]()
    there = set(read)
    for event in events:
        if event.event not in REFUSALS or event.topic is None or event.partition is None:
            continue
        key = event.topic, event.partition
        if key not in there and asked(*key):
            found.setdefault(key, []).append(replace(event, producer_id=names.producer_id(event)))
    return {key: list(_said_once(own)) for key, own in sorted(found.items())}


def _said_once(events: Sequence[LogEvent]) -> Iterator[LogEvent]:
    of_brokers = {_batch(event) for event in events if event.origin == "server"}
    yield from (event for event in events if event.origin == "server" or _batch(event) not in of_brokers)


def _batch(event: LogEvent) -> tuple[LogEventKind, int | None, int | None]:
    return event.event, event.producer_id, event.base_sequence


def followed_from(
    events: Iterable[LogEvent], time_of: Callable[[LogEvent], int | None]
) -> Iterator[LogRow | Placement]:
    """Yield refusals in their order, each after the batch that the broker had last by what the line says, if that is a new one."""
    known: dict[int, tuple[int, int]] = {}
    end = 0
    for event in events:
        had = _had(event) if event.event in ERRORS else None
        if event.producer_id is not None and had is not None and had != known.get(event.producer_id):
            known[event.producer_id] = had
            end = max(end, (event.offset or 0) - 1 if states_log_end(event) else end) + 1
            yield _row(event, event.producer_id, had, end - 1, time_of(event))
        certainty = Certainty.OFFSET if states_log_end(event) else Certainty.ORDER
        yield Placement(event, time_of(event), certainty, end - 1, None)


def _had(event: LogEvent) -> tuple[int, int] | None:
    """Return the epoch and the last sequence that the broker had of the producer, None where the line implies no batch."""
    epoch = event.producer_epoch or 0 if event.expected_epoch is None else event.expected_epoch
    last = event.last_sequence
    if last is None and event.expected_sequence:
        last = subtract(event.expected_sequence, 1)
    if event.event is LogEventKind.UNKNOWN_PRODUCER_ID or epoch < 0 or (last is not None and last < 0):
        return None
    of_state = event.event is LogEventKind.INVALID_TXN_STATE or event.expected_epoch is not None
    return (epoch, last or 0) if last is not None or of_state else None


def _row(event: LogEvent, producer_id: int, had: tuple[int, int], offset: int, at: int | None) -> LogRow:
    return LogRow(
        source=f"{event.path}:{event.line}",
        base_offset=offset,
        last_offset=offset,
        leader_epoch=NO_LEADER_EPOCH,
        timestamp=_NO_TIME if at is None else at,
        producer_id=producer_id,
        producer_epoch=had[0],
        base_sequence=had[1],
        is_transactional=event.event is LogEventKind.INVALID_TXN_STATE,
        log_append_time=False,
        commit=None,
        coordinator_epoch=NO_COORDINATOR_EPOCH,
        modified_ms=_NO_TIME if at is None else at,
    )


class StatedLines(PartitionLines):
    """Yields what lines state of a partition: every refusal of a producer that is known, also one that no state explains."""

    def __iter__(self) -> Iterator[TimedLine]:
        """Yield the lines, with how often the same batch had been refused before as `retries`."""
        seen: Counter[tuple[object, ...]] = Counter()
        for at, line in super().__iter__():
            if line["op"] != "produce":
                yield at, line
                continue
            if line["recorded"] == "appended":
                yield at, {"assumed": ["record_count", "timestamp"]} | line
                continue
            batch = tuple(line.get(name) for name in ("producer_id", "producer_epoch", "base_sequence", "recorded"))
            yield at, line | {"retries": seen[batch]}
            seen[batch] += 1

    def _not_repeated(self, placement: Placement, line: Line) -> Iterator[TimedLine]:
        event = placement.event
        assert event.error is not None
        written = self._write({**line, "differs": True}, placed_at(event), event.error, "appended")
        if written is None:
            yield from super()._not_repeated(placement, line)
        else:
            yield written
