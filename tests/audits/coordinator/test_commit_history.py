"""Committed offsets over time: every field of what a coordinator's records show, and both sides of each bound."""

import pytest

from kaudit.audits.coordinator import commit_history as module
from kaudit.audits.coordinator.commit_history import CommitHistory, Generation
from kaudit.audits.coordinator.group_log import CommitRecord, GroupLogEntry, GroupRecord, MissingRecords, TransactionEnd
from kaudit.formats.internal_topics.record_schemas import InternalRecord
from kaudit.model.coordinator import Committed
from kaudit.model.group_commits import (
    CommitsInTransaction,
    CommitStep,
    CommittedSteps,
    Committer,
    NewestCommit,
    StepKind,
    StepSum,
)

KEY = "g", "orders", 0
NOBODY = Committer()
BACK, CORRECTED, RESET = StepKind.BACK, StepKind.CORRECTED, StepKind.RESET
REMOVED, COMPACTED = StepKind.REMOVED, StepKind.COMPACTED
NEVER = 10_000_000
"""A time (ms) that is long after a group joined, as most cases begin at."""


class Entries:
    """Entries with the next offset each, a second apart; what they show is found when a test asks."""

    def __init__(self, **options) -> None:
        self.options = options
        self.taken: list[GroupLogEntry] = []
        self.offset, self.now, self.coordinator_epoch = 0, NEVER, 0

    @property
    def history(self) -> CommitHistory:
        history = CommitHistory(**self.options)
        for entry in self.taken:
            history.take(entry)
        return history

    def _next(self) -> tuple[int, int]:
        place = self.offset, self.now
        self.offset, self.now = self.offset + 1, self.now + 1000
        return place

    def wait(self, milliseconds: int) -> "Entries":
        self.now += milliseconds - 1000
        return self

    def moved(self) -> "Entries":
        self.coordinator_epoch += 1
        return self

    def commit(self, *offsets, by=(-1, -1), epoch=4, key=KEY, topic_id=None) -> "Entries":
        for own in offsets:
            offset, timestamp = self._next()
            entry = CommitRecord(offset, timestamp, self.coordinator_epoch, by[0], by[1], key, own, epoch, topic_id)
            self.taken.append(entry)
        return self

    def end(self, producer_id: int, *, commits: bool = True) -> "Entries":
        self.taken.append(TransactionEnd(*self._next(), producer_id, 0, commits))
        return self

    def transaction(self, producer_id: int, *offsets: int) -> "Entries":
        for own in offsets:
            self.commit(own, by=(producer_id, 0)).end(producer_id)
        return self

    def members(self, generation: int, *names: str, group: str = "g") -> "Entries":
        """The first one has orders-0."""
        assignments = [
            {"assignedPartitions": [{"topic": "orders", "partitions": [0]}]} if name == names[0] else b""
            for name in names
        ]
        value = {
            "generation": generation,
            "members": [
                {"memberId": name, "clientId": f"client-{name}", "clientHost": "/10.0.0.1", "assignment": own}
                for name, own in zip(names, assignments, strict=True)
            ],
        }
        record = InternalRecord("GroupMetadata", 2, 3, {"group": group}, value)
        self.taken.append(GroupRecord(*self._next(), self.coordinator_epoch, record))
        return self

    def lost(self, count: int) -> "Entries":
        self.taken.append(MissingRecords(self.offset, self.offset + count - 1))
        self.offset += count
        return self

    @property
    def found(self) -> CommittedSteps:
        (found,) = self.history.steps()
        return found


def member(name: str, generation: int = 1, members: int = 1) -> Committer:
    return Committer(None, None, name, f"client-{name}", "/10.0.0.1", generation, members)


def stable() -> Entries:
    """A group whose one member joined long before."""
    return Entries().members(1, "m").wait(NEVER)


def sums(entries: Entries) -> dict[StepKind, tuple[int, int, int, int]]:
    """Times, offsets, offsets committed before, read again, by kind."""
    return {
        kind: (each.times, each.offsets, each.committed, each.read_again) for kind, each in entries.found.sums.items()
    }


def test_a_step_names_both_commits_and_what_restored_it():
    found = Entries().members(3, "m", "n").wait(NEVER).commit(10, 20).commit(5, epoch=7).wait(5000).commit(25, 30).found
    by = member("m", 3, 2)
    begun = NEVER + NEVER
    step = CommitStep(BACK, 3, begun + 2000, 5, by, 20, 2, begun + 1000, by, None, 4, begun + 7000)
    assert found == CommittedSteps("g", "orders", 0, [step], {BACK: StepSum(1, 15, 20)}, False, 5)


