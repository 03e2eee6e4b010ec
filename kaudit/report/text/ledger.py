"""`kaudit diff --by records --output-format table`: what each pair of topics has in common first, then the findings as in a scan."""

import json
from collections.abc import Iterator, Sequence

from kaudit.diff.records.fingerprints import RecordFingerprintDiff
from kaudit.model.json_record import document_head, rfc3339
from kaudit.model.ledger import LedgerResult, RecordRange, RepeatedRange, TopicLedger, WindowCounts
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import duration, plural, span
from kaudit.report.text.not_checked import text_of, unchecked_sections
from kaudit.report.text.table import explain_lines, finding_sections, hidden_lines
from kaudit.results.scope import size

_MOST_NAMED = 3
_TOPICS_SHOWN = 200


def render_ledger(result: LedgerResult, options: RenderOptions) -> str:
    """Return the report as text."""
    console = options.console
    shown = options.for_people(result.scan.findings)
    differ = [ledger for ledger in result.ledgers if not ledger.agrees]
    sections = [list(_answer(ledger, console)) for ledger in differ[:_TOPICS_SHOWN]]
    sections += finding_sections(shown, options, many_inputs=True)
    explained = [] if options.statistics else explain_lines(shown, console)
    sections.append([*explained, *_closing(result, len(differ), console), *hidden_lines(result.scan, shown)])
    return text_of([*sections, *unchecked_sections(result.scan, console)])


def _answer(ledger: TopicLedger, console: Console) -> Iterator[str]:
    lead = console.paint(f"{visible(ledger.source)} -> {visible(ledger.target)}: ", Style.WARNING)
    yield from console.wrap(answer(ledger), lead=lead, indent="    ")
    yield from console.wrap(_context(ledger), lead="  ", indent="    ")
    if ledger.windows is not None:
        yield from console.wrap(windows_text(ledger.windows), lead="  ", indent="    ")


def record_comparison_document(found: RecordFingerprintDiff) -> Iterator[str]:
    """Yield the kaudit.record-fingerprint-diff/1 document."""
    document = {
        **document_head("kaudit.record-fingerprint-diff/1"),
        "inputs": list(found.inputs),
        "sites": list(found.names),
        "incomplete": found.incomplete,
        "not_audited": [each.to_dict() for each in found.not_audited],
        "topics": [each.to_dict() for each in found.topics],
        "not_compared": dict(found.alone),
    }
    yield json.dumps(document, indent=2) + "\n"


def record_comparison_text(found: RecordFingerprintDiff, console: Console, narrowing: str | None) -> Iterator[str]:
    """Yield which windows of which topics differ; `narrowing` is the command that makes narrower ones, None where there is none to run."""
    differ = [each for each in found.topics if each.windows.differing]
    for each in differ[:_TOPICS_SHOWN]:
        lead = console.paint(f"{visible(each.source)} -> {visible(each.target)}: ", Style.WARNING)
        yield from (line + "\n" for line in console.wrap(_windows(each.windows), lead=lead, indent="    "))
        for remark in each.remarks:
            yield from (line + "\n" for line in console.wrap(remark, lead="  - ", indent="    "))
    for topic, reason in sorted(found.alone.items())[:_TOPICS_SHOWN]:
        yield from (
            line + "\n" for line in console.wrap(f"{visible(topic)}: {visible(reason)}", lead="- ", indent="  ")
        )
    same = len(found.topics) - len(differ)
    parts = [f"{plural(same, 'topic')} with the same records in each window" if same else ""]
    parts.append(f"{plural(len(differ), 'topic')} that {'differs' if len(differ) == 1 else 'differ'}" if differ else "")
    yield from (line + "\n" for line in console.wrap(", ".join(filter(None, parts)) or "no topic compared"))
    if differ and narrowing is not None:
        yield f"narrower windows where they differ: {narrowing}\n"


def windows_text(windows: WindowCounts) -> str:
    """Return which windows of event time differ, and whether all records were compared nevertheless."""
    how = "the ledger has read these alone"
    return f"{_windows(windows)}; {how if windows.compared_whole is None else f'all was compared: {windows.compared_whole}'}"


