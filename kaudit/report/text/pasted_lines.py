"""Lines of logs that a person pasted, explained: `kaudit explain LINE` and `kaudit explain -`."""

from collections.abc import Iterator, Mapping, Sequence

from kaudit.explanations.catalogue import entry_of, meanings
from kaudit.explanations.lines import LONGEST, PastedText, error_of
from kaudit.explanations.see_also import Reference, see_also
from kaudit.formats.protocol_errors import ProtocolError
from kaudit.model.application_logs import LogEvent
from kaudit.model.grouping import grouped
from kaudit.report.console import Console, Style, visible
from kaudit.report.json_documents import pretty
from kaudit.report.text.explain_pages import entry_lines, readable, reference_text, section_lines
from kaudit.report.text.finding_block import finding_lines
from kaudit.report.text.formatting import date_and_clock, plural
from kaudit.results.scope import size

_SHOWN = 20
_FACTS = {
    "transactional_id": "transactional id",
    "producer_id": "producer id",
    "producer_epoch": "epoch",
    "expected_epoch": "expected epoch",
    "base_sequence": "first sequence",
    "client_id": "client id",
    "broker_id": "broker",
    "leader": "leader",
    "leader_epoch": "leader epoch",
    "offset": "offset",
    "transaction_state": "state",
    "isr": "in sync",
}


def pasted_page(pasted: PastedText, console: Console) -> str:
    """Return what the lines mean: findings, the events that no finding is about, errors that are only named, and where to read on."""
    console = readable(console)
    lines: list[str] = []
    for finding in pasted.findings[:_SHOWN]:
        lines += [*finding_lines(finding, console, many_inputs=False), ""]
    alike = grouped((_subject(event), event) for event in pasted.others)
    for first, *others in list(alike.values())[:_SHOWN]:
        lines += [*_event_lines(first, others, console), ""]
    hidden = max(len(pasted.findings) - _SHOWN, 0) + max(len(alike) - _SHOWN, 0)
    if hidden:
        lines += [
            f"{plural(hidden, 'more incident or event', 'more incidents and events')} of other producers and partitions",
            "",
        ]
    for error in pasted.errors:
        lines += [*entry_lines(entry_of(error), console), ""]
    of_events = _errors(pasted)
    references = [Reference(entry.id, entry.title) for entry in map(entry_of, of_events)]
    references += [other for error in (*of_events, *pasted.errors) for other in see_also(error.name)]
    named = {error.name for error in pasted.errors}
    rest = [reference for reference in dict.fromkeys(references) if reference.id not in named]
    if rest:
        lines += [*section_lines("See also", "\n".join(map(reference_text, rest)), console), ""]
    if pasted.cut:
        lines += [f"Only the first {size(LONGEST)} were read: kaudit scan --server-log FILE reads whole logs.", ""]
    return "".join(f"{line}\n" for line in lines[:-1])


def pasted_document(pasted: PastedText) -> str:
    """Return the same as JSON: `kaudit.log-lines/1`."""
    explained = [error.name for error in (*_errors(pasted), *pasted.errors)]
    return pretty(
        {
            "schema": "kaudit.log-lines/1",
            "events": [_event(event) for event in pasted.events],
            "findings": [finding.to_dict() for finding in pasted.findings],
            "errors": explained,
            "see_also": list(dict.fromkeys(other.id for name in explained for other in see_also(name))),
            "cut": pasted.cut,
        }
    )


def _event(event: LogEvent) -> Mapping[str, object]:
    stated = {name: getattr(event, name) for name in LogEvent.__struct_fields__ if name not in {"path", "pattern"}}
    known = {name: str(value) if name == "event" else value for name, value in stated.items() if value is not None}
    return known | {"meaning": meanings()[event.event]}


def _subject(event: LogEvent) -> tuple[object, ...]:
    return event.event, event.error, event.topic, event.partition, event.producer_id, event.transactional_id


def _event_lines(event: LogEvent, others: Sequence[LogEvent], console: Console) -> Iterator[str]:
    when = "" if event.timestamp_ms is None else " ".join(date_and_clock(event.timestamp_ms))
    zone = "" if not when else " (UTC)" if event.zone_known else " (in the zone of the log)"
    meaning = meanings()[event.event]
    yield from (console.paint(line, Style.STRONG) for line in console.wrap(f"{meaning[0].upper()}{meaning[1:]}."))
    facts = [f"line {event.line}", f"{when}{zone}" if when else ""]
    if event.topic is not None:
        facts.append(f"partition {event.topic}-{'?' if event.partition is None else event.partition}")
    facts += [f"{text} {getattr(event, name)}" for name, text in _FACTS.items() if getattr(event, name) is not None]
    yield from console.wrap(visible(", ".join(filter(None, facts))), lead="  ")
    if others:
        more = f"{plural(len(others), 'more line')} about the same, the last is line {others[-1].line}"
        yield from console.wrap(more, lead="  ")


def _errors(pasted: PastedText) -> Sequence[ProtocolError]:
    found = [error for event in pasted.events if (error := error_of(event)) is not None]
    return list({error.name: error for error in found}.values())
