"""Finding and reading the logs of brokers and clients that are given beside the audited logs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

from kaudit.errors import UnreadableInputError, UsageError
from kaudit.formats.application_log.pieces import LogCounts, line_blocks
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import ApplicationLogFile, ApplicationLogs, LogEvent, Origin
from kaudit.source.filesystem import FileStatus
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri, UrlError

_PIECE = 1 << 20
_ROTATED = ".log"
"""In the names of logs, those that were rotated away too: server.log.2026-11-22-03, server.log.1.gz."""


def log_files(place: str, origin: Origin) -> Iterator[str]:
    """Yield the files that a path names: itself, or those of a directory whose names contain .log.

    Raises:
        UsageError: there is no such path, no log in the directory, or its URL cannot be read from.
        UnreadableInputError: it cannot be read.

    """
    try:
        uri = Uri.parse(place)
        if not filesystem(uri).status(uri).is_directory:
            yield place
            return
        names = [
            entry.name for entry in filesystem(uri).entries(uri) if not entry.is_directory and _ROTATED in entry.name
        ]
    except FileNotFoundError:
        raise UsageError(f"--{origin}-log {place}: no such file or directory") from None
    except UrlError as error:
        raise UsageError(f"--{origin}-log {place}: {error}") from None
    except OSError as error:
        raise UnreadableInputError(f"--{origin}-log {place}: {error.strerror or error}") from error
    if not names:
        raise UsageError(f"--{origin}-log {place}: no file there has .log in its name")
    yield from (str(uri / name) for name in sorted(names))


def log_events(path: str, origin: Origin, counts: LogCounts) -> Iterator[LogEvent]:
    """Yield the events of one log file, in its order; what is not understood is counted.

    Raises:
        UsageError: there is no such file, or its URL cannot be read from.
        OSError: it cannot be read.

    """
    status = _status(path)
    return read_events(_pieces(path), origin, path=path, counts=counts, year_before_ms=status.modified_ms)


def log_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of one log file. Raises as `log_events` does."""
    _status(path)
    for block in line_blocks(_pieces(path), LogCounts()):
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


def read_application_logs(server: Sequence[str], client: Sequence[str]) -> ApplicationLogs:
    """Read every file once.

    Raises:
        UsageError: there is no such file, or none that a broker (a client) has written.
        UnreadableInputError: it cannot be read.

    """
    files: list[ApplicationLogFile] = []
    kept: list[LogEvent] = []
    events: Counter[str] = Counter()
    given: tuple[tuple[Origin, Sequence[str]], ...] = (("server", server), ("client", client))
    for origin, places in given:
        for path in dict.fromkeys(path for place in places for path in log_files(place, origin)):
            counts = LogCounts()
            try:
                for event in log_events(path, origin, counts):
                    events[event.event.value] += 1
                    if len(kept) < MAX_EVENTS:
                        kept.append(event)
            except OSError as error:
                raise UnreadableInputError(f"--{origin}-log {path}: {error.strerror or error}") from error
            _require_own(path, origin, counts)
            files.append(ApplicationLogFile(path, origin, counts.lines, counts.unknown_lines, counts.events))
    return ApplicationLogs(files, kept, dict(sorted(events.items())))


def _require_own(path: str, origin: Origin, counts: LogCounts) -> None:
    if counts.events or not counts.lines:
        return
    if not counts.entries:
        raise UsageError(f"--{origin}-log {path}: none of its {counts.lines:,} lines is of a log that kaudit knows")
    if 2 * counts.other_entries > counts.entries:
        whose = "a broker" if origin == "server" else "a Kafka client"
        raise UsageError(f"--{origin}-log {path}: the log of another program, not of {whose}")
