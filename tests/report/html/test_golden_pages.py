"""What a page says, byte for byte: its model with the columns unpacked, and its markup without styles and scripts.

Changed on purpose: `uv run pytest -n 0 tests/report --snapshot-update`, and read what changed.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kaudit.cli.app import run
from kaudit.report.console import Console
from kaudit.report.render_options import RenderOptions
from tests import scan_results as results
from tests.html.page_reader import Page
from tests.rendered import producers_text, scan_text, timeline_text

ROOT = Path(__file__).parents[3]
OPTIONS = RenderOptions(Console(), run={"host": "h", "started_at": "2026-11-21T03:00:00.000Z"})
PAGES = {
    "many": lambda: scan_text("html", results.many(), OPTIONS),
    "incidents": lambda: scan_text("html", results.in_incidents(), OPTIONS),
    "incomplete": lambda: scan_text("html", results.incomplete(), OPTIONS),
    "timeline": lambda: timeline_text("html", results.timeline_result(), OPTIONS),
    "producers": lambda: producers_text("html", results.producers_result(detailed=True), OPTIONS),
}
SAMPLES = {
    "duplicates": ("scan", "samples/duplicates"),
    "damaged": ("scan", "samples/damaged"),
    "open-transaction": ("timeline", "samples/open-transaction"),
    "zombie": ("scan", "samples/zombie"),
    "replicas": ("diff", "samples/replicas/b1", "samples/replicas/b2", "samples/replicas/b3"),
}


_NUMBERS = re.compile(r"\[\s+-?\d+(,\s+-?\d+)*\s+\]")


def model_text(page: Page) -> str:
    """The model as JSON, a partition's tables one column a line; without what depends on the place and the release."""
    model: dict[str, Any] = {name: value for name, value in page.model.items() if name != "command"}
    tables = {
        f"{row['topic']}-{row['partition']} {table}.{column}": values
        for index, row in enumerate(model["partitions"])
        if row["columns"] is not None
        for table, columns in page.columns(index).items()
        for column, values in columns.items()
    }
    for row in model["partitions"]:
        if row["columns"] is not None:
            row["columns"] = sorted(row["columns"]["tables"])
    lines = [f"{name}: {' '.join(map(str, values))}" for name, values in tables.items()]
    return "\n".join([_NUMBERS.sub(_on_one_line, json.dumps(model, indent=1, ensure_ascii=False)), *lines, ""])


def _on_one_line(numbers: re.Match[str]) -> str:
    return " ".join(numbers[0].split())


def markup(text: str) -> str:
    """The page without the contents of its styles and scripts, and without what guards them."""
    bare = re.sub(r"(?s)<(script|style)\b[^>]*>.*?</\1>", "", text)
    return re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256", bare)


@pytest.mark.parametrize("case", PAGES)
def test_what_a_page_knows(case, golden):
    assert model_text(Page(PAGES[case]())) == golden


@pytest.mark.parametrize("case", ["incidents", "producers"])
def test_what_a_page_shows_without_scripts(case, golden):
    assert markup(PAGES[case]()) == golden


@pytest.mark.parametrize("case", SAMPLES)
def test_what_the_page_of_a_sample_knows(case, golden, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    target = tmp_path / "page.html"
    command = [*SAMPLES[case], "--output-format", f"html:{target}", "-q", "--reproducible", "--jobs", "1"]
    assert run(command) in (0, 1)
    assert model_text(Page(target.read_text(encoding="utf-8"))) == golden
