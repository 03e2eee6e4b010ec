"""KA900: the committed offset of a group went back; and what of all that commits do is none of the findings about groups."""

from pathlib import Path

import pytest

from kaudit.model.impact import Impact
from tests.checks.groups.scanned import evidence_of, of_groups, scanned, shown
from tests.commits import GroupLog
from tests.logs import Batch, Log

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


def stable(*offsets: int, epoch: int = 0) -> GroupLog:
    """A group with a member, long after it has joined."""
    return GroupLog().members("g", 1, "m").wait(10 * MINUTE).commit("g", *offsets, epoch=epoch)


def zombie(*, returns: bool) -> GroupLog:
    log = (
        GroupLog().commit("g", 100, producer=(1, 0)).commit("g", 110, producer=(2, 0)).commit("g", 90, producer=(1, 0))
    )
    return log.commit("g", 120, producer=(2, 0)) if returns else log


CASES = {
    "forward": (stable(10, 20, 20, 30), []),
    "back": (stable(10, 20, 5), [("KA900", "warning", 1)]),
    # at no lag: it is as high again a second later, and nothing rebalanced
    "restored": (stable(10, 20, 5, 20), [("KA900", "warning", 1)]),
    "back-again-and-again": (stable(10, 20, 5, 15, 20, 4, 20), [("KA900", "warning", 2)]),
    # an asynchronous commit that was late while the group rebalanced, or its coordinator moved
    "late-in-rebalance": (stable(10).members("g", 2, "m", "n").commit("g", 20, 10, 30), [("KA900", "note", 1)]),
    # the commit that was sent again comes after one that the new coordinator has stored
    "late-after-restart": (stable(10).moved().commit("g", 20, 15, 30), [("KA900", "note", 1)]),
    "long-after-move": (
        stable(10).moved().commit("g", 20).wait(2 * MINUTE).commit("g", 15, 30),
        [("KA900", "warning", 1)],
    ),
    "late-after-move": (stable(20).moved().commit("g", 10, 30), [("KA900", "note", 1)]),
    "late-but-read-again": (
        stable(20).members("g", 2, "m", "n").commit("g", 10, 15, 20),
        [("KA900", "warning", 1)],
    ),
    "late-and-slow": (
        stable(20).members("g", 2, "m").commit("g", 10).wait(2 * MINUTE).commit("g", 20),
        [("KA900", "warning", 1)],
    ),
    "by-another-member": (
        stable(20).members("g", 2, "n").commit("g", 10).members("g", 3, "m").commit("g", 30),
        [("KA900", "warning", 1)],
    ),
    # a program without membership whose commits name leader epochs: no tool
    "standalone": (GroupLog().commit("g", 10, 20, 5), [("KA900", "warning", 1)]),
    "in-transactions": (GroupLog().commit("g", 10, 5, producer=(1, 0)), [("KA900", "warning", 1)]),
    "aborted": (
        GroupLog().commit("g", 10, producer=(1, 0)).commit("g", 5, producer=(1, 0), outcome=False).commit("g", 20),
        [],
    ),
    "pending": (GroupLog().commit("g", 10, producer=(1, 0)).commit("g", 5, producer=(1, 0), outcome=None), []),
    # a marker does not undo a newer commit (OffsetMetadataManager.replayEndTransactionMarker)
    "late-marker": (GroupLog().commit("g", 10, producer=(1, 0), outcome=None).commit("g", 20).end(1, 0), []),
    "another-group": (GroupLog().commit("g", 10).commit("h", 5), []),
    "compacted": (stable(20).compacted(3).commit("g", 10), [("KA900", "note", 1)]),
    "compacted-before": (GroupLog().compacted(3).members("g", 1, "m").commit("g", 20, 10), [("KA900", "warning", 1)]),
    "taken-over": (GroupLog().commit("g", 10, producer=(1, 0)).commit("g", 8, 12, producer=(2, 0)), [("KA900", "warning", 1)]),
    "two-producers": (zombie(returns=True), [("KA901", "error", 1)]),
    "two-producers-once": (zombie(returns=False), [("KA900", "warning", 1)]),
    # a pool of producers, as Spring has it: in turn, and forward
    "pool": (
        GroupLog().commit("g", 10, producer=(1, 0)).commit("g", 20, producer=(2, 0)).commit("g", 30, producer=(1, 0)),
        [],
    ),
    "two-programs": (GroupLog().commit("g", 100, 5, 110, 6, 7, 120), [("KA901", "error", 2)]),
    "two-old-clients": (GroupLog().commit("g", 100, 5, 110, 6, 120, 7, 130, epoch=-1), [("KA901", "error", 3)]),
    "seeks-to-the-same": (stable(50, 100, 50, 75, 100, 50, 100), [("KA900", "warning", 2)]),
    "set": (stable(20).members("g", 2).commit("g", 0, epoch=-1).commit("g", 20), [("KA902", "note", 1)]),
    "set-twice": (
        stable(20).members("g", 2).commit("g", 0, epoch=-1).members("g", 3, "m").commit("g", 20)
        .members("g", 4).commit("g", 0, epoch=-1).members("g", 5, "m").commit("g", 30),
        [("KA902", "note", 2)],
    ),
    "set-forward": (stable(20).members("g", 2).commit("g", 50, epoch=-1), [("KA902", "note", 1)]),
    # MirrorMaker 2 sets the offsets of a group that reads elsewhere
    "mirrored": (GroupLog().commit("g", 10, 20, 30, epoch=-1), []),
    "expired": (
        stable(20).members("g", 2).wait(8 * DAY).commit("g", None).ended("g").members("g", 1, "m").commit("g", 5),
        [("KA903", "warning", 1)],
    ),
    "expired-and-further": (stable(20).commit("g", None).commit("g", 25), []),
    "expired-for-good": (stable(20).members("g", 2).commit("g", None).ended("g"), []),
}  # fmt: skip


