"""`kaudit producers --output-format table`: a line per producer id, then the figures of all of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from kaudit.model.limits import PRODUCERS
from kaudit.model.producer_listing import Producer, ProducersResult
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.fitting import GAP, fit, notice
from kaudit.report.text.formatting import (
    expired_text,
    extent,
    headline_lines,
    partition_of,
    partition_text,
    timestamp_text,
)
from kaudit.report.text.not_checked import coverage_sections, text_of
from kaudit.report.text.producer_statistics import statistics_lines

_PAGE = 1000
"""Rows whose widths are settled together: a million do not fit into memory as text."""
_UNASKED = 50
"""Producer ids listed unless --limit or --producer-id asks for more."""
_DISPENSABLE = ("records", "first seen (UTC)", "pattern", "epochs", "partitions")
"""Columns that give way on a narrow terminal, in this order."""
_EXPIRED = {
    "rule": "a producer that still has the old producer id is answered INVALID_PRODUCER_ID_MAPPING "
    "(TransactionStateManager.enableTransactionalIdExpiration, KIP-98)",
    "help": "restart it or create it anew: clients from 4.0 on demand that, older ones that go on may write twice "
    "(KAFKA-18019); set transactional.id.expiration.ms (7 days) above the longest time that a producer is idle",
}


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield the report in pieces."""
    console = options.console
    yield from _list(result, console, detailed=result.detailed or options.show_notes)
    shown = options.for_people(result.scan.findings)
    findings = [console.paint("Findings (details: kaudit scan):", Style.STRONG)] if shown else []
    for finding in shown:
        where = partition_of(finding)
        findings += headline_lines(finding, console, lead="  ", indent="    ", end=f" [{where}]" if where else "")
    sections = statistics_lines(result, console), _expired(result, console), findings
    yield text_of([*sections, *coverage_sections(result.scan, options)])


def _expired(result: ProducersResult, console: Console) -> list[str]:
    """The transactional ids that have expired, the last ones first, and what that means for their producers."""
    count = result.summary.get("expired_transactional_ids")
    if not isinstance(count, int) or not count:
        return []
    lines = [console.paint(f"Expired transactional ids: {count:,}", Style.STRONG)]
    shown = result.expired[:_UNASKED]
    for entry in shown:
        lines += console.wrap(expired_text(entry), lead="  ", indent="    ")
    if shown and count > len(shown):
        lines.append(f"  ... {count - len(shown):,} more; --output-format json lists the last {PRODUCERS:,}")
    for label, text in _EXPIRED.items():
        lines += console.wrap(text, lead=f"  = {label}: ", indent="      ", style=Style.STRONG)
    return lines


def _list(result: ProducersResult, console: Console, *, detailed: bool) -> Iterator[str]:
    every = result.limit is not None or result.detailed
    producers = islice(result.producers, None if every else _UNASKED)
    columns: Sequence[str] | None = None
    while page := list(islice(producers, _PAGE)):
        rows = [_cells(producer) for producer in page]
        if columns is None:
            columns, above = _fitting(rows, console)
            yield "".join(f"{console.paint(line, Style.FAINT)}\n" for line in above)
            widths = {name: _width(name, rows) for name in columns}
            heading = GAP.join(_aligned(name, name, widths[name]) for name in columns)
            yield console.paint(heading.rstrip(), Style.FAINT) + "\n"
        for producer, cells in zip(page, rows, strict=True):
            yield GAP.join(_aligned(name, cells[name], widths[name]) for name in columns).rstrip() + "\n"
            if detailed:
                for partition in producer.partitions:
                    lines = console.wrap(partition_text(partition), lead="    ", indent="      ")
                    yield "".join(f"{line}\n" for line in lines)
    shown, chosen = min(_UNASKED, result.listed), result.listed + result.omitted
    if columns is not None and not every and chosen > shown:
        text = f"... the first {shown} of {chosen:,}; --limit {chosen} lists all, --sort chooses which come first"
        yield "".join(f"{line}\n" for line in console.wrap(text, indent="    ", style=Style.STRONG))
    if columns is not None:
        yield "\n"
    elif not result.found:
        yield f"no producer ids {extent(result.scan)}\n\n"


def _cells(producer: Producer) -> Mapping[str, str]:
    grants = producer.grants
    block = " and ".join(str(grant.start) + ("" if grant.broker is None else f" (b{grant.broker})") for grant in grants)
    return {
        "producer": str(producer.producer_id),
        "transactional id": visible(producer.transactional_id or "-"),
        "batches": str(producer.batches),
        "records": str(producer.records),
        "epochs": str(producer.epochs),
        "partitions": str(len({(place.topic, place.partition) for place in producer.partitions})),
        "first seen (UTC)": timestamp_text(producer.first_timestamp),
        "last seen (UTC)": timestamp_text(producer.last_timestamp),
        "block": block or "-",
        "pattern": visible(producer.pattern),
        "findings": ", ".join(dict.fromkeys(producer.findings)) or "-",
    }


def _fitting(rows: Sequence[Mapping[str, str]], console: Console) -> tuple[Sequence[str], list[str]]:
    """Choose the columns: those with any content, as many of them as fit; and say which do not."""
    optional = ("transactional id", "block", "findings")
    columns = [name for name in rows[0] if name not in optional or any(row[name] != "-" for row in rows)]
    fitted = fit({name: [row[name] for row in rows] for name in columns}, (), _DISPENSABLE, console.width)
    above = notice(fitted, console.width)
    return fitted.shown, console.wrap(above) if above else []


def _width(name: str, rows: Sequence[Mapping[str, str]]) -> int:
    return max(len(name), *(len(row[name]) for row in rows))


def _aligned(name: str, text: str, width: int) -> str:
    numbers = ("producer", "batches", "records", "epochs", "partitions")
    return text.rjust(width) if name in numbers else text.ljust(width)
