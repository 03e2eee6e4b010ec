"""Lines of logs that a person pasted, explained: `kaudit explain LINE` and `kaudit explain -`."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from kaudit.explanations.catalogue import Entry, entries
from kaudit.explanations.lines import LONGEST, PastedText, error_of, missing_sequences
from kaudit.explanations.lookup import related
from kaudit.formats.protocol_errors import ProtocolError
from kaudit.model.application_logs import LogEvent
from kaudit.report.console import Console, Style, visible
from kaudit.report.json_documents import pretty
from kaudit.report.text.explain_pages import entry_lines, entry_reference, readable, section_lines
from kaudit.report.text.formatting import date_and_clock, plural, size

_SHOWN = 20
_PLACES = 3
_FACTS = {
    "transactional_id": "transactional id",
    "producer_id": "producer id",
    "producer_epoch": "epoch",
    "expected_epoch": "expected epoch",
    "client_id": "client id",
    "broker_id": "broker",
    "leader": "leader",
    "leader_epoch": "leader epoch",
    "offset": "offset",
    "transaction_state": "state",
    "isr": "in sync",
}


def pasted_page(pasted: PastedText, console: Console) -> str:
    """Return what the lines mean: each event with its producer, place and sequences, then the errors in them, then what to look at."""
    console = readable(console)
    alike: dict[tuple[object, ...], list[LogEvent]] = {}
    for event in pasted.events:
        alike.setdefault(_subject(event), []).append(event)
    lines: list[str] = []
    for first, *others in list(alike.values())[:_SHOWN]:
        lines += [*_event_lines(first, others, console), ""]
    if len(alike) > _SHOWN:
        lines += [f"{len(alike) - _SHOWN} more events of other producers and partitions", ""]
    explained = _entries(_errors(pasted))
    for entry in explained:
        lines += [*entry_lines(entry, console), ""]
    reported = list(dict.fromkeys(other for entry in explained for other in related(entry) if other not in explained))
    if reported:
        lines += [*section_lines("See also", "\n".join(map(entry_reference, reported)), console), ""]
    lines += section_lines("To be certain", _next(pasted), console)
    return "".join(f"{line}\n" for line in lines)


def pasted_document(pasted: PastedText) -> str:
    """Return the same as JSON: `kaudit.log-lines/1`."""
    explained = _entries(_errors(pasted))
    return pretty(
        {
            "schema": "kaudit.log-lines/1",
            "events": [_event(event) for event in pasted.events],
            "errors": [entry.id for entry in explained],
            "see_also": list(dict.fromkeys(other.id for entry in explained for other in related(entry))),
        }
    )


def _event(event: LogEvent) -> Mapping[str, object]:
    stated = {name: getattr(event, name) for name in LogEvent.__struct_fields__ if name not in {"path", "pattern"}}
    missing = missing_sequences(event)
    return {
        **{name: str(value) if name == "event" else value for name, value in stated.items() if value is not None},
        "meaning": meanings()[event.event],
        **({} if missing is None else {"missing_sequences": missing.count}),
    }


@cache
def meanings() -> Mapping[str, str]:
    """Return what each class of events means, in a sentence without capital and full stop."""
    read: dict[str, str] = tomllib.loads((files("kaudit.explanations") / "events.toml").read_text("utf-8"))
    return read


def _subject(event: LogEvent) -> tuple[object, ...]:
    return event.event, event.error, event.topic, event.partition, event.producer_id, event.transactional_id


def _event_lines(event: LogEvent, others: Sequence[LogEvent], console: Console) -> Iterator[str]:
    when = "" if event.timestamp_ms is None else " ".join(date_and_clock(event.timestamp_ms))
    zone = "" if not when else " (UTC)" if event.zone_known else " (in the zone of the log)"
    meaning = meanings()[event.event]
    yield from console.wrap(f"{meaning[0].upper()}{meaning[1:]}.", style=Style.STRONG)
    facts = [f"line {event.line}", f"{when}{zone}" if when else ""]
    if event.topic is not None:
        facts.append(f"partition {event.topic}-{'?' if event.partition is None else event.partition}")
    facts += [f"{text} {getattr(event, name)}" for name, text in _FACTS.items() if getattr(event, name) is not None]
    yield from console.wrap(visible(", ".join(filter(None, facts))), lead="  ")
    missing = missing_sequences(event)
    if missing is not None:
        yield from console.wrap(_sequences(missing.expected, missing.incoming, missing.count), lead="  ")
    elif event.base_sequence is not None:
        yield from console.wrap(f"first sequence {event.base_sequence}", lead="  ")
    if others:
        yield from console.wrap(
            f"{plural(len(others), 'more line')} about the same, the last is line {others[-1].line}", lead="  "
        )


def _sequences(expected: int, incoming: int, count: int) -> str:
    text = f"The broker waits for sequence {expected} and got {incoming}: "
    if count:
        return f"{text}{plural(count, 'sequence')} between them ({expected} to {incoming - 1}) {'is' if count == 1 else 'are'} missing."
    if incoming == 0:
        return f"{text}the producer began again, in an epoch that the broker knows."
    return f"{text}the batch repeats what was written, or overlaps it."


def _errors(pasted: PastedText) -> Sequence[ProtocolError]:
    found = [error for event in pasted.events if (error := error_of(event)) is not None]
    return list({error.name: error for error in (*found, *pasted.errors)}.values())


def _entries(errors: Sequence[ProtocolError]) -> Sequence[Entry]:
    return [entry for error in errors for entry in entries() if entry.subject is error]


def _next(pasted: PastedText) -> str:
    events = pasted.events
    places = dict.fromkeys(
        f"{event.topic}-{event.partition}"
        for event in events
        if event.topic is not None and event.partition is not None
    )
    ids = dict.fromkeys(event.transactional_id for event in events if event.transactional_id is not None)
    items = [
        f"- `kaudit scan` of the directory {visible(place)} of every replica says whether what was refused was written later."
        for place in list(places)[:_PLACES]
    ]
    items += [
        f"- `kaudit scan` of `__transaction_state` says how the coordinator ended the transactions of {visible(name)}."
        for name in list(ids)[:_PLACES]
    ]
    if not items:
        items.append(
            "- This text names no partition: `kaudit scan` of the brokers' log directories says what was lost, repeated or left open."
        )
    if pasted.cut:
        items.append(f"- Only the first {size(LONGEST)} were read: `kaudit scan --server-log FILE` reads whole logs.")
    return "\n".join(items)
