"""Logs of brokers and of applications with a Kafka client as rows: one for each event."""

import heapq
from collections.abc import Iterator

from kaudit.audits.log_events.application_logs import log_events
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.inspect.rows import LogFile, Row, fields_of
from kaudit.model.application_logs import LogEvent
from kaudit.source.content import HEAD_BYTES
from kaudit.source.recognition import recognise
from kaudit.source.schemes import filesystem

_FIELDS = (
    "line", "origin", "client", "level", "producer_id", "producer_epoch", "base_sequence", "last_sequence", "offset",
    "leader_epoch", "transactional_id", "error", "text",
)  # fmt: skip


def event_rows(file: LogFile) -> Iterator[Row]:
    """Yield the events in the order of their lines, with topic and partition as the log has them. Raises OSError if it cannot be read."""
    head = filesystem(file.path).read_start(file.path, HEAD_BYTES)
    origins = recognise(file.path.name, head).origins
    found = (log_events(str(file.path), origin, LogCounts()) for origin in origins)
    before = 0
    for event in heapq.merge(*found, key=lambda event: event.line):
        if event.line != before:  # a broker's and a client's messages may fit one line
            yield _row(file, event)
        before = event.line


def _row(file: LogFile, event: LogEvent) -> Row:
    stated = {
        "topic": event.topic,
        "partition": event.partition,
        "timestamp": event.timestamp_ms,
        "event": event.event.value,
    }
    return file.side_row("event") | stated | fields_of(event, _FIELDS)
