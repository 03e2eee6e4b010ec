"""Logs of brokers and clients as events: one pass, in memory bounded by the longest entry that is kept.

An entry says its message, the exception after it, and the context that the logger puts before it. Errors are named by their name
in the protocol, or by Kafka's exception class.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from kaudit.formats.application_log.entry_lines import is_cut, is_joined, rejoined, separated, width_of
from kaudit.formats.application_log.errors import error_of, exception_in, is_known, refusal
from kaudit.formats.application_log.layouts import (
    LineReader,
    Lines,
    entry_level,
    entry_time,
    looks_like_continuation,
)
from kaudit.formats.application_log.patterns import Pattern, PatternSet, client_of, pattern_set
from kaudit.formats.application_log.pieces import LogCounts, line_blocks
from kaudit.formats.plain_text.facts import gives_a_reason, has_facts
from kaudit.model.application_logs import MAX_TEXT, LogEvent, LogEventKind, Origin
from kaudit.model.coverage import MAX_EXAMPLES, example

_OF_KAFKA: Final = re.compile(rb"o\.a\.k\.|state\.change\.logger|zookeeper|#(?:producer|consumer)-|sarama").search
"""Names of Kafka's parts in logs, besides `kafka` itself."""
_MAX_ENTRY_LINES: Final = 200
"""Lines of one entry that are read: a stack trace is shorter, and its beginning is what matters."""
_OF_PRODUCERS: Final = frozenset({"producer_id", "producer_epoch", "base_sequence"})
Matched = tuple[LogEventKind, Pattern, dict[str, Any]]
"""The class of an entry, the pattern that says most of it, and its values by field of LogEvent."""


def read_events(  # noqa: PLR0913 - what to read, and what is known of it, by keyword
    pieces: Iterable[bytes],
    origin: Origin,
    *,
    path: str,
    counts: LogCounts | None = None,
    year_before_ms: int | None = None,
    partitions: Collection[bytes] = (),
) -> Iterator[LogEvent]:
    """Yield the events of one log file, in its order.

    `pieces` are its bytes, of any size, as they are on disk: gzip and zstd are recognised. Layouts may change from line to
    line. Nothing is refused: what is not understood is counted in `counts`. Where times lack their year it is the latest
    that leaves them at most a day after `year_before_ms`, e.g. when the file was last modified. A line that names one of
    `partitions` holds a fact (`has_facts`).
    """
    counts = LogCounts() if counts is None else counts
    reader = LineReader()
    finder = _Finder(origin, path, counts, year_before_ms, partitions)
    carried = Lines([], [], [], {})
    read = 0  # `counts` may have lines of other files
    for block, whole_lines in line_blocks(pieces, counts, finder.understood):
        if not counts.lines:
            finder.width = width_of(block)
        first, read = read + 1, read + len(block)
        counts.lines += len(block)
        lines = reader.read(block)
        if len(lines.heads) < len(lines.texts) or reader.bare:
            # a collector marks every piece of a wrapped line as an entry
            unknown = _unknown_lines(lines, begun=True) | reader.bare
            if len(lines.heads) > len(reader.bare):
                raw = [whole_lines[number - first] for number in lines.numbers]
                lines = rejoined(lines, unknown, (lines.texts, raw), finder.understood)
        lines = carried.followed_by(lines)
        # the last entry may go on in the next block
        last = lines.heads[-1] if lines.heads else len(lines.texts)
        whole, carried = lines.cut(last if len(lines.texts) - last <= _MAX_ENTRY_LINES else len(lines.texts))
        yield from finder.events(whole)
    yield from finder.events(carried)


