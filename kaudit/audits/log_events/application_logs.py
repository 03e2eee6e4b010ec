"""Reading the logs of brokers and of applications with a Kafka client: those among the inputs, and those given as logs."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.formats.application_log.pieces import LogCounts, line_blocks
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import (
    ONLY_FOR_CLOCKS,
    ApplicationLogFile,
    ApplicationLogs,
    LogEvent,
    LogEventKind,
    Origin,
    SkippedLog,
)
from kaudit.model.coverage import TextLines
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import EXPECTED, ApplicationLog, Layout
from kaudit.source.listing import failure
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri, UrlError

_PIECE = 1 << 20


class GivenLogs(Struct, frozen=True):
    """The logs to read, each once, and what lies beside them or was given in place of one."""

    logs: Sequence[ApplicationLog]
    skipped: Sequence[SkippedLog] = ()


def given_logs(layout: Layout, server: Sequence[str] = (), client: Sequence[str] = ()) -> GivenLogs:
    """List the logs among the inputs, and those under the paths that are given as a broker's (a client's).

    Raises:
        UsageError: there is no such path, or its URL cannot be read from.

    """
    logs: dict[str, ApplicationLog] = {}
    skipped = [SkippedLog(other.path, other.reason) for other in layout.other_logs]
    given: tuple[tuple[Origin, Sequence[str]], ...] = (("server", server), ("client", client))
    for origin, places in given:
        for place in places:
            try:
                found = discover([place])
            except PathNotFoundError:
                raise UsageError(f"--{origin}-log {place}: no such file or directory") from None
            except UrlError as error:
                raise UsageError(f"--{origin}-log {place}: {error}") from None
            for log in found.logs:
                claimed = log.name == str(Uri.parse(place))
                logs.setdefault(_key(log.path), replace(log, origins=(origin,), claimed=claimed))
            skipped += [SkippedLog(other.path, other.reason) for other in found.other_logs]
            skipped += [SkippedLog(entry.path, entry.reason, unreadable=True) for entry in found.unreadable]
            if not (found.logs or found.other_logs or found.unreadable):
                skipped.append(SkippedLog(place, f"--{origin}-log: {_instead(found)}", unreadable=True))
    for log in layout.logs:
        logs.setdefault(_key(log.path), log)
    return GivenLogs([*logs.values()], skipped)


def _key(path: str) -> str:
    return str(Uri.parse(path).absolute())


def _instead(found: Layout) -> str:
    """Return what a path that was given as a log holds instead."""
    for entry in (*found.skipped, *found.empty_inputs):
        return entry.reason
    return "holds batches and no log of a broker or a client"


def log_events(
    path: str, origin: Origin, counts: LogCounts, name: str | None = None, partitions: Collection[bytes] = ()
) -> Iterator[LogEvent]:
    """Yield the events of one log file, in its order, under its name if it has another; what is not understood is counted.

    Raises:
        UsageError: there is no such file, or its URL cannot be read from.
        OSError: it cannot be read.

    """
    status = _status(path)
    return read_events(
        _pieces(path),
        origin,
        path=name or path,
        counts=counts,
        year_before_ms=status.modified_ms,
        partitions=partitions,
    )


def log_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of one log file. Raises as `log_events` does."""
    _status(path)
    for block, _ in line_blocks(_pieces(path), LogCounts()):
        yield from block


def _status(path: str) -> FileStatus:
    try:
        place = Uri.parse(path)
        status = filesystem(place).status(place)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except UrlError as error:
        raise UsageError(str(error)) from None
    return status


def _pieces(path: str) -> Iterator[bytes]:
    place = Uri.parse(path)
    with closing(filesystem(place).open(place)) as source:
        size, at = source.size(), 0
        buffer = memoryview(bytearray(_PIECE))
        while at < size:
            read = source.read_into(at, buffer[: min(_PIECE, size - at)])
            if not read:
                return
            yield bytes(buffer[:read])
            at += read


MAX_EVENTS = 100_000
"""Events kept of all files, 1 to 2 KB each; more are counted."""
_MANY_ALIKE = 1_000
"""Once half as many are kept, of those that say the same of one producer and partition only the first so many are, and the newest."""
CLOCK_EVENTS = 1_000
"""Of a file's events that only tell the time the first so many are kept, of the next every second, and so on."""
_THINNED = ONLY_FOR_CLOCKS - {LogEventKind.BROKER_STARTING, LogEventKind.BROKER_REGISTERED}
"""Two lines of one start belong together."""


class ClockEvents:
    """Chooses among the events of one file, in order: a busy group coordinator must not crowd out what went wrong."""

    def __init__(self) -> None:
        self._seen = self._kept = 0
        self._step = 1

    def keeps(self, event: LogEvent) -> bool:
        """Whether the next event is kept."""
        if event.event not in _THINNED:
            return True
        self._seen += 1
        if self._seen % self._step:
            return False
        self._kept += 1
        if self._kept % CLOCK_EVENTS == 0:
            self._step *= 2
        return True


