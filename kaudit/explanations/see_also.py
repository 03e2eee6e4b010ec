"""Where to read on: what mentions a check, a bug, an error or a term, by see_also.tsv beside this module.

`python -m kaudit.explanations.pages docs` writes it (kaudit.explanations.mentions finds them): every text there is would have to
be read, which costs more than all else that `kaudit explain` does.
"""

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct

TABLE = "see_also.tsv"


class Reference(Struct, frozen=True):
    """What can be explained, as a list names it."""

    id: str
    title: str


@cache
def _rows() -> Mapping[str, tuple[str, Sequence[str]]]:
    """By id: the title, and the ids of what mentions it, best first."""
    text = pkgutil.get_data("kaudit.explanations", TABLE)
    assert text is not None
    rows = (line.split("\t") for line in text.decode().splitlines())
    return {id_: (title, mentioning) for id_, title, *mentioning in rows}


def see_also(id_: str) -> Sequence[Reference]:
    """Return what mentions the entry with this id, best first."""
    rows = _rows()
    return [Reference(other, rows[other][0]) for other in rows[id_][1]]


def table(rows: Iterable[tuple[Reference, Sequence[str]]]) -> str:
    """Return the text of see_also.tsv: each entry with the ids of what mentions it."""
    return "".join("\t".join((entry.id, entry.title, *mentioning)) + "\n" for entry, mentioning in rows)
