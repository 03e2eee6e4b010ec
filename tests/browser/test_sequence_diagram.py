"""The sequence diagram in a browser: stepping by key, heads that stay, the panel, the table where scripts are off."""

import json
import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page

from kaudit.cli.app import run
from tests.browser.accessibility import violations
from tests.browser.opening import THEMES, VIEWPORTS

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>\u202e</script>"


@pytest.fixture(scope="session")
def replayed(tmp_path_factory):
    """The page of a file of attempts: a duplicate, a refusal, a hostile name, and a second partition."""
    file = tmp_path_factory.mktemp("attempts") / "attempts.jsonl"
    batches = [("orders", 0), ("orders", 1), ("bills", 0), ("orders", 1), ("orders", 5)]
    attempts = [
        {"op": "produce", "topic": topic, "partition": 0, "producer_id": 7, "producer_epoch": 0, "base_sequence": sequence,
         "record_count": 1, "transactional_id": HOSTILE, "at": 1_700_000_000_000 + 40 * number}
        for number, (topic, sequence) in enumerate(batches)
    ]  # fmt: skip
    file.write_text("".join(json.dumps(one) + "\n" for one in [{"op": "broker", "broker_version": "3.9.1"}, *attempts]))
    page = file.with_suffix(".html")
    assert run(["replay", str(file), "--output-format", f"html:{page}"]) == 0
    return page


def title(page: Page) -> str:
    return page.locator(".panel h2").inner_text()


def test_keys_step_through_the_story_and_the_panel_follows(open_page, written_page):
    page = open_page(written_page("simulate six-in-flight")).page
    assert title(page).startswith("Step 1 of ")
    for key, expected in (("ArrowRight", 2), ("ArrowDown", 3), ("ArrowLeft", 2), ("Home", 1), ("ArrowUp", 1)):
        page.keyboard.press(key)
        assert title(page).startswith(f"Step {expected} of ")
        assert page.evaluate("location.hash") == f"#step={expected}"
    page.keyboard.press("End")
    assert page.get_by_role("button", name="Next", exact=False).first.is_disabled()


def test_the_refusal_shows_what_was_expected_and_the_five_batches(open_page, written_page):
    page = open_page(written_page("simulate six-in-flight")).page
    for _ in range(40):
        page.keyboard.press("n")
        if page.locator(".panel .compare").count():
            break
    panel = page.locator(".panel")
    assert panel.locator(".compare dd").all_inner_texts() == ["sequence 6", "sequence 0"]
    before = panel.locator(".window .slots").first.locator(".box b").all_inner_texts()
    assert before == [f"seq {number}" for number in range(1, 6)]
    assert "forgotten in step" in panel.locator(".history").inner_text()


def test_heads_stay_above_their_lanes_however_far_the_diagram_is_scrolled(open_page, written_page):
    page = open_page(written_page("simulate unclean-election"), "step=80", viewport="phone").page
    frame = page.locator(".diagram").bounding_box()
    page.locator(".diagram").evaluate("element => { element.scrollTop = 900; element.scrollLeft = 60; }")
    heads = page.locator(".heads").bounding_box()
    assert frame is not None
    assert heads is not None
    assert 0 <= heads["y"] - frame["y"] <= 2
    for head, lane in zip(page.locator(".head[class*=role-]").all(), page.locator("line.lane").all(), strict=True):
        box, line = head.bounding_box(), lane.bounding_box()
        assert box is not None
        assert line is not None
        assert abs(box["x"] + box["width"] / 2 - line["x"] - line["width"] / 2) < 2


def test_the_chosen_row_is_always_in_view(open_page, written_page):
    page = open_page(written_page("simulate retry-dup"), "step=150").page
    for key in ("PageDown", "PageDown", "PageUp", "End", "Home"):
        page.keyboard.press(key)
        row, frame = page.locator("[aria-selected=true]").bounding_box(), page.locator(".diagram").bounding_box()
        head = page.locator(".heads").bounding_box()
        assert row is not None
        assert frame is not None
        assert head is not None
        assert head["y"] + head["height"] <= row["y"] + 1
        assert row["y"] + row["height"] <= frame["y"] + frame["height"]


def test_time_is_to_scale_with_breaks_or_evenly_spaced(open_page, written_page):
    page = open_page(written_page("simulate six-in-flight")).page
    assert page.locator(".break-text").count() >= 2
    page.keyboard.press("t")
    assert page.locator(".break-text").count() == 0
    tops = page.locator(".row").evaluate_all("rows => rows.map((row) => row.offsetTop)")
    assert {later - earlier for earlier, later in pairwise(tops)} == {30}
    assert page.get_by_role("button", name="To scale").get_attribute("aria-pressed") == "false"


def test_a_click_chooses_and_a_link_opens_at_its_step(open_page, written_page):
    page = open_page(written_page("simulate zombie-producer"), "step=20").page
    assert title(page).startswith("Step 20 of ")
    page.locator("#row-17").click()
    assert title(page).startswith("Step 18 of ")


def test_light_and_dark_are_switched_by_key(open_page, written_page):
    page = open_page(written_page("simulate zombie-producer"), theme="light").page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.keyboard.press("d")
    assert page.evaluate(ground) != light
    page.keyboard.press("d")
    assert page.evaluate(ground) == light


def test_a_replay_begins_with_the_partition_of_the_first_problem(open_page, replayed):
    page = open_page(replayed).page
    assert page.locator("select").input_value() == "orders-0"
    assert "bills-0" not in page.locator(".rows").inner_text()
    page.locator("select").select_option("")
    assert "bills-0" in page.locator(".rows").inner_text()
    texts = page.locator(".row .text").all_inner_texts()
    assert sum("duplicate of offset 1" in text for text in texts) == 1
    assert sum("expected sequence 2, got sequence 5" in text for text in texts) == 1
    assert page.locator("img").count() == 0
    assert "\\u202e" in page.locator(".heads").inner_text()


def test_without_scripts_the_page_is_a_table(browser, written_page):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written_page("simulate six-in-flight").as_uri())
    table = page.locator(".messages table")
    assert table.is_visible()
    assert re.search("expected sequence 6, got sequence 0", table.inner_text())
    assert not page.locator("#app").is_visible()
    context.close()


def test_on_paper_there_is_the_diagram_and_the_table_and_no_buttons(open_page, written_page):
    page = open_page(written_page("simulate six-in-flight")).page
    page.emulate_media(media="print")
    assert page.locator(".messages table").is_visible()
    assert page.locator(".canvas svg").is_visible()
    assert not page.locator(".toolbar").is_visible()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("viewport", VIEWPORTS)
def test_everyone_can_read_a_refusal(open_page, replayed, viewport, theme):
    page = open_page(replayed, "step=5", viewport=viewport, theme=theme).page
    page.locator("summary").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert not page.locator(".legend-body").is_visible()