def _windows(windows: WindowCounts) -> str:
    """Return which windows differ, with the records of source and target in the first of them."""
    shown = [
        f"{rfc3339(each.start) if each.start is not None else 'no timestamp'}: {plural(each.source_records, 'record')} of the source, {each.target_records:,} of the target"
        for each in windows.differences[:_MOST_NAMED]
    ]
    more = [f"{windows.differing - len(shown):,} more"] if windows.differing > len(shown) else []
    places = f" ({'; '.join([*shown, *more])})" if shown else ""
    width = duration(windows.milliseconds / 1000)
    return f"{windows.differing:,} of {plural(windows.windows, 'window')} of {width} differ{places}"


def answer(ledger: TopicLedger) -> str:
    """Return what differs between two topics in one line, with the offsets of the first places."""
    parts = []
    if ledger.missing:
        where = _places("source offset", ledger.missing_ranges)
        parts.append(f"{plural(ledger.missing, 'source record')} missing on target{where}")
    if ledger.repeated:
        parts.append(f"{ledger.repeated:,} twice{_places('target', ledger.repeated_ranges)}")
    if ledger.out_of_order:
        places = [
            RecordRange(each.target_partition, each.target_offset, each.target_offset, 1) for each in ledger.moved
        ]
        parts.append(f"{ledger.out_of_order:,} out of order within a key{_places('target', places)}")
    if ledger.only_in_target:
        where = _places("target", ledger.only_in_target_ranges)
        parts.append(f"{plural(ledger.only_in_target, 'target record')} missing on source{where}")
    return ", ".join(parts) or "every record once"


def _places(what: str, ranges: Sequence[RecordRange | RepeatedRange]) -> str:
    if not ranges:
        return ""
    one = len({each.partition for each in ranges}) == 1 and ranges[0].partition == 0
    names = [("" if one else f"{each.partition}: ") + span(each.first, each.last) for each in ranges[:_MOST_NAMED]]
    more = f" and {len(ranges) - _MOST_NAMED:,} more" if len(ranges) > _MOST_NAMED else ""
    return f" ({what} {', '.join(names)}{more})"


def _context(ledger: TopicLedger) -> str:
    """Return what both have in common, and what is no difference."""
    parts = [f"{plural(ledger.matched, 'record')} on both by {ledger.identity}"]
    if ledger.but_for_headers:
        parts.append(f"{ledger.but_for_headers:,} of them the same but for headers")
    if not ledger.matched and ledger.source_counts.records and ledger.target_counts.records:
        parts = [
            f"no record on both by {ledger.identity}: if a mirror changes some parts of records, name the others with --identity"
        ]
    others = (
        (ledger.pending, "after the last that both have: the target has not copied them yet"),
        (ledger.ahead, "of the target after the last that both have"),
        (ledger.expired, "before the target's first: its log begins later"),
        (ledger.older, "of the target before the source's first: its log begins later"),
        (ledger.cleaned, "that the log cleaner may have removed"),
    )
    parts += [f"{count:,} {what}" for count, what in others if count]
    if not ledger.matched:
        parts.append("copies that have other timestamps are compared with --identity key,value")
    return "; ".join(parts)


def _closing(result: LedgerResult, differing: int, console: Console) -> list[str]:
    agree = len(result.ledgers) - differing
    parts = [f"{plural(agree, 'topic')} with every record once on both sides" if agree else ""]
    parts.append(f"{plural(differing, 'topic')} that {'differs' if differing == 1 else 'differ'}" if differing else "")
    pending = sum(ledger.pending for ledger in result.ledgers if ledger.agrees)
    parts.append(f"{plural(pending, 'source record')} not copied yet" if pending else "")
    others = sum(ledger.but_for_headers for ledger in result.ledgers if ledger.agrees)
    parts.append(f"{plural(others, 'record')} the same but for headers" if others else "")
    records = (
        sum(ledger.source_counts.records for ledger in result.ledgers),
        sum(ledger.target_counts.records for ledger in result.ledgers),
    )
    read = f"{plural(records[0], 'record')} of the source and {records[1]:,} of the target in {size(result.scan.summary.bytes)}"
    return list(console.wrap(f"{', '.join(filter(None, parts)) or 'no topic compared'}; {read}"))
