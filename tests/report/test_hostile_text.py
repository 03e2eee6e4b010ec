"""Whatever a log, a topic or a file name holds, reports show it and terminals do not obey it."""

import json
import re

import junitparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.model.result import TimelineResult
from kaudit.model.timeline import EventEntry
from kaudit.report.console import Console, visible
from kaudit.report.formats import FORMATS
from kaudit.report.render_options import RenderOptions
from tests import scan_results as results
from tests.rendered import producers_text, scan_text, timeline_text
from tests.timelines import Timeline, histories

HUMAN = ("table", "concise")
WIDTHS = (None, 80, 140)

TEXTS = [name for name, form in FORMATS.items() if not form.directory]


def hostile_timeline():
    result = results.timeline_result([])
    entries = [
        results.run(0, 1, 0, 1, 0, transaction=(0, "open")),
        results.marker(2, "COMMIT", 1),
        EventEntry(3, results.HOSTILE, 1, results.HOSTILE, results.HOSTILE, 0, results.HOSTILE, 1, results.HOSTILE),
    ]
    timeline = Timeline(results.HOSTILE, 0, results.HOSTILE, 1, results.HOSTILE, entries, [1] * 6)
    return TimelineResult(result.scan, [histories(timeline)])


def outputs(names):
    for name in names:
        for width in WIDTHS:
            view = RenderOptions(Console(width=width))
            yield scan_text(name, results.hostile(), view)
            yield timeline_text(name, hostile_timeline(), view)
            yield "".join(producers_text(name, results.hostile_producers(), view))


@pytest.mark.parametrize("name", TEXTS)
def test_no_format_lets_a_control_or_bidi_character_through(name):
    for text in outputs([name]):
        assert all(char == "\n" or char.isprintable() for char in text)


@pytest.mark.parametrize("name", HUMAN)
def test_people_see_what_is_there(name):
    for text in outputs([name]):
        joined = text.replace("\n", "").replace(" ", "")
        assert r"\x1b[31m[red]boom[/red]\r\n\u202egnp.exe</script>\x00\x9b2J" in joined


def test_one_finding_stays_one_line_in_concise():
    text = scan_text("concise", results.hostile(), RenderOptions())
    assert len(text.splitlines()) == len(results.hostile().findings) + len(results.hostile().not_audited)


def test_programs_get_every_character_back():
    document = json.loads(scan_text("json", results.hostile(), RenderOptions()))
    lines = [json.loads(line) for line in scan_text("jsonl", results.hostile(), RenderOptions()).splitlines()]
    for finding in (document["findings"][0], lines[0]):
        assert finding["topic"] == results.HOSTILE
        assert finding["evidence"][results.HOSTILE] == results.HOSTILE
    assert len(lines) == len(document["findings"]) + 1


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_topic_of_249_characters_is_never_cut(name, width):
    text = scan_text(name, results.hostile(), RenderOptions(Console(width=width)))
    assert "t" * 249 in text
    assert "t" * 249 in "".join(producers_text(name, results.hostile_producers(), RenderOptions(Console(width=width))))


def _everything_in(value):
    """Every key and text in a JSON value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _everything_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _everything_in(item)
    elif isinstance(value, str):
        yield value


def test_junit_is_read_back_with_what_is_there():
    xml = junitparser.JUnitXml.fromstring(scan_text("junit", results.hostile(), RenderOptions()).encode())
    assert visible(results.HOSTILE) in {suite.name for suite in xml}
    messages = [outcome.message for suite in xml for case in suite for outcome in case.result]
    assert visible(f"producer of {results.HOSTILE}") in messages


def test_sarif_messages_and_names_are_harmless_also_once_decoded():
    run = json.loads(scan_text("sarif", results.hostile(), RenderOptions()))["runs"][0]
    for entry in run["results"]:
        raw = ("properties",)  # what programs compare stays exact
        shown = {key: value for key, value in entry.items() if key not in raw}
        assert all(text.isprintable() for text in _everything_in(shown))
    assert run["results"][0]["properties"]["topic"] == results.HOSTILE
    assert all(text.isprintable() for text in _everything_in(run["invocations"]))


def test_gitlab_issues_are_harmless_also_once_decoded():
    issues = json.loads(scan_text("gitlab", results.hostile(), RenderOptions()))
    assert all(text.isprintable() for text in _everything_in(issues))


def test_markdown_has_no_html_and_keeps_its_lines():
    text = scan_text("markdown", results.hostile(), RenderOptions())
    outside_code = re.sub(r"(`+) ?.*?\1", "", text)
    assert "<" not in outside_code.replace("<br>", "")
    rows = [line for line in text.splitlines() if line.startswith("| error")]
    assert len(rows) == len(results.hostile().findings)


@pytest.mark.parametrize("name", TEXTS)
@given(text=st.text(min_size=1))
@settings(max_examples=25, deadline=None)
def test_any_topic_can_be_written_in_every_format(name, text):
    finding = results.old_duplicate(topic=text, message=text, file=f"{text}/0.log", log_dir=text)
    report = scan_text(name, results.scan_result(finding, inputs=[text]), RenderOptions())
    assert all(char == "\n" or char.isprintable() for char in report)
    if name in ("sarif", "sarif-github", "gitlab", "json"):
        json.loads(report)
    if name == "junit":
        assert junitparser.JUnitXml.fromstring(report.encode()).failures == 1


@given(st.text())
def test_visible_text_is_printable_and_printable_text_untouched(text):
    shown = visible(text)
    assert shown.isprintable()
    assert (shown == text) is text.isprintable()


def test_file_names_that_are_no_text_can_be_written():
    assert visible("\udcff.log").encode("utf-8") == rb"\udcff.log"
