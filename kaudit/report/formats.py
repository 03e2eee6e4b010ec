"""The output formats by name. A new format is one module and one line here."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

if TYPE_CHECKING:  # --help names the formats: 10 ms less
    from kaudit.model.finding import Finding
    from kaudit.model.ledger import LedgerResult
    from kaudit.model.producer_listing import ProducersResult
    from kaudit.model.replicas import DiffResult
    from kaudit.model.result import ScanResult, TimelineResult
    from kaudit.report.render_options import Output, RenderOptions

    Result = ScanResult | TimelineResult | ProducersResult | DiffResult | LedgerResult

_RESULTS = ("scan", "timeline", "producers", "diff")


class Format(Struct, frozen=True):
    """One output format. `machine`: parsers read it, so it is valid even when there was nothing to audit.

    `renderers` says which function of `kaudit.report` renders which result; without one for a result, a format shows the
    findings of its scan. Functions are imported when they are called: XML and JSON cost a small scan as much as reading it.
    Formats that fill a `directory` return Tables, all others text in pieces.
    """

    name: str
    renderers: Mapping[str, str]
    machine: bool = True
    directory: bool = False
    histories: frozenset[str] = frozenset()
    """The results it shows the producers' histories with, where those are recorded."""
    streams: bool = False
    """Its module has `stream_findings`: a watch can write findings as they come."""

    def render(self, kind: str, result: "Result", options: "RenderOptions") -> "Output":
        """Render a result; `kind` is scan, timeline, producers, diff or ledger."""
        if kind not in self.renderers:
            kind, result = "scan", cast("TimelineResult | ProducersResult | DiffResult | LedgerResult", result).scan
        module, _, name = self.renderers[kind].partition(":")
        content: str | Output = self._function(module, name)(result, options)
        return (content,) if isinstance(content, str) else content

    def stream(self, findings: "Sequence[Finding]", options: "RenderOptions") -> str:
        """Render findings that a watch reports; only for a format that `streams`."""
        text: str = self._function(self.renderers["scan"].partition(":")[0], "stream_findings")(findings, options)
        return text

    @staticmethod
    def _function(module: str, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(f"kaudit.report.{module}"), name)
        return function


def _in(module: str, *results: str) -> dict[str, str]:
    return {result: f"{module}:render_{result}" for result in results}


_FORMATS = (
    Format(
        "table",
        {
            **_in("text.table", "scan"),
            **_in("text.timeline", "timeline"),
            **_in("text.producers", "producers"),
            **_in("text.diff", "diff"),
            **_in("text.ledger", "ledger"),
        },
        machine=False,
        streams=True,
    ),
    Format("concise", _in("text.concise", *_RESULTS), machine=False, streams=True),
    Format("json", _in("machine.json", *_RESULTS, "ledger")),
    Format("jsonl", _in("machine.jsonl", *_RESULTS), streams=True),
    Format("sarif", _in("machine.sarif", "scan")),
    Format("sarif-github", {"scan": "machine.sarif:render_scan_for_github"}),
    *(Format(name, _in(f"machine.{name}", "scan")) for name in ("junit", "github", "gitlab")),
    Format("markdown", _in("text.markdown", "scan")),
    Format("chrome-trace", _in("machine.chrome_trace", "scan", "timeline")),
    Format(
        "parquet",
        {
            "scan": "machine.tables:recorded_tables",
            "timeline": "machine.tables:recorded_timelines",
            "producers": "machine.tables:listed_producers",
            "diff": "machine.tables:diff_tables",
            "ledger": "machine.tables:ledger_tables",
        },
        directory=True,
        histories=frozenset({"scan", "timeline"}),
    ),
    Format("html", _in("html.report_page", *_RESULTS), machine=False, histories=frozenset(_RESULTS)),
)
FORMATS: Mapping[str, Format] = {form.name: form for form in _FORMATS}