def test_a_step_that_nothing_restored():
    found = Entries().commit(20, 5, 19, by=(-1, -1)).found
    step = CommitStep(BACK, 1, NEVER + 1000, 5, NOBODY, 20, 0, NEVER, NOBODY)
    assert found == CommittedSteps("g", "orders", 0, [step], {BACK: StepSum(1, 15, 20)}, False, 3)


def test_a_step_in_a_transaction_names_its_producer_and_epoch():
    entries = Entries().commit(20, by=(7, 2)).end(7).commit(5, by=(7, 3)).end(7)
    (step,) = entries.found.steps
    assert (step.before, step.by) == (Committer(7, 2), Committer(7, 3))
    assert (step.offset, step.before_offset) == (2, 0)


def test_a_removed_offset_says_when():
    entries = stable().commit(900, None).wait(5000).commit(None).commit(50, 60)
    (step,) = entries.found.steps
    assert (step.kind, step.removed_timestamp) == (REMOVED, NEVER + NEVER + 1000)
    assert sums(entries) == {REMOVED: (1, 850, 900, 10)}


@pytest.mark.parametrize(("steps", "listed"), [(7, 7), (8, 8), (9, 8)])
def test_of_many_steps_the_first_and_the_last_are_listed(steps, listed):
    entries = Entries()
    for number in range(steps):
        entries.commit(100, 90 - number)
    found = entries.found
    own = [90 - number for number in range(steps)]
    assert [each.committed for each in found.steps] == (own if steps == listed else own[:4] + own[-4:])
    assert found.sums[BACK].times == steps


WHOLE = {
    # nothing but progress
    "forward": (stable().commit(10, 10, 20), None),
    # a tombstone alone is no step, nor what follows it above
    "expired-and-further": (stable().commit(10, None).commit(10, 11), None),
    "removed-before-any": (stable().commit(None, 10), None),
    # another topic of the same name begins anew
    "another-topic": (Entries().commit(20, topic_id="a").commit(5, topic_id="b"), None),
    "the-same-topic": (Entries().commit(20, topic_id="a").commit(5, topic_id="a"), {BACK: (1, 15, 20, 0)}),
    "not-said-which": (Entries().commit(20, topic_id="a").commit(18), {BACK: (1, 2, 20, 0)}),
    "another-topic-than-before-that": (Entries().commit(20, topic_id="a").commit(18).commit(17, topic_id="b"), None),
    # each from where the group stood before it
    "twice": (stable().commit(100, 60).commit(100, 70), {BACK: (2, 40 + 30, 200, 0)}),
    "read-on": (stable().commit(100, 40, 60, 90, 130), {BACK: (1, 60, 100, 60)}),
    "read-on-by-another": (
        stable().commit(100, 40).members(2, "n").commit(60, 90),
        {BACK: (1, 60, 100, 30)},
    ),
    "late-and-by-another": (
        stable().commit(100).members(2, "n").commit(40, 60),
        {BACK: (1, 60, 100, 20)},
    ),
    "nobody-reads-on": (stable().commit(100, 40).members(2).commit(60, 80), {BACK: (1, 60, 100, 0)}),
    "read-by-nobody": (Entries().commit(100, 40, 60, 90), {BACK: (1, 60, 100, 0)}),
    "read-in-transactions": (Entries().transaction(7, 100, 40, 60), {BACK: (1, 60, 100, 20)}),
    # whose position is not known: only what the other one commits from there on
    "of-two-producers": (
        Entries().transaction(7, 100).transaction(8, 40).transaction(7, 50, 60),
        {BACK: (1, 60, 100, 10)},
    ),
    "all-at-once": (stable().commit(100, 40, 100), {BACK: (1, 60, 100, 0)}),
    "all-at-once-and-more": (stable().commit(100, 40, 130), {BACK: (1, 60, 100, 0)}),
    "the-same-and-all": (stable().commit(100, 40, 40, 100), {BACK: (1, 60, 100, 0)}),
    "removed-and-all-at-once": (stable().commit(100, None).commit(40, 100), {REMOVED: (1, 60, 100, 60)}),
    "removed-as-the-group-began-again": (
        stable().commit(100, None).members(2, "m").commit(40, 60),
        {REMOVED: (1, 60, 100, 20)},
    ),
    # what compaction removed in between
    "compacted": (stable().commit(100).lost(2).commit(40), {COMPACTED: (1, 60, 100, 0)}),
    "compacted-before": (stable().lost(2).commit(100, 40), {BACK: (1, 60, 100, 0)}),
    # a tool sets the offset of a group without members
    "set-back": (stable().commit(100).members(2).commit(40, epoch=-1), {RESET: (1, 60, 100, 0)}),
    "set-forward": (stable().commit(100).members(2).commit(140, epoch=-1), {RESET: (1, 40, 0, 0)}),
    "set-forward-and-gone-on": (
        stable().commit(100).members(2).commit(140, epoch=-1).members(3, "m").commit(150, 160),
        {RESET: (1, 40, 0, 0)},
    ),
    "set-as-it-is": (stable().commit(100).members(2).commit(100, epoch=-1), None),
    "set-after-it-was-removed": (stable().commit(100, None).members(2).commit(140, epoch=-1), None),
    "set-after-compaction": (stable().commit(100).members(2).lost(1).commit(140, epoch=-1), None),
    "with-a-member": (stable().commit(100).commit(40, epoch=-1), {BACK: (1, 60, 100, 0)}),
    "by-a-program": (stable().commit(100).members(2).commit(40, epoch=0), {BACK: (1, 60, 100, 0)}),
    "by-a-producer": (
        stable().commit(100).members(2).commit(40, epoch=-1, by=(7, 0)).end(7),
        {BACK: (1, 60, 100, 0)},
    ),
    "never-any-member": (Entries().members(1).commit(100, 140, epoch=-1), None),
}


