"""The report page in a browser: what the canvas shows, keys, search, links, filters, hover, print."""

import re
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.opening import until
from tests.html import synthetic

pytestmark = pytest.mark.browser

BASE = 2**53 + 1  # the synthetic pages' first offset
RUNS = {"light": (0, 114, 178), "dark": (61, 155, 212)}
"""--blue of base.css: Okabe and Ito's, and lighter on a dark ground."""


@pytest.fixture(scope="session")
def synthetic_page(tmp_path_factory):
    """`synthetic_page(runs, partitions, findings)`: 12 lanes of made-up runs; with two partitions, replicas of one."""
    directory: Path = tmp_path_factory.mktemp("synthetic")

    def write(runs: int, partitions: int, findings: int = 20) -> Path:
        file = directory / f"{runs}-{partitions}-{findings}.html"
        if not file.exists():
            write_synthetic(12, runs, partitions, findings, file)
        return file

    return write


def write_synthetic(producers: int, runs: int, partitions: int, findings: int, file: Path) -> None:
    options = ["--producers", producers, "--runs", runs, "--partitions", partitions, "--findings", findings, "-o", file]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["synthetic", *map(str, options)])
        synthetic.main()


def shown(page: Page) -> Page:
    """Wait until the partition is unpacked and drawn."""
    until(page, "() => kaudit.window() !== null && kaudit.marks().length > 0")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page


def colours(page: Page, points: list[tuple[float, float]]) -> list[tuple[int, ...]]:
    """The colours of the lanes' canvas at points in CSS pixels from the corner of the plot."""
    read = """points => {
        const canvas = document.querySelector(".lanes-plot canvas"), box = canvas.getBoundingClientRect();
        const plot = document.querySelector(".lanes-plot .u-over").getBoundingClientRect();
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const scale = canvas.width / box.width;
        const at = (value) => Math.floor(value * scale);
        const pixel = ([x, y]) => copy.getImageData(at(plot.left - box.left + x), at(plot.top - box.top + y), 1, 1).data;
        return points.map(point => [...pixel(point)].slice(0, 3));
    }"""
    return [tuple(colour) for colour in page.evaluate(read, points)]


def finding_in(page: Page) -> str:
    return page.locator(".detail h2").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_runs_are_drawn_where_their_offsets_are(open_page, synthetic_page, theme):
    runs = synthetic.tables(12, 60, seed=0)["runs"]
    end = int(runs["last_offset"].max()) + 2
    page = shown(open_page(synthetic_page(60, 1, 1), "view=partition", viewport="desktop", theme=theme).page)
    plot = page.locator(".lanes-plot .u-over").bounding_box()
    assert plot is not None
    inside, before = [], []
    for lane in (lane for lane in range(12) if lane % 3):  # those that are not transactional
        name = page.get_by_role("button", name=f"{4000 + lane // 2} epoch {lane % 2}", exact=True)
        row = page.locator(".lane-name", has=name).bounding_box()
        assert row is not None
        height = row["y"] - plot["y"] + 8  # the upper half of a bar: findings are drawn over the middle
        own = runs["lane"] == lane
        previous = 0.0
        for first, last in zip(runs["first_offset"][own], runs["last_offset"][own], strict=True):
            left, right = (plot["width"] * offset / end for offset in (int(first), int(last) + 1))
            if right - left > 6 and height < plot["height"]:
                inside.append(((left + right) / 2, height))
                if left - previous > 6:
                    before.append((left - 3, height))
            previous = right
    assert len(inside) > 10
    assert len(before) > 10
    assert set(colours(page, inside)) == {RUNS[theme]}
    assert RUNS[theme] not in colours(page, before)


def covers(mark, x, y):
    """Whether a mark is over a point, with the bare rim that sets findings and markers off from what is below."""
    rim = 4 if mark["kind"] in {"finding", "marker"} else 0
    return (
        mark["x"] - rim <= x <= mark["x"] + mark["width"] + rim
        and mark["y"] - rim <= y <= mark["y"] + mark["height"] + rim
    )


