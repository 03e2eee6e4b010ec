"""The picture above a partition's timelines: what is where, which lanes are drawn, and what a poor terminal gets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kaudit.model.damage import MissingCause
from kaudit.model.severity import Severity
from kaudit.model.timeline import EventEntry, MissingEntry
from kaudit.report.console import Console
from kaudit.report.text.timeline_lanes import lane_lines
from tests import scan_results as results
from tests import timelines
from tests.timelines import Timeline, histories, marker

WIDTH = 80


def timeline(producer_id, *entries, replica=""):
    return Timeline("orders", 3, replica, producer_id, None, entries)


def run(first, last, epoch=0, outcome=None, **more):
    return timelines.run(first, last, outcome and (first, outcome), producer_epoch=epoch, **more)


def missing(first, last):
    return MissingEntry(first, last, last - first + 1, MissingCause.UNKNOWN)


def found(producer_id, offset, epoch=0):
    """An entry, and the finding it stands for."""
    finding = replace(results.old_duplicate(), producer_id=producer_id, producer_epoch=epoch, offset=offset)
    return results.finding_entry(finding), finding


def drawn(*each, findings=(), console=None):
    lines = lane_lines([histories(*each)], {one.fingerprint: one for one in findings}, console or Console(width=WIDTH))
    assert all(len(line) <= WIDTH for line in lines)
    return lines


def lanes_of(lines):
    """The lanes as (producer, epoch, picture); the picture begins where the axis does."""
    axis = next(line for line in lines if line.strip().startswith(("│", "|")))
    left = len(axis) - len(axis.lstrip())
    rows = lines[2 : lines.index(axis)]
    return [(*row[:left].split(), row[left:]) for row in rows]


@settings(deadline=None)
@given(st.data())
def test_every_mark_is_where_its_offset_is(data):
    first = data.draw(st.integers(0, 2**60))
    extent = data.draw(st.integers(3, 100_000))
    at = data.draw(st.integers(1, extent - 2))
    entry, finding = found(7, first + at)
    lines = drawn(
        timeline(7, run(first, first + at - 1), run(first + at, first + extent - 1), entry), findings=[finding]
    )
    [(_, _, picture)] = lanes_of(lines)
    columns = WIDTH - len("  producer  epoch  ")
    assert picture.index("X") == at * columns // extent
    assert len(picture) == columns


@pytest.mark.parametrize(
    ("entry", "picture"),
    [
        (run(20, 39), "┣━━━━━━━━━┣━━━━━━━━━"),
        (run(20, 39, outcome="aborted"), "┣━━━━━━━━━┅┅┅┅┅┅┅┅┅┅"),
        (run(20, 39, outcome="open"), "┣━━━━━━━━━O━━━━━━━━━"),
        (run(30, 39), "┣━━━━━━━━━─────┣━━━━"),
        (missing(20, 39), "┣━━━━━━━━━░░░░░░░░░░"),
        (marker(20, "COMMIT"), "┣━━━━━━━━━C"),
        (marker(20, "ABORT"), "┣━━━━━━━━━A"),
        (marker(38, "CLEANED"), "┣━━━━━━━━━─────────M"),
    ],
)
def test_what_each_entry_looks_like(entry, picture):
    """Twenty columns for forty offsets."""
    narrow = Console(width=len("  producer  epoch  ") + 20)
    lanes = lanes_of(drawn(timeline(7, run(0, 19), entry), timeline(8, run(0, 39)), console=narrow))
    assert lanes == [("7", "0", picture), ("8", "0", "┣━━━━━━━━━━━━━━━━━━━")]


def test_epochs_have_lanes_of_their_own_while_there_is_room():
    few = drawn(timeline(7, *(run(10 * epoch, 10 * epoch + 9, epoch) for epoch in range(10))))
    assert [lane[:2] for lane in lanes_of(few)] == [("7", str(epoch)) for epoch in range(10)]
    many = drawn(timeline(7, *(run(10 * epoch, 10 * epoch + 9, epoch) for epoch in range(11))))
    assert [lane[:2] for lane in lanes_of(many)] == [("7", "0..10")]


def test_of_many_producers_those_with_findings_are_drawn():
    entry, finding = found(77, 775)
    producers = [
        timeline(number, run(10 * number, 10 * number + 9), *([entry] if number == 77 else [])) for number in range(100)
    ]
    lines = drawn(*producers, findings=[finding])
    lanes = lanes_of(lines)
    assert [lane[0] for lane in lanes] == [*map(str, range(9)), "77"]
    assert "X" in lanes[-1][2]
    assert "  ... 90 more producer ids, without findings, below" in lines
    entries, findings = zip(*(found(number, 10 * number) for number in range(100)), strict=True)
    lines = drawn(
        *(replace(one, entries=[*one.entries, mark]) for one, mark in zip(producers, entries, strict=True)),
        findings=findings,
    )
    assert "  ... 90 more producer ids, 90 with findings, below" in lines


def test_findings_that_are_not_shown_are_not_drawn():
    entry, _ = found(7, 5)
    assert "X" not in "".join(drawn(timeline(7, run(0, 9), run(10, 19), marker(20, "COMMIT"), entry)))


def test_findings_outside_of_the_log_stay_in_the_picture():
    entry, finding = found(7, 2**62)
    [(_, _, picture)] = lanes_of(drawn(timeline(7, run(0, 9), run(10, 19), entry), findings=[finding]))
    assert picture.endswith("X")


def test_nothing_is_drawn_into_a_pipe_or_of_next_to_nothing():
    entries = (run(0, 9), marker(10, "COMMIT"), run(11, 20))
    assert drawn(timeline(7, *entries)) != []
    assert drawn(timeline(7, *entries), console=Console()) == []
    assert drawn(timeline(7, *entries[:2])) == []


def test_a_terminal_without_line_characters_gets_ascii():
    entries = (run(0, 9), marker(10, "COMMIT"), run(11, 20, outcome="aborted"), missing(21, 30), run(31, 40))
    lines = drawn(timeline(7, *entries), console=Console(width=WIDTH, draws=False))
    assert "".join(lines).isascii()
    [(_, _, picture)] = lanes_of(lines)
    assert set(picture) == set("[=C-~:")


def test_the_axis_names_round_offsets_at_their_columns():
    lines = drawn(timeline(7, run(1017, 1500), run(1501, 1800), marker(1999, "COMMIT")))
    axis = next(line for line in lines if "│" in line)
    left, columns = len("  producer  epoch  "), WIDTH - len("  producer  epoch  ")
    named = {int(text.split()[0]): text for text in axis.split("│")[1:]}
    assert next(iter(named)) == 1017
    assert all(offset % 100 == 0 for offset in list(named)[1:])
    for offset in named:
        assert axis.index(f"│{offset}") - left == (offset - 1017) * columns // (1999 + 1 - 1017)


def refusal(offset, event="out_of_order_sequence", origin="server"):
    return EventEntry(offset, "offset", None, event, origin, 5, "server.log", 1, "")


@pytest.mark.parametrize(("offset", "lane"), [(0, 0), (5, 0), (19, 0), (20, 1), (25, 1), (39, 1), (100, 1)])
def test_a_refusal_is_drawn_in_the_epoch_that_had_begun(offset, lane):
    entries = run(5, 19, 0), run(20, 39, 1), marker(50, "COMMIT", 1), refusal(offset)
    pictures = [picture for _, _, picture in lanes_of(drawn(timeline(7, *entries)))]
    assert [("x" in picture) for picture in pictures] == [number == lane for number in range(2)]


def test_other_events_and_refusals_without_an_offset_are_not_drawn():
    for entry in (refusal(5, origin="client"), refusal(5, "retry"), refusal(None)):
        lanes = lanes_of(drawn(timeline(7, run(0, 19), run(20, 39), marker(40, "COMMIT"), entry)))
        assert [lane[:2] for lane in lanes] == [("7", "0")]
        assert "x" not in lanes[0][2]
    assert drawn(timeline(7, refusal(1), refusal(2), refusal(3))) == []


@pytest.mark.parametrize(
    ("severity", "drawn_as"), [(Severity.NOTE, "i"), (Severity.WARNING, "!"), (Severity.ERROR, "X")]
)
def test_findings_by_severity(severity, drawn_as):
    entry, finding = found(7, 5)
    entries = run(0, 9), run(10, 19), marker(20, "COMMIT"), entry
    [(_, _, picture)] = lanes_of(drawn(timeline(7, *entries), findings=[replace(finding, severity=severity)]))
    assert [mark for mark in "i!X" if mark in picture] == [drawn_as]


def test_a_finding_of_no_epoch_or_another_stands_in_the_last_lane():
    for epoch in (None, 9):
        entry, finding = found(7, 5, epoch)
        entries = run(0, 9), run(10, 19, 1), marker(20, "COMMIT", 1), entry
        first, last = lanes_of(drawn(timeline(7, *entries), findings=[finding]))
        assert ("X" in first[2], "X" in last[2]) == (False, True)


def test_the_title_has_place_offsets_and_times():
    def title(*times, replica=""):
        entries = [run(10 * place, 10 * place + 9, min_timestamp=time) for place, time in enumerate(times)]
        return drawn(timeline(7, *entries, replica=replica), console=Console(width=WIDTH))[0]

    assert title(-1, -1, -1) == "orders-3: offsets 0 to 29"
    assert title(-1, -1, -1, replica="b\x1b") == "orders-3, replica b\\x1b: offsets 0 to 29"
    day = 86_400_000
    assert title(0, 61_001, -1) == "orders-3: offsets 0 to 29, 1970-01-01 00:00:00.000 to 00:01:01.001 UTC"
    assert title(3 * day, 5, -1).startswith("orders-3: offsets 0 to 29, 1970-01-01 00:00:00.005 to 1970-01-04")


def test_lanes_lie_in_the_order_in_which_they_begin():
    lines = drawn(timeline(9, run(0, 9)), timeline(7, run(20, 29)), timeline(8, run(10, 19)))
    assert [lane[0] for lane in lanes_of(lines)] == ["9", "8", "7"]


def test_of_lanes_without_findings_those_with_most_marks_are_drawn():
    many = [
        timeline(number, *(run(100 * number + place, 100 * number + place) for place in range(1 + number % 3)))
        for number in range(15)
    ]
    # three marks: 2, 5, 8, 11, 14; two: 1, 4, 7, 10, 13
    assert [lane[0] for lane in lanes_of(drawn(*many))] == [str(number) for number in range(15) if number % 3]
