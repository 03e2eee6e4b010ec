"""What can be explained, for people and programs: `kaudit explain`, `kaudit checks` and `kaudit bugs`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.checks import listed as checks
from kaudit.checks.listed import Listed
from kaudit.deferred import Deferred
from kaudit.explanations.see_also import Reference, see_also
from kaudit.model.json_record import json_value
from kaudit.report.console import Console, Style
from kaudit.report.text.formatting import SEVERITY_STYLE

if TYPE_CHECKING:
    from kaudit.bugs import bug as bugs
    from kaudit.bugs import reports
    from kaudit.explanations import catalogue
    from kaudit.formats import protocol_errors
    from kaudit.report import json_documents
else:  # the list of checks needs none of them
    bugs = Deferred("kaudit.bugs.bug")
    catalogue = Deferred("kaudit.explanations.catalogue")
    json_documents = Deferred("kaudit.report.json_documents")
    protocol_errors = Deferred("kaudit.formats.protocol_errors")
    reports = Deferred("kaudit.bugs.reports")

_READABLE = 100
"""Most columns of a page, in a pipe too: wider prose is hard to read."""
_LONGEST_TITLE = 160
_INDENT = "  "
_BULLET = re.compile(r"(?P<sign>[-*]|\d+\.) (?P<text>.*)")


def entry_page(entry: "catalogue.Entry", console: Console) -> str:
    """Return the page of an entry for a terminal, and under it the names of those that mention it."""
    subject = entry.subject
    title, subtitle, style = f"{entry.id} {entry.title}", "", None
    if isinstance(subject, Listed):
        title, subtitle = f"{subject.code} {subject.name}", f"{subject.severity_text} (since {subject.since})"
        style = SEVERITY_STYLE[subject.severity]
    elif isinstance(subject, bugs.Bug):
        subtitle = versions_text(subject)
    elif isinstance(subject, reports.Report):
        subtitle = subject.affected
    elif isinstance(subject, protocol_errors.ProtocolError):
        title, subtitle = catalogue.error_title(subject), error_kind(subject)
    else:
        title = subject.name
    parts = list(_documentation(subject).items())
    others = see_also(entry.id)
    if others:
        parts.append(("See also", "\n".join(map(reference_text, others))))
    return _page(title, (subtitle, style), parts, console)


def _documentation(subject: "catalogue.Subject") -> Mapping[str, str]:
    """Return the texts of a subject's page under their headings, in order."""
    headings: Sequence[str]
    if isinstance(subject, Listed):
        documentation, headings = subject.documentation(), checks.HEADINGS
    elif isinstance(subject, bugs.Bug):
        documentation, headings = subject.documentation(), bugs.HEADINGS
    else:
        return catalogue.sections_of(subject)
    return {heading: documentation[heading] for heading in headings}


def error_kind(error: "protocol_errors.ProtocolError") -> str:
    """Return whose error it is, and whether trying again may help: `retriable; org.apache...TimeoutException`."""
    whose = f"an error of {error.program} itself" if error.program else "an error of Kafka's protocol"
    retriable = "" if error.program else "; retriable" if error.retriable else "; not retriable"
    return f"{whose}{retriable}"


def _page(title: str, subtitle: tuple[str, Style | None], parts: Iterable[tuple[str, str]], console: Console) -> str:
    """Return a page: a title, a line below it in its style, and the text of each part under its heading."""
    console = readable(console)
    text, style = subtitle
    below = console.wrap(text) if text else []
    lines = [
        *console.wrap(title, style=Style.STRONG),
        *(console.paint(line, style) if style else line for line in below),
    ]
    for heading, body in parts:
        lines += ["", *section_lines(heading, body, console)]
    return "".join(f"{line}\n" for line in lines)


def readable(console: Console) -> Console:
    """Return a console no wider than prose can be read."""
    return replace(console, width=min(console.width or _READABLE, _READABLE))


def section_lines(heading: str, text: str, console: Console) -> list[str]:
    """Return a heading and the lines of a text in Markdown under it."""
    return [console.paint(heading, Style.STRONG), *markdown_lines(text, console)]


def entry_lines(entry: "catalogue.Entry", console: Console) -> list[str]:
    """Return the title of an error, and its texts under their headings."""
    title = (
        catalogue.error_title(entry.subject) if isinstance(entry.subject, protocol_errors.ProtocolError) else entry.id
    )
    parts = _documentation(entry.subject).items()
    return [console.paint(title, Style.STRONG), *(line for part in parts for line in section_lines(*part, console))]


def reference_text(entry: Reference) -> str:
    """Return an item of a list that names an entry."""
    return f"- {entry.id}: {_shortened(entry.title)}"


def entry_document(entry: "catalogue.Entry") -> str:
    """Return the page of an entry as JSON, with the ids of those that mention it."""
    return json_documents.pretty(
        {
            "schema": f"kaudit.{entry.kind.value}/1",
            **_fields(entry.subject),
            "documentation": dict(_documentation(entry.subject)),
            "see_also": [other.id for other in see_also(entry.id)],
        }
    )


def entry_list(found: "Sequence[catalogue.Entry]", console: Console) -> str:
    """Return what was found for words, best first, one a line."""
    width = max(len(entry.kind.value) for entry in found)
    lines = [
        line
        for entry in found
        for line in console.wrap(
            _shortened(entry.title), lead=f"{entry.id}  {entry.kind.value:<{width}}  ", indent="    "
        )
    ]
    lines += ["", *console.wrap("kaudit explain NAME says more about one of them.")]
    return "".join(f"{line}\n" for line in lines)


