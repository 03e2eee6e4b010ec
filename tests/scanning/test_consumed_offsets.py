"""What committed offsets show of a log: records that were removed before a group read them, and records that the log lacks."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.coordinator import Committed, CommittedBeyondLogEnd
from kaudit.model.coverage import Coverage, EndWitness, OffsetClass, OffsetRange
from kaudit.model.group_commits import CommittedBelowLogStart, NewestCommit
from kaudit.reading.rows import LEADER_EPOCH_START
from kaudit.scanning.consumed_offsets import evidence_of_groups
from tests.scanning.test_not_covered import NOTHING_WRONG

START, END, EPOCH = 40, 100, 5
READER: Any = "a member that has the partition"


def commit(offset: int, epoch: int = EPOCH, *, group: str = "g", owner: Any = READER, **more: Any) -> NewestCommit:
    return NewestCommit(
        Committed(group, offset, epoch),
        **{"topic": "orders", "partition": 0, **more},
        topic_id=None,
        offset=0,
        timestamp=0,
        owner=owner,
    )


def log_of(**more: Any) -> Any:
    parts: dict[str, Any] = {"outside": [], "steps": [], "pending": [], "shares": [], "topic_names": {}}
    return SimpleNamespace(directory=SimpleNamespace(directory="/d/__consumer_offsets-0"), **(parts | more))


def part_of(*epochs: int, end: int | None = END, **more: Any) -> Any:
    """A log of offsets 40 to 99 that has these leader epochs."""
    steps = np.zeros(len(epochs), dtype=LEADER_EPOCH_START)
    steps["leader_epoch"] = epochs
    coverage = None if end is None else Coverage("orders", 0, "b1", START, "checkpoint", end, (), {}, (), True)
    directory = replace(NOTHING_WRONG.directory, log_start_offset=START, **more)
    return SimpleNamespace(directory=directory, coverage=coverage, leader_epochs=steps, regressions=())


def shown(part: Any, *commits: NewestCommit, grown: bool = False) -> list[Any]:
    checkpoints: Any = SimpleNamespace(has_grown=lambda _: grown)
    (found,) = evidence_of_groups([part], [log_of(outside=list(commits))], checkpoints)
    return list(found)


@pytest.mark.parametrize(
    ("offset", "owner", "removed"),
    [
        (START - 1, READER, True),
        (START, READER, False),
        (0, READER, True),
        (-1, READER, False),
        (START - 1, None, False),
    ],
)
def test_what_was_removed_before_a_group_read_it(offset, owner, removed):
    one = commit(offset, owner=owner)
    part = part_of(EPOCH)
    part.directory = replace(part.directory, segments=[replace(part.directory.segments[0], base_offset=START)])
    assert shown(part, one) == ([CommittedBelowLogStart(one, START)] if removed else [])


@pytest.mark.parametrize(
    ("offset", "epoch", "newest", "lost"),
    [
        # consumed in an older leader epoch than the log has: a leader begins with all that was committed
        (END + 5, EPOCH - 1, EPOCH, EPOCH),
        (END + 1, 0, EPOCH, EPOCH),
        # this copy may lag
        (END + 5, EPOCH, EPOCH, None),
        (END + 5, -1, EPOCH, None),
    ],
)
def test_what_a_group_has_read_beyond_the_logs_end(offset, epoch, newest, lost):
    part = part_of(1, newest)
    committed = commit(offset, epoch).committed
    assert shown(part, commit(offset, epoch)) == [CommittedBeyondLogEnd(committed, END, lost)]
    kind = OffsetClass.MISSING if lost else OffsetClass.UNKNOWN
    consumed = f"group g has consumed up to {offset}"
    reason = (
        f"{consumed}, in leader epoch {epoch}, and the log has leader epoch {newest}"
        if lost
        else f"{consumed}: this copy lags, or is older than __consumer_offsets, or its end is lost"
    )
    assert part.coverage.ranges == [OffsetRange(END, offset - 1, offset - END, kind, reason, lost is None)]
    assert part.coverage.witnesses == [EndWitness("__consumer_offsets (group g)", offset)]


def test_without_an_end_nothing_is_compared():
    assert shown(part_of(EPOCH, end=None), commit(END + 5, 1)) == []


def test_a_log_that_grows_is_compared_later():
    assert shown(part_of(EPOCH), commit(END + 5, 1), grown=True) == []
    assert shown(part_of(EPOCH), commit(END, 1), commit(END - 1, 1)) == []


def test_where_leader_epochs_fall_the_last_proves_nothing():
    part = part_of(7, EPOCH)
    part.regressions = ("?",)
    (found,) = shown(part, commit(END + 5, 1))
    assert found.log_leader_epoch is None
    (without,) = shown(part_of(), commit(END + 5, 1))
    assert without.log_leader_epoch is None


def test_the_furthest_commit_of_each_kind_counts():
    """What is proven lost first, then what lies beyond that."""
    commits = [
        commit(END + 2, 1, group="a"),
        commit(END + 4, 2, group="b"),
        commit(END + 9, EPOCH, group="c"),
        commit(END + 7, -1, group="d"),
    ]
    part = part_of(EPOCH)
    assert shown(part, *commits) == [
        CommittedBeyondLogEnd(commits[1].committed, END, EPOCH),
        CommittedBeyondLogEnd(commits[2].committed, END, None),
    ]
    assert [(each.first_offset, each.last_offset, each.kind) for each in part.coverage.ranges] == [
        (END, END + 3, OffsetClass.MISSING),
        (END + 4, END + 8, OffsetClass.UNKNOWN),
    ]
    other = commit(END + 5, 1, topic="others"), commit(END + 5, 1, partition=1)
    assert shown(part_of(EPOCH), *other) == []


class Share(Struct, frozen=True):
    topic_id: str
    topic: str | None = None


def test_what_the_log_of_groups_shows_belongs_to_it():
    """Steps, commits in transactions and shares, these with the name that a log of groups or a directory has for the topic's id."""
    parts = [part_of(EPOCH), part_of(EPOCH)]
    parts[0].directory = replace(
        NOTHING_WRONG.directory, directory="/d/__consumer_offsets-0", topic="__consumer_offsets"
    )
    parts[1].directory = replace(NOTHING_WRONG.directory, topic="named", topic_id="of a directory")
    log = log_of(
        steps=["step"], pending=["pending"], shares=[Share("of a log"), Share("of a directory"), Share("of none")],
        topic_names={"of a log": "logged"},
    )  # fmt: skip
    checkpoints: Any = SimpleNamespace(has_grown=lambda _: False)
    shares = [Share("of a log", "logged"), Share("of a directory", "named"), Share("of none")]
    assert evidence_of_groups(parts, [log], checkpoints) == [["step", "pending", *shares], []]
