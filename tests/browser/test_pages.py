"""The report pages that kaudit writes: silent, offline, small, and free of what axe-core calls serious."""

from pathlib import Path

import pytest

from kaudit.cli.app import run
from tests.browser.accessibility import violations
from tests.browser.opening import THEMES, VIEWPORTS, follow

pytestmark = pytest.mark.browser

SAMPLES = sorted(path.name for path in (Path(__file__).parents[2] / "samples").iterdir() if path.is_dir())
LARGEST = 1_500_000
KINDS = {
    "scan": "scan samples/crafted",
    "timeline": "timeline samples/duplicates",
    "producers": "producers samples/open-transaction",
    "diff": "diff samples/replicas/b1 samples/replicas/b2 samples/replicas/b3",
}
VIEWS = {
    "overview": "",
    "lanes and a finding": "topic=evicted&partition=0&finding=e646112ff03e7ef5",
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_page_of_a_sample_opens_and_shows_its_first_partition(open_page, written_page, sample):
    file = written_page(f"scan samples/{sample}")
    assert file.stat().st_size < LARGEST
    page = open_page(file).page
    assert page.locator("h2", has_text="Topics and partitions").count() == 1
    follow(page, "Partitions")
    assert page.locator(".lanes-plot canvas").count() == 1
    assert page.evaluate("kaudit.rows()") > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_a_command_can_be_read_by_everyone(open_page, written_page, kind):
    file = written_page(KINDS[kind])
    assert file.stat().st_size < LARGEST
    page = open_page(file).page
    for name in page.get_by_role("navigation", name="Views").get_by_role("link").all_inner_texts():
        follow(page, name)
        assert violations(page) == [], name


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("viewport", VIEWPORTS)
def test_everyone_can_read_the_lanes_of_groups_at_every_size(open_page, written_page, viewport, theme):
    file = written_page("groups samples/committed-offsets")
    assert file.stat().st_size < LARGEST
    page = open_page(file, viewport=viewport, theme=theme).page
    assert page.locator(".lane .back").count() >= 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("view", VIEWS)
def test_everyone_can_read_a_view_at_every_size(open_page, written_page, view, viewport, theme):
    page = open_page(written_page("scan samples/crafted"), VIEWS[view], viewport=viewport, theme=theme).page
    page.evaluate("kaudit.ready()")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert violations(page) == []


def test_a_saved_scan_becomes_a_page(open_page, tmp_path):
    saved, page = tmp_path / "scan.json", tmp_path / "scan.html"
    run(["scan", "-q", "samples/crafted", "--output-format", f"json:{saved}"])
    run(["report", "-q", str(saved), "--output-format", f"html:{page}"])
    shown = open_page(page).page
    assert shown.locator(".verdict").inner_text().splitlines()[0].endswith("(7 errors, 3 warnings, 9 incidents)")
    assert shown.get_by_role("link", name="Findings (12)").count() == 1
