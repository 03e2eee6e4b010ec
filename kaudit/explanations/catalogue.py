"""Everything that can be explained, in one form: what it is called, what it is in a sentence, and the text that words are looked for in.

The terms of glossary.md and events.toml beside this module: Kafka's, kaudit's own, and the events of logs with their messages.
"""

import enum
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Union

from msgspec import Struct

from kaudit.checks.listed import LISTED, Listed, read_page
from kaudit.deferred import Deferred
from kaudit.formats.toml import packaged_toml

if TYPE_CHECKING:
    from kaudit.bugs import bug as bugs
    from kaudit.bugs import registry, reports
    from kaudit.formats import protocol_errors
    from kaudit.formats.application_log import patterns
else:  # a check is explained without them
    bugs = Deferred("kaudit.bugs.bug")
    registry = Deferred("kaudit.bugs.registry")
    reports = Deferred("kaudit.bugs.reports")
    protocol_errors = Deferred("kaudit.formats.protocol_errors")
    patterns = Deferred("kaudit.formats.application_log.patterns")

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
            if protocol_errors.error_named(event) is None
        ),
    ]


@cache
def meanings() -> Mapping[str, str]:
    """Return what each class of events in logs means, in a sentence without capital and full stop."""
    return packaged_toml("kaudit.explanations", "events.toml")


@cache
def messages() -> Mapping[str, Sequence[str]]:
    """Return the messages of brokers and clients by their class of events, `server: Shrinking ISR from ... to ...`."""
    found = defaultdict(list)
    for program in (program for programs in patterns.PROGRAMS.values() for program in programs):
        for pattern in patterns.read_patterns(program):
            found[str(pattern.event)].append(f"{program}: {_VALUE.sub('...', pattern.text)}")
    return found


Subject = Union[Listed, Term, "bugs.Bug", "reports.Report", "protocol_errors.ProtocolError"]


class Kind(enum.Enum):
    """What is explained; in lists of equal rank the first comes first."""

    CHECK = "check"
    TERM = "term"
    ERROR = "error"
    BUG = "bug"
    REPORT = "report"


class Entry(Struct, frozen=True, eq=False):
    """One thing that can be explained. `id` names it, `names` are all its names, `title` is a sentence without a full stop.

    `text` returns everything that is said about it.
    """

    kind: Kind
    id: str
    names: Sequence[str]
    title: str
    subject: Subject
    text: Callable[[], str]


def error_title(error: "protocol_errors.ProtocolError") -> str:
    """Return an error with its number: `OUT_OF_ORDER_SEQUENCE_NUMBER (45)`, `_MSG_TIMED_OUT (librdkafka -192)`."""
    number = " ".join(str(part) for part in (error.program, error.code) if part is not None)
    return f"{error.name} ({number})"


def sections_of(subject: "reports.Report | protocol_errors.ProtocolError | Term") -> Mapping[str, str]:
    """Return the text of a report, an error or a term under its headings; headings without text are left out."""
    if isinstance(subject, Term):
        found = {
            "What it means": f"{subject.meaning[0].upper()}{subject.meaning[1:]}.",
            "Also written": ", ".join(subject.also),
            "In the code": subject.code,
            "Messages": "\n".join(f"- {message}" for message in subject.messages),
        }
    elif isinstance(subject, reports.Report):
        found = {
            "What happens": subject.meaning,
            "How to recognise it": subject.recognise,
            "What it costs": subject.cost,
            "What to do": subject.advice,
            "References": "\n".join(f"- {address}" for address in subject.sources),
        }
    else:
        found = {
            "What it means": subject.meaning,
            "Which brokers send it": subject.brokers,
            "What clients do": subject.clients,
            "What to do": subject.advice,
            "Its names": ", ".join(dict.fromkeys((subject.exception or "", *subject.also))).strip(", "),
        }
    return {heading: text for heading, text in found.items() if text}


def entry_of(subject: Subject) -> Entry:
    """Return a check, a term, an error, a bug or a report in the form that all have."""
    if isinstance(subject, Listed):
        names, title = (subject.code, subject.name), f"{subject.name}: {subject.summary}"
        return Entry(Kind.CHECK, subject.code, names, title, subject, subject.page)
    if isinstance(subject, Term):
        return _of_sections(Kind.TERM, subject.name, (subject.name, *subject.also), subject.meaning, subject)
    if isinstance(subject, protocol_errors.ProtocolError):
        title = _first_sentence(subject.meaning)
        return Entry(Kind.ERROR, subject.name, subject.names, title, subject, partial(_error_text, subject))
    if isinstance(subject, bugs.Bug):
        return Entry(Kind.BUG, subject.id, (subject.id,), subject.title, subject, partial(_bug_text, subject))
    return _of_sections(Kind.REPORT, subject.id, (subject.id, *subject.also), subject.title, subject)


def _of_sections(kind: Kind, id_: str, names: Sequence[str], title: str, subject: "reports.Report | Term") -> Entry:
    return Entry(kind, id_, names, title, subject, lambda: "\n".join(sections_of(subject).values()))


@cache
def entries() -> Sequence[Entry]:
    """Return everything that can be explained, by kind and then in the order of its own list."""
    subjects = (
        LISTED.values(), terms(), protocol_errors.protocol_errors(), registry.BUGS.values(), reports.reports().values(),
    )  # fmt: skip
    return [entry_of(subject) for some in subjects for subject in some]


def _error_text(error: "protocol_errors.ProtocolError") -> str:
    """Return the page of an error with the messages of the events that it explains."""
    of_error = (text for event, named in _events().items() if named is error for text in messages()[event])
    return "\n".join((*sections_of(error).values(), *of_error))


@cache
def _events() -> Mapping[str, "protocol_errors.ProtocolError | None"]:
    """Return the error that each class of events has the name of."""
    return {event: protocol_errors.error_named(event) for event in messages()}


def _bug_text(bug: "bugs.Bug") -> str:
    return "\n".join(bug.documentation().values())


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
