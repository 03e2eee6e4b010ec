"""The output formats by name. A new format is one module and one line here."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from kaudit.model.producers import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report import concise, diff, digest, github, gitlab, json, jsonl, junit, producers, sarif, table, timeline
from kaudit.report.tables import Tables, diff_tables, producers_tables, scan_tables, timeline_tables
from kaudit.report.view import View

Content = Iterable[str] | Tables
_RenderScan = Callable[[ScanResult, View], str]


class Format(Struct, frozen=True):
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit.

    `producers` comes in pieces: the text of a million producer ids is larger than memory should be. Formats that fill a
    `directory` give Tables, all others text.
    """

    name: str
    machine: bool
    scan: Callable[[ScanResult, View], str | Tables]
    timeline: Callable[[TimelineResult, View], str | Tables]
    producers: Callable[[ProducersResult, View], Content]
    diff: Callable[[DiffResult, View], str | Tables]
    directory: bool = False


def in_pieces(content: str | Tables) -> Content:
    """Return a report as what is written piece by piece."""
    return content if isinstance(content, Tables) else (content,)


def _about_findings(name: str, scan: _RenderScan) -> Format:
    """Return a format that knows findings only: of timelines, producers and replicas it tells those."""
    return Format(
        name,
        machine=True,
        scan=scan,
        timeline=lambda result, view: scan(result.scan, view),
        producers=lambda result, view: (scan(result.scan, view),),
        diff=lambda result, view: scan(result.scan, view),
    )


FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        Format(
            "table",
            machine=False,
            scan=table.render_scan,
            timeline=timeline.render_timeline,
            producers=producers.render_producers,
            diff=diff.render_diff,
        ),
        Format(
            "concise",
            machine=False,
            scan=concise.render_scan,
            timeline=concise.render_timeline,
            producers=concise.render_producers,
            diff=concise.render_diff,
        ),
        Format(
            "json",
            machine=True,
            scan=json.render_scan,
            timeline=json.render_timeline,
            producers=json.render_producers,
            diff=json.render_diff,
        ),
        Format(
            "jsonl",
            machine=True,
            scan=jsonl.render_scan,
            timeline=jsonl.render_timeline,
            producers=jsonl.render_producers,
            diff=jsonl.render_diff,
        ),
        _about_findings("sarif", sarif.render_scan),
        _about_findings("sarif-github", sarif.render_scan_for_github),
        _about_findings("junit", junit.render_scan),
        _about_findings("github", github.render_scan),
        _about_findings("gitlab", gitlab.render_scan),
        _about_findings("markdown", digest.render_scan),
        Format(
            "parquet",
            machine=True,
            scan=scan_tables,
            timeline=timeline_tables,
            producers=producers_tables,
            diff=diff_tables,
            directory=True,
        ),
    )
}
