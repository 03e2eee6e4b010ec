"""Logs of brokers and clients as events: one pass, in memory bounded by the longest entry that is kept."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import Final

from kaudit.formats.application_log.entries import match_entry
from kaudit.formats.application_log.layouts import (
    LineReader,
    Lines,
    entry_level,
    entry_time,
    looks_like_continuation,
)
from kaudit.formats.application_log.patterns import client_of, pattern_set
from kaudit.formats.application_log.pieces import LogCounts, line_blocks
from kaudit.model.application_logs import MAX_TEXT, LogEvent, Origin

_OF_KAFKA: Final = re.compile(rb"o\.a\.k\.|state\.change\.logger|zookeeper|#(?:producer|consumer)-|sarama").search
"""Beside the name itself: how logs name Kafka's parts."""
_MAX_ENTRY_LINES: Final = 200
"""Lines of one entry that are looked at: a stack trace is shorter, and what matters stands at its beginning."""


def read_events(
    pieces: Iterable[bytes],
    origin: Origin,
    *,
    path: str,
    counts: LogCounts | None = None,
    year_before_ms: int | None = None,
) -> Iterator[LogEvent]:
    """Yield the events of one log file, in its order.

    `pieces` are its bytes, of any size, as they are on disk: gzip and zstd are recognised. Layouts may change from line to
    line. Nothing is refused: what is not understood is counted in `counts`. Where times lack their year it is the latest
    that leaves them at most a day after `year_before_ms`, e.g. when the file was last modified.
    """
    counts = LogCounts() if counts is None else counts
    reader = LineReader()
    finder = _Finder(origin, path, counts, year_before_ms)
    carried = Lines([], [], [], {})
    for block in line_blocks(pieces, counts):
        counts.lines += len(block)
        lines = carried.followed_by(reader.read(block))
        # the last entry may go on in the next block
        last = lines.heads[-1] if lines.heads else len(lines.texts)
        whole, carried = lines.cut(last if len(lines.texts) - last <= _MAX_ENTRY_LINES else len(lines.texts))
        yield from finder.events(whole)
    yield from finder.events(carried)


class _Finder:
    """Events of the lines of one file."""

    def __init__(self, origin: Origin, path: str, counts: LogCounts, year_before_ms: int | None) -> None:
        self._origin = origin
        self._path = path
        self._counts = counts
        self._year_before_ms = year_before_ms
        self._patterns = pattern_set(origin)
        self._triggers = [trigger.encode() for trigger in self._patterns.triggers]
        self._begun = False
        self._unknown: frozenset[int] = frozenset()

    def events(self, lines: Lines) -> Iterator[LogEvent]:
        """Events of whole entries."""
        self._count(lines)
        hits = self._hits(lines.texts)
        done = -1
        for hit in sorted(hits):
            if hit < done:
                continue
            start, end = _entry_of(lines, hit)
            event = self._event(lines, start, end, hits)
            done = end
            if event is not None:
                self._counts.events += 1
                yield event

    def _hits(self, texts: list[bytes]) -> dict[int, list[int]]:
        """Numbers of the triggers in the lines that have any, by index of the line."""
        data = b"\n".join(texts)
        positions: list[tuple[int, int]] = []
        for number, trigger in enumerate(self._triggers):
            at = data.find(trigger)
            while at >= 0:
                positions.append((at, number))
                at = data.find(trigger, data.find(b"\n", at) + 1 or len(data))
        found: dict[int, list[int]] = {}
        if positions:
            starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
            for position, number in positions:
                found.setdefault(bisect_right(starts, position) - 1, []).append(number)
        return found

    def _count(self, lines: Lines) -> None:
        counts = self._counts
        counts.entries += len(lines.heads)
        heads = (lines.texts[head] for head in lines.heads)
        counts.other_entries += sum(b"kafka" not in head and _OF_KAFKA(head) is None for head in heads)
        if lines.heads:
            for index in (lines.heads[0], lines.heads[-1]):
                time = entry_time(lines.texts[index], lines.times.get(index), self._year_before_ms)
                counts.saw(None if time is None else time.timestamp_ms)
        self._unknown = _unknown_lines(lines, begun=self._begun)
        self._begun = self._begun or bool(lines.heads)
        counts.unknown_lines += len(self._unknown)

    def _event(self, lines: Lines, start: int, end: int, hits: dict[int, list[int]]) -> LogEvent | None:
        """The event of the entry in lines `start` to `end`; None if no pattern fits."""
        triggers = {index - start: hits[index] for index in range(start, end) if index in hits}
        matched = match_entry(lines.texts[start:end], triggers, self._patterns)
        if matched is None:
            return None
        self._counts.unknown_lines -= start in self._unknown
        time = entry_time(lines.texts[start], lines.times.get(start), self._year_before_ms)
        self._counts.saw(None if time is None else time.timestamp_ms)
        text = b"\n".join(lines.texts[start:end])[: 4 * MAX_TEXT].decode("utf-8", "replace")[:MAX_TEXT]
        return LogEvent(
            event=matched.event,
            origin=self._origin,
            client=client_of(matched.pattern),
            path=self._path,
            line=lines.numbers[start],
            pattern=matched.pattern.id,
            text=text,
            timestamp_ms=None if time is None else time.timestamp_ms,
            zone_known=time is not None and time.zone_known,
            level=entry_level(lines.texts[start]) or matched.pattern.level,
            **matched.values,
        )


def _entry_of(lines: Lines, index: int) -> tuple[int, int]:
    """Where the entry begins that a line is of, and where it ends; a line of no known layout begins one itself."""
    position = bisect_right(lines.heads, index)
    start = lines.heads[position - 1] if position else index
    between = islice(lines.texts, start + 1, index + 1)
    if index - start >= _MAX_ENTRY_LINES or not all(looks_like_continuation(text) for text in between if text):
        start = index
    limit = lines.heads[position] if position < len(lines.heads) else len(lines.texts)
    following = range(index + 1, min(limit, start + _MAX_ENTRY_LINES))
    return start, next(
        (at for at in following if not looks_like_continuation(lines.texts[at])), max(following.stop, index + 1)
    )


def _unknown_lines(lines: Lines, *, begun: bool) -> frozenset[int]:
    """Indexes of the lines that neither begin an entry nor may continue one; `begun`: whether the file had one before."""
    if len(lines.heads) == len(lines.texts):
        return frozenset()
    first = 0 if begun else lines.heads[0] if lines.heads else len(lines.texts)
    return frozenset(
        index
        for index in set(range(len(lines.texts))).difference(lines.heads)
        if lines.texts[index] and (index < first or not looks_like_continuation(lines.texts[index]))
    )