@pytest.mark.parametrize(("entries", "expected"), WHOLE.values(), ids=WHOLE)
def test_the_sums_of_steps(entries, expected):
    assert [sums(entries)] == [expected] if expected else list(entries.history.steps()) == []


def late(after_join: int, until_restored: int) -> Entries:
    """A member joins, commits late and then as much again."""
    return stable().commit(100).members(2, "m", "n").wait(after_join).commit(40).wait(until_restored).commit(100)


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        (late(0, 60_000), CORRECTED),
        (late(0, 60_001), BACK),
        (late(60_000, 1000), CORRECTED),
        (late(60_001, 1000), BACK),
        # the coordinator moved; where it is first heard of is no move
        (stable().moved().commit(100).commit(40, 100), CORRECTED),
        (stable().moved().commit(100).wait(60_000).commit(40, 100), CORRECTED),
        (stable().moved().commit(100).wait(60_001).commit(40, 100), BACK),
        (Entries().commit(100, 40, 100), BACK),
        (Entries().transaction(7, 100).moved().transaction(7, 40, 100), CORRECTED),
        # one commit in between, or another one's
        (stable().moved().commit(100, 40, 41, 100), BACK),
        (stable().commit(100).members(2, "n").commit(40, 100), BACK),
        (stable().commit(100).members(2, "n").commit(40).members(3, "m").commit(100), BACK),
        (stable().commit(100, None).moved().commit(40, 100), REMOVED),
        (stable().commit(100).lost(1).moved().commit(40, 100), COMPACTED),
    ],
)
def test_a_late_commit_is_corrected_at_once_by_the_same_one(entries, kind):
    (step,) = entries.found.steps
    assert step.kind is kind
    assert list(entries.found.sums) == [kind]
    (newest,) = entries.history.newest()
    assert (step.restored_offset, step.restored_timestamp) == (newest.offset, newest.timestamp)


def test_what_was_corrected_is_taken_from_the_steps_back_that_were_not():
    entries = stable().commit(100, 30, 100).moved().commit(120).commit(50, 120)
    assert sums(entries) == {BACK: (1, 70, 100, 0), CORRECTED: (1, 70, 120, 0)}


@pytest.mark.parametrize(
    ("after_join", "read"),
    [(0, 0), (59_000, 0), (60_000, 0), (60_001, 40)],
)
def test_what_is_late_after_a_rebalance_was_not_read_again(after_join, read):
    entries = stable().commit(100).members(2, "m").wait(after_join).commit(40, 60, 80)
    assert sums(entries) == {BACK: (1, 60, 100, read)}


