"""The output formats by name. A new format is one module and one line here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kaudit.model.producers import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report import concise, json, jsonl, producers, table, timeline
from kaudit.report.view import View


@dataclass(frozen=True, slots=True)
class Format:
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit.

    `producers` comes in pieces: the text of a million producer ids is larger than memory should be.
    """

    name: str
    machine: bool
    scan: Callable[[ScanResult, View], str]
    timeline: Callable[[TimelineResult, View], str]
    producers: Callable[[ProducersResult, View], Iterable[str]]


FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        Format(
            "table",
            machine=False,
            scan=table.render_scan,
            timeline=timeline.render_timeline,
            producers=producers.render_producers,
        ),
        Format(
            "concise",
            machine=False,
            scan=concise.render_scan,
            timeline=concise.render_timeline,
            producers=concise.render_producers,
        ),
        Format(
            "json", machine=True, scan=json.render_scan, timeline=json.render_timeline, producers=json.render_producers
        ),
        Format(
            "jsonl",
            machine=True,
            scan=jsonl.render_scan,
            timeline=jsonl.render_timeline,
            producers=jsonl.render_producers,
        ),
    )
}