class _Finder:
    """Events of the lines of one file."""

    def __init__(
        self,
        origin: Origin,
        path: str,
        counts: LogCounts,
        year_before_ms: int | None,
        partitions: Collection[bytes],
    ) -> None:
        self._origin = origin
        self._partitions = partitions
        self._path = path
        self._counts = counts
        self._year_before_ms = year_before_ms
        self._patterns = pattern_set(origin)
        self._triggers = [trigger.encode() for trigger in self._patterns.triggers]
        self._begun = False
        self._unknown: frozenset[int] = frozenset()
        self.width: int | None = None

    def understood(self, text: bytes) -> int:
        """How much of a line its pattern explains, in characters."""
        matched = self._match(text)
        return 0 if matched is None else matched[0].weight

    def _match(self, text: bytes) -> tuple[Pattern, dict[str, Any]] | None:
        return self._patterns.match(_text(text), self._hits([text]).get(0, ()))

    def events(self, lines: Lines) -> Iterator[LogEvent]:
        """Events of whole entries."""
        self._count(lines)
        hits = self._hits(lines.texts)
        done = -1
        understood: set[int] = set()
        broken: set[int] = set()
        for hit in sorted(hits):
            if hit < done:
                continue
            start, end = _entry_of(lines, hit)
            event = self._event(lines, start, end, hits)
            done = end
            if event is not None:
                self._counts.events += 1
                if _is_complete(event):
                    understood.update(range(start, end))
                else:
                    reasons = {at for at in range(start, end) if self._is_broken(lines.texts[at])}
                    broken |= reasons
                    understood |= {start} - reasons
                yield event
        self._count_facts(lines, understood, broken)

    def _is_broken(self, text: bytes) -> bool:
        """Whether an exception's reason is on a line, but not in words that are known: it was wrapped, cut, or is another program's."""
        if not gives_a_reason(text):
            return False
        matched = self._match(text)
        return matched is None or not matched[0].fields & _OF_PRODUCERS

    def _count_facts(self, lines: Lines, understood: Container[int], broken: Collection[int]) -> None:
        """Count the lines that hold facts and were not understood: in no layout, cut off where no event needed no more, or `broken`."""
        width = self.width
        cut = [] if width is None else [at for at, text in enumerate(lines.texts) if is_cut(text, width)]
        for index in sorted({*self._unknown, *cut, *broken}):
            if index not in understood and has_facts(lines.texts[index], self._partitions):
                self._counts.unknown_lines += index not in self._unknown
                self._counts.unknown_facts += 1
                if len(self._counts.examples) < MAX_EXAMPLES:
                    text = lines.texts[index][: 4 * MAX_TEXT].decode("utf-8", "replace")
                    self._counts.examples.append(example(lines.numbers[index], text))

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
        others = [
            number
            for number, head in enumerate(lines.heads)
            if b"kafka" not in (text := lines.texts[head]) and _OF_KAFKA(text) is None
        ]
        counts.other_entries += len(others)
        ends = [*lines.heads[1:], len(lines.texts)]
        counts.other_lines += sum(ends[number] - lines.heads[number] for number in others)
        if lines.heads:
            for index in (lines.heads[0], lines.heads[-1]):
                time = entry_time(lines.texts[index], lines.times.get(index), self._year_before_ms)
                counts.saw(None if time is None else time.timestamp_ms)
        self._unknown = _unknown_lines(lines, begun=self._begun)
        self._begun = self._begun or bool(lines.heads)
        counts.unknown_lines += len(self._unknown)
        if others and self._unknown:
            of_others = set(others)
            counts.other_lines -= sum(bisect_right(lines.heads, index) - 1 in of_others for index in self._unknown)

    def _event(self, lines: Lines, start: int, end: int, hits: dict[int, list[int]]) -> LogEvent | None:
        """The event of the entry in lines `start` to `end`; None if no pattern fits."""
        triggers = {index - start: hits[index] for index in range(start, end) if index in hits}
        matched = self._separated(lines.texts[start:end], match_entry(lines.texts[start:end], triggers, self._patterns))
        if matched is None:
            return None
        event, pattern, values = matched
        self._counts.unknown_lines -= len(self._unknown.intersection(range(start, end)))
        time = entry_time(lines.texts[start], lines.times.get(start), self._year_before_ms)
        self._counts.saw(None if time is None else time.timestamp_ms)
        text = b"\n".join(lines.texts[start:end])[: 4 * MAX_TEXT].decode("utf-8", "replace")[:MAX_TEXT]
        return LogEvent(
            event=event,
            origin=self._origin,
            client=client_of(pattern),
            path=self._path,
            line=lines.numbers[start],
            pattern=pattern.id,
            text=text,
            timestamp_ms=None if time is None else time.timestamp_ms,
            zone_known=time is not None and time.zone_known,
            level=entry_level(lines.texts[start]) or pattern.level,
            **values,
        )

    def _separated(self, texts: list[bytes], matched: Matched | None) -> Matched | None:
        """Return what an entry says if a collector joined its exception to its message, where that is more than the whole says."""
        if matched is not None and matched[0] is not LogEventKind.REQUEST_ERROR:
            return matched
        if not any(is_joined(text) for text in texts):
            return matched
        pieces = separated(texts)
        if len(pieces) == len(texts):
            return matched
        triggers = {
            index: numbers
            for index, piece in enumerate(pieces[:_MAX_ENTRY_LINES])
            if (numbers := [number for number, trigger in enumerate(self._triggers) if trigger in piece])
        }
        again = match_entry(pieces, triggers, self._patterns)
        says_more = again is not None and again[0] is not LogEventKind.REQUEST_ERROR
        return again if matched is None or says_more else matched