ALTERNATING = {
    # each goes on from its own position: below, and from there on again
    "two-programs": (Entries().commit(100, 5, 110, 6), True),
    "back-to-the-same": (Entries().commit(100, 5, 110, 5), True),
    "further-back": (Entries().commit(100, 5, 110, 4), False),
    "not-restored": (Entries().commit(100, 5, 6, 4), False),
    # the lowest before the step, not the first
    "from-the-last-below": (Entries().commit(100, 5, 50, 110, 49), False),
    "on-from-the-last-below": (Entries().commit(100, 5, 50, 110, 50), True),
    # a tool may set the offset twice
    "set-twice": (
        stable().commit(100).members(2).commit(5, epoch=-1).commit(110).commit(6, epoch=-1),
        False,
    ),
    "set-three-times": (
        stable()
        .commit(100)
        .members(2)
        .commit(5, epoch=-1)
        .commit(110)
        .commit(6, epoch=-1)
        .commit(120)
        .commit(7, epoch=-1),
        True,
    ),
    # two producers, one of which goes on
    "a-zombie": (Entries().transaction(7, 100).transaction(8, 40).transaction(7, 100), True),
    "taken-over": (Entries().transaction(7, 100).transaction(8, 40, 100), False),
    "one-producer": (Entries().transaction(7, 100, 40, 100), False),
    "a-third": (Entries().transaction(7, 100).transaction(8, 40).transaction(9, 100), False),
    "a-program-after-a-producer": (Entries().transaction(7, 100).commit(40).transaction(7, 100), False),
    # what was corrected at once was one writer's
    "corrected-each-time": (stable().moved().commit(100, 50, 100).moved().commit(50, 100), False),
    "removed-once": (Entries().transaction(7, 100, 5, 110).commit(None).transaction(7, 6), False),
    "before-any-producer": (Entries().commit(100).transaction(8, 40).commit(100), False),
    "removed-each-time": (
        Entries().commit(100, None).commit(5, 110).commit(None).commit(6, 120),
        False,
    ),
}


@pytest.mark.parametrize(("entries", "expected"), ALTERNATING.values(), ids=ALTERNATING)
def test_two_that_commit_in_turn(entries, expected):
    assert entries.found.alternating is expected


def test_the_newest_commits_and_who_reads_on():
    entries = stable().commit(10, 20, epoch=6, topic_id="a")
    entries.commit(30, key=("g", "bills", 1)).commit(40, key=("h", "orders", 0), epoch=-1)
    entries.commit(50, key=("i", "orders", 0)).commit(None, key=("i", "orders", 0))
    begun = NEVER + NEVER
    assert list(entries.history.newest()) == [
        NewestCommit(Committed("g", 20, 6), "orders", 0, "a", 2, begun + 1000, member("m")),
        NewestCommit(Committed("g", 30, 4), "bills", 1, None, 3, begun + 2000, None),
        NewestCommit(Committed("h", 40, -1), "orders", 0, None, 4, begun + 3000, None),
    ]


def test_what_was_set_forward_is_not_restored():
    entries = stable().commit(100).members(2).commit(140, epoch=-1).commit(150)
    assert [(each.restored_offset, each.restored_timestamp) for each in entries.found.steps] == [(None, None)]


@pytest.mark.parametrize("topic_ids", [("a", None), (None, "a"), ("a", "a")])
def test_the_topic_is_the_one_that_any_commit_names(topic_ids):
    entries = Entries()
    for topic_id in topic_ids:
        entries.commit(1, topic_id=topic_id)
    assert [each.topic_id for each in entries.history.newest()] == ["a"]


def test_a_removed_offset_that_is_committed_again_is_there_with_the_topic_known_before():
    entries = Entries().commit(10, topic_id="a").commit(None, 20)
    (newest,) = entries.history.newest()
    assert (newest.committed.offset, newest.topic_id, newest.offset) == (20, "a", 2)


def test_commits_of_a_transaction_that_has_not_ended():
    entries = Entries().commit(1, by=(7, 3), key=("g", "orders", 5))
    for partition in range(9):
        entries.commit(1, by=(7, 3), key=("g", "orders", partition))
    entries.transaction(8, 10).commit(5, by=(9, 0)).end(9, commits=False)
    own = [("g", "orders", partition) for partition in (5, *range(7))]
    assert list(entries.history.pending()) == [CommitsInTransaction(7, 3, 0, NEVER, own)]
    assert [each.committed.offset for each in entries.history.newest()] == [10]


