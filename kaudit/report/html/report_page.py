"""`--output-format html`: one page of a result, within a budget of bytes; it lists everything that it leaves out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from kaudit import __version__
from kaudit.checks.command_line import quote
from kaudit.checks.texts import block_text
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import Producer, ProducerPartition, ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import PartitionSummary, ScanResult, TimelineResult
from kaudit.report.html.document import BUDGET, REPORT_SCRIPTS, REPORT_STYLES, document
from kaudit.report.html.finding_rows import finding_row, int64, profile_of, state_facts
from kaudit.report.html.overview import MOST_INCIDENTS, PagePlaces, left_out, overview, with_histories
from kaudit.report.html.page_model import (
    DATA_ID,
    SCHEMA,
    FindingRow,
    Kind,
    LeftOut,
    PageModel,
    PartitionRow,
    ProducerRow,
    Table,
    within,
)
from kaudit.report.html.partition_columns import Histories, Key, histories_of, key_of, left_out_of, partition_rows
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.coverage import classes_text
from kaudit.report.text.diff import comparison_text, difference_rows
from kaudit.report.text.formatting import date_and_clock, span
from kaudit.results.incidents import members

_FOR_FINDINGS = 1_200_000
_FOR_PRODUCERS = 600_000
_MOST_PARTITIONS = 1_000
_LATER = 12_000
"""Bytes reserved for what only the histories show: activity over time, and counts of rows left out."""
_FEW_INPUTS = 5


class _More(Struct, frozen=True):
    """What a command shows beyond a scan."""

    producers: Sequence[ProducerRow] = ()
    differences: Table | None = None
    facts: Sequence[tuple[str, str]] = ()
    left_out: Sequence[LeftOut] = ()


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the page of a scan, or of a saved one, which has no histories."""
    return _page("scan", result, options, lambda _: _More())