def entry_list_document(found: "Sequence[catalogue.Entry]") -> str:
    """Return what was found as JSON: names in their order, and the subjects by kind; `kaudit.checks/1` if all are checks."""
    by_kind = {
        f"{kind.value}s": [dict(_fields(entry.subject)) for entry in found if entry.kind is kind]
        for kind in catalogue.Kind
    }
    if all(entry.kind is catalogue.Kind.CHECK for entry in found):
        return json_documents.pretty({"schema": "kaudit.checks/1", "checks": by_kind["checks"]})
    names = [{"kind": entry.kind.value, "id": entry.id, "title": entry.title} for entry in found]
    return json_documents.pretty({"schema": "kaudit.explanations/1", "found": names, **by_kind})


def _fields(subject: "catalogue.Subject") -> Mapping[str, object]:
    if isinstance(subject, Listed):
        return _check(subject)
    if isinstance(subject, bugs.Bug):
        return _bug(subject)
    return {name: json_value(getattr(subject, name)) for name in subject.__struct_fields__}


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else f"{text[:_LONGEST_TITLE].rpartition(' ')[0]} ..."


def check_list(listed: Iterable[Listed], console: Console) -> str:
    """Return checks, one a line, by family."""
    lines: list[str] = []
    listed = list(listed)
    width = max(len(check.name) for check in listed)
    for check in listed:
        severity = check.severity.value
        rows = console.wrap(check.summary, lead=f"{check.code}  {check.name:<{width}}  {severity:<7}  ")
        rows[0] = rows[0].replace(f"  {severity}", f"  {console.paint(severity, SEVERITY_STYLE[check.severity])}", 1)
        lines += rows
    more = "kaudit explain CODE describes a check: what it means, its harmless causes and what to do."
    lines += ["", *console.wrap(more)]
    return "".join(f"{line}\n" for line in lines)


def bug_list(listed: "Sequence[bugs.Bug]", console: Console) -> str:
    """Return bugs, one a line: ticket, affected versions, title."""
    lines: list[str] = []
    width = max((len(bug.id) for bug in listed), default=0)
    for bug in listed:
        lines += console.wrap(f"{bug.title} ({versions_text(bug)})", lead=f"{bug.id:<{width}}  ")
    lines += ["", *console.wrap("kaudit explain TICKET describes a bug: how to recognise it and what to do.")]
    return "".join(f"{line}\n" for line in lines)


def check_list_document(listed: Iterable[Listed]) -> str:
    """Return checks as JSON."""
    return json_documents.pretty({"schema": "kaudit.checks/1", "checks": list(map(_check, listed))})


def bug_list_document(listed: "Iterable[bugs.Bug]") -> str:
    """Return bugs as JSON."""
    return json_documents.pretty({"schema": "kaudit.bugs/1", "bugs": list(map(_bug, listed))})


def versions_text(bug: "bugs.Bug") -> str:
    """Return `broker 0.11.0.0 to 3.5.2; fixed in 3.6.0 by KIP-890`."""
    return f"{bug.affected_text}; {f'fixed in {bug.fixed_text}' if bug.fixed_in else 'no fix known'}"


def _check(check: Listed) -> Mapping[str, object]:
    names = ("code", "name", "severity", "severity_note", "summary", "since")
    return {name: json_value(getattr(check, name)) for name in names}


def _bug(bug: "bugs.Bug") -> Mapping[str, object]:
    return {
        "id": bug.id,
        "title": bug.title,
        "summary": bug.summary,
        "program": bug.program.value,
        "affected": [{"first": versions.first, "last": versions.last} for versions in bug.affected],
        "fixed_in": list(bug.fixed_in),
        "fix": bug.fix or None,
        "confidence": bug.confidence.value,
        "codes": sorted(bug.all_codes),
        "traits": _traits(bug.traits),
        "traits_of_lines": {code: _traits(traits) for code, traits in bug.by_lines.items()},
        "sources": list(bug.sources),
    }


def _traits(traits: "Sequence[bugs.Trait]") -> list[Mapping[str, object]]:
    return [{"text": trait.text, "optional": trait.optional} for trait in traits]


def markdown_lines(text: str, console: Console) -> Iterator[str]:
    """Yield the lines of `text` for the terminal; code keeps its lines, prose is wrapped."""
    paragraph: list[str] = []
    lead = _INDENT
    in_code = False
    for line in text.splitlines():
        bullet = _BULLET.match(line)
        if line.startswith("```"):
            yield from _flush(paragraph, lead, console)
            lead, in_code = _INDENT, not in_code
        elif in_code:
            yield console.paint(f"{_INDENT}{_INDENT}{line}".rstrip(), Style.STRONG)
        elif not line.strip():
            yield from _flush(paragraph, lead, console)
            lead = _INDENT
            yield ""
        elif bullet is not None:
            yield from _flush(paragraph, lead, console)
            lead = f"{_INDENT}{bullet['sign']} "
            paragraph.append(bullet["text"])
        elif not line.startswith("<!--"):
            paragraph.append(line.strip())
    yield from _flush(paragraph, lead, console)


def _flush(paragraph: list[str], lead: str, console: Console) -> Iterator[str]:
    if paragraph:
        # Backticks would be noise: a terminal shows everything in one typeface.
        yield from console.wrap(" ".join(paragraph).replace("`", ""), lead=lead)
    paragraph.clear()
