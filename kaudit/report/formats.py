"""The output formats by name. A new format is one module and one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report import concise, json, jsonl, table, timeline
from kaudit.report.tables import Tables, scan_tables, timeline_tables
from kaudit.report.view import View


@dataclass(frozen=True, slots=True)
class Format:
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit.

    Formats that fill a directory return Tables, all others text.
    """

    name: str
    machine: bool
    scan: Callable[[ScanResult, View], str | Tables]
    timeline: Callable[[TimelineResult, View], str | Tables]
    directory: bool = False


FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        Format("table", machine=False, scan=table.render_scan, timeline=timeline.render_timeline),
        Format("concise", machine=False, scan=concise.render_scan, timeline=concise.render_timeline),
        Format("json", machine=True, scan=json.render_scan, timeline=json.render_timeline),
        Format("jsonl", machine=True, scan=jsonl.render_scan, timeline=jsonl.render_timeline),
        Format("parquet", machine=True, scan=scan_tables, timeline=timeline_tables, directory=True),
    )
}
