"""The inputs of transactions, from records of __consumer_offsets as coordinators write them: what was processed twice or never."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from kaudit.audits.coordinator.group_log import CommitRecord, GroupLogEntry, GroupRecord, MissingRecords, TransactionEnd
from kaudit.audits.coordinator.group_members import GroupMembers
from kaudit.audits.transactions import committed_inputs as module
from kaudit.audits.transactions.committed_inputs import CommittedInputs
from kaudit.formats.internal_topics.record_schemas import InternalRecord
from kaudit.model.exactly_once import (
    CommitsOutside,
    CommitTimes,
    EndOfTransaction,
    GroupInputs,
    InputRange,
    InputTransaction,
    Outcome,
    ProcessedTwice,
    SameOffset,
    Skipped,
    TransactionCounts,
    WentOn,
)

GROUP, TOPIC = "billing", "orders"
A, B = 1, 2
"""Producer ids."""


class Written:
    """Entries with offsets and times of their own."""

    def __init__(self, tick: int = 1000) -> None:
        self.entries: list[GroupLogEntry] = []
        self.topic_id: str | None = None
        self.tick = tick

    def created(self, topic_id: str | None) -> "Written":
        self.topic_id = topic_id
        return self

    def at(self) -> tuple[int, int]:
        return len(self.entries), self.tick * len(self.entries)

    def members(self, count: int, group: str = GROUP) -> "Written":
        value = {"generation": 1, "members": [member(number) for number in range(count)]}
        record = InternalRecord("GroupMetadata", 2, 3, {"group": group}, value)
        self.entries.append(GroupRecord(*self.at(), 0, record))
        return self

    def plain(self, offset: int | None, topic: str = TOPIC, partition: int = 0, group: str = GROUP) -> "Written":
        key = group, topic, partition
        self.entries.append(CommitRecord(*self.at(), 0, -1, -1, key, offset, topic_id=self.topic_id))
        return self

    def pending(self, producer_id: int, offset: int | None, partition: int = 0, group: str = GROUP) -> "Written":
        key = group, TOPIC, partition
        self.entries.append(CommitRecord(*self.at(), 0, producer_id, 0, key, offset, topic_id=self.topic_id))
        return self

    def end(self, producer_id: int, *, commits: bool = True) -> "Written":
        self.entries.append(TransactionEnd(*self.at(), producer_id, 0, commits))
        return self

    def lost(self) -> "Written":
        self.entries.append(MissingRecords(len(self.entries), len(self.entries) + 9))
        return self

    def committed(self, producer_id: int, *offsets: int) -> "Written":
        for offset in offsets:
            self.pending(producer_id, offset).end(producer_id)
        return self

    def aborted(self, producer_id: int, offset: int) -> "Written":
        return self.pending(producer_id, offset).end(producer_id, commits=False)


def member(number: int) -> dict[str, object]:
    return {"memberId": f"m{number}", "clientId": "c", "clientHost": "/1", "assignment": b""}


def begun() -> Written:
    return Written().members(1).committed(A, 10, 20)


def followed(entries: Iterable[GroupLogEntry], listed: int = 0) -> GroupInputs:
    members = GroupMembers()
    inputs = CommittedInputs(members, listed)
    for entry in entries:
        if isinstance(entry, GroupRecord):
            members.take(entry)
        inputs.take(entry)
    return inputs.result()


def shown(found: GroupInputs) -> list[object]:
    """What is said of inputs, as (kind, first, end) or (kind, commits)."""
    return [
        *(("twice", each.inputs.first, each.inputs.end) for each in found.twice),
        *(("skipped", each.inputs.first, each.inputs.end) for each in found.skipped),
        *(("outside", each.commits) for each in found.outside),
        *(("same", each.inputs.first, each.inputs.end) for each in found.same_offset),
        *(("went on", each.inputs.first, each.inputs.end) for each in found.went_on),
    ]


CASES: dict[str, tuple[Written, list[object]]] = {
    "goes on": (begun().committed(B, 30).committed(A, 40), []),
    "commits nothing new": (begun().committed(A, 20, 20, 30), []),
    "aborted and done again": (begun().aborted(A, 30).committed(A, 30, 40), []),
    "aborted and less is done": (begun().aborted(A, 30).committed(A, 25, 40), []),
    "aborted and gone on": (begun().aborted(A, 30).committed(A, 40), [("went on", 20, 30)]),
    "a zombie commits less": (begun().committed(B, 30, 40).committed(A, 30).committed(B, 50), [("twice", 20, 30)]),
    "a new one commits less": (begun().committed(B, 15), [("twice", None, 15)]),
    "goes back itself": (begun().committed(A, 15, 25), [("twice", None, 20)]),
    "the same offset": (begun().committed(B, 30).committed(A, 30), [("same", 20, 30)]),
    "an old commit again": (begun().committed(B, 30).committed(A, 20).committed(B, 40).committed(A, 20), []),
    "written before, ended after": (
        begun().pending(A, 30).committed(B, 30, 40).end(A).committed(B, 50),
        [("twice", 20, 30)],
    ),
    "both at once, not below": (begun().pending(A, 30).pending(B, 30).end(A).end(B), [("same", None, 30)]),
    "reset without members": (begun().members(0).plain(0).members(1).committed(A, 10, 20), []),
    "reset forward": (begun().members(0).plain(40).members(1).committed(A, 50), []),
    "removed and begun again": (begun().plain(None).committed(A, 5), []),
    "another topic of the name": (
        Written().created("old").members(1).committed(A, 10, 20).created("new").committed(A, 5, 10, 30),
        [],
    ),
    "passed over": (begun().plain(30).committed(A, 40), [("skipped", 20, 30), ("outside", 1)]),
    "passed over before its marker": (
        Written().members(1).committed(A, 10).pending(A, 20).plain(30).end(A).committed(A, 40),
        [("skipped", 20, 30), ("outside", 1)],
    ),
    "passed over before its first marker": (
        Written().members(1).pending(A, 10).plain(20).end(A).committed(A, 30),
        [("skipped", 10, 20), ("outside", 1)],
    ),
    "passed over, and another one was further": (
        begun().committed(B, 30, 40).committed(A, 20).plain(30).committed(B, 50),
        [("outside", 1)],
    ),
    "many that commit nothing new": (
        begun().committed(B, 30, 40, *[40] * 64).committed(A, 30),
        [("twice", 20, 30)],
    ),
    "a zombie, then a new one": (
        begun().committed(B, 30, 40).committed(A, 30).committed(3, 35),
        [("twice", 20, 30), ("twice", 30, 35)],
    ),
    "a new one goes back and on": (begun().committed(B, 15, 18), [("twice", None, 18)]),
    "goes back twice": (
        begun().committed(B, 30, 40).committed(A, 30).committed(B, 50).committed(A, 5, 12),
        [("twice", 20, 30), ("twice", 9, 12)],
    ),
    "aborted at first, and gone on": (Written().members(1).aborted(A, 10).committed(A, 20), []),
    "another topic, after commits that do not say which": (
        Written()
        .created("old")
        .members(1)
        .committed(A, 10)
        .created(None)
        .committed(A, 20)
        .created("new")
        .committed(A, 15),
        [],
    ),
    "outside, no further": (begun().plain(20).committed(A, 30), [("outside", 1)]),
    "outside from now on": (begun().plain(30).plain(40), []),
    "outside before": (Written().members(1).plain(10).plain(20).committed(A, 30, 40), []),
    "compacted between": (begun().committed(B, 40).lost().committed(A, 30, 50), []),
    "compacted open": (begun().pending(B, 30).lost().end(B).committed(A, 20), []),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace(" ", "-").replace(",", ""))
def test_what_commits_show_of_inputs(case):
    written, expected = CASES[case]
    assert shown(followed(written.entries)) == expected


def test_both_transactions_and_the_offset_between_are_named():
    found = followed(begun().committed(B, 30, 40).committed(A, 30).entries).twice[0]
    assert (found.before.producer_id, found.before.marker_offset) == (B, 6)
    assert (found.again.producer_id, found.again.marker_offset, found.again.ended_ms) == (A, 10, 10_000)
    assert (found.committed, found.transactions, found.compared) == (40, 1, False)


def test_one_that_goes_on_from_where_it_went_back_is_one_entry():
    found = followed(begun().committed(B, 30, 40).committed(A, 5, 12, 18, 26).entries)
    assert [(each.inputs.first, each.inputs.end, each.transactions) for each in found.twice] == [(9, 26, 3)]
    found = followed(begun().committed(B, 30, 40).committed(A, 5, 12, 18, 19).entries)
    assert [(each.inputs.first, each.inputs.end, each.transactions) for each in found.twice] == [(9, 19, 3)]


def test_counts_and_lists_of_transactions():
    written = begun().aborted(B, 25).pending(A, 30).pending(A, 7, partition=1)
    found = followed(written.entries, listed=10)
    counts = found.counts
    assert (counts.committed, counts.aborted, counts.open) == (2, 1, 1)
    assert (counts.inputs_committed, counts.inputs_aborted) == (10, 5)
    assert [each.outcome for each in found.listed] == [Outcome.COMMITTED] * 2 + [Outcome.ABORTED, Outcome.OPEN]
    last = found.listed[-1]
    assert [(each.partition, each.first, each.end) for each in last.inputs] == [(0, 20, 30), (1, None, 7)]
    assert last.end is None
    assert found.producers == {A: [GROUP], B: [GROUP]}


def test_the_newest_are_listed_and_all_counted():
    found = followed(Written().members(1).committed(A, *range(1, 101)).entries, listed=10)
    assert found.counts.committed == 100
    assert found.unlisted == 90
    assert [each.inputs[0].end for each in found.listed] == list(range(91, 101))


def test_lists_end_and_counts_go_on(monkeypatch):
    monkeypatch.setattr(module, "_MOST_LISTED", 3)
    written = begun()
    for _ in range(5):
        written.committed(B, 30, 40).committed(A, 5, 20)
    found = followed(written.entries)
    assert len(found.twice) == 3
    assert found.more["twice"] > 0


def test_what_is_not_there_is_counted():
    assert followed(begun().lost().lost().entries).missing == 20


def test_a_group_that_commits_by_its_consumer_alone():
    (plain,) = followed(Written().members(1).plain(1).plain(2).plain(3).entries).plain
    assert (plain.group, plain.commits, plain.times, list(plain.topics)) == (GROUP, 3, [1000, 2000, 3000], [TOPIC])
    assert (plain.first_offset, plain.last_offset) == (1, 3)


def test_a_consumer_that_assigns_itself_its_partitions_is_no_member():
    found = followed(Written().plain(1).plain(2).plain(3).entries)
    assert found.plain == []


def inputs(first: int | None, end: int, partition: int = 0, group: str = GROUP) -> InputRange:
    return InputRange(group, TOPIC, partition, first, end)


def end(producer_id: int, marker: int) -> EndOfTransaction:
    """The end of a transaction by its marker: entries are a second apart."""
    return EndOfTransaction(producer_id, 0, 1000 * marker, marker)


def listed(producer_id: int, begun: int, marker: int, *ranges: InputRange, aborted: bool = False) -> InputTransaction:
    outcome = Outcome.ABORTED if aborted else Outcome.COMMITTED
    return InputTransaction(producer_id, 0, 1000 * begun, end(producer_id, marker), outcome, list(ranges))


def open_one(producer_id: int, begun: int, *ranges: InputRange) -> InputTransaction:
    return InputTransaction(producer_id, 0, 1000 * begun, None, Outcome.OPEN, list(ranges))


FIRST = [listed(A, 1, 2, inputs(None, 10)), listed(A, 3, 4, inputs(10, 20))]
"""The transactions of `begun`: entries 0 to 4."""
ONE, BOTH = {A: [GROUP]}, {A: [GROUP], B: [GROUP]}


def outside(commits: int, in_transactions: int, first: int, last: int, *topics: str) -> CommitsOutside:
    return CommitsOutside(GROUP, commits, in_transactions, topics or (TOPIC,), first, 1000 * first, last, 1000 * last)


WHOLE: dict[str, tuple[Written, GroupInputs]] = {
    "nothing": (Written(), GroupInputs()),
    "goes on": (
        begun().committed(B, 30),
        GroupInputs(TransactionCounts(3, 0, 0, 20), producers=BOTH, listed=[*FIRST, listed(B, 5, 6, inputs(20, 30))]),
    ),
    "a zombie": (
        begun().committed(B, 30, 40).committed(A, 30).committed(B, 50),
        GroupInputs(
            TransactionCounts(6, 0, 0, 10 + 10 + 10 + 10 + 10),
            twice=[ProcessedTwice(inputs(20, 30), 40, end(B, 6), end(A, 10), end(A, 10))],
            producers=BOTH,
            listed=[
                *FIRST,
                listed(B, 5, 6, inputs(20, 30)),
                listed(B, 7, 8, inputs(30, 40)),
                listed(A, 9, 10, inputs(20, 30)),
                listed(B, 11, 12, inputs(40, 50)),
            ],
        ),
    ),
    "goes back and on": (
        begun().committed(B, 30, 40).committed(A, 5, 12, 18, 26),
        GroupInputs(
            TransactionCounts(8, 0, 0, 30 + 7 + 6 + 8),
            twice=[ProcessedTwice(inputs(9, 26), 5, end(A, 2), end(A, 12), end(A, 16), 3)],
            producers=BOTH,
            listed=[
                *FIRST,
                listed(B, 5, 6, inputs(20, 30)),
                listed(B, 7, 8, inputs(30, 40)),
                listed(A, 9, 10, inputs(None, 5)),
                listed(A, 11, 12, inputs(5, 12)),
                listed(A, 13, 14, inputs(12, 18)),
                listed(A, 15, 16, inputs(18, 26)),
            ],
        ),
    ),
    "written before, ended after": (
        begun().pending(A, 30).committed(B, 30, 40).end(A).committed(B, 50),
        GroupInputs(
            TransactionCounts(6, 0, 0, 50),
            twice=[ProcessedTwice(inputs(20, 30), 20, end(B, 7), end(A, 10), end(A, 10))],
            producers=BOTH,
            listed=[
                *FIRST,
                listed(B, 6, 7, inputs(20, 30)),
                listed(B, 8, 9, inputs(30, 40)),
                listed(A, 5, 10, inputs(20, 30)),
                listed(B, 11, 12, inputs(40, 50)),
            ],
        ),
    ),
    "the same offset": (
        begun().committed(B, 30).committed(A, 30),
        GroupInputs(
            TransactionCounts(4, 0, 0, 20),
            same_offset=[SameOffset(inputs(20, 30), end(B, 6), end(A, 8))],
            producers=BOTH,
            listed=[*FIRST, listed(B, 5, 6, inputs(20, 30)), listed(A, 7, 8, inputs(30, 30))],
        ),
    ),
    "passed over": (
        begun().plain(30).committed(A, 40),
        GroupInputs(
            TransactionCounts(3, 0, 0, 20),
            skipped=[Skipped(inputs(20, 30), 5, 5000)],
            outside=[outside(1, 3, 5, 5)],
            producers=ONE,
            listed=[*FIRST, listed(A, 6, 7, inputs(30, 40))],
        ),
    ),
    "passed over, and nothing done from there": (
        begun().plain(30).committed(A, 30, 40),
        GroupInputs(
            TransactionCounts(4, 0, 0, 20),
            outside=[outside(1, 4, 5, 5)],
            producers=ONE,
            listed=[*FIRST, listed(A, 6, 7, inputs(30, 30)), listed(A, 8, 9, inputs(30, 40))],
        ),
    ),
    "outside, back": (
        begun().plain(15).committed(A, 20, 30),
        GroupInputs(
            TransactionCounts(4, 0, 0, 20),
            outside=[outside(1, 4, 5, 5)],
            producers=ONE,
            listed=[*FIRST, listed(A, 6, 7, inputs(20, 20)), listed(A, 8, 9, inputs(20, 30))],
        ),
    ),
    "outside several times, of several topics": (
        begun().plain(20).plain(3, "z").plain(5, "a").committed(A, 30).plain(30).plain(30).committed(A, 40),
        GroupInputs(
            TransactionCounts(4, 0, 0, 30),
            outside=[outside(5, 4, 5, 11, "a", TOPIC, "z")],
            producers=ONE,
            listed=[*FIRST, listed(A, 8, 9, inputs(20, 30)), listed(A, 12, 13, inputs(30, 40))],
        ),
    ),
    "outside before its first transaction too": (
        Written().members(1).plain(5, "bills").plain(10).committed(A, 20).plain(20).committed(A, 30),
        GroupInputs(
            TransactionCounts(2, 0, 0, 20),
            outside=[outside(1, 2, 5, 5)],
            producers=ONE,
            listed=[listed(A, 3, 4, inputs(10, 20)), listed(A, 6, 7, inputs(20, 30))],
        ),
    ),
    "aborted and gone on": (
        begun().aborted(A, 30).committed(A, 40),
        GroupInputs(
            TransactionCounts(3, 1, 0, 10 + 20, 10),
            went_on=[WentOn(inputs(20, 30), end(A, 6), end(A, 8))],
            producers=ONE,
            listed=[*FIRST, listed(A, 5, 6, inputs(20, 30), aborted=True), listed(A, 7, 8, inputs(20, 40))],
        ),
    ),
    "aborted below, and at the same": (
        begun().aborted(B, 15).aborted(B, 20).committed(A, 30),
        GroupInputs(
            TransactionCounts(3, 2, 0, 20, 0),
            went_on=[WentOn(inputs(20, 20), end(B, 8), end(A, 10))],
            producers=BOTH,
            listed=[
                *FIRST,
                listed(B, 5, 6, inputs(None, 15), aborted=True),
                listed(B, 7, 8, inputs(20, 20), aborted=True),
                listed(A, 9, 10, inputs(20, 30)),
            ],
        ),
    ),
    "aborted, then one that began elsewhere": (
        begun().aborted(A, 30).plain(25).committed(A, 40),
        GroupInputs(
            TransactionCounts(3, 1, 0, 10 + 15, 10),
            skipped=[Skipped(inputs(20, 25), 7, 7000)],
            outside=[outside(1, 3, 7, 7)],
            producers=ONE,
            listed=[*FIRST, listed(A, 5, 6, inputs(20, 30), aborted=True), listed(A, 8, 9, inputs(25, 40))],
        ),
    ),
    "aborted alone, then outside": (
        Written().members(1).aborted(A, 10).plain(5).committed(A, 20),
        GroupInputs(
            TransactionCounts(1, 1, 0, 15, 0),
            producers=ONE,
            listed=[listed(A, 1, 2, inputs(None, 10), aborted=True), listed(A, 4, 5, inputs(5, 20))],
        ),
    ),
    "reset after it was aborted": (
        begun().aborted(A, 30).members(0).plain(20).members(1).committed(A, 40),
        GroupInputs(
            TransactionCounts(3, 1, 0, 30, 10),
            producers=ONE,
            listed=[*FIRST, listed(A, 5, 6, inputs(20, 30), aborted=True), listed(A, 10, 11, inputs(20, 40))],
        ),
    ),
    "reset after it was passed over": (
        begun().plain(30).members(0).plain(30).members(1).committed(A, 40),
        GroupInputs(
            TransactionCounts(3, 0, 0, 20),
            outside=[outside(1, 3, 5, 5)],
            producers=ONE,
            listed=[*FIRST, listed(A, 9, 10, inputs(30, 40))],
        ),
    ),
    "reset, so that all is meant to be done again": (
        begun().committed(B, 30).members(0).plain(0).members(1).committed(A, 15).committed(B, 30),
        GroupInputs(
            TransactionCounts(5, 0, 0, 20 + 15 + 15),
            producers=BOTH,
            listed=[
                *FIRST,
                listed(B, 5, 6, inputs(20, 30)),
                listed(A, 10, 11, inputs(0, 15)),
                listed(B, 12, 13, inputs(15, 30)),
            ],
        ),
    ),
    "compacted": (
        begun().plain(20).lost().committed(A, 30),
        GroupInputs(
            TransactionCounts(3, 0, 0, 10),
            producers=ONE,
            missing=10,
            since_ms=7000,
            listed=[*FIRST, listed(A, 7, 8, inputs(None, 30))],
        ),
    ),
    "compacted, then outside": (
        begun().lost().plain(50).committed(A, 60),
        GroupInputs(
            TransactionCounts(3, 0, 0, 20),
            outside=[outside(1, 3, 6, 6)],
            producers=ONE,
            missing=10,
            since_ms=6000,
            listed=[*FIRST, listed(A, 7, 8, inputs(50, 60))],
        ),
    ),
    "several partitions and groups": (
        begun().pending(B, 5, 1).pending(B, 30).pending(B, 9, group="audit").end(B).pending(B, 8, 1).pending(B, 25),
        GroupInputs(
            TransactionCounts(3, 0, 1, 20),
            producers={A: [GROUP], B: [GROUP, "audit"]},
            listed=[
                *FIRST,
                listed(B, 5, 8, inputs(None, 5, 1), inputs(20, 30), inputs(None, 9, group="audit")),
                open_one(B, 9, inputs(5, 8, 1), inputs(None, 25)),
            ],
        ),
    ),
    "committed again in one transaction": (
        begun().pending(B, 25).pending(B, 30).end(B),
        GroupInputs(TransactionCounts(3, 0, 0, 20), producers=BOTH, listed=[*FIRST, listed(B, 5, 7, inputs(20, 30))]),
    ),
    "removed in a transaction": (
        Written().members(1).pending(A, None).end(A).pending(A, None),
        GroupInputs(TransactionCounts(1, 0, 1), listed=[listed(A, 1, 2), open_one(A, 3, inputs(None, 0))]),
    ),
    "a marker of another one": (
        begun().end(B),
        GroupInputs(TransactionCounts(2, 0, 0, 10), producers=ONE, listed=FIRST),
    ),
    "a consumer alone": (
        Written().members(1).plain(1).plain(2, "bills", 3).plain(5),
        GroupInputs(
            plain=[
                CommitTimes(
                    GROUP, ["bills", TOPIC], 3, [1000, 2000, 3000], 1, 3, [(TOPIC, 0, 1, 5), ("bills", 3, 2, 2)]
                )
            ]
        ),
    ),
    "a consumer that commits once": (Written().members(1).plain(1), GroupInputs()),
}


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.replace(" ", "-").replace(",", ""))
def test_all_that_is_found(case):
    written, expected = WHOLE[case]
    found = followed(written.entries, listed=10)
    for each in found.outside:
        assert isinstance(each.topics, list)
    found.outside = [replace(each, topics=tuple(each.topics)) for each in found.outside]
    assert found == expected


def test_transactions_are_not_listed_unless_asked_for():
    found = followed(begun().pending(B, 30).entries)
    assert (found.counts.open, found.listed, found.unlisted) == (1, [], 0)


@pytest.mark.parametrize(("tick", "times"), [(10, [10, 30]), (11, [11, 22, 33])])
def test_commits_within_ten_milliseconds_are_together(tick, times):
    (plain,) = followed(Written(tick).members(1).plain(1).plain(2).plain(3).entries).plain
    assert (plain.commits, list(plain.times)) == (3, times)


def test_lists_of_a_group_that_commits_alone_have_the_last_times_and_the_first_partitions():
    written = Written().members(1)
    for number in range(65):
        written.plain(number, partition=number)
    (plain,) = followed(written.entries).plain
    assert (plain.commits, list(plain.times)) == (65, [1000 * number for number in range(2, 66)])
    assert list(plain.read) == [(TOPIC, number, number, number) for number in range(8)]


def test_lists_of_groups_end_and_the_others_are_counted():
    written = Written()
    for number in range(1001):
        written.members(1, f"plain-{number}").plain(1, group=f"plain-{number}").plain(2, group=f"plain-{number}")
        name = f"group-{number}"
        written.members(1, name).pending(A, 10, group=name).end(A).plain(10, group=name).pending(A, 20, group=name).end(
            A
        )
    found = followed(written.entries)
    assert (len(found.outside), found.more, len(found.plain)) == (1000, {"outside": 1}, 1000)
    assert found.producers == {A: [f"group-{number}" for number in range(64)]}


def test_of_ten_thousand_producers_the_groups_are_known():
    written = Written()
    for number in range(10_001):
        written.pending(number, number + 1).end(number)
    found = followed(written.pending(5, 1, group="audit").end(5).entries).producers
    assert found == {number: [GROUP, "audit"] if number == 5 else [GROUP] for number in range(10_000)}


def test_of_ten_thousand_open_transactions_the_commits_are_followed():
    written = Written()
    for number in range(10_001):
        written.pending(number, 5, partition=number)
    found = followed(written.pending(3, 6).end(10_000).entries, listed=10_000)
    assert (found.counts.open, found.counts.committed) == (10_000, 0)
    assert found.listed[3] == open_one(3, 3, inputs(None, 5, 3), inputs(None, 6))
    assert found.listed[4] == open_one(4, 4, inputs(None, 5, 4))


def test_partitions_beyond_the_limit_are_not_followed(monkeypatch):
    monkeypatch.setattr(module, "_MOST_KEYS", 2)
    written = Written().members(1).plain(1).pending(A, 5, 1).pending(A, 5, 2).plain(7, partition=3).plain(2).end(A)
    found = followed(written.pending(A, 3).pending(A, 9, 3).end(A).entries, listed=5)
    assert found.listed == [listed(A, 2, 6, inputs(None, 5, 1)), listed(A, 7, 9, inputs(2, 3))]


@pytest.mark.parametrize("topic_id", [None, "new"])
def test_commits_outside_before_a_topic_was_created_again(topic_id):
    """Where a commit does not say which topic it is, that of the one before counts."""
    written = Written().created("old").members(1).plain(10).created(None).plain(15).created(topic_id).committed(A, 20)
    (found,) = followed(written.entries, listed=1).listed
    assert found.inputs == [inputs(15 if topic_id is None else None, 20)]


@pytest.mark.parametrize(("others", "first"), [(63, 20), (64, 15)])
def test_where_the_last_producers_went_on_is_remembered(others, first):
    written = begun()
    for number in range(others):
        written.committed(100 + number, 20)
    found = followed(written.committed(100, 15).committed(A, 25).entries, listed=1)
    assert found.listed[0].inputs == [inputs(first, 25)]


def test_many_that_were_aborted_are_compared_up_to_a_limit():
    written = begun()
    for _ in range(65):
        written.aborted(A, 30)
    found = followed(written.committed(A, 40).entries)
    assert [each.aborted.marker_offset for each in found.went_on] == [6 + 2 * number for number in range(64)]


def repeated(count: int) -> GroupInputs:
    """B and A by turns: what B has done A does again."""
    written = begun()
    for number in range(count):
        written.committed(B, 30 + 20 * number, 40 + 20 * number).committed(A, 30 + 20 * number)
    return followed(written.entries)


def test_a_thousand_repeats_are_listed():
    found = repeated(1001)
    assert (len(found.twice), found.more) == (1000, {"twice": 1})
    assert found.twice[-1].again == end(A, 5 + 6 * 999 + 5)
