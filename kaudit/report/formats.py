"""The output formats by name. A new format is one module and one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report import concise, json, jsonl, table, timeline
from kaudit.report.view import View


@dataclass(frozen=True, slots=True)
class Format:
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit."""

    name: str
    machine: bool
    scan: Callable[[ScanResult, View], str]
    timeline: Callable[[TimelineResult, View], str]


FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        Format("table", machine=False, scan=table.render_scan, timeline=timeline.render_timeline),
        Format("concise", machine=False, scan=concise.render_scan, timeline=concise.render_timeline),
        Format("json", machine=True, scan=json.render_scan, timeline=json.render_timeline),
        Format("jsonl", machine=True, scan=jsonl.render_scan, timeline=jsonl.render_timeline),
    )
}
