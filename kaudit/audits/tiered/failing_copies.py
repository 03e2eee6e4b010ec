"""Copies to remote storage that fail again and again, or do not end, as lines of brokers say."""

from collections.abc import Iterable, Iterator
from typing import Final

from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.record_loss import LeaderHistory
from kaudit.model.remote_segments import FailingCopies, RemoteLog

_Line = tuple[str, LogEvent, EventEvidence]
_AT_LEAST: Final = 2
"""Failures in a row: brokers try again after 30 s (remote.log.manager.task.interval.ms)."""
_HANGS_MS: Final = 3_600_000
"""A copy that takes longer does not end: at 300 kB/s a segment of 1 GiB takes an hour."""
_COPIED: Final = "remote-segment-copied"
_LINES_SHOWN: Final = 5


def failing_copies(history: LeaderHistory, logs: Iterable[RemoteLog]) -> Iterator[FailingCopies]:
    """Yield once that a partition is not copied any more: nothing where a later line, or a record in `logs`, shows that it went on.

    `logs` are those of all partitions. A broker that follows leaves copying to the leader.
    """
    failed: list[_Line] = []
    begun: dict[str, _Line] = {}
    copied: EventEvidence | None = None
    reached: list[int] = []
    tried: int | None = None
    for line in sorted(history.copies, key=lambda each: each[2].timestamp or 0):
        broker, event, shown = line
        if event.event is LogEventKind.REMOTE_COPY_BEGUN:
            begun[broker], tried = line, event.offset
            continue
        if event.event is LogEventKind.REMOTE_COPIED:
            reached += [] if event.offset is None else [event.offset]
            if event.pattern != _COPIED:
                continue  # how far copies had come before
            failed, copied = [], shown
        elif event.event is LogEventKind.REMOTE_COPY_FAILED:
            failed.append(line)
        else:
            failed = [other for other in failed if other[0] != broker]
        begun.pop(broker, None)
    hanging = [line for broker, line in begun.items() if _elapsed(line[2], history.until[broker]) > _HANGS_MS]
    lines = failed if len(failed) >= _AT_LEAST else hanging
    if not lines or (tried is not None and _has(logs, history, tried)):
        return
    yield FailingCopies(
        topic=history.topic,
        partition=history.partition,
        brokers=sorted({broker for broker, *_ in lines}),
        failures=0 if lines is hanging else len(lines),
        offset=tried,
        first=lines[0][2],
        last=history.until[lines[0][0]] if lines is hanging else lines[-1][2],
        copied=copied,
        copied_to=max(reached, default=None),
        shown=ShownEvents([shown for *_, shown in lines[:_LINES_SHOWN]], len(lines)),
    )


def _elapsed(begun: EventEvidence, last: EventEvidence) -> int:
    return 0 if begun.timestamp is None or last.timestamp is None else last.timestamp - begun.timestamp


def _has(logs: Iterable[RemoteLog], history: LeaderHistory, offset: int) -> bool:
    """Whether a copy of a segment with the offset has finished."""
    return any(
        segment.copied_timestamp is not None and segment.start_offset <= offset <= segment.end_offset
        for log in logs
        if (log.topic, log.partition) == (history.topic, history.partition)
        for segment in log.segments
    )
