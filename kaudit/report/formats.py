"""The output formats by name. A new format is one module and one line in _FORMATS."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
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


_Make = Callable[[str], Format]
"""Makes a format, given its name."""


def _findings_only(module: str, function: str = "render_scan") -> _Make:
    """Return how to make a format that shows findings only, also those of timelines, producers and replicas."""

    def make(name: str) -> Format:
        scan: _RenderScan = getattr(import_module(module), function)
        return Format(
            name,
            machine=True,
            scan=scan,
            timeline=lambda result, options: scan(result.scan, options),
            producers=lambda result, options: (scan(result.scan, options),),
            diff=lambda result, options: scan(result.scan, options),
        )

    return make


def _all_results(module: str, *, machine: bool) -> _Make:
    """Return how to make a format of one module that renders all results."""

    def make(name: str) -> Format:
        found: _AllResults = import_module(module)
        return Format(
            name, machine, found.render_scan, found.render_timeline, found.render_producers, found.render_diff
        )

    return make


def _table(name: str) -> Format:
    from kaudit.report import diff, producers, table, timeline

    return Format(
        name,
        machine=False,
        scan=table.render_scan,
        timeline=timeline.render_timeline,
        producers=producers.render_producers,
        diff=diff.render_diff,
    )


def _parquet(name: str) -> Format:
    from kaudit.report import tables

    return Format(
        name,
        machine=True,
        scan=tables.scan_tables,
        timeline=tables.timeline_tables,
        producers=tables.producers_tables,
        diff=tables.diff_tables,
        directory=True,
    )


_FORMATS: Mapping[str, _Make] = {
    "table": _table,
    "concise": _all_results("kaudit.report.concise", machine=False),
    "json": _all_results("kaudit.report.json", machine=True),
    "jsonl": _all_results("kaudit.report.jsonl", machine=True),
    "sarif": _findings_only("kaudit.report.sarif"),
    "sarif-github": _findings_only("kaudit.report.sarif", "render_scan_for_github"),
    "junit": _findings_only("kaudit.report.junit"),
    "github": _findings_only("kaudit.report.github"),
    "gitlab": _findings_only("kaudit.report.gitlab"),
    "markdown": _findings_only("kaudit.report.markdown_report"),
    "parquet": _parquet,
}


class _Formats(Mapping[str, Format]):
    """Formats by name, each imported when it is asked for: XML and JSON cost a small scan as much as reading it."""

    def __getitem__(self, name: str) -> Format:
        return _FORMATS[name](name)

    def __iter__(self) -> Iterator[str]:
        return iter(_FORMATS)

    def __len__(self) -> int:
        return len(_FORMATS)

    def __contains__(self, name: object) -> bool:
        return name in _FORMATS


FORMATS: Mapping[str, Format] = _Formats()
