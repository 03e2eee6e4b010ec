"""`kaudit producers --output-format table`: the figures of all producer ids, then a line for each."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from kaudit.model.limits import PRODUCERS
from kaudit.model.producer_listing import Producer, ProducersResult
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.fitting import GAP, fit, notice
from kaudit.report.text.formatting import (
    duration,
    expired_text,
    headline_lines,
    partition_of,
    partition_text,
    plural,
    timestamp_text,
)
from kaudit.report.text.not_checked import closing_sections, text_of, verdict_section
from kaudit.results.scope import extent

_PAGE = 1000
"""Rows whose widths are computed together: a million rows do not fit into memory as text."""
_UNASKED = 50
"""Producer ids listed unless --limit or --producer-id asks for more."""
_DISPENSABLE = ("records", "first seen (UTC)", "pattern", "epochs", "partitions")
"""Columns that a narrow terminal leaves out, in this order."""
_LEAST_WIDTHS = {"findings": 12, "transactional id": 14, "block": 10}
"""Columns that it cuts after that, in this order, and what is left of them."""
_EXPIRED = {
    "rule": "a producer that still has the old producer id is answered INVALID_PRODUCER_ID_MAPPING "
    "(TransactionStateManager.enableTransactionalIdExpiration, KIP-98)",
    "help": "restart or recreate it: clients from 4.0 on require that, older clients that continue may write records twice "
    "(KAFKA-18019); set transactional.id.expiration.ms (7 days) above the longest idle time of a producer",
}


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield the report in pieces."""
    console = options.console
    yield text_of([[*statistics_lines(result, console), ""]])
    yield from _list(result, console, detailed=result.detailed or options.show_notes)
    shown = options.for_people(result.scan.findings)
    findings = [console.paint("Findings (details: kaudit scan):", Style.STRONG)] if shown else []
    for finding in shown:
        where = partition_of(finding)
        findings += headline_lines(finding, console, lead="  ", indent="    ", end=f" [{where}]" if where else "")
    sections = _expired(result, console), verdict_section(result.scan, console), findings
    yield text_of([*sections, *closing_sections(result.scan, options)])


def _expired(result: ProducersResult, console: Console) -> list[str]:
    """Return the expired transactional ids, newest first, and what expiry means for their producers."""
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
            widths = _widths(columns, rows, console)
            heading = GAP.join(_aligned(name, name, widths[name]) for name in columns)
            yield console.paint(heading.rstrip(), Style.FAINT) + "\n"
        for producer, cells in zip(page, rows, strict=True):
            yield (
                GAP.join(_aligned(name, _cut(cells[name], widths[name]), widths[name]) for name in columns).rstrip()
                + "\n"
            )
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
    """Return the columns that have content and fit, and the lines that name those that do not fit."""
    optional = ("transactional id", "block", "findings")
    columns = [name for name in rows[0] if name not in optional or any(row[name] != "-" for row in rows)]
    fitted = fit({name: [row[name] for row in rows] for name in columns}, (), _DISPENSABLE, console.width)
    above = notice(fitted, console.width)
    return fitted.shown, console.wrap(above) if above else []


def _widths(columns: Sequence[str], rows: Sequence[Mapping[str, str]], console: Console) -> dict[str, int]:
    """Return the width of each column, so that a line fits the terminal where that is possible."""
    widths = {name: _width(name, rows) for name in columns}
    for name, least in _LEAST_WIDTHS.items():
        excess = sum(widths.values()) + len(GAP) * (len(widths) - 1) - (console.width or 0)
        if name in widths and console.width is not None and excess > 0:
            widths[name] = max(min(widths[name], least), widths[name] - excess)
    return widths


def _cut(text: str, width: int) -> str:
    """Return the text, without its middle where it is wider: ids differ at their ends."""
    if len(text) <= width:
        return text
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


def _width(name: str, rows: Sequence[Mapping[str, str]]) -> int:
    return max(len(name), *(len(row[name]) for row in rows))


def _aligned(name: str, text: str, width: int) -> str:
    numbers = ("producer", "batches", "records", "epochs", "partitions")
    return text.rjust(width) if name in numbers else text.ljust(width)


