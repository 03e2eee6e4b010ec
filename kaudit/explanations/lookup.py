"""Finds what a person asks about: by its name, its number, or by words, best first."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from kaudit.bugs.tickets import looks_like_ticket
from kaudit.checks.listed import find as find_check
from kaudit.deferred import Deferred
from kaudit.errors import suggestion
from kaudit.explanations.catalogue import Entry, Kind, Subject, Term, entries, entry_of, terms

if TYPE_CHECKING:
    from kaudit.bugs import registry, reports
    from kaudit.formats import protocol_errors
else:  # a check is found without them
    registry = Deferred("kaudit.bugs.registry")
    reports = Deferred("kaudit.bugs.reports")
    protocol_errors = Deferred("kaudit.formats.protocol_errors")

_LONGEST_SHOWN = 60
_NUMBER = re.compile(r"(?:(?:error|err|errno|code|errorcode|val)\b[\s:=#(]*)*(-?\d{1,4})\)?", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")
_NO_PLURAL = 3
"""Letters up to which a final s belongs to the word: `acks` is `ack`, `pid` and `dns` stay."""
_IN_NAME, _IN_TITLE = 2, 1


class Found(Struct, frozen=True):
    """What was found, best first. `exact`: it has the name that was asked for, and nothing else was looked for."""

    entries: Sequence[Entry]
    exact: bool


def look_up(asked: str) -> Found:
    """Return what a name, a number or words mean; nothing where nothing has all of the words.

    A name is a code or name of a check, a ticket, an error in any client's writing, or a term. Words are whole words of
    names and titles; of texts only where no names and titles have all of them.
    """
    typed = asked.strip()
    subject = _named(typed)
    if subject is not None:
        return Found([entry_of(subject)], exact=True)
    family = [entry for entry in entries() if entry.kind is Kind.CHECK and typed and entry.id.startswith(typed.upper())]
    return Found(family or _with_words(_split(typed)), exact=False)


def nearest(asked: str) -> str:
    """Return that nothing was found, and what has a similar name, in one line."""
    typed = asked.strip()
    if looks_like_ticket(typed):
        return f"{typed} is not a known bug{registry.nearest(typed)}"
    names = {name.lower(): name for entry in entries() for name in entry.names}
    near = suggestion(typed.lower(), names)
    for lower in sorted((name for name in names if name in near), key=len, reverse=True):
        near = re.sub(rf"(?<= ){re.escape(lower)}(?= or |\?)", names[lower], near)
    shown = typed if len(typed) <= _LONGEST_SHOWN else f"{typed[:_LONGEST_SHOWN].rpartition(' ')[0]} ..."
    return f"nothing is known about {shown}{near} ('kaudit checks' and 'kaudit bugs' list what is)"


def _named(typed: str) -> "Subject | None":
    of_ticket = (registry.find(typed) or reports.report_of(typed)) if looks_like_ticket(typed) else None
    number = _NUMBER.fullmatch(typed)
    return (
        find_check(typed)
        or of_ticket
        or (None if number is None else protocol_errors.error_numbered(int(number[1])))
        or (protocol_errors.error_named(typed) if typed.startswith("_") else _term(typed))
        or (None if _is_word(typed) else protocol_errors.error_named(typed))
    )


def _is_word(typed: str) -> bool:
    """Whether this is a word of English rather than a name: `unknown`, `none`."""
    return typed.isalpha() and typed.islower() and not typed.endswith(("exception", "error"))


def _term(typed: str) -> Term | None:
    phrase = phrase_of(typed)
    known = ((term, name) for term in terms() for name in (term.name, *term.also))
    return next((term for term, name in known if phrase.strip() and phrase == phrase_of(name)), None)


def _with_words(words: Sequence[str]) -> Sequence[Entry]:
    """Return the entries that have all words, those with the most of them in names first."""
    for in_text in (False, True):
        ranks = []
        for entry in entries():
            names, title, text = words_of(entry)
            places = [(f" {word} " in names) * _IN_NAME + (f" {word} " in title) * _IN_TITLE for word in words]
            if words and all(
                place or (in_text and f" {word} " in text) for place, word in zip(places, words, strict=True)
            ):
                ranks.append((sum(places) or sum(text.count(f" {word} ") for word in words), entry))
        if ranks:
            return [entry for _, entry in sorted(ranks, key=_rank)]
    return []


def _rank(ranked: tuple[float, Entry]) -> float:
    return -ranked[0]


@cache
def texts_of(entry: Entry) -> tuple[str, str, str]:
    """Return an entry's names, title and text, which is read from its page."""
    return " ".join(entry.names), entry.title, entry.text()


@cache
def words_of(entry: Entry) -> tuple[str, str, str]:
    """Return the words of an entry's names, title and text, as phrase_of returns them."""
    names, title, text = map(phrase_of, texts_of(entry))
    return names, title, text


def _split(text: str) -> Sequence[str]:
    """Return the words of a text in lower case and singular."""
    found = _WORD.findall(text.lower())
    return [
        word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > _NO_PLURAL else word
        for word in found
    ]


def phrase_of(text: str) -> str:
    """Return the words of a text with a space before, between and after them."""
    return f" {' '.join(_split(text))} "
