"""Answers in the formats of `kaudit replay`: table, JSON lines, one JSON document, a page."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import NamedTuple

from kaudit.broker.attempts import Attempt
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer
from kaudit.checks.command_line import quote, quote_text
from kaudit.replay.session import Session
from kaudit.report.text.answers import DOCUMENT_BEGIN, DOCUMENT_END, TABLE_HEADER, as_json, as_json_with_state, as_row

FORMATS = ("table", "jsonl", "json", "html")
_PIECE = 256
"""Answers formatted before they are handed on."""


def formatted(
    session: Session, formats: Sequence[str], arguments: Sequence[str] = ("-",), *, with_state: bool = False
) -> Iterator[tuple[str, ...]]:
    """Yield the output in each of `formats` (of FORMATS), piece by piece: a tuple with the next text of each format.

    `arguments` are those of `kaudit replay` that decide the answers, the file first. Only text is collected: keeping
    hundreds of attempts and answers would cost a third of the speed.
    """
    writers = [_page(session, arguments) if wanted == "html" else _WRITERS[wanted] for wanted in formats]
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
    yield tuple((writer.last if between[0] else "") + writer.end() for writer in writers)


def _single(session: Session, writer: "_Writer", *, with_state: bool) -> Iterator[str]:
    """Yield one format, the usual case, without a loop over formats around every answer."""
    answered = session.answered()
    before = writer.begin
    while texts := _texts(session, writer, islice(answered, _PIECE), with_state=with_state):
        yield before + writer.between.join(texts)
        before = writer.between
    yield (before if before == writer.begin else writer.last) + writer.end()


def _texts(
    session: Session, writer: "_Writer", answered: Iterator[tuple[Attempt, Answer]], *, with_state: bool
) -> list[str]:
    if writer.line is _json and not with_state:
        return [as_json(answer) for _, answer in answered]
    return [
        writer.line(attempt, answer, session.broker.profile if with_state else None) for attempt, answer in answered
    ]


class _Writer(NamedTuple):
    """One format: the text before the first answer, between two and after the last; `end` makes the end, `line` one answer."""

    begin: str
    between: str
    last: str
    end: Callable[[], str]
    line: Callable[[Attempt, Answer, Profile | None], str]


def _json(_: Attempt, answer: Answer, profile: Profile | None) -> str:
    return as_json(answer) if profile is None else as_json_with_state(answer, profile)


def _row(attempt: Attempt, answer: Answer, _: Profile | None) -> str:
    return as_row(attempt, answer)


_WRITERS = {
    "table": _Writer(TABLE_HEADER + "\n", "\n", "\n", str, _row),
    "jsonl": _Writer("", "\n", "\n", str, _json),
    "json": _Writer(DOCUMENT_BEGIN + "\n", ",\n", "", lambda: DOCUMENT_END, _json),
}


def _page(session: Session, arguments: Sequence[str]) -> _Writer:
    """Return the format that is a page: it is written when the last attempt has been answered."""
    from kaudit.report.sequence.replayed import ReplayDiagram  # noqa: PLC0415 - jinja2 takes long to import

    diagram = ReplayDiagram(session.broker)

    def add(attempt: Attempt, answer: Answer, _: Profile | None) -> str:
        diagram.add(attempt, answer)
        return ""

    file, *others = arguments
    title = "Replay" if file == "-" else f"Replay of {PurePath(file).name}"
    command = " ".join(["kaudit", "replay", quote(file) if file != "-" else file, *map(quote_text, others)])
    return _Writer("", "", "", partial(diagram.html, title, command), add)
