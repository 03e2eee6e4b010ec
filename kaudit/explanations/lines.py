"""Lines of logs as a person pastes them: the events in them, and the errors that they name."""

import re
from collections.abc import Sequence

from msgspec import Struct

from kaudit.formats.application_log.patterns import PROGRAMS, read_pattern_file
from kaudit.formats.application_log.reader import read_events
from kaudit.formats.protocol_errors import ProtocolError, error_named, error_numbered
from kaudit.model.application_logs import LogEvent

_NAMES = re.compile(
    r"\b(?:[a-z][\w$]*\.)*(?:[A-Z]\w{1,100}(?:Exception|Error)|Err[A-Z]\w{1,60}|_?[A-Z]{2,}(?:_[A-Z]+)+)\b"
)
_CODES = re.compile(r"\b(?:error[ _]?code|errno|val)\b[\"'\s:=(]{1,4}(-?\d{1,4})\b", re.IGNORECASE)
_CLASS = re.compile(r"[\w.$]+").fullmatch
LONGEST = 1 << 20
"""Bytes of a pasted text that are read: whole logs are for `kaudit scan --server-log`."""


class PastedText(Struct, frozen=True):
    """What a pasted text holds: events in the order of its lines, and errors that no event has, in their order in the text.

    `cut`: only the first LONGEST bytes were read.
    """

    events: Sequence[LogEvent]
    errors: Sequence[ProtocolError]
    cut: bool = False


class MissingSequences(Struct, frozen=True):
    """What a refusal says about sequences: the broker waits for `expected` and got `incoming`; `count` lie between them.

    `count` is 0 where the batch begins at or below the expected sequence: it repeats or overlaps what the broker has.
    """

    expected: int
    incoming: int

    @property
    def count(self) -> int:
        """The number of sequences between them."""
        return max(self.incoming - self.expected, 0)


def read_pasted(data: bytes) -> PastedText:
    """Return what lines of a broker's or a client's log say; a line that both may write is the one's whose words fit more of it."""
    read = data[:LONGEST]
    by_line: dict[int, list[LogEvent]] = {}
    for origin in PROGRAMS:
        for event in read_events([read], origin, path="-"):
            by_line.setdefault(event.line, []).append(event)
    events = [max(found, key=_weight) for _, found in sorted(by_line.items())]
    of_events = {event.error for event in events}
    text = read.decode("utf-8", "replace")
    named = [error_named(name) for name in _NAMES.findall(text)]
    numbered = [error_numbered(int(code)) for code in _CODES.findall(text)]
    errors = dict.fromkeys(error for error in (*named, *numbered) if error is not None and error.name not in of_events)
    return PastedText(events, list(errors), len(data) > LONGEST)


def error_of(event: LogEvent) -> ProtocolError | None:
    """Return the error that an event names, None if it names none that is known."""
    return None if event.error is None else error_named(event.error)


def missing_sequences(event: LogEvent) -> MissingSequences | None:
    """Return what a refused batch says about sequences, None where it says not both."""
    expected = event.expected_sequence
    if expected is None and event.last_sequence is not None:
        expected = event.last_sequence + 1
    return None if expected is None or event.base_sequence is None else MissingSequences(expected, event.base_sequence)


def _weight(event: LogEvent) -> tuple[bool, int]:
    """How much of a line its pattern explains: a message more than the class of an exception, which anybody may print."""
    patterns = (pattern for program in PROGRAMS[event.origin] for pattern in read_pattern_file(program).patterns)
    found = next((pattern for pattern in patterns if pattern.id == event.pattern), None)
    return (False, 0) if found is None else (_CLASS(found.text) is None, found.weight)
