"""The inputs of transactions, from records of __consumer_offsets as coordinators write them: what was processed twice or never."""

from collections.abc import Iterable

import pytest

from kaudit.audits.coordinator.group_log import CommitRecord, GroupLogEntry, GroupRecord, MissingRecords, TransactionEnd
from kaudit.audits.coordinator.group_members import GroupMembers
from kaudit.audits.transactions import committed_inputs as module
from kaudit.audits.transactions.committed_inputs import CommittedInputs
from kaudit.formats.internal_topics.record_schemas import InternalRecord
from kaudit.model.exactly_once import GroupInputs, Outcome

GROUP, TOPIC = "billing", "orders"
A, B = 1, 2
"""Producer ids."""


class Written:
    """Entries with offsets and times of their own."""

    def __init__(self) -> None:
        self.entries: list[GroupLogEntry] = []
        self.topic_id: str | None = None

    def created(self, topic_id: str) -> "Written":
        self.topic_id = topic_id
        return self

    def at(self) -> tuple[int, int]:
        return len(self.entries), 1000 * len(self.entries)

    def members(self, count: int) -> "Written":
        value = {"generation": 1, "members": [member(number) for number in range(count)]}
        record = InternalRecord("GroupMetadata", 2, 3, {"group": GROUP}, value)
        self.entries.append(GroupRecord(*self.at(), 0, record))
        return self

    def plain(self, offset: int | None) -> "Written":
        self.entries.append(CommitRecord(*self.at(), 0, -1, -1, (GROUP, TOPIC, 0), offset, topic_id=self.topic_id))
        return self

    def pending(self, producer_id: int, offset: int, partition: int = 0, group: str = GROUP) -> "Written":
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
