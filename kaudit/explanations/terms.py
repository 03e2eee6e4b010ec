"""The terms of glossary.md and events.toml beside this module: Kafka's, kaudit's own, and the events of logs with their messages."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from msgspec import Struct

from kaudit.checks.listed import read_page
from kaudit.formats.application_log.patterns import PROGRAMS, read_pattern_file
from kaudit.formats.protocol_errors import error_named

_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_VALUE = re.compile(r"\{\w*\}")
_HEADINGS = frozenset({"term", "---"})


class Term(Struct, frozen=True):
    """One row of the glossary, or a class of events in logs that no error names.

    `also` has other names, `code` the class or module of kaudit that has the name, `messages` the words of an event in the
    logs of each program, with dots for their values.
    """

    name: str
    meaning: str
    also: Sequence[str] = ()
    code: str = ""
    messages: Sequence[str] = ()


@cache
def terms() -> Sequence[Term]:
    """Return the terms in the order of the page, then the events."""
    of_kafka, _, own = read_page("kaudit.explanations", "glossary").partition("\n## kaudit's terms\n")
    rows = [found for found in _ROW.findall(of_kafka) if found[0] not in _HEADINGS]
    own_rows = [found for found in _ROW.findall(own) if found[0] not in _HEADINGS]
    return [
        *(Term(name, meaning, tuple(also.split(", "))) for name, also, meaning in rows),
        *(Term(name, meaning, code=code.replace("`", "")) for name, meaning, code in own_rows),
        *(
            Term(f"{event} event", meaning, messages=messages()[event])
            for event, meaning in meanings().items()
            if error_named(event) is None
        ),
    ]


@cache
def meanings() -> Mapping[str, str]:
    """Return what each class of events in logs means, in a sentence without capital and full stop."""
    read: dict[str, str] = tomllib.loads((files("kaudit.explanations") / "events.toml").read_text("utf-8"))
    return read


@cache
def messages() -> Mapping[str, Sequence[str]]:
    """Return the messages of brokers and clients by their class of events, `server: Shrinking ISR from ... to ...`."""
    found = defaultdict(list)
    for program in (program for programs in PROGRAMS.values() for program in programs):
        for pattern in read_pattern_file(program).patterns:
            found[str(pattern.event)].append(f"{program}: {_VALUE.sub('...', pattern.text)}")
    return found
