"""Finds what a person asks about: by its name, its number, or by words, best first."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from msgspec import Struct

from kaudit.bugs.registry import find as find_bug
from kaudit.bugs.registry import nearest as nearest_bug
from kaudit.bugs.reports import report_of
from kaudit.bugs.tickets import looks_like_ticket
from kaudit.checks.listed import find as find_check
from kaudit.errors import suggestion
from kaudit.explanations.catalogue import Entry, Kind, Subject, Term, entries, terms
from kaudit.formats.protocol_errors import error_named, error_numbered

MOST_RELATED = 8
_LONGEST_SHOWN = 60
_NUMBER = re.compile(r"(?:(?:error|err|errno|code|errorcode|val)\b[\s:=#(]*)*(-?\d{1,4})\)?", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")
_NO_PLURAL = 3
"""Letters up to which a final s belongs to the word: `acks` is `ack`, `pid` and `dns` stay."""
_IN_NAME, _IN_TITLE = 2, 1


class Found(Struct, frozen=True):
    """What was found, best first. `exact`: the first has the name that was asked for, and the others mention it."""

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
        named = next(entry for entry in entries() if entry.subject is subject)
        return Found([named, *related(named)], exact=True)
    family = [entry for entry in entries() if entry.kind is Kind.CHECK and typed and entry.id.startswith(typed.upper())]
    return Found(family or _with_words(_words(typed)), exact=False)


def nearest(asked: str) -> str:
    """Return that nothing was found, and what has a similar name, in one line."""
    typed = asked.strip()
    if looks_like_ticket(typed):
        return f"{typed} is not a known bug{nearest_bug(typed)}"
    names = {name.lower(): name for entry in entries() for name in entry.names}
    near = suggestion(typed.lower(), names)
    for lower in sorted((name for name in names if name in near), key=len, reverse=True):
        near = re.sub(rf"(?<= ){re.escape(lower)}(?= or |\?)", names[lower], near)
    shown = typed if len(typed) <= _LONGEST_SHOWN else f"{typed[:_LONGEST_SHOWN].rpartition(' ')[0]} ..."
    return f"nothing is known about {shown}{near} ('kaudit checks' and 'kaudit bugs' list what is)"


def related(entry: Entry) -> Sequence[Entry]:
    """Return what mentions an entry by one of its names, in a title first, then in a text; at most MOST_RELATED."""
    ranks = [(max(_mentions(other, name, entry.kind) for name in entry.names), other) for other in entries()]
    return [other for rank, other in sorted(ranks, key=_rank) if rank and other is not entry][:MOST_RELATED]


def _named(typed: str) -> Subject | None:
    of_ticket = (find_bug(typed) or report_of(typed)) if looks_like_ticket(typed) else None
    number = _NUMBER.fullmatch(typed)
    return (
        find_check(typed)
        or of_ticket
        or (None if number is None else error_numbered(int(number[1])))
        or (error_named(typed) if typed.startswith("_") else _term(typed))
        or (None if _is_word(typed) else error_named(typed))
    )


def _is_word(typed: str) -> bool:
    """Whether this is a word of English rather than a name: `unknown`, `none`."""
    return typed.isalpha() and typed.islower() and not typed.endswith(("exception", "error"))


def _term(typed: str) -> Term | None:
    phrase = _phrase(typed)
    known = ((term, name) for term in terms() for name in (term.name, *term.also))
    return next((term for term, name in known if phrase.strip() and phrase == _phrase(name)), None)


def _with_words(words: Sequence[str]) -> Sequence[Entry]:
    """Return the entries that have all words, those with the most of them in names first."""
    for in_text in (False, True):
        ranks = []
        for entry in entries():
            names, title, text = _parts(entry)
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


def _mentions(entry: Entry, name: str, kind: Kind) -> float:
    """How much an entry is about a name: 2 and more in its names or title, else below 1, 0 where it has not the name.

    Names of errors count in their own writing only: `no error` and `invalid record` are words too.
    """
    if kind is Kind.ERROR:
        names, title, text = (_count(name, part) if name in part else 0 for part in _texts(entry))
    else:
        phrase, words = _phrase_and_words(name)
        lowered = _lowered(entry)
        for word in words:
            if word not in lowered:
                return 0  # most entries: their words need not be found
        names, title, text = (part.count(phrase) for part in _parts(entry))
    return (names + title) * _IN_NAME + text / (1 + text)


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


@cache
def _texts(entry: Entry) -> tuple[str, str, str]:
    """An entry's names, title and text, which is read from its page."""
    return " ".join(entry.names), entry.title, entry.text()


@lru_cache(16)
def _phrase_and_words(name: str) -> tuple[str, Sequence[str]]:
    """Of a name that is asked of every entry."""
    return _phrase(name), _phrase(name).split()


@cache
def _lowered(entry: Entry) -> str:
    return " ".join(_texts(entry)).lower()


@cache
def _parts(entry: Entry) -> tuple[str, str, str]:
    """The words of an entry's names, title and text, as _phrase returns them."""
    names, title, text = map(_phrase, _texts(entry))
    return names, title, text


def _words(text: str) -> Sequence[str]:
    """Return the words of a text in lower case and singular."""
    found = _WORD.findall(text.lower())
    return [
        word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > _NO_PLURAL else word
        for word in found
    ]


def _phrase(text: str) -> str:
    """Return the words of a text with a space before, between and after them."""
    return f" {' '.join(_words(text))} "