def _is_complete(event: LogEvent) -> bool:
    """Return whether an event has what a line of its kind says: of a refusal, whose it was."""
    is_refusal = event.event is LogEventKind.REQUEST_ERROR or error_of(event.event) is not None
    return not is_refusal or event.producer_id is not None or event.expected_epoch is not None


def _entry_of(lines: Lines, index: int) -> tuple[int, int]:
    """Return where a line's entry begins and ends; a line of an unknown layout begins one itself."""
    position = bisect_right(lines.heads, index)
    start = lines.heads[position - 1] if position else index
    is_near = index - start < _MAX_ENTRY_LINES
    if not is_near or not all(_continues(lines, at) for at in range(start + 1, index + 1) if lines.texts[at]):
        start = index
    limit = lines.heads[position] if position < len(lines.heads) else len(lines.texts)
    following = range(index + 1, min(limit, start + _MAX_ENTRY_LINES))
    return start, next((at for at in following if not _continues(lines, at)), max(following.stop, index + 1))


def _continues(lines: Lines, index: int) -> bool:
    """Return whether a line may continue the one before it, or is one with it in the file: a member of its object."""
    return lines.numbers[index] == lines.numbers[index - 1] or looks_like_continuation(lines.texts[index])


def _unknown_lines(lines: Lines, *, begun: bool) -> frozenset[int]:
    """Indexes of the lines that neither begin an entry nor may continue one; `begun`: whether the file had one before."""
    if len(lines.heads) == len(lines.texts):
        return frozenset()
    first = 0 if begun else lines.heads[0] if lines.heads else len(lines.texts)
    return frozenset(
        index
        for index in set(range(len(lines.texts))).difference(lines.heads)
        if lines.texts[index] and (index < first or not _continues(lines, index))
    )


