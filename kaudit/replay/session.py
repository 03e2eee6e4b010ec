"""Whole files of attempts: every line in, its answer out."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TextIO

from kaudit.replay.answer import Answer
from kaudit.replay.attempts import Attempt, AttemptError, parse_attempt
from kaudit.replay.broker import Broker
from kaudit.replay.profile import Profile
from kaudit.replay.render import TABLE_HEADER, as_document, as_json, as_json_with_state, as_row

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
            except ValueError as error:
                raise AttemptError(line_number, str(error)) from None
            yield attempt, answered

    def written(self, output_format: str, *, with_state: bool = False) -> Iterator[str]:
        """Yield the pieces of the output in one of FORMATS, many lines at once."""
        if output_format == "table":
            rows = (as_row(attempt, answer) for attempt, answer in self.answered())
            yield from _chunks(chain((TABLE_HEADER,), rows))
            return
        if with_state:
            lines = (as_json_with_state(answer, self.broker.profile) for _, answer in self.answered())
        else:
            lines = (as_json(answer) for _, answer in self.answered())
        yield from as_document(lines) if output_format == "json" else _chunks(lines)


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    while chunk := list(islice(lines, _CHUNK)):
        chunk.append("")
        yield "\n".join(chunk)


def answer_lines(lines: Iterable[str | bytes], profile: Profile | None, out: TextIO) -> None:
    """Write the answers to `lines` to `out` as JSON lines; `profile` overrides the version the attempts name."""
    out.writelines(Session(lines, Broker(profile)).written("jsonl"))
