"""How far a log cleaner has been, where a log ends and what says where it begins, by tables of what lies beside it."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.partition.coverage import Cleaning, _log_end, _start_source, _unlisted_compacted, cleaning_of

BASES = (0, 50, 90)
FETCHED: Any = SimpleNamespace(end_offset=77)


def directory(bases: tuple[int, ...] = BASES, **more: Any) -> Any:
    segments = [SimpleNamespace(path=f"/d/{base}", base_offset=base, fetched=None) for base in bases]
    parts: dict[str, Any] = {
        "whole_directory": True,
        "is_fetched": False,
        "has_checkpoints": False,
        "first_dirty_offset": None,
    }
    parts |= {"is_captured": False, "directory": "/d", "log_start_offset": None}
    return SimpleNamespace(segments=segments, **(parts | more))


@pytest.mark.parametrize(
    ("cleaned_to", "end", "beside", "expected"),
    [
        # the user says so: anywhere, and up to the log's end for certain
        (-1, 120, {"stated": True}, Cleaning(None, 120, 0)),
        (60, None, {"stated": True}, Cleaning(None, 0, 61)),
        # a text shows too little: anywhere, and for certain up to what was rewritten
        (60, 120, {"unseen": True}, Cleaning(None, 61, 61)),
        # a checkpoint says up to where
        (-1, 120, {"has_checkpoints": True, "first_dirty_offset": 70}, Cleaning(70, 70, 0)),
        (60, 120, {"first_dirty_offset": 70}, Cleaning(70, 70, 61)),
        (60, 120, {"has_checkpoints": True}, Cleaning(0, 0, 61)),
        # but not in the active segment
        (-1, 120, {"first_dirty_offset": 95}, Cleaning(90, 90, 0)),
        (-1, 120, {"first_dirty_offset": 95, "whole_directory": False}, Cleaning(95, 95, 0)),
        (-1, 120, {"first_dirty_offset": 120, "whole_directory": False}, Cleaning(120, 120, 0)),
        # beyond the log's end it is reset
        (-1, 120, {"first_dirty_offset": 121}, Cleaning(0, 0, 0)),
        (-1, None, {"first_dirty_offset": 121}, Cleaning(121, 121, 0)),
        (-1, 120, {"first_dirty_offset": 121, "is_captured": True}, Cleaning(121, 121, 0)),
        # without one a segment is cleaned whole: up to the next, where there is a batch that was rewritten
        (-1, 120, {}, Cleaning(90, 0, 0)),
        (0, 120, {}, Cleaning(90, 50, 1)),
        (49, 120, {}, Cleaning(90, 50, 50)),
        (50, 120, {}, Cleaning(90, 90, 51)),
        (95, 120, {}, Cleaning(90, 96, 96)),
        (60, 120, {"whole_directory": False}, Cleaning(None, 90, 61)),
        # what consumers are given says nothing of segments
        (60, 120, {"is_fetched": True, "first_dirty_offset": 70}, Cleaning(None, 90, 61)),
    ],
)
def test_how_far_the_log_cleaner_has_been(cleaned_to, end, beside, expected):
    said = {name: beside.get(name, False) for name in ("stated", "unseen")}
    followed: Any = SimpleNamespace(cleaned_to=cleaned_to, next_offset=end)
    place = directory(**{name: value for name, value in beside.items() if name not in said})
    assert cleaning_of(place, followed, **said) == expected


@pytest.mark.parametrize(
    ("bases", "end", "unreadable", "expected"),
    [
        ((), None, (), 30),
        (BASES, 120, (), 120),
        (BASES, 60, (), 90),  # a broker names an empty last segment by the end
        (BASES, None, (), 90),
        ((0, 20), None, (), 30),
        (BASES, 120, ("/d/90",), None),
        (BASES, 120, ("/d",), None),
        (BASES, 120, ("/d/50",), 120),
    ],
)
def test_where_a_log_ends_that_begins_at_30(bases, end, unreadable, expected):
    replay: Any = SimpleNamespace(directory=directory(bases), log_end_offset=end)
    unread: Any = SimpleNamespace(unreadable=[SimpleNamespace(path=path) for path in unreadable])
    assert _log_end(replay, 30, unread) == expected
    if bases:
        replay.directory.segments[-1].fetched = FETCHED
        assert _log_end(replay, 30, unread) == 77


@pytest.mark.parametrize(
    ("beside", "source"),
    [
        ({"log_start_offset": 30}, "log-start-offset-checkpoint"),
        ({"log_start_offset": 29}, "name of the first segment"),
        ({}, "name of the first segment"),
        ({"log_start_offset": 30, "is_fetched": True}, "broker"),
    ],
)
def test_what_says_where_a_log_begins(beside, source):
    assert _start_source(directory(**beside), 30) == source


@pytest.mark.parametrize(
    ("proven", "end", "compacted"),
    [
        (None, 120, 0),
        (0, 120, 0),
        (49, 120, 0),
        (50, 120, 1),
        (89, 120, 1),
        (90, 120, 3),
        (119, 120, 3),
        (120, 120, 7),
        (120, None, 3),
    ],
)
def test_offsets_of_gaps_that_are_only_counted_were_removed_where_all_of_their_segment_is_cleaned(
    proven, end, compacted
):
    """One, two and four of them in the three segments, the last of which ends at `end`."""
    replay: Any = SimpleNamespace(
        directory=directory(), continuity=SimpleNamespace(unlisted_missing={0: 1, 1: 2, 2: 4})
    )
    cleaning = None if proven is None else Cleaning(None, proven, 0)
    assert _unlisted_compacted(replay, end, cleaning) == compacted