def render_timeline(result: TimelineResult, options: RenderOptions) -> str:
    """Return the page of producers' histories: those asked for, all without a choice."""
    return _page("timeline", result.scan, options, lambda _: _More())


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield the page with the listing of producer ids."""
    yield _page("producers", result.scan, options, lambda partitions: _listing(result, partitions))


def render_diff(result: DiffResult, options: RenderOptions) -> str:
    """Return the page of a comparison: replicas one above the other."""
    headings, rows = difference_rows(result)
    names = [(f"replica {replica.name}", replica.path) for replica in result.replicas]
    more = _More(
        differences=Table(headings, rows[:_MOST_PARTITIONS]),
        facts=[("compared", comparison_text(result)), *names],
        left_out=left_out("partitions that differ", len(rows) - _MOST_PARTITIONS, "kaudit diff --output-format json"),
    )
    return _page("diff", result.scan, options, lambda _: more)


def _page(kind: Kind, result: ScanResult, options: RenderOptions, more_of: Callable[[Mapping[Key, int]], _More]) -> str:
    paths = _paths(result.inputs)
    chosen = _chosen_partitions(result)
    places = {key_of(entry): index for index, entry in enumerate(chosen)}
    shown = options.for_people(result.findings)
    groups = members(shown)
    findings, indexes = _findings(result, groups, places)
    more = more_of(places)
    first = overview(result, shown, groups, PagePlaces(indexes, places, more.facts))
    del shown, groups
    offsets = {(each.topic, each.partition, each.replica): classes_text(each) for each in result.coverage}

    def model(histories: Histories) -> tuple[PageModel, list[tuple[str, str]]]:
        rows, elements = partition_rows(chosen, histories, offsets)
        missing = [
            *left_out("findings", len(result.findings) - len(findings), f"kaudit scan --output-format json {paths}"),
            *left_out("findings beyond --max-findings", result.summary.omitted, f"kaudit scan {paths}"),
            *left_out("partition replicas", len(result.partitions) - len(chosen), f"kaudit scan --topic TOPIC {paths}"),
            *more.left_out,
            *left_out_of(rows, paths),
            *_without_histories(result, options, kind, paths),
        ]
        activity = [page.activity for page in histories.pages.values() if page.activity is not None]
        page = PageModel(
            schema=SCHEMA,
            kind=kind,
            title=f"kaudit {kind}: {', '.join(result.inputs[:3])}" + (" ..." if len(result.inputs) > 3 else ""),
            command=options.command,
            inputs=[quote(path) for path in result.inputs],
            made_by=f"kaudit {__version__}",
            run=[] if options.run is None else [(name, str(value)) for name, value in options.run.items()],
            overview=with_histories(first, activity, missing),
            findings=[_of_shown_incident(row, len(first.incidents)) for row in findings],
            partitions=rows,
            producers=more.producers,
            differences=more.differences,
        )
        return page, elements

    without, _ = model(Histories())
    room = BUDGET - _LATER - len(_text(without, []).encode())
    page, elements = model(histories_of(result, options, places, room))
    return _text(page, elements)


def _text(page: PageModel, elements: Sequence[tuple[str, str]]) -> str:
    return document(
        "report.html",
        title=page.title,
        styles=REPORT_STYLES,
        scripts=REPORT_SCRIPTS,
        data={DATA_ID: page},
        columns=elements,
        context={"verdict": page.overview.verdict, "tables": list(plain_tables(page))},
    )


def _paths(inputs: Sequence[str]) -> str:
    return " ".join(map(quote, inputs)) if len(inputs) <= _FEW_INPUTS else "PATH..."


def _without_histories(result: ScanResult, options: RenderOptions, kind: Kind, paths: str) -> list[LeftOut]:
    """A saved scan has findings and partitions, and no runs."""
    if options.recorded or not result.partitions:
        return []
    return [LeftOut("runs, markers and transactions", None, f"kaudit {kind} --output-format html {paths}")]


def _chosen_partitions(result: ScanResult) -> list[PartitionSummary]:
    """Return the partition replicas that are shown, in their order: those with findings before those without."""
    if len(result.partitions) <= _MOST_PARTITIONS:
        return list(result.partitions)
    found = {(finding.topic, finding.partition, finding.replica) for finding in result.findings}
    order = sorted(range(len(result.partitions)), key=lambda place: key_of(result.partitions[place]) not in found)
    return [result.partitions[place] for place in sorted(order[:_MOST_PARTITIONS])]


def _findings(
    result: ScanResult, groups: Sequence[Sequence[Finding]], places: Mapping[Key, int]
) -> tuple[list[FindingRow], dict[int, int]]:
    """Return as many findings as there is room for, preferring severe ones, and their indexes by index in the result."""
    incidents = {id(found): place for place, group in enumerate(groups[:MOST_INCIDENTS]) for found in group}
    profile = profile_of(result.broker_version.profile)
    many_inputs = len(result.inputs) > 1

    def row_of(place: int) -> tuple[int, FindingRow]:
        finding = result.findings[place]
        key = (*finding.partition_key, finding.replica or "")
        incident = incidents.get(id(finding))
        return place, finding_row(finding, places.get(key), incident, profile, many_inputs=many_inputs)

    worst_first = sorted(range(len(result.findings)), key=lambda place: -result.findings[place].severity.rank)
    rows = sorted(within(map(row_of, worst_first), _FOR_FINDINGS), key=itemgetter(0))
    return [row for _, row in rows], {place: index for index, (place, _) in enumerate(rows)}


def _of_shown_incident(row: FindingRow, incidents: int) -> FindingRow:
    return row if row.incident is None or row.incident < incidents else replace(row, incident=None)


def _listing(result: ProducersResult, partitions: Mapping[Key, int]) -> _More:
    rows = within(producer_rows(result, partitions), _FOR_PRODUCERS)
    shown = len({row.producer_id for row in rows})
    everything = "parquet" if result.omitted else "jsonl"
    hidden = result.listed + result.omitted - shown
    missing = left_out("producer ids of the listing", hidden, f"kaudit producers --output-format {everything}")
    expired = result.summary.get("expired_transactional_ids")
    facts = [("expired transactional ids", f"{expired}: kaudit producers lists them")] if expired else []
    return _More(producers=rows, facts=facts, left_out=missing)


def producer_rows(result: ProducersResult, partitions: Mapping[Key, int]) -> Iterator[ProducerRow]:
    """Yield the rows in the order of the listing; `partitions` are the indexes of those the page shows."""
    for producer in result.producers:
        for place in producer.partitions:
            yield _row(producer, place, partitions.get((place.topic, place.partition, place.replica)))


def _row(producer: Producer, place: ProducerPartition, partition: int | None) -> ProducerRow:
    state = place.state
    return ProducerRow(
        producer_id=str(producer.producer_id),
        transactional_id=producer.transactional_id,
        pattern=producer.pattern,
        block=" and ".join(map(block_text, producer.grants)),
        partition=partition,
        place=f"{place.topic}-{place.partition}",
        replica=place.replica,
        epochs=span(place.first_epoch, place.last_epoch),
        first_offset=int64(place.first_offset),
        last_offset=int64(place.last_offset),
        first_timestamp=_time(place.first_timestamp),
        last_timestamp=_time(place.last_timestamp),
        batches=place.batches,
        records=place.records,
        state=state_facts(
            state.producer_epoch,
            state.last_sequence,
            state.last_offset,
            state.coordinator_epoch,
            state.current_txn_start_offset,
        ),
        findings=list(dict.fromkeys(place.findings)),
    )


def _time(milliseconds: int) -> str | None:
    return None if milliseconds < 0 else str(milliseconds)


_MOST_ROWS = 300
_MOST_BYTES = 200_000
"""Of one table: hostile names are long."""

PlainTable = Mapping[str, object]
"""`caption`, `headings`, `rows` and `more`, a sentence that says how many rows are left out, or nothing."""


def plain_tables(page: PageModel) -> Iterator[PlainTable]:
    """Yield the tables of a page that have rows."""
    worst_first = sorted(page.findings, key=lambda row: _SEVERITIES.index(row.severity))
    yield from _table("Findings", _FINDING, map(_finding, worst_first[:_MOST_ROWS]), len(page.findings))
    partitions = [_partition(row) for row in page.partitions[:_MOST_ROWS]]
    yield from _table("Partitions", _PARTITION, partitions, len(page.partitions))
    missing = [[row.path, row.reason] for row in page.overview.not_audited[:_MOST_ROWS]]
    yield from _table("Not checked", ("path", "reason"), missing, len(page.overview.not_audited))
    hidden = [
        [row.what, "" if row.count is None else f"{row.count:,}", row.how_to_see] for row in page.overview.left_out
    ]
    yield from _table("Left out of this page", ("what", "how many", "shown by"), hidden, len(hidden))


_SEVERITIES = ("error", "warning", "note")
_FINDING = ("severity", "code", "name", "where", "time (UTC)", "finding", "impact", "fingerprint")
_PARTITION = (
    "topic",
    "partition",
    "replica",
    "log start",
    "high watermark",
    "last stable offset",
    "log end",
    "producer ids",
    "runs",
    "batches",
    "records",
    "offsets",
)


def _table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> Iterator[PlainTable]:
    rows = within(rows, _MOST_BYTES)
    if rows:
        more = f"{total - len(rows):,} more rows are shown with scripts on." if total > len(rows) else ""
        yield {"caption": caption, "headings": headings, "rows": rows, "more": more}


def _finding(row: FindingRow) -> list[str]:
    at = "" if row.timestamp is None else " ".join(date_and_clock(int(row.timestamp)))
    return [row.severity, row.code, row.name, row.place, at.strip(), row.message, row.impact, row.fingerprint]


def _partition(row: PartitionRow) -> list[str]:
    offsets = (row.log_start_offset, row.high_watermark, row.last_stable_offset, row.log_end_offset)
    counts = (row.producers, row.runs, row.batches, row.records)
    return [
        row.topic,
        str(row.partition),
        row.replica,
        *(span(offset, None) for offset in offsets),
        *(f"{count:,}" for count in counts),
        row.offsets or "",
    ]