_MAX_LINE: Final = 4096
"""Bytes of one line that are matched against patterns."""
_FRAME: Final = re.compile(rb"\s+(?:at |\.\.\. \d)").match
_EXCEPTION_LINE: Final = re.compile(rb"(?:[a-z][\w$]*\.){1,20}[A-Z]").match
_CONTEXTS: Final = (
    ("artition", re.compile(r"\b[pP]artition[= ](?:[\w-]{22}:)?([\w.-]{1,249})-(\d{1,10})(?=[\],: ])"), ("topic", "partition")),
    ("topic: ", re.compile(r"[;,] topic: ([\w.-]{1,249})(?:,|$)"), ("topic",)),
    ("partition: ", re.compile(r"[;,] partition: (\d{1,10})(?:,|$)"), ("partition",)),
    ("]@", re.compile(r"(?<![\w.-])([\w.-]{1,249})\[(\d{1,10})\]@"), ("topic", "partition")),
    ("[", re.compile(r"\[(?:\w{1,40} (?:broker|brokerId|id|nodeId|node)=|Broker id=|KafkaApi-|Transaction State Manager |Controller id=)(\d{1,10})\b"), ("broker_id",)),
    ("|", re.compile(r"\|([^|#]{1,250})#(?:producer|consumer)-\d{1,10}\|"), ("client_id",)),
    ("clientId", re.compile(r"\bclientId(?:=|: )([^,\]]{1,250})[,\]]"), ("client_id",)),
    ("ransactionalI", re.compile(r"(?:\btransactionalId=|\[TransactionalId )([^,\]'][^,\]]{0,249})[,\]]"), ("transactional_id",)),
    ("stream-thread [", re.compile(r"\bstream-thread \[([^\]\n]{1,240})\]"), ("client_id",)),
    ("transactional_id=", re.compile(r"[{,]transactional_id=([^,}]{1,250})[,}]"), ("transactional_id",)),
    ("transactionalId='", re.compile(r"\btransactionalId='(?!null')([^']{1,250})'"), ("transactional_id",)),
)  # fmt: skip
"""Fields in the context that a logger puts before its messages, and words without which a line has none: patterns match only the message."""
_NUMBERS: Final = frozenset({"partition", "broker_id"})
_SUFFIXES: Final = {"stream-thread [": "-producer"}
"""What Kafka Streams adds to a thread's name to name the client."""


def match_entry(lines: Sequence[bytes], triggers: Mapping[int, Sequence[int]], patterns: PatternSet) -> Matched | None:
    """Return the class of an entry, the pattern that says most of it, and its values by field of LogEvent; None if none fits.

    `triggers` has the triggers of the lines that have any. The message is the first line. The exception of a stack trace
    says why: where the message says only that a request failed, the exception gives the class, and in any case the
    values that the message lacks.
    """
    matches = (
        (index, matched)
        for index, numbers in triggers.items()
        if not _is_code(lines, index) and (matched := patterns.match(_text(lines[index]), numbers)) is not None
    )
    first = next(matches, None)
    if first is None:
        return None
    (index, (pattern, values)), event = first, first[1][0].event
    if index == 0 and (second := next(matches, None)) is not None:
        cause, more = second[1]
        if event is LogEventKind.REQUEST_ERROR and "error" not in values and not cause.of_writes:
            pattern, event = cause, cause.event
        values = more | values
    thrown = _thrown(lines)
    error = values.get("error") or (thrown if thrown is not None and is_known(thrown) else None)
    event = refusal(event, error)
    values["error"] = error or error_of(event) or thrown
    for at in dict.fromkeys((0, index, *range(1, index))):
        if not _is_code(lines, at):
            values = _with_context(_text(lines[at]), values)
    return event, pattern, values


def _text(line: bytes) -> str:
    return line[:_MAX_LINE].decode("utf-8", "replace")


def _is_code(lines: Sequence[bytes], index: int) -> bool:
    """Return whether a line is a frame of a stack trace, or the program's line that Python shows below one."""
    return _FRAME(lines[index]) is not None or (index > 0 and lines[index - 1].startswith(b'  File "'))


def _thrown(lines: Sequence[bytes]) -> str | None:
    """Return the error of a stack trace: the first that is of the protocol, else that of the first exception."""
    thrown = [
        error
        for index, line in enumerate(lines)
        if (index or _EXCEPTION_LINE(line)) and not _is_code(lines, index) and (error := exception_in(_text(line)))
    ]
    return next((error for error in thrown if is_known(error)), thrown[0] if thrown else None)


def _with_context(head: str, values: dict[str, Any]) -> dict[str, Any]:
    """Add fields from the logger's context before the message."""
    for word, expression, names in _CONTEXTS:
        if word not in head or all(name in values for name in names):
            continue
        if found := expression.search(head):
            read = zip(names, (text + _SUFFIXES.get(word, "") for text in found.groups()), strict=True)
            values = {name: int(value) if name in _NUMBERS else value for name, value in read} | values
    return values
