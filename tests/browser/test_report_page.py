"""The report page under a reader's hands: marks where the data says, links, keys, search, hostile text, no scripts."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page

from kaudit.report.formats import FORMATS
from kaudit.report.render_options import RenderOptions, Tables
from tests import scan_results as results
from tests.browser.opening import follow, until
from tests.html import page_reader

pytestmark = pytest.mark.browser

LANES = "topic=tx-a&partition=1"
CRAFTED = "scan samples/crafted"
_PIXELS = """([x, top, height]) => {
  const canvas = document.querySelector(".lanes-plot canvas");
  const over = document.querySelector(".lanes-plot .u-over").getBoundingClientRect();
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const data = context.getImageData((over.left - box.left + x) * ratio, (top - box.top) * ratio, 1, height * ratio).data;
  const colours = [];
  for (let at = 0; at < data.length; at += 4) colours.push(`#${[0, 1, 2].map((n) => data[at + n].toString(16).padStart(2, "0")).join("")}`);
  return colours;
}"""
_TRANSACTIONAL, _PLAIN = "#a34f80", "#0072b2"
"""Bars of runs in the light theme: --purple and --blue of base.css."""


def column(page: Page, x: float, row) -> set[str]:
    """The colours in one column of pixels of a lane's row."""
    box = row.bounding_box()
    assert box is not None
    return set(page.evaluate(_PIXELS, [x, box["y"], box["height"]]))


@pytest.mark.parametrize("zoom", [None, (40, 70)])
def test_runs_are_drawn_where_the_data_has_them(open_page, written_page, zoom):
    """Each run of tx-a-1 is a bar in the middle of its offsets, and there is none between two runs of a lane."""
    file = written_page("scan samples/open-transaction")
    read = page_reader.Page(file.read_text(encoding="utf-8"))
    index = next(
        at for at, row in enumerate(read.model["partitions"]) if (row["topic"], row["partition"]) == ("tx-a", 1)
    )
    tables = read.columns(index)
    window = "" if zoom is None else f"&from={zoom[0]}&to={zoom[1]}"
    page = open_page(file, LANES + window, viewport="desktop").page  # all lanes are in view
    page.evaluate("kaudit.ready()")
    page.wait_for_timeout(100)
    # offsets begin at 0 in this partition: so does what the page counts from
    first, last = zoom or (0, int(read.model["partitions"][index]["log_end_offset"]))
    seen = page.evaluate("kaudit.window()")
    assert (seen["min"], seen["max"]) == pytest.approx((first, last), abs=0.01)
    width = page.evaluate("document.querySelector('.lanes-plot .u-over').clientWidth")

    def x(offset: float) -> float:
        return float((offset - first) / (last - first) * width)

    probed = 0
    for lane, (producer, epoch) in enumerate(
        zip(tables["lanes"]["producer_id"], tables["lanes"]["producer_epoch"], strict=True)
    ):
        row = page.locator(
            ".lane-name", has=page.locator(".producer", has_text=re.compile(rf"^{producer} epoch {epoch}$"))
        )
        runs = [
            (tables["runs"]["first_offset"][at], tables["runs"]["last_offset"][at] + 1, tables["runs"]["flags"][at] & 1)
            for at in range(len(tables["runs"]["lane"]))
            if tables["runs"]["lane"][at] == lane
        ]
        for begin, end, transactional in runs:
            # a finding's mark may stand on the beginning of a run
            middle = begin + (end - begin) * 0.75
            if first < middle < last:
                assert (_TRANSACTIONAL if transactional else _PLAIN) in column(page, x(middle), row), (
                    producer,
                    epoch,
                    begin,
                )
                probed += 1
        bounds = [(0, 0, 0), *runs, (158, 158, 0)]
        for (_, end, _), (begin, _, _) in pairwise(bounds):
            middle = (end + begin) / 2
            if begin - end > 4 and first < middle < last:
                assert not {_TRANSACTIONAL, _PLAIN} & column(page, x(middle), row), (producer, epoch, end)
                probed += 1
    assert probed > (20 if zoom is None else 5)


def test_keys_step_through_the_findings_and_the_address_names_them(open_page, written_page):
    page = open_page(written_page(CRAFTED)).page
    shown = []
    for _ in range(12):
        page.keyboard.press("n")
        page.evaluate("kaudit.ready()")
        shown.append((page.evaluate("kaudit.place().finding"), page.locator(".detail h2").inner_text()))
    assert len(set(shown)) == 12
    severities = [heading.split()[1] for _, heading in shown]
    assert severities == ["error"] * 7 + ["warning"] * 3 + ["note"] * 2
    page.keyboard.press("p")
    assert page.locator(".detail h2").inner_text() == shown[-2][1]
    fragment = page.evaluate("location.hash").removeprefix("#")
    assert shown[-2][0] in fragment
    again = open_page(written_page(CRAFTED), fragment).page
    assert again.locator(".detail h2").inner_text() == shown[-2][1]
    again.keyboard.press("Escape")
    assert again.locator(".detail").is_hidden()


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("KA103", {"topic": "overlap", "finding": "83f955be56aa3f3c"}),
        ("finding:83f955be", {"topic": "overlap", "finding": "83f955be56aa3f3c"}),
        ("producer:7", {"topic": "evicted", "finding": None}),
    ],
)
def test_search_leads_to_what_was_typed(open_page, written_page, typed, place):
    page = open_page(written_page(CRAFTED)).page
    page.keyboard.press("/")
    page.keyboard.type(typed)
    page.locator("#hits").get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    until(page, "() => kaudit.place().view === 'partition'")
    assert {name: page.evaluate("kaudit.place()")[name] for name in place} == place


