"""Files beside a log that know a later end than its segments have, by tables; and files that do not parse."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.audits.sidefiles import partition_files
from kaudit.audits.sidefiles.partition_files import _end_witnesses, _known_beyond, _parsed
from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.model.coverage import EndWitness
from kaudit.model.leader_epochs import EpochEntry
from kaudit.source.layout import SegmentFile

END = 100
SNAPSHOT = SegmentFile("/d/s", f"{120:020d}.snapshot", 120, 10, 0)


def log(**more: Any) -> Any:
    """A log of one segment of ten bytes that ends at 100, and that nothing is the matter with."""
    segment = SimpleNamespace(size=10, fetched=None)
    parts = {
        "segments": [segment],
        "end_offset": END,
        "log_end_offset": END,
        "claimed_end": END,
        "unread": (),
        "only_records": True,
    }
    parts |= {"after_last_batch": ()} | more
    return SimpleNamespace(directory=SimpleNamespace(segments=parts.pop("segments")), **parts)


@pytest.fixture
def cut(monkeypatch):
    """Where the last segment is broken off, None where it is not."""
    found: dict[str, Any] = {"at": None}
    monkeypatch.setattr(partition_files, "broken_off_at", lambda *_: found["at"])
    return found


def known(one: Any, *ends: tuple[str, int]) -> list[tuple[Any, ...]]:
    found = _known_beyond(one, [EndWitness(*each) for each in ends])
    return [tuple(getattr(each, name) for name in each.__struct_fields__) for each in found]


def test_files_that_know_a_later_end(cut):
    ends = ("a.snapshot", 120), ("leader-epoch-checkpoint", 101), ("b.snapshot", END), ("c.index", 99)
    beyond = [("a.snapshot", 120), ("leader-epoch-checkpoint", 101)]
    assert known(log(), *ends) == [(beyond, END, 0, None, False)]
    assert known(log(), *ends[2:]) == []
    cut["at"] = "a cut"
    # of a segment that is broken off all that is missing are records, unless markers may be among it
    assert known(log(), *ends) == [(beyond, END, 20, "a cut", False)]
    assert known(log(only_records=False), *ends) == [(beyond, END, 0, "a cut", False)]


@pytest.mark.parametrize(
    ("ends", "of_index"),
    [
        ([("a.index", 120)], True),
        ([("a.timeindex", 120)], True),
        ([("a.index", 120), ("b.snapshot", 110)], True),
        ([("a.index", 120), ("b.snapshot", 120)], False),
        ([("a.index", 110), ("b.snapshot", 120)], False),
    ],
)
def test_an_index_alone_knows_it(cut, ends, of_index):
    assert [each[-1] for each in known(log(), *ends)] == [False]
    cut["at"] = "a cut"
    assert [each[-1] for each in known(log(), *ends)] == [of_index]


@pytest.mark.parametrize(
    ("more", "certain"),
    [
        ({}, True),
        ({"segments": []}, False),
        ({"unread": ("/d/x",)}, False),
        ({"claimed_end": None}, False),
        ({"log_end_offset": None}, False),
        # of segments that are all empty the name says the end
        ({"log_end_offset": None, "segments": [SimpleNamespace(size=0, fetched=None)]}, True),
    ],
)
def test_nothing_is_known_beyond_an_end_that_is_not_certain(cut, more, certain):
    assert bool(known(log(**more), ("a.snapshot", 120))) is certain
    assert cut["at"] is None


@pytest.mark.parametrize(
    ("size_now", "snapshot", "epoch", "witnesses"),
    [
        (10, True, None, [120]),
        (10, False, 130, [130]),
        (10, True, 90, [120, 90]),
        # of a log that grows what knows more than was read will be true
        (20, True, 90, [90]),
        (20, True, 130, []),
        (20, False, 90, [90]),
        (20, False, END, [END]),
    ],
)
def test_what_knows_how_far_a_log_went(monkeypatch, size_now, snapshot, epoch, witnesses):
    monkeypatch.setattr(partition_files, "list_snapshots", lambda _: [SNAPSHOT] if snapshot else [])
    reader: Any = SimpleNamespace(size_now=lambda _: size_now)
    rows = None if epoch is None else [EpochEntry(0, 5), EpochEntry(1, epoch)]
    checkpoint: Any = None if rows is None else SimpleNamespace(rows=rows)
    assert [each.end_offset for each in _end_witnesses(reader, log(), checkpoint)] == witnesses


def test_a_file_that_does_not_parse_is_named_with_the_first_reason():
    file = SegmentFile("/d/f", "f", 0, 10, 0)

    def found(parsed: Any, data: bytes | None = b"12345") -> Any:
        def parse(_: bytes) -> Any:
            if isinstance(parsed, Exception):
                raise parsed
            return parsed

        kind: Any = SimpleNamespace(name="kind", parse=parse)
        reader: Any = SimpleNamespace(read=lambda _: data)
        return _parsed(kind, file, reader)

    damage = Damage(3, 5, Reason.TRUNCATED, "why")
    for bad in (
        WireError(3, Reason.TRUNCATED, "why"),
        SimpleNamespace(damage=[damage, Damage(4, 5, Reason.TRUNCATED, "else")]),
    ):
        parsed, (fault,) = found(bad)
        assert parsed is None
        assert tuple(getattr(fault, name) for name in fault.__struct_fields__) == (
            "kind",
            "f",
            3,
            5,
            Reason.TRUNCATED.value,
            "why",
        )
    assert found("content") == ("content", ())
    assert found(SimpleNamespace(damage=())) == (SimpleNamespace(damage=()), ())
    assert found("content", None) == (None, ())
