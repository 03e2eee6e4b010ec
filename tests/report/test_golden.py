"""What operators see, byte for byte. Changed on purpose: `uv run pytest -n 0 tests/report --snapshot-update`."""

import pytest

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import TimelineResult
from kaudit.report.console import Console
from kaudit.report.render_options import RenderOptions
from tests import scan_results as results
from tests.rendered import producers_text, scan_text, timeline_text

PIPE, NARROW, WIDE = Console(), Console(width=80), Console(width=140)
COLORED = Console(color=True, width=80)
SCANS = {
    "empty": results.scan_result,
    "one": lambda: results.scan_result(results.old_duplicate()),
    "many": results.many,
    "only-notes": lambda: results.scan_result(results.fencing()),
    "incomplete": results.incomplete,
    "incidents": results.in_incidents,
}


@pytest.mark.parametrize("case", SCANS)
@pytest.mark.parametrize("width", [80, 140])
def test_table(case, width, golden):
    assert scan_text("table", SCANS[case](), RenderOptions(Console(width=width))) == golden


def test_table_with_all_findings_of_incidents(golden):
    assert scan_text("table", results.in_incidents(), RenderOptions(NARROW, verbose=True)) == golden


def test_statistics(golden):
    assert scan_text("table", results.in_incidents(), RenderOptions(NARROW, statistics=True)) == golden


@pytest.mark.parametrize("form", ["table", "concise"])
def test_colors_only_add_to_the_text(form, golden):
    colored = scan_text(form, results.many(), RenderOptions(COLORED, show_notes=True))
    plain = scan_text(form, results.many(), RenderOptions(NARROW, show_notes=True))
    assert colored == golden
    assert colored != plain
    assert _without_color(colored) == plain


@pytest.mark.parametrize("case", SCANS)
def test_concise(case, golden):
    assert scan_text("concise", SCANS[case](), RenderOptions(PIPE)) == golden


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("case", ["empty", "many", "incomplete"])
def test_documents(form, case, golden):
    assert (
        scan_text(form, SCANS[case](), RenderOptions(run={"host": "h", "started_at": "2026-11-21T03:00:00.000Z"}))
        == golden
    )


@pytest.mark.parametrize("width", [80, 140])
def test_timeline(width, golden):
    assert timeline_text("table", results.timeline_result(), RenderOptions(Console(width=width))) == golden


@pytest.mark.parametrize("form", ["concise", "json", "jsonl"])
def test_timeline_for_programs(form, golden):
    assert timeline_text(form, results.timeline_result(), RenderOptions(PIPE)) == golden


def test_timeline_in_color(golden):
    colored = timeline_text("table", results.timeline_result(), RenderOptions(COLORED, show_notes=True))
    assert colored == golden
    assert _without_color(colored) == timeline_text(
        "table", results.timeline_result(), RenderOptions(NARROW, show_notes=True)
    )


def test_timeline_without_producers(golden):
    nothing = TimelineResult(results.scan_result(), [])
    assert timeline_text("table", nothing, RenderOptions(NARROW)) == golden


@pytest.mark.parametrize("width", [80, 140])
def test_producers(width, golden):
    assert "".join(producers_text("table", results.producers_result(), RenderOptions(Console(width=width)))) == golden


@pytest.mark.parametrize("width", [80, 140, None])
def test_producers_summary(width, golden):
    summary = results.producers_result(listed=0, producers=(), expired=())
    assert producers_text("table", summary, RenderOptions(Console(width=width))) == golden


def test_producers_with_their_partitions(golden):
    shown = producers_text("table", results.producers_result(detailed=True), RenderOptions(NARROW))
    assert "".join(shown) == golden


@pytest.mark.parametrize("form", ["concise", "json", "jsonl"])
def test_producers_for_programs(form, golden):
    assert "".join(producers_text(form, results.producers_result(), RenderOptions(PIPE))) == golden


def test_no_producers(golden):
    nothing = ProducersResult(results.scan_result(), (), found=0, listed=0)
    assert "".join(producers_text("table", nothing, RenderOptions(NARROW))) == golden


def _without_color(text):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
