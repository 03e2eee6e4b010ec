"""The terms of glossary.md beside this module: Kafka's, and kaudit's own."""

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from kaudit.checks.listed import read_page

_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_HEADINGS = frozenset({"term", "---"})


class Term(Struct, frozen=True):
    """One row of the glossary. `also` has other names, `code` the class or module of kaudit that has the name."""

    name: str
    meaning: str
    also: Sequence[str] = ()
    code: str = ""


@cache
def terms() -> Sequence[Term]:
    """Return the terms in the order of the page."""
    of_kafka, _, own = read_page("kaudit.explanations", "glossary").partition("\n## kaudit's terms\n")
    rows = [found for found in _ROW.findall(of_kafka) if found[0] not in _HEADINGS]
    own_rows = [found for found in _ROW.findall(own) if found[0] not in _HEADINGS]
    return [
        *(Term(name, meaning, tuple(also.split(", "))) for name, also, meaning in rows),
        *(Term(name, meaning, code=code.replace("`", "")) for name, meaning, code in own_rows),
    ]
