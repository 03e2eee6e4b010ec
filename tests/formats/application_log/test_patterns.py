"""Every pattern fits its example and, of all patterns, is the one that is chosen for it."""

import json

import pytest

from kaudit.formats.application_log.patterns import PROGRAMS, Pattern, read_patterns
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import MAX_TEXT, LogEvent, LogEventKind, Origin

ORIGIN: dict[str, Origin] = {program: origin for origin, programs in PROGRAMS.items() for program in programs}
PATTERNS = [pattern for program in ORIGIN for pattern in read_patterns(program)]
IDS = [f"{pattern.program}:{pattern.id}" for pattern in PATTERNS]


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_the_example_is_one_event_of_its_pattern(pattern: Pattern) -> None:
    counts = LogCounts()
    (event,) = read_events([pattern.example.encode()], ORIGIN[pattern.program], path="log", counts=counts)
    assert event.pattern == pattern.id
    text = json.loads(pattern.example)["message"] if pattern.example.startswith("{") else pattern.example
    assert text[:MAX_TEXT] in event.text
    assert counts.unknown_lines == 0


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_all_fields_are_fields_of_events_and_read(pattern: Pattern) -> None:
    (event,) = read_events([pattern.example.encode()], ORIGIN[pattern.program], path="log")
    assert pattern.fields <= set(LogEvent.__struct_fields__)
    assert [name for name in pattern.fields if getattr(event, name) is None] == []


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


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_a_pattern_begins_with_words_or_a_topic(pattern: Pattern) -> None:
    """What a search begins with must be rare in a line."""
    words = pattern.text.partition("{")[0]
    assert len(words) >= 5 or pattern.text.startswith("{topic")
