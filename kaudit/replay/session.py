"""A file of attempts, answered line by line."""

import json
from collections.abc import Iterable, Iterator

import msgspec

from kaudit.broker.attempts import NO_INDEX, Attempt
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import UnknownVersionError
from kaudit.broker.response import Answer
from kaudit.formats.schema_error import UNKNOWN_KEY, describe_misfit
from kaudit.model.limits import ATTEMPT_LINE_BYTES

_decode = msgspec.json.Decoder(Attempt).decode


class AttemptError(ValueError):
    """A line that is not an attempt: `line` counts from 1, `expected` says what should have been there."""

    def __init__(self, line: int, expected: str) -> None:
        self.line = line
        self.expected = expected
        super().__init__(f"line {line}: expected {expected}")


def parse_attempt(line: bytes, number: int) -> Attempt | None:
    """Return the attempt of one line, None if the line is blank; without an index of its own it gets `number`.

    Raises ValueError, saying what was expected.
    """
    if len(line) > ATTEMPT_LINE_BYTES:
        raise ValueError(f"at most {ATTEMPT_LINE_BYTES >> 20} MiB in a line")
    try:
        attempt: Attempt = _decode(line)
    except (ValueError, RecursionError):
        if not line.strip():
            return None
        attempt = _decode_leniently(line)
    if attempt.index == NO_INDEX:
        attempt.index = number
    return attempt


def _decode_leniently(line: bytes) -> Attempt:
    """Parse a line with Python's parser, which takes a little more than JSON (NaN) and names columns.

    Raises ValueError, saying what was expected.
    """
    try:
        document = json.loads(line.decode().rstrip())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"one JSON object, {_problem(error)}") from None
    name = _surrogate_in(document)
    if name is not None:
        raise ValueError(f"{name} to be a string without half a surrogate pair")
    try:
        attempt: Attempt = msgspec.convert(document, Attempt)
    except msgspec.ValidationError as error:
        path, expected = describe_misfit(error, document, Attempt)
        if expected.startswith(UNKNOWN_KEY):
            raise ValueError(f"a known key in place of {path}{expected.removeprefix(UNKNOWN_KEY)}") from None
        raise ValueError(f"{path} to be {expected}" if path else "a JSON object") from None
    return attempt


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"which breaks at column {error.colno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return f"which is not UTF-8 at byte {error.start}"
    return "which is nested too deep" if isinstance(error, RecursionError) else str(error)


def _surrogate_in(document: object) -> str | None:
    """Return the path of a string that is not Unicode text, None if there is none."""
    remaining: list[tuple[str, object]] = [("", document)]
    while remaining:
        path, value = remaining.pop()
        if isinstance(value, dict):
            remaining += [(f"{path}.{name}".lstrip("."), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            remaining += [(f"{path}[{number}]", inner) for number, inner in enumerate(value)]
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return path
    return None


class Session:
    """Answers a file of attempts. `broker` keeps what it remembers, so several files may follow one another."""

    def __init__(self, lines: Iterable[bytes], broker: Broker) -> None:
        self._lines = lines
        self.broker = broker

    def answered(self) -> Iterator[tuple[Attempt, Answer]]:
        """Yield every attempt with its answer, in order.

        An attempt without `index` gets its number among the attempts, from 0. Raises AttemptError, with the line, for
        a line that is not an attempt, or that names a broker or configuration that cannot exist.
        """
        broker = self.broker
        number = 0
        for line_number, line in enumerate(self._lines, 1):
            try:
                attempt = parse_attempt(line, number)
                if attempt is None:
                    continue
                answer = broker.answer(attempt)
            except UnknownVersionError as error:
                nearest = ", ".join(map(str, error.nearest))
                raise AttemptError(line_number, f"a known broker version, {nearest}, not {error.version!r}") from None
            except ValueError as error:
                raise AttemptError(line_number, str(error)) from None
            number += 1
            yield attempt, answer