@pytest.mark.parametrize(
    ("entries", "committed"),
    [
        (Entries().commit(10, by=(7, 0)).commit(20).end(7), 20),  # the newer one stays
        (Entries().commit(20).commit(10, by=(7, 0)).end(7), 10),
        (Entries().commit(10, 30, by=(7, 0)).end(7), 30),
        (Entries().commit(10, by=(7, 0)).end(8).end(7), 10),
        (Entries().commit(10, by=(7, 0)).end(7, commits=False).end(7).commit(5), 5),
    ],
)
def test_a_marker_does_not_undo_a_newer_commit(entries, committed):
    assert [each.committed.offset for each in entries.history.newest()] == [committed]


def test_a_hundred_thousand_commits_wait_for_markers_and_more_are_counted():
    entries = Entries()
    entries.commit(*range(100_002), by=(7, 0))
    assert entries.history.not_followed == 2
    entries.end(7).commit(*range(100_001), by=(8, 0))
    assert entries.history.not_followed == 3
    assert [each.committed.offset for each in entries.history.newest()] == [99_999]


def test_what_is_not_in_the_log():
    history = Entries().commit(1).lost(3).commit(2).lost(1).history
    assert (history.missing, history.last_missing) == (4, 5)
    assert Entries().history.last_missing == -1


def test_partitions_beyond_the_limit_are_counted_unless_removed_ones_make_room(monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTITIONS", 2)
    a, b, c, d = ((name, "orders", 0) for name in "abcd")
    entries = Entries().commit(1, key=a).commit(1, key=b).commit(1, key=c)
    assert entries.history.not_followed == 1
    entries.commit(None, key=a).commit(2, key=c).commit(2, key=d)
    assert entries.history.not_followed == 2
    assert [each.committed.group for each in entries.history.newest()] == ["b", "c"]


def test_a_topic_that_was_created_again_is_followed_at_the_limit(monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTITIONS", 1)
    history = Entries().commit(10, topic_id="a").commit(20, topic_id="b").history
    assert (history.not_followed, [each.topic_id for each in history.newest()]) == (0, ["b"])


def test_a_removed_offset_with_steps_is_not_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTITIONS", 1)
    entries = Entries().commit(10, 5, None).commit(1, key=("h", "orders", 0))
    assert entries.history.not_followed == 1
    assert entries.found.sums == {BACK: StepSum(1, 5, 10)}


def test_all_commits_are_listed_where_they_are_asked_for():
    entries = Entries(keeps_commits=True, of_group="g").members(3, "m").members(3, "m").commit(10, None)
    entries.commit(20, by=(7, 2)).commit(1, key=("h", "orders", 0)).end(7)
    entries.members(4).members(4, group="h")
    assert [(commit.offset, by) for commit, by in entries.history.taken] == [
        (2, member("m", 3)),
        (4, Committer(7, 2, "m", "client-m", "/10.0.0.1", 3, 1)),
    ]
    assert entries.history.generations == [Generation("g", 0, NEVER, 3, 1), Generation("g", 7, NEVER + 7000, 4, 0)]


def test_of_no_group_in_particular_all_are_listed_and_nothing_where_it_is_not_asked_for():
    for keeps in (True, False):
        entries = (
            Entries(keeps_commits=keeps).members(0, "m").members(-1, group="h").commit(1).commit(2, key=("h", "o", 0))
        )
        assert [commit.committed for commit, _ in entries.history.taken] == ([1, 2] if keeps else [])
        assert [each.group for each in entries.history.generations] == (["g"] if keeps else [])


def test_no_commit_is_listed_by_default():
    assert Entries().members(0, "m").commit(1).history.taken == []


def test_lists_of_commits_and_generations_end(monkeypatch):
    monkeypatch.setattr(module, "MOST_TAKEN", 2)
    entries = Entries(keeps_commits=True)
    for number in range(4):
        entries.members(number, "m").commit(number)
    assert [commit.committed for commit, _ in entries.history.taken] == [0, 1]
    assert [each.generation for each in entries.history.generations] == [0, 1]


def test_who_commits_changes_with_the_group_and_the_producer():
    entries = Entries(keeps_commits=True).members(1, "m").commit(1).members(2, "n").commit(2)
    entries.commit(3, by=(7, 0)).end(7).commit(4, by=(7, 1)).end(7).commit(5)
    assert [(by.member_id, by.producer_id, by.producer_epoch) for _, by in entries.history.taken] == [
        ("m", None, None),
        ("n", None, None),
        ("n", 7, 0),
        ("n", 7, 1),
        ("n", None, None),
    ]
