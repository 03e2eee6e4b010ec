"""The output formats by name. A new format is one module and one line here."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.render_options import Output, RenderOptions

_RESULTS = ("scan", "timeline", "producers", "diff")


class Format(Struct, frozen=True):
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit.

    `producers` comes in pieces: the text of a million producer ids is larger than memory should be. Formats that fill a
    `directory` give Tables, all others text.
    """

    name: str
    machine: bool
    scan: Callable[[ScanResult, RenderOptions], str | Output]
    timeline: Callable[[TimelineResult, RenderOptions], str | Output]
    producers: Callable[[ProducersResult, RenderOptions], Output]
    diff: Callable[[DiffResult, RenderOptions], str | Output]
    directory: bool = False
    histories: frozenset[str] = frozenset()
    """The results it shows the producers' histories with, where those are recorded."""


def in_pieces(content: str | Output) -> Output:
    """Return a report as what is written piece by piece."""
    return (content,) if isinstance(content, str) else content


class _Module(Struct, frozen=True):
    """Where a format's functions are: `renderers` in `kaudit.report`, by what they render. Others show a scan's findings."""

    renderers: Mapping[str, str]
    machine: bool = True
    directory: bool = False
    histories: frozenset[str] = frozenset()

    def load(self, name: str) -> Format:
        """Import the functions: XML and JSON cost a small scan as much as reading it."""
        found = {result: _function(place) for result, place in self.renderers.items()}
        scan = found["scan"]
        findings: dict[str, Callable[..., Any]] = {
            "timeline": lambda result, options: scan(result.scan, options),
            "producers": lambda result, options: in_pieces(scan(result.scan, options)),
            "diff": lambda result, options: scan(result.scan, options),
        }
        return Format(name, self.machine, directory=self.directory, histories=self.histories, **(findings | found))


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"kaudit.report.{module}"), name)
    return function


def _all_in(module: str) -> dict[str, str]:
    return {result: f"{module}:render_{result}" for result in _RESULTS}


class _Formats(Mapping[str, Format]):
    """Formats by name, each imported when it is asked for."""

    _modules: Mapping[str, _Module] = {
        "table": _Module(
            {
                "scan": "text.table:render_scan",
                "timeline": "text.timeline:render_timeline",
                "producers": "text.producers:render_producers",
                "diff": "text.diff:render_diff",
            },
            machine=False,
        ),
        "concise": _Module(_all_in("text.concise"), machine=False),
        "json": _Module(_all_in("machine.json")),
        "jsonl": _Module(_all_in("machine.jsonl")),
        "sarif": _Module({"scan": "machine.sarif:render_scan"}),
        "sarif-github": _Module({"scan": "machine.sarif:render_scan_for_github"}),
        **{name: _Module({"scan": f"machine.{name}:render_scan"}) for name in ("junit", "github", "gitlab")},
        "markdown": _Module({"scan": "text.markdown:render_scan"}),
        "chrome-trace": _Module(
            {"scan": "machine.chrome_trace:render_scan", "timeline": "machine.chrome_trace:render_timeline"}
        ),
        "parquet": _Module(
            {
                "scan": "machine.streamed_tables:recorded_tables",
                "timeline": "machine.streamed_tables:recorded_timelines",
                "producers": "machine.streamed_tables:listed_producers",
                "diff": "machine.tables:diff_tables",
            },
            directory=True,
            histories=frozenset({"scan", "timeline"}),
        ),
        "html": _Module(_all_in("html.report_page"), machine=False, histories=frozenset(_RESULTS)),
    }

    def __getitem__(self, name: str) -> Format:
        return self._modules[name].load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules


FORMATS: Mapping[str, Format] = _Formats()