@pytest.mark.parametrize(("log", "expected"), CASES.values(), ids=CASES)
def test_what_commits_show(tmp_path, log, expected):
    assert shown(log, tmp_path) == expected


def test_a_step_says_who_and_when(tmp_path):
    log = stable(20).members("g", 2, "n").commit("g", 5).wait(5000).commit("g", 25)
    (found,) = of_groups(scanned(log.write(tmp_path)))
    assert found.message == (
        "the committed offset of g on orders-0 went back, by member n in generation 2; from 20 to 5"
    )
    assert (found.topic, found.partition, found.offset, found.last_offset) == ("__consumer_offsets", 0, 3, 3)
    assert found.impact == Impact(records_delivered_again=0, commits_went_back=1)  # the log of orders-0 is not given
    (step,) = evidence_of(found)["changes"]
    assert (step["committed_before"], step["committed"], step["before_offset"], step["restored_offset"]) == (
        20,
        5,
        1,
        4,
    )
    assert (step["before"]["member_id"], step["by"]["client_id"], step["by"]["generation"]) == ("m", "client-n", 2)
    assert step["restored_timestamp"] - step["timestamp"] == 5001


def test_the_first_and_last_steps_are_listed(tmp_path):
    log = stable()
    for number in range(20):
        log.commit("g", 100, 99 - number)
    (found,) = of_groups(scanned(log.write(tmp_path)))
    assert evidence_of(found)["times"] == 20
    assert [step["committed"] for step in evidence_of(found)["changes"]] == [99, 98, 97, 96, 83, 82, 81, 80]


def test_replicas_say_it_once_and_the_longest_is_read(tmp_path):
    stable(20, 5).write(tmp_path / "b1")
    stable(20, 5, 4).write(tmp_path / "b2")
    (found,) = of_groups(scanned(tmp_path / "b1", tmp_path / "b2"))
    assert evidence_of(found)["times"] == 2


