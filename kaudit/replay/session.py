"""Whole files of attempts: every line in, its answer out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TextIO

from kaudit.broker.attempts.attempt import Attempt, AttemptError, parse_attempt
from kaudit.broker.attempts.fast_path import Plain, read_plain
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import Profile, UnknownVersionError
from kaudit.broker.response import Answer
from kaudit.report.replay.render import DOCUMENT_BEGIN, DOCUMENT_END, TABLE_HEADER, as_json, as_json_with_state, as_row

FORMATS = ("table", "jsonl", "json")


_PIECES = 256
"""Answers written out before they are handed on."""

Read = Callable[[bytes, int], Plain | None]
"""Reads one line, the number of an attempt without index given: None for what only attempts.py can read."""


def attempts_only(_: bytes, __: int) -> None:
    """Leave every line to attempts.py, which keeps all of its fields."""


class Session:
    """Answers a file of attempts. `broker` keeps what it remembers, so several files may follow one another.

    `read` is read_plain, or `attempts_only` for who wants every attempt as it stands in its line.
    """

    def __init__(self, lines: Iterable[bytes], broker: Broker, read: Read = read_plain) -> None:
        self._lines = lines
        self._read = read
        self.broker = broker

    def answered(self) -> Iterator[tuple[Attempt | Plain, Answer]]:
        """Yield every attempt with its answer, in order.

        An attempt without `index` gets its number among the attempts, from 0. Raises AttemptError, with the line, for
        what is no attempt or names a broker or configuration that cannot be.
        """
        broker, read = self.broker, self._read
        number = 0
        for line_number, line in enumerate(self._lines, 1):
            try:
                plain = read(line, number)
                if plain is not None:
                    arrived: Attempt | Plain = plain
                    answered = broker.answer_plain(plain)
                else:
                    attempt = parse_attempt(line, number)
                    if attempt is None:
                        continue
                    arrived = attempt
                    answered = broker.answer(attempt)
                number += 1
            except UnknownVersionError as error:
                nearest = ", ".join(map(str, error.nearest))
                raise AttemptError(line_number, f"a known broker version, {nearest}, not {error.version!r}") from None
            except ValueError as error:
                raise AttemptError(line_number, str(error)) from None
            yield arrived, answered


def formatted(session: Session, formats: Sequence[str], *, with_state: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield the output in each of `formats` (of FORMATS), piece by piece, many lines a piece, in step.

    Only text is gathered: attempts and answers held back by the hundred would cost a third of the speed.
    """
    writers = [_WRITERS[name] for name in formats]
    if len(writers) == 1:
        for piece in _single(session, writers[0], with_state=with_state):
            yield (piece,)
        return
    yield tuple(writer.begin for writer in writers)
    between = [""] * len(writers)
    for attempt, answer in session.answered():
        profile = session.broker.profile if with_state else None
        yield tuple(
            separator + writer.line(attempt, answer, profile)
            for separator, writer in zip(between, writers, strict=True)
        )
        between = [writer.between for writer in writers]
    yield tuple((writer.last if between[0] else "") + writer.end for writer in writers)


def _single(session: Session, writer: "_Writer", *, with_state: bool) -> Iterator[str]:
    """Yield one format, the usual case, without a loop over formats around every answer."""
    answered = session.answered()
    before = writer.begin
    while texts := _texts(session, writer, islice(answered, _PIECES), with_state=with_state):
        yield before + writer.between.join(texts)
        before = writer.between
    yield (before if before == writer.begin else writer.last) + writer.end


def _texts(
    session: Session, writer: "_Writer", answered: Iterator[tuple[Attempt | Plain, Answer]], *, with_state: bool
) -> list[str]:
    if writer.line is _json and not with_state:
        return [as_json(answer) for _, answer in answered]
    return [
        writer.line(attempt, answer, session.broker.profile if with_state else None) for attempt, answer in answered
    ]


class _Writer(NamedTuple):
    """One format: what stands at its beginning and end, between two answers and after the last one."""

    begin: str
    between: str
    last: str
    end: str
    line: Callable[[Attempt | Plain, Answer, Profile | None], str]


def _json(_: Attempt | Plain, answer: Answer, profile: Profile | None) -> str:
    return as_json(answer) if profile is None else as_json_with_state(answer, profile)


def _row(attempt: Attempt | Plain, answer: Answer, _: Profile | None) -> str:
    return as_row(attempt if isinstance(attempt, dict) else attempt.as_attempt(), answer)


_WRITERS = {
    "table": _Writer(TABLE_HEADER + "\n", "\n", "\n", "", _row),
    "jsonl": _Writer("", "\n", "\n", "", _json),
    "json": _Writer(DOCUMENT_BEGIN + "\n", ",\n", "", DOCUMENT_END, _json),
}


def answer_lines(lines: Iterable[bytes], profile: Profile | None, out: TextIO) -> None:
    """Write the answers to `lines` to `out` as JSON lines; `profile` overrides the version the attempts name."""
    out.writelines(piece for (piece,) in formatted(Session(lines, Broker(profile)), ["jsonl"]))