def test_a_transactional_id_leads_to_its_lane_and_an_offset_into_view(open_page, written_page):
    page = open_page(written_page("scan samples/open-transaction"), f"{LANES}&from=0&to=20").page
    search = page.get_by_role("combobox", name="Search")
    search.fill("t-zombie")
    page.locator("#hits").get_by_role("option").first.click()
    page.locator(".lane-name.chosen").first.wait_for()
    assert "4 epoch 0" in page.locator(".lane-name.chosen").first.inner_text()
    search.fill("offset:100")
    page.locator("#hits").get_by_role("option", name="tx-a-1").click()
    until(page, "() => kaudit.window().min < 100 && 100 < kaudit.window().max")


def test_the_keyboard_reaches_everything(open_page, written_page):
    page = open_page(written_page(CRAFTED)).page
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel || ''"))
        if reached[-1] == "Partitions":
            page.keyboard.press("Enter")
            break
    until(page, "() => kaudit.place().view === 'partition'")
    page.evaluate("kaudit.ready()")
    for _ in range(40):
        page.keyboard.press("Tab")
        if (page.evaluate("document.activeElement.ariaLabel") or "").startswith("Lanes of the producers"):
            break
    else:
        pytest.fail("the lanes have no focus")
    before = page.evaluate("kaudit.window()")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    after = page.evaluate("kaudit.window()")
    assert after["max"] - after["min"] < before["max"] - before["min"] or before["max"] - before["min"] <= 4
    page.keyboard.press("0")
    assert page.evaluate("kaudit.window()") == before
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()


def test_text_from_a_log_is_text(open_page, tmp_path):
    """Markup, a script's end, an escape sequence and a bidi override in every name of a result."""
    file = tmp_path / "hostile.html"
    pieces = FORMATS["html"].render("scan", results.hostile(), RenderOptions())
    assert not isinstance(pieces, Tables)
    file.write_text("".join(pieces), encoding="utf-8")
    page = open_page(file).page
    asked: list[str] = []
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    for view in page.get_by_role("navigation", name="Views").get_by_role("link").all_inner_texts():
        follow(page, view)
        text = page.locator("body").inner_text()
        assert "</script>" in text or view == "Partitions"
        assert not {"\u202e", "\x1b", "\x9b"} & set(text)
    page.keyboard.press("n")
    assert r"\u202e" in page.locator(".detail").inner_text()
    assert asked == []


def test_without_scripts_the_findings_are_tables(browser, written_page):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written_page(CRAFTED).absolute().as_uri())
    assert page.locator("table").count() >= 2
    assert "KA103" in page.locator("noscript").inner_text()
    assert page.locator("noscript").is_visible()
    context.close()


def test_on_paper_there_are_the_findings_and_no_controls(open_page, written_page):
    page = open_page(written_page(CRAFTED), theme="dark").page
    page.emulate_media(media="print")
    assert page.get_by_role("button", name="Light / dark").is_hidden()
    assert page.locator("h2", has_text="Incidents").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )


_STRIP = """() => {
  const over = document.querySelector(".range .u-over").getBoundingClientRect();
  const select = document.querySelector(".range .u-select").getBoundingClientRect();
  return [(select.left - over.left) / over.width, (select.right - over.left) / over.width];
}"""


def test_the_strip_shows_the_window_of_the_lanes_whatever_is_opened(open_page, written_page):
    """A finding's panel makes the lanes narrower: the window is the same part of the whole before and after."""
    page = open_page(
        written_page("scan samples/damaged/flip-body"), "topic=explosion&partition=0&from=600&to=1000"
    ).page
    page.evaluate("kaudit.ready()")
    end = 1600  # the log end: the strip shows offsets from 0 on
    for key in (None, "n", "n", "Escape"):
        if key is not None:
            page.keyboard.press(key)
        page.wait_for_timeout(300)
        seen = page.evaluate("kaudit.window()")
        assert page.evaluate(_STRIP) == pytest.approx([seen["min"] / end, seen["max"] / end], abs=0.01)


def test_lost_offsets_are_shaded(open_page, written_page):
    page = open_page(
        written_page("scan samples/damaged/flip-body"), "topic=explosion&partition=0&from=980&to=1000"
    ).page
    page.evaluate("kaudit.ready()")
    page.wait_for_timeout(300)
    (band,) = [mark for mark in page.evaluate("kaudit.marks()") if mark["kind"] == "lost"]
    width = page.evaluate("document.querySelector('.lanes-plot .u-over').clientWidth")
    # offsets 990 and 991 of 980 to 1000
    assert (band["x"], band["width"]) == pytest.approx((width / 2, width / 10), abs=2)