def test_every_mark_of_the_model_is_on_the_canvas(open_page, synthetic_page):
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    plot = page.locator(".lanes-plot .u-over").bounding_box()
    assert plot is not None
    marks = page.evaluate("kaudit.marks()")
    probes = {}
    for number, mark in enumerate(marks):
        # the spans of aborted and open transactions are dashed: a dash is at their beginning
        x = mark["x"] + (1 if mark["kind"] == "transaction" else mark["width"] / 2)
        y = mark["y"] + mark["height"] / 2
        inside = 0 < x < plot["width"] and 0 < y < plot["height"]
        if (
            mark["kind"] not in {"line", "missing"}
            and inside
            and not any(covers(later, x, y) for later in marks[number + 1 :])
        ):
            probes[x, y] = mark
    bare = {(255, 255, 255), (244, 246, 248)}  # the ground, and every other row
    drawn = colours(page, list(probes))
    assert [mark for mark, colour in zip(probes.values(), drawn, strict=True) if colour in bare] == []
    assert {mark["kind"] for mark in probes.values()} == {"epoch", "run", "transaction", "marker", "finding"}


def test_a_finding_shows_its_rule_its_evidence_and_the_state_before_and_after(open_page, synthetic_page):
    page = open_page(synthetic_page(300, 2), "finding=0000000000000001").page
    detail = page.locator(".detail")
    expect(detail).to_contain_text("the first sequence of a batch is one more than the last of the batch before it")
    expect(detail).to_contain_text("a broker answers OUT_OF_ORDER_SEQUENCE_NUMBER")
    expect(detail).to_contain_text("<script>alert(1)</script>")
    states = detail.locator("section", has_text="State of the producer").locator("tr").all_inner_texts()
    assert states[0].split("\t")[-2:] == ["before", "after"]
    assert states[2].split("\t")[:2] == ["last_sequence", "3"]
    expect(detail.locator("mark")).to_have_count(1)
    expect(detail.locator("code").first).to_contain_text("kaudit timeline --topic orders")


def test_a_link_opens_the_same_window_and_finding(open_page, synthetic_page):
    fragment = f"topic=orders&partition=0&from={BASE + 100}&to={BASE + 900}&finding=0000000000000002"
    page = shown(open_page(synthetic_page(300, 2), fragment).page)
    chosen = finding_in(page)
    page.wait_for_timeout(400)  # the address is written a little after the last move
    again = page.evaluate("location.hash")
    second = shown(open_page(synthetic_page(300, 2), again.removeprefix("#")).page)
    assert page.evaluate("kaudit.window()") == second.evaluate("kaudit.window()")
    assert finding_in(second) == chosen
    page.evaluate("location.hash = ''")
    expect(page.locator(".cards")).to_be_visible()


def test_nonsense_in_a_link_opens_the_overview(open_page, synthetic_page):
    page = open_page(synthetic_page(300, 2), "view=%00&finding=<script>&from=x&partition=1e9").page
    expect(page.locator(".cards")).to_be_visible()
    page.evaluate("location.hash = 'topic=none&partition=7'")
    expect(page.locator(".view")).to_contain_text("This file has no none-7")


def test_keys_pan_and_zoom_the_lanes(open_page, synthetic_page):
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    whole = page.evaluate("kaudit.window()")
    for key in ("+", "+", "ArrowRight"):
        page.keyboard.press(key)
    window = page.evaluate("kaudit.window()")
    quarter = (whole["max"] - whole["min"]) / 4
    assert window["max"] - window["min"] == pytest.approx(quarter)
    assert window["min"] == pytest.approx(whole["min"] + quarter * 1.5 + quarter * 0.1)
    page.keyboard.press("-")
    assert page.evaluate("kaudit.window().max - kaudit.window().min") == pytest.approx(quarter * 2)
    page.keyboard.press("0")
    assert page.evaluate("kaudit.window()") == whole


def test_dragging_zooms_and_a_double_click_shows_all(open_page, synthetic_page):
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    whole = page.evaluate("kaudit.window()")
    plot = page.locator(".lanes-plot .u-over").bounding_box()
    assert plot is not None
    page.mouse.move(plot["x"] + plot["width"] * 0.25, plot["y"] + 60)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * 0.75, plot["y"] + 60, steps=4)
    page.mouse.up()
    until(page, "limit => kaudit.window().max - kaudit.window().min < limit", whole["max"] * 0.6)
    assert page.evaluate("kaudit.window().min") == pytest.approx(whole["max"] * 0.25, rel=0.05)
    page.mouse.dblclick(plot["x"] + 300, plot["y"] + 60)
    until(page, "whole => kaudit.window().max === whole.max && kaudit.window().min === whole.min", whole)


