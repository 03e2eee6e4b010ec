"""The server logs of brokers: events by broker, when each ran, what it was configured with, and how its clock goes."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.log_events.application_logs import ClockEvents
from kaudit.audits.log_events.broker_clocks import BrokerClock
from kaudit.audits.log_events.placement import EventSource, by_broker
from kaudit.broker.config import MIN_IN_SYNC, READ_OF_BROKERS, READ_OF_TOPICS
from kaudit.model.application_logs import ONLY_FOR_CLOCKS, LogEvent, LogEventKind
from kaudit.replay.reconstruction.refusals import REFUSALS

_STARTING = "starting-"
"""What the ids of patterns begin with whose line is written before the logs are loaded."""
_PROCESS = (LogEventKind.STARTED, LogEventKind.STOPPED)
_VERSION = re.compile(rb"\bKafka version ?: (\d[\w.-]{0,30})")
_SETTING = re.compile(rb"^\s([a-z][\w.]{1,99}) = (.{0,200})$")
_SETTINGS_BEGIN = b"KafkaConfig values:"
_CREATED_LOG = re.compile(
    rb"Created log for partition \[?([\w.-]{1,249})[-,](\d{1,10})\]? in .{0,400}? with properties \{(.{0,4000})\}"
)
_PROPERTY = re.compile(rb"([a-z][a-z.]{1,60}) ?(?:=|->) ?(\[[^\]]{0,100}\]|\"[^\"]{0,100}\"|[^,{}]{0,100})")
"""Newer brokers quote what is a string (ConfigUtils.configMapToRedactedString)."""
_NOT_SET = ("", "null", "[]")
_UNDECIDED = {MIN_IN_SYNC}
"""No log says how many replicas were in sync at an attempt: what the partition holds says that they were enough."""


_KEPT = frozenset(
    {
        *_PROCESS,
        *REFUSALS,
        *ONLY_FOR_CLOCKS,
        LogEventKind.BECAME_LEADER,
        LogEventKind.SNAPSHOT_WRITTEN,
        LogEventKind.LOG_START_OFFSET_MOVED,
        LogEventKind.PRODUCER_ID_ASSIGNED,
    }
)


def kept(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """Yield the events of one log that attempts follow from, without their text."""
    chosen = ClockEvents()
    for event in events:
        if event.event in _KEPT and chosen.keeps(event):
            yield replace(event, text="")


class BrokerSettings(Struct):
    """What server logs state of the broker: `version` the last release that started, its configuration, and the topics'."""

    version: str | None = None
    config: dict[str, str] = field(default_factory=dict)
    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    _in_values: bool = False

    def read(self, lines: Iterable[bytes]) -> None:
        """Take the lines of one log, in order. Only what decides about answers is kept."""
        for line in lines:
            if self._in_values and (setting := _SETTING.match(line)):
                self._take(self.config, setting, READ_OF_BROKERS - _UNDECIDED)
                continue
            self._in_values = _SETTINGS_BEGIN in line
            if b"Kafka version" in line and (named := _VERSION.search(line)):
                self.version = named[1].decode()
            elif b"Created log for" in line and (created := _CREATED_LOG.search(line)):
                config = self.topics.setdefault(created[1].decode(), {})
                for each in _PROPERTY.finditer(created[3]):
                    self._take(config, each, READ_OF_TOPICS - _UNDECIDED)

    @staticmethod
    def _take(config: dict[str, str], found: re.Match[bytes], read: frozenset[str]) -> None:
        name, value = found[1].decode(), found[2].decode("ascii", "replace").strip(' "')
        if name in read:
            config.pop(name, None)
            if value not in _NOT_SET:
                config[name] = value.strip("[]").replace(" ", "") if name.endswith("cleanup.policy") else value


class BrokerRun(Struct, frozen=True):
    """One life of a broker's process: the lines with which it began, was up and ended, None where the log has none."""

    started: LogEvent | None
    up: LogEvent | None
    stopped: LogEvent | None
    last: LogEvent | None
    """The last line of it that is understood."""


class BrokerLog(Struct):
    """The logs of one broker, which lie in the directory `home`."""

    home: str
    events: Sequence[LogEvent]
    broker_id: int | None
    runs: Sequence[BrokerRun]
    clock: BrokerClock | None = None

    @property
    def paths(self) -> set[str]:
        """Its files."""
        return {event.path for event in self.events}

    def batch_time(self, event: LogEvent) -> int | None:
        """Return a line's time by the batches' clock; unchanged where the clock's offset is not known."""
        return event.timestamp_ms if self.clock is None else self.clock.batch_time(event)

    @property
    def has_times(self) -> bool:
        """Whether its times can be held against the batches'."""
        return self.clock is not None and self.clock.is_known

    def of_partition(self, topic: str, partition: int) -> EventSource:
        """Return the events that concern a partition: its own, and the process's."""
        events = list(self._of(topic, partition))
        return EventSource(events, self.batch_time if self.has_times else None)

    def _of(self, topic: str, partition: int) -> Iterator[LogEvent]:
        for event in self.events:
            if event.event in _PROCESS or (event.topic == topic and event.partition == partition):
                yield event

    def restart(self, started: LogEvent) -> tuple[BrokerRun, BrokerRun] | None:
        """Return the life that ended before `started`, and the one that began; None where it is the first that is known."""
        for before, run in zip(self.runs, self.runs[1:], strict=False):
            if run.started is started:
                return before, run
        return None

    def ended_before(self, logged_ms: int) -> BrokerRun | None:
        """Return the life that was over at a time of the log, None if the broker ran then."""
        for before, run in zip(self.runs, [*self.runs[1:], None], strict=True):
            over = None if before.last is None else before.last.timestamp_ms
            begins = None if run is None or run.started is None else run.started.timestamp_ms
            if over is not None and over <= logged_ms and (begins is None or begins > logged_ms):
                return before if before.stopped is not None or run is not None else None
        return None


def broker_logs(events: Iterable[LogEvent]) -> list[BrokerLog]:
    """Return the logs by broker."""
    return [BrokerLog(home, found, broker, _runs(found)) for (home, broker), found in by_broker(events).items()]


def _runs(events: Sequence[LogEvent]) -> list[BrokerRun]:
    runs: list[BrokerRun] = []
    run = BrokerRun(None, None, None, None)
    for event in events:
        if event.event is LogEventKind.STARTED and _begins(run, event):
            if run.last is not None:
                runs.append(run)
            run = BrokerRun(event, None, None, None)
        if event.event is LogEventKind.STARTED and not _is_beginning(event):
            run = replace(run, up=event)
        elif event.event is LogEventKind.STOPPED:
            run = replace(run, stopped=event)
        run = replace(run, last=event)
    return [*runs, run] if run.last is not None else runs


def _begins(run: BrokerRun, started: LogEvent) -> bool:
    """Whether another life begins with a line: brokers write one when they start, and one when they are up."""
    return run.started is None or run.stopped is not None or run.up is not None or _is_beginning(started)


def _is_beginning(started: LogEvent) -> bool:
    return started.pattern.startswith(_STARTING)
