"""Whatever a log, a topic or a file name holds, reports show it and terminals do not obey it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.model.result import Timeline, TimelineResult
from kaudit.report.console import Console, visible
from kaudit.report.formats import FORMATS
from kaudit.report.view import View
from tests import scan_results as results

HUMAN = ("table", "concise")
WIDTHS = (None, 80, 140)

TEXTS = [name for name, form in FORMATS.items() if not form.directory]


def hostile_timeline():
    result = results.timeline_result([])
    entries = [
        results.run(0, 1, 0, 1, 0, transaction={"first_offset": 0, "outcome": results.HOSTILE}),
        results.marker(2, results.HOSTILE, 1),
        {"kind": "missing", "first_offset": 3, "last_offset": 4, "offsets": 2, "cause": results.HOSTILE},
        {"kind": results.HOSTILE, "offset": 5},
    ]
    state = dict.fromkeys(("producer_epoch", "last_sequence", "last_offset", "current_txn_start_offset"), 1)
    timeline = Timeline(results.HOSTILE, 0, results.HOSTILE, 1, results.HOSTILE, entries, state)
    return TimelineResult(result.scan, [timeline])


def outputs(names):
    for name in names:
        for width in WIDTHS:
            view = View(Console(width=width))
            yield FORMATS[name].scan(results.hostile(), view)
            yield FORMATS[name].timeline(hostile_timeline(), view)


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
    text = FORMATS["concise"].scan(results.hostile(), View())
    assert len(text.splitlines()) == len(results.hostile().findings) + len(results.hostile().not_audited)


def test_programs_get_every_character_back():
    document = json.loads(FORMATS["json"].scan(results.hostile(), View()))
    lines = [json.loads(line) for line in FORMATS["jsonl"].scan(results.hostile(), View()).splitlines()]
    for finding in (document["findings"][0], lines[0]):
        assert finding["topic"] == results.HOSTILE
        assert finding["evidence"][results.HOSTILE] == results.HOSTILE
    assert len(lines) == len(document["findings"]) + 1


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_topic_of_249_characters_is_never_cut(name, width):
    text = FORMATS[name].scan(results.hostile(), View(Console(width=width)))
    assert "t" * 249 in text


@given(st.text())
def test_visible_text_is_printable_and_printable_text_untouched(text):
    shown = visible(text)
    assert shown.isprintable()
    assert (shown == text) is text.isprintable()


def test_file_names_that_are_no_text_can_be_written():
    assert visible("\udcff.log").encode("utf-8") == rb"\udcff.log"