def read_application_logs(given: GivenLogs, partitions: Collection[str] = ()) -> ApplicationLogs:
    """Read every file, once for each origin it may have. One that cannot be read, or is of no broker or client, is skipped.

    `partitions` are those of the audit: a line that names one is not passed over.
    """
    reading = _Reading(frozenset(name.encode() for name in partitions))
    skipped = [*given.skipped]
    for log in given.logs:
        reason = reading.refuses(log)
        if reason is not None:
            skipped.append(reason)
    return ApplicationLogs(reading.files, reading.kept, dict(sorted(reading.events.items())), skipped)


class _Reading:
    """The events of the files that were read so far."""

    def __init__(self, partitions: Collection[bytes]) -> None:
        self._partitions = partitions
        self.files: list[ApplicationLogFile] = []
        self.kept: list[LogEvent] = []
        self.events: Counter[str] = Counter()
        self._alike: dict[tuple[object, ...], tuple[int, int]] = {}
        """How many events are kept that say the same, and the place of the newest."""

    def _keep(self, event: LogEvent) -> None:
        """Keep an event, in place of an older one where there are many: what is routine must not crowd out what went wrong."""
        own = (event.path, event.pattern, event.topic, event.partition, event.producer_id, event.transactional_id)
        count, newest = self._alike.get(own, (0, -1))
        if count >= _MANY_ALIKE and 2 * len(self.kept) >= MAX_EVENTS:
            self.kept[newest] = event
        elif len(self.kept) < MAX_EVENTS:
            self._alike[own] = count + 1, len(self.kept)
            self.kept.append(event)

    def refuses(self, log: ApplicationLog) -> SkippedLog | None:
        """Read a file; return why it is the log of neither a broker nor a client, or what in it was not understood; else None.

        A file that breaks off with an error leaves the events before that.
        """
        found: dict[Origin, LogCounts] = {}
        lines: set[int] = set()
        try:
            for origin in log.origins:
                found[origin] = self._read(log, origin, lines)
        except OSError as error:
            return SkippedLog(log.name, failure(error), unreadable=True)
        taken = {origin: counts for origin, counts in found.items() if counts.events}
        if not taken:
            reason = _not_own(log, found[log.origins[0]])
            if reason is not None:
                return SkippedLog(log.name, reason, unreadable=log.claimed)
            taken = {log.origins[0]: found[log.origins[0]]}
        for origin, counts in taken.items():
            self.files.append(_file(log.name, origin, counts))
        least = min(taken.values(), key=lambda counts: counts.unknown_facts)
        taken_lines = TextLines(
            least.lines, least.other_lines, least.unknown_lines, least.unknown_facts, (*least.examples,)
        )
        return SkippedLog(log.name, taken_lines.reason, unreadable=True) if taken_lines.unknown_facts else None

    def _read(self, log: ApplicationLog, origin: Origin, lines: set[int]) -> LogCounts:
        """Take the events of one origin but those of `lines`, which another origin has; their lines are added."""
        counts, chosen, begin = LogCounts(), ClockEvents(), len(self.kept)
        others = frozenset(lines)
        for event in log_events(log.path, origin, counts, log.name, self._partitions):
            if event.line in others:
                counts.events -= 1
                continue
            if len(log.origins) > 1 and len(lines) < MAX_EVENTS:
                lines.add(event.line)
            self.events[event.event.value] += 1
            if chosen.keeps(event):
                self._keep(event)
        self.kept[begin:] = sorted(self.kept[begin:], key=attrgetter("line"))
        return counts


def _file(name: str, origin: Origin, counts: LogCounts) -> ApplicationLogFile:
    return ApplicationLogFile(
        name,
        origin,
        counts.lines,
        counts.unknown_lines,
        counts.events,
        counts.other_lines,
        counts.unknown_facts,
        tuple(counts.examples),
    )


_WHOSE: Final[Mapping[Sequence[Origin], str]] = {("server",): "not of a broker", ("client",): "not of a Kafka client"}


def _not_own(log: ApplicationLog, counts: LogCounts) -> str | None:
    """Return why a file without events is no log of a broker (a client); None for one that is, or holds no line."""
    if not counts.lines:
        return None
    if not counts.entries:
        read = "whose one line is not" if counts.lines == 1 else f"of which none of {counts.lines:,} lines is"
        text = f"a text {read} of a log that kaudit knows"
        return text if log.claimed else f"no segment file but {text}; {EXPECTED}"
    whose = _WHOSE.get(log.origins, "neither of a broker nor of a Kafka client")
    return f"the log of another program, {whose}" if 2 * counts.other_entries > counts.entries else None
