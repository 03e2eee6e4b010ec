"""What a format of text makes of a result, as one string."""

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.formats import FORMATS
from kaudit.report.output import Tables
from kaudit.report.render_options import RenderOptions


def scan_text(name: str, result: ScanResult, options: RenderOptions) -> str:
    text = FORMATS[name].scan(result, options)
    assert isinstance(text, str)
    return text


def timeline_text(name: str, result: TimelineResult, options: RenderOptions) -> str:
    text = FORMATS[name].timeline(result, options)
    assert isinstance(text, str)
    return text


def diff_text(name: str, result: DiffResult, options: RenderOptions) -> str:
    text = FORMATS[name].diff(result, options)
    assert isinstance(text, str)
    return text


def producers_text(name: str, result: ProducersResult, options: RenderOptions) -> str:
    pieces = FORMATS[name].producers(result, options)
    assert not isinstance(pieces, Tables)
    return "".join(pieces)
