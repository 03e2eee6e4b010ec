"""Every pattern fits its example and, of all patterns, is the one that is chosen for it."""

import json

import pytest

from kaudit.formats.application_log.patterns import PROGRAMS, Pattern, read_patterns
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import MAX_TEXT, LogEvent, LogEventKind, Origin

ORIGIN: dict[str, Origin] = {program: origin for origin, programs in PROGRAMS.items() for program in programs}
PATTERNS = [pattern for program in ORIGIN for pattern in read_patterns(program)]


@pytest.mark.parametrize("program", ORIGIN)
def test_the_example_is_one_event_of_its_pattern_with_all_fields(program: str) -> None:
    for pattern in read_patterns(program):
        counts = LogCounts()
        (event,) = read_events([pattern.example.encode()], ORIGIN[program], path="log", counts=counts)
        assert event.pattern == pattern.id
        text = json.loads(pattern.example)["message"] if pattern.example.startswith("{") else pattern.example
        assert text[:MAX_TEXT] in event.text, pattern.id
        assert counts.unknown_lines == 0, pattern.id
        assert pattern.fields <= set(LogEvent.__struct_fields__), pattern.id
        assert [name for name in pattern.fields if getattr(event, name) is None] == [], pattern.id


def test_the_fields_of_a_pattern() -> None:
    made = Pattern(
        id="x",
        event=LogEventKind.REQUEST_ERROR,
        text="{directory}a {topic_partition} {number} {} {error_text} {offset}",
        source="",
        example="",
        values={"broker_id": 1},
    )
    assert made.fields == {"topic", "partition", "error", "offset", "broker_id"}
    without = Pattern(id="x", event=LogEventKind.REQUEST_ERROR, text="on {topic}: {error}", source="", example="")
    assert without.fields == {"topic", "error"}
    assert (made.literals, made.longest, made.weight) == (["a ", " ", " ", " ", " "], "a ", 6)


@pytest.mark.parametrize("origin", PROGRAMS)
def test_ids_and_wordings_stand_once(origin: Origin) -> None:
    patterns = [pattern for pattern in PATTERNS if ORIGIN[pattern.program] == origin]
    for program in PROGRAMS[origin]:
        assert {pattern.program for pattern in read_patterns(program)} == {program}
    assert len({(pattern.program, pattern.id) for pattern in patterns}) == len(patterns)
    assert len({(pattern.program, pattern.text) for pattern in patterns}) == len(patterns)


def test_a_pattern_begins_with_words_or_a_topic() -> None:
    """What a search begins with must be rare in a line."""
    short = [pattern for pattern in PATTERNS if len(pattern.text.partition("{")[0]) < 5]
    assert [pattern.id for pattern in short if not pattern.text.startswith("{topic")] == []


@pytest.mark.parametrize("number", [0, 1, 2**63 - 1, 2**63, -(2**63) + 1, -(2**63), 10**19, -(10**19)])
def test_numbers_that_no_field_holds_are_no_message(number):
    pattern = Pattern(id="x", event=LogEventKind.REQUEST_ERROR, text="at {offset} of", source="", example="")
    found = pattern.find(f"at {number} of")
    assert found is not None
    assert pattern.values_of(found) == ({"offset": number} if abs(number) < 2**63 else None)


@pytest.mark.parametrize(("words", "found"), [(1, True), (2, True), (3, True), (4, False)])
def test_a_message_is_looked_for_at_three_of_its_first_words(words, found):
    pattern = Pattern(id="x", event=LogEventKind.REQUEST_ERROR, text="aa {offset} b", source="", example="")
    assert (pattern.find("aa " * (words - 1) + "aa 5 b") is not None) is found
    assert pattern.find("aa") is None
    # first words that begin inside others
    assert pattern.find("aaa 5 b") is not None
    assert Pattern(id="x", event=LogEventKind.REQUEST_ERROR, text="{offset} b", source="", example="").find(
        "x " * 9 + "5 b"
    )