def test_the_pointer_shows_what_a_mark_is_and_a_click_opens_a_finding(open_page, synthetic_page):
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    plot = page.locator(".lanes-plot .u-over").bounding_box()
    assert plot is not None
    marks = page.evaluate("kaudit.marks()")
    widest = max((mark for mark in marks if mark["kind"] == "run"), key=lambda mark: mark["width"])
    page.mouse.move(plot["x"] + widest["x"] + widest["width"] / 2, plot["y"] + widest["y"] + 1)
    tooltip = page.locator(".tooltip")
    expect(tooltip).to_be_visible()
    assert re.search(r"offsets 9007199254\d+ to 9007199254\d+", tooltip.inner_text())
    finding = next(mark for mark in marks if mark["kind"] == "finding" and mark["y"] > 100)
    page.mouse.click(plot["x"] + finding["x"] + 7, plot["y"] + finding["y"] + 7)
    expect(page.locator(".detail")).to_be_visible()
    index = page.evaluate("kaudit.place().finding")
    assert int(index[8:], 16) + 10 * int(index[:8], 16) == finding["data"][0]


def test_filters_hold_in_the_list_and_on_the_lanes(open_page, synthetic_page):
    page = open_page(synthetic_page(300, 2), "view=findings").page
    page.get_by_role("button", name="warning").click()
    expect(page.locator(".view")).to_contain_text("4 findings of 20")
    page.get_by_label("Check", exact=True).select_option("KA102")
    expect(page.locator(".view")).to_contain_text("0 findings of 20")
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator(".view")).to_contain_text("20 findings of 20")
    page.evaluate("location.hash = 'topic=orders&partition=0&severity=note'")
    shown(page)
    styles = {mark["style"] for mark in page.evaluate("kaudit.marks()") if mark["kind"] == "finding"}
    assert styles == {"finding-note"}


def test_the_axis_of_times_and_the_table_of_what_is_in_view(open_page, synthetic_page):
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    page.get_by_role("button", name="time", exact=True).click()
    until(page, "() => kaudit.window().min >= 1.7e12")
    page.get_by_text("What is in view, as a table").click()
    table = page.locator("details table").last
    expect(table).to_contain_text("4000 epoch 0 (txn-0)")
    runs = synthetic.tables(12, 150, seed=0)["runs"]
    cells = table.locator("tr", has_text="4000 epoch 0").first.locator("td").all_inner_texts()
    own = runs["lane"] == 0
    assert cells[1:4] == ["b1", str(own.sum()), f"{runs['records'][own].sum():,}"]


def test_help_lists_the_keys_and_light_and_dark_are_switched(open_page, synthetic_page):
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next finding")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("d")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_key_counts_as_soon_as_the_help_is_closed(open_page, synthetic_page):
    """The focus leaves a closed dialog only when the page is drawn next: until then keys go to its button."""
    page = shown(open_page(synthetic_page(300, 2), "view=partition").page)
    pressed = """open => {
        const dialog = document.querySelector("dialog");
        if (open) dialog.showModal();
        else dialog.close();
        const target = dialog.querySelector("button");
        target.dispatchEvent(new KeyboardEvent("keydown", { key: "d", bubbles: true, cancelable: true }));
        return document.documentElement.dataset.theme ?? null;
    }"""
    assert [page.evaluate(pressed, is_open) for is_open in (True, False)] == [None, "dark"]


def test_a_sample_shows_its_finding_on_the_lane_of_its_producer(open_page, written_page):
    page = shown(open_page(written_page("scan samples/zombie"), "view=partition").page)
    row = page.locator(".lane-name", has_text="900001 epoch 1").bounding_box()
    plot = page.locator(".lanes-plot .u-over").bounding_box()
    (mark,) = [mark for mark in page.evaluate("kaudit.marks()") if mark["style"] == "finding-error"]
    assert row is not None
    assert plot is not None
    # the batch at offset 1 of 3
    assert mark["x"] + mark["width"] / 2 == pytest.approx(plot["width"] / 2, abs=2)
    assert row["y"] <= plot["y"] + mark["y"] <= row["y"] + row["height"]