def test_what_compaction_hides_is_not_checked(tmp_path):
    result = scanned(stable(20).compacted(3).commit("g", 30).write(tmp_path))
    notes = [note.reason for note in result.not_audited if note.path == "__consumer_offsets-0"]
    assert any(reason.startswith("3 offsets up to 4 are not in the log: compaction keeps") for reason in notes)


def test_a_batch_that_cannot_be_decoded_is_not_checked(tmp_path):
    log = stable(20)
    end = len(log.content)
    log.commit("g", 10).commit("g", 30)
    directory = log.write(tmp_path)
    path = directory / "__consumer_offsets-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[end + 70] ^= 0xFF  # its CRC does not match
    path.write_bytes(content)
    assert of_groups(scanned(directory)) == []


def given_again(log: GroupLog, directory: Path, *, start: int = 0) -> list[int | None]:
    """What the one finding says was given again, at least and at most; the log of orders-0 begins at `start`."""
    orders = Log()
    orders.skip(start)
    for _ in range(100):
        orders.append(Batch(count=10))
    orders.write(directory / "orders-0")
    (found,) = of_groups(scanned(log.write(directory)))
    return [found.impact.records_delivered_again, found.impact.records_delivered_again_at_most]


BOUNDS = {
    # librdkafka#1767: n had committed 200, m went on where it had been itself, at 100, and read 100 records again
    "kept-its-position": (
        stable(100).members("g", 2, "n").commit("g", 200).members("g", 3, "m").commit("g", 110, 160, 210),
        [90, 200],
    ),
    "sought-to-the-beginning": (stable(100, 200, 40, 100, 300), [160, 200]),
    "sought-twice": (stable(100, 200, 40, 100, 20, 50, 300), [60 + 80, 200 + 100]),
    "not-yet-back": (stable(100, 200, 40, 90), [50, 200]),
    "no-more-yet": (stable(100, 200, 40), [0, 200]),
    "all-at-once": (stable(100, 200, 40, 200), [0, 200]),  # it may have been late
    "still-there-at-once": (stable(100, 200, 40, 40, 200), [0, 200]),
    "another-goes-on": (stable(100, 200, 40, 60).members("g", 2, "n").commit("g", 150, 300), [20 + 50, 200]),
    # librdkafka#2782: what c1 commits as it gives the partition up is old, and c2 goes on from there
    "old-on-revocation": (
        stable(200, 300).commit("g", 100).members("g", 2, "c2", "m").commit("g", 110, 200, 350),
        [190, 300],
    ),
    # several commits that failed while the coordinator moved, and were sent again one after the other
    "late-in-order": (stable(100, 200).moved().commit("g", 110, 120, 130, 300), [0, 200]),
    "late-after-rebalance": (stable(100).members("g", 2, "m", "n").commit("g", 200, 110, 120, 300), [0, 200]),
    "no-member": (GroupLog().commit("g", 100, 200, 40, 100, 300), [0, 200]),
    "in-transactions": (GroupLog().commit("g", 100, 200, 40, 100, 300, producer=(1, 0)), [160, 200]),
    "in-turn": (GroupLog().commit("g", 100, 5, 110, 6, 7, 120), [0, 100 + 110]),
    "expired": (
        stable(200).members("g", 2).commit("g", None).ended("g").members("g", 1, "m").commit("g", 50, 300),
        [150, 200],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("log", "expected"), BOUNDS.values(), ids=BOUNDS)
def test_what_was_given_again_is_bounded_by_what_commits_prove(tmp_path, log, expected):
    assert given_again(log, tmp_path) == expected


def test_where_the_log_began_at_the_time_is_not_known_once_records_were_removed(tmp_path):
    assert given_again(stable(100, 200, 40, 100, 300), tmp_path, start=30) == [160, None]


def test_commits_that_are_late_after_each_move_of_the_coordinator_are_of_one_writer(tmp_path):
    log = GroupLog().members("g", 1, "a").commit("g", 50)
    for _ in range(3):
        log.moved().commit("g", 20, 50)
    assert shown(log, tmp_path) == [("KA900", "note", 3)]