_DAYS_PER_YEAR = 365.25
_HOUR_MS = 3_600_000
_Figures = Mapping[str, object]


def statistics_lines(result: ProducersResult, console: Console) -> list[str]:
    """Return the summary; nothing where there are no ids."""
    ids = result.summary.get("ids")
    if not isinstance(ids, Mapping) or not result.found:
        return []
    lines = [console.paint(line, Style.STRONG) for line in console.wrap(_headline(ids), indent="    ")]
    for text in (_rate(ids), _batches(ids), _alive(ids)):
        if text:
            lines += console.wrap(text, lead="  ", indent="    ")
    blocks = result.summary.get("blocks")
    for figures in blocks if isinstance(blocks, Sequence) else ():
        lines += console.wrap(_blocks(figures), lead="  ", indent="    ")
    histograms = ids.get("histograms")
    if isinstance(histograms, Mapping) and not result.listed:  # only without a list: both together are too long
        lines += histogram_lines(histograms, console)
    return lines + _creators(result, ids, console)


def _headline(ids: _Figures) -> str:
    chosen, found = _number(ids, "chosen"), _number(ids, "found")
    text = plural(chosen, "producer id") + (f" of {found:,}" if chosen != found else "")
    if _number(ids, "transactional"):
        text += f", {_number(ids, 'transactional'):,} transactional"
    text += f": {plural(_number(ids, 'batches'), 'batch', 'batches')}, {plural(_number(ids, 'records'), 'record')}"
    first, last = ids.get("first_timestamp"), ids.get("last_timestamp")
    if isinstance(first, int) and isinstance(last, int):
        text += f", {timestamp_text(first)} to {timestamp_text(last)} UTC"
    return text


def _rate(ids: _Figures) -> str:
    per_hour, busiest = ids.get("per_hour"), ids.get("busiest_hour")
    if not isinstance(per_hour, int | float) or not isinstance(busiest, Mapping):
        return ""
    first, last = ids.get("first_timestamp"), ids.get("last_timestamp")
    if isinstance(first, int) and isinstance(last, int) and last - first < _HOUR_MS:
        return "new ids: all within an hour"
    start = busiest.get("start_timestamp")
    hour = timestamp_text(start)[:16] if isinstance(start, int) else "-"
    return f"new ids: {per_hour:,.1f} an hour; most in the hour from {hour}: {_number(busiest, 'ids'):,}"


def _batches(ids: _Figures) -> str:
    figures = ids.get("batches_per_id")
    if not isinstance(figures, Mapping):
        return ""
    least, most = _number(figures, "least"), _number(figures, "most")
    if least == most:
        return f"batches per id: {least:,}"
    return f"batches per id: {least:,} to {most:,}, median {figures['median']:,.0f}, mean {figures['mean']:,.1f}"


def _alive(ids: _Figures) -> str:
    alive = ids.get("alive")
    if not isinstance(alive, Mapping):
        return ""
    return (
        f"still remembered by brokers: {_number(alive, '1d'):,} (1-day expiry), {_number(alive, '7d'):,} (7-day expiry)"
    )


def _blocks(figures: _Figures) -> str:
    history = "complete" if figures.get("complete") else "incomplete"
    end = figures.get("end_timestamp")
    until = f" until {timestamp_text(end)} UTC" if isinstance(end, int) else ""
    text = f"{history} allocation history{until}: {plural(_number(figures, 'granted'), 'block')}"
    per_day, days_left = figures.get("per_day"), figures.get("days_left")
    if isinstance(per_day, int | float) and isinstance(days_left, int | float):
        text += f", {per_day:,.1f} a day, {_span(days_left)} left at that rate"
    following = figures.get("next")
    if isinstance(following, Mapping):
        text += f"; next {following.get('start')}..{following.get('end')}"
    return f"{text} ({visible(str(figures.get('source')))})"


def _span(days: float) -> str:
    if days < 2 * _DAYS_PER_YEAR:
        return f"{days:,.1f} days"
    years = days / _DAYS_PER_YEAR
    return f"{years:,.0f} years" if years < 1e6 else "over a million years"


