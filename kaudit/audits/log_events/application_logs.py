"""Reading the logs of brokers and clients that are given beside the audited logs."""

from collections import Counter
from collections.abc import Sequence

from kaudit.audits.log_events.log_files import log_events, log_files
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.model.application_logs import ApplicationLogFile, ApplicationLogs, LogEvent, Origin

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
