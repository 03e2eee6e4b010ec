"""The output formats by name. A new format is one module and one function here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.output import Output, Tables
from kaudit.report.render_options import RenderOptions

_RenderScan = Callable[[ScanResult, RenderOptions], str]


class Format(Struct, frozen=True):
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit.

    `producers` comes in pieces: the text of a million producer ids is larger than memory should be. Formats that fill a
    `directory` give Tables, all others text.
    """

    name: str
    machine: bool
    scan: Callable[[ScanResult, RenderOptions], str | Tables]
    timeline: Callable[[TimelineResult, RenderOptions], str | Tables]
    producers: Callable[[ProducersResult, RenderOptions], Output]
    diff: Callable[[DiffResult, RenderOptions], str | Tables]
    directory: bool = False


def in_pieces(content: str | Tables) -> Output:
    """Return a report as what is written piece by piece."""
    return content if isinstance(content, Tables) else (content,)


def _findings_only(name: str, scan: _RenderScan) -> Format:
    """Return a format that shows findings only, also those of timelines, producers and replicas."""
    return Format(
        name,
        machine=True,
        scan=scan,
        timeline=lambda result, options: scan(result.scan, options),
        producers=lambda result, options: (scan(result.scan, options),),
        diff=lambda result, options: scan(result.scan, options),
    )


class _AllResults(Protocol):
    """A module of a format that renders all results."""

    def render_scan(self, result: ScanResult, options: RenderOptions) -> str:
        """Render a scan."""

    def render_timeline(self, result: TimelineResult, options: RenderOptions) -> str:
        """Render histories."""

    def render_producers(self, result: ProducersResult, options: RenderOptions) -> Iterable[str]:
        """Render producer ids."""

    def render_diff(self, result: DiffResult, options: RenderOptions) -> str:
        """Render a comparison of replicas."""


def _all_results(name: str, module: _AllResults, *, machine: bool) -> Format:
    return Format(
        name, machine, module.render_scan, module.render_timeline, module.render_producers, module.render_diff
    )


def _table() -> Format:
    from kaudit.report import diff, producers, table, timeline

    return Format(
        "table",
        machine=False,
        scan=table.render_scan,
        timeline=timeline.render_timeline,
        producers=producers.render_producers,
        diff=diff.render_diff,
    )


def _concise() -> Format:
    from kaudit.report import concise

    return _all_results("concise", concise, machine=False)


def _json() -> Format:
    from kaudit.report import json

    return _all_results("json", json, machine=True)


def _jsonl() -> Format:
    from kaudit.report import jsonl

    return _all_results("jsonl", jsonl, machine=True)


def _sarif() -> Format:
    from kaudit.report import sarif

    return _findings_only("sarif", sarif.render_scan)


def _sarif_github() -> Format:
    from kaudit.report import sarif

    return _findings_only("sarif-github", sarif.render_scan_for_github)


def _junit() -> Format:
    from kaudit.report import junit

    return _findings_only("junit", junit.render_scan)


def _github() -> Format:
    from kaudit.report import github

    return _findings_only("github", github.render_scan)


def _gitlab() -> Format:
    from kaudit.report import gitlab

    return _findings_only("gitlab", gitlab.render_scan)


def _markdown() -> Format:
    from kaudit.report import markdown_report

    return _findings_only("markdown", markdown_report.render_scan)


def _parquet() -> Format:
    from kaudit.report import tables

    return Format(
        "parquet",
        machine=True,
        scan=tables.scan_tables,
        timeline=tables.timeline_tables,
        producers=tables.producers_tables,
        diff=tables.diff_tables,
        directory=True,
    )


class _Formats(Mapping[str, Format]):
    """Formats by name, each imported when it is asked for: XML and JSON cost a small scan as much as reading it."""

    _makers: Mapping[str, Callable[[], Format]] = {
        "table": _table,
        "concise": _concise,
        "json": _json,
        "jsonl": _jsonl,
        "sarif": _sarif,
        "sarif-github": _sarif_github,
        "junit": _junit,
        "github": _github,
        "gitlab": _gitlab,
        "markdown": _markdown,
        "parquet": _parquet,
    }

    def __getitem__(self, name: str) -> Format:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers


FORMATS: Mapping[str, Format] = _Formats()