def _creators(result: ProducersResult, ids: _Figures, console: Console) -> list[str]:
    creators = result.summary.get("creators")
    if not isinstance(creators, Sequence) or not creators:
        return []
    lines = ["  client patterns, most ids first:"]
    groups = [_number(creator, "producers") for creator in creators]
    others = max(_number(ids, "chosen") - sum(groups), 0)
    width = max(len(f"{number:,}") for number in (*groups, others))
    for creator in creators:
        topics, count = creator["topics"], _number(creator, "topic_count")
        named = ", ".join(map(str, topics)) + (
            f" and {plural(count - len(topics), 'more topic')}" if count > len(topics) else ""
        )
        kind = f"transactional ids like {creator['pattern']}" if creator["transactional_id"] else creator["pattern"]
        text = f"{kind}, {creator['batches_per_producer']:,.1f} batches each, in {named}"
        lead = f"    {_number(creator, 'producers'):>{width},}  "
        lines += console.wrap(visible(text), lead=lead)
    return [*lines, f"    {others:>{width},}  of other patterns"] if others else lines


def _number(figures: _Figures, name: str) -> int:
    value = figures.get(name)
    return value if isinstance(value, int) else 0


_BAR_INDENT = "  "
_BAR_GAP = "  "
_DEFAULT_WIDTH = 80
_LONGEST_BAR = 50
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_Bucket = Mapping[str, int | None]


def histogram_lines(histograms: Mapping[str, object], console: Console) -> list[str]:
    """Return a block of bars for each histogram of a producer listing's summary that has more than one bucket."""
    lines: list[str] = []
    for name, title, label in (
        ("first_seen", "first seen (UTC)", _step),
        ("batches", "batches per id", _range_text),
        ("epochs", "epochs per id", _range_text),
        ("lifetime_ms", "active for", _times),
        ("idle_ms", "idle for", _times),
    ):
        buckets = histograms.get(name)
        if isinstance(buckets, Sequence) and len(buckets) > 1:
            lines += _bars(title, [(label(bucket), bucket["ids"]) for bucket in buckets], console)
    return lines


def _bars(title: str, rows: Sequence[tuple[str, int]], console: Console) -> list[str]:
    left = max(len(label) for label, _ in rows)
    right = max(len(f"{ids:,}") for _, ids in rows)
    length = min((console.width or _DEFAULT_WIDTH) - left - right - 2 * len(_BAR_INDENT + _BAR_GAP), _LONGEST_BAR)
    most = max(ids for _, ids in rows)
    lines = [f"{_BAR_INDENT}{title}"]
    for label, ids in rows:
        bar = _bar(ids, most, max(length, 1), console)
        lines.append(
            f"{_BAR_INDENT * 2}{label:>{left}}{_BAR_GAP}{ids:>{right},}{_BAR_GAP}{console.paint(bar, Style.COMMAND)}".rstrip()
        )
    return lines


def _bar(ids: int, most: int, length: int, console: Console) -> str:
    """Return a bar; it is empty only for 0."""
    eighths = -(-ids * length * 8 // most)
    if not console.draws:
        return "#" * -(-eighths // 8)
    return (_EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8]).strip()


def _step(bucket: _Bucket) -> str:
    start = bucket["start_timestamp"]
    return timestamp_text(start) if start is not None else "-"


def _range_text(bucket: _Bucket) -> str:
    first, last = bucket["from"], bucket["to"]
    if last is None:
        return f"{first:,} and more"
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _times(bucket: _Bucket) -> str:
    """Return `under 1 min`, `1 min to 1 h`, `7 days and more`."""
    first, last = bucket["from"] or 0, bucket["to"]
    if last is None:
        return f"{_time(first)} and more"
    return f"{_time(first)} to {_time(last + 1)}" if first else f"under {_time(last + 1)}"


def _time(milliseconds: int) -> str:
    seconds = milliseconds // 1000
    for unit, length in (("day", 86_400), ("h", 3600), ("min", 60)):
        if seconds and seconds % length == 0:
            number = seconds // length
            return plural(number, unit) if unit == "day" else f"{number} {unit}"
    return duration(seconds).replace(".0", "")
