"""Whole files of attempts: every line in, its answer out."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TextIO

from kaudit.replay.answer import Answer
from kaudit.replay.attempts import Attempt, AttemptError, parse_attempt
from kaudit.replay.broker import Broker
from kaudit.replay.profile import Profile, UnknownVersionError
from kaudit.replay.render import DOCUMENT_BEGIN, DOCUMENT_END, TABLE_HEADER, as_json, as_json_with_state, as_row

FORMATS = ("table", "jsonl", "json")


_CHUNK = 1000
"""Answers written at once."""


class Session:
    """Answers a file of attempts. `broker` keeps what it remembers, so several files may follow one another."""

    def __init__(self, lines: Iterable[str | bytes], broker: Broker) -> None:
        self._lines = lines
        self.broker = broker

    def answered(self) -> Iterator[tuple[Attempt, Answer]]:
        """Yield every attempt with its answer, in order.

        An attempt without `index` gets its number among the attempts, from 0. Raises AttemptError, with the line, for
        what is no attempt or names a broker or configuration that cannot be.
        """
        answer = self.broker.answer
        number = 0
        for line_number, line in enumerate(self._lines, 1):
            try:
                attempt = parse_attempt(line, number)
                if attempt is None:
                    continue
                number += 1
                answered = answer(attempt)
            except UnknownVersionError as error:
                nearest = ", ".join(map(str, error.nearest))
                raise AttemptError(line_number, f"a known broker version, {nearest}, not {error.version!r}") from None
            except ValueError as error:
                raise AttemptError(line_number, str(error)) from None
            yield attempt, answered


def formatted(session: Session, formats: Sequence[str], *, with_state: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield the output in each of `formats` (of FORMATS), piece by piece, many lines a piece, in step."""
    writers = [_WRITERS[name]() for name in formats]
    yield tuple(writer.begin for writer in writers)
    pairs = session.answered()
    while chunk := list(islice(pairs, _CHUNK)):
        profile = session.broker.profile if with_state else None
        yield tuple(writer.lines(chunk, profile) for writer in writers)
    yield tuple(writer.end for writer in writers)


class _Table:
    begin, end = TABLE_HEADER + "\n", ""

    def lines(self, chunk: list[tuple[Attempt, Answer]], _: Profile | None) -> str:
        return "".join([as_row(attempt, answer) + "\n" for attempt, answer in chunk])


class _JsonLines:
    begin = end = ""

    def lines(self, chunk: list[tuple[Attempt, Answer]], profile: Profile | None) -> str:
        return "".join([line + "\n" for line in _json(chunk, profile)])


class _Json:
    begin, end = DOCUMENT_BEGIN, DOCUMENT_END

    def __init__(self) -> None:
        self._separator = "\n"

    def lines(self, chunk: list[tuple[Attempt, Answer]], profile: Profile | None) -> str:
        before, self._separator = self._separator, ",\n"
        return before + ",\n".join(_json(chunk, profile))


_WRITERS: dict[str, type[_Table | _JsonLines | _Json]] = {"table": _Table, "jsonl": _JsonLines, "json": _Json}


def _json(chunk: list[tuple[Attempt, Answer]], profile: Profile | None) -> list[str]:
    if profile is None:
        return [as_json(answer) for _, answer in chunk]
    return [as_json_with_state(answer, profile) for _, answer in chunk]


def answer_lines(lines: Iterable[str | bytes], profile: Profile | None, out: TextIO) -> None:
    """Write the answers to `lines` to `out` as JSON lines; `profile` overrides the version the attempts name."""
    out.writelines(piece for (piece,) in formatted(Session(lines, Broker(profile)), ["jsonl"]))
