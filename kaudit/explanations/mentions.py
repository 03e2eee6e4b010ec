"""Finds what mentions an entry by one of its names, in the texts of all others: for see_also.tsv."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from kaudit.explanations.catalogue import Entry, Kind, entries
from kaudit.explanations.lookup import phrase_of, texts_of, words_of

MOST = 8
_IN_NAME = 2


def mentioning(entry: Entry) -> Sequence[Entry]:
    """Return what mentions an entry by one of its names, in a title first, then in a text; at most MOST."""
    ranks = [(max(_mentions(other, name, entry.kind) for name in entry.names), other) for other in entries()]
    ranks.sort(key=lambda ranked: -ranked[0])
    return [other for rank, other in ranks if rank and other is not entry][:MOST]


def _mentions(entry: Entry, name: str, kind: Kind) -> float:
    """How much an entry is about a name: 2 and more in its names or title, else below 1, 0 where it has not the name.

    Names of errors count in their own writing only: `no error` and `invalid record` are words too.
    """
    if kind is Kind.ERROR:
        names, title, text = (_count(name, part) if name in part else 0 for part in texts_of(entry))
    else:
        phrase, words = _phrase_and_words(name)
        lowered = _lowered(entry)
        for word in words:
            if word not in lowered:
                return 0  # most entries: their words need not be found
        names, title, text = (part.count(phrase) for part in words_of(entry))
    return (names + title) * _IN_NAME + text / (1 + text)


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


@lru_cache(16)
def _phrase_and_words(name: str) -> tuple[str, Sequence[str]]:
    """Of a name that is asked of every entry."""
    return phrase_of(name), phrase_of(name).split()


@cache
def _lowered(entry: Entry) -> str:
    return " ".join(texts_of(entry)).lower()
