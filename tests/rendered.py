"""What a format of text makes of a result, as one string."""

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.formats import FORMATS
from kaudit.report.render_options import Output, RenderOptions, Tables


def scan_text(name: str, result: ScanResult, options: RenderOptions) -> str:
    return _joined(FORMATS[name].render("scan", result, options))


def timeline_text(name: str, result: TimelineResult, options: RenderOptions) -> str:
    return _joined(FORMATS[name].render("timeline", result, options))


def diff_text(name: str, result: DiffResult, options: RenderOptions) -> str:
    return _joined(FORMATS[name].render("diff", result, options))


def producers_text(name: str, result: ProducersResult, options: RenderOptions) -> str:
    return _joined(FORMATS[name].render("producers", result, options))


def _joined(content: Output) -> str:
    assert not isinstance(content, Tables)
    return "".join(content)
