"""KA601: replicas that part, records that a newer leader began without, and offsets that copies lack in between."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.checks.replicas.replicas_diverged import replicas_diverged
from kaudit.model.impact import Impact
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.replicas import Relation, ReplicaGap
from tests.checks.findings import cautions_of, cost_of
from tests.checks.replicas.facts import alone, compared, grade, held, lacking, parted, reported

DIVERGED, SAME = Relation.DIVERGED, Relation.IDENTICAL
SECOND = "00000000000000000050.log"
KIP = "(OffsetsForLeaderEpoch, KIP-101)"


def parting(*, ends=None, cut=60, relations=None, **batches):
    """b1 is the reference; the batches are what each replica holds at offset 60, the first that differs."""
    ends = ends or {"b1": 100, "b2": 80, "b3": 100}
    relations = relations or {"b2": DIVERGED, "b3": SAME}
    return compared(
        ends,
        relations=relations,
        first_difference=parted(60, **batches),
        common_end_offset=60,
        truncation_offsets={name: cut if relation is DIVERGED else 100 for name, relation in relations.items()},
    )


THREE = {
    "b1": held(60, 69, epoch=1),
    "b2": held(60, 64, crc=2, position=710),
    "b3": held(60, 69, epoch=1),
}
FAILED_LEADER = "a leader failed with records that no follower had"


def test_where_a_leader_failed():
    last = held(55, 59)
    (found,) = reported(
        replicas_diverged,
        parting(**THREE),
        last_common={"b1": held(50, 59), "b2": last},
        missing={"b2": lacking(7, 3), "b3": lacking(0)},
        high_watermarks={"b2": 63},
    )
    assert found.message == "b2 holds other records than b1 and b3 from offset 60 on"
    assert grade(found) == ("error", "certain")
    assert (found.replica, found.offset, found.last_offset, found.anchor) == ("b2", 60, 64, "60")
    assert (found.segment, found.position, found.file) == (SECOND, 710, f"orders-0/{SECOND}")
    assert cost_of(found) == Impact(records_lost_at_least=3, records_lost_at_most=7)
    assert cautions_of(found) == [("restart", "replica b2")]
    evidence: Any = found.evidence
    assert evidence["broker"] == (f"truncates b2 to offset 60 when it follows b1 {KIP}, which drops its offsets 60..79")
    assert "class" not in evidence
    assert evidence["previous"]["offset"] == 55
    assert {name: batch["position"] for name, batch in evidence["copies"].items()} == {"b1": 700, "b2": 710, "b3": 700}
    assert (evidence["reference"], evidence["truncation_offsets"]) == ("b1", {"b2": 60, "b3": 100})
    assert (evidence["high_watermarks"], sorted(evidence["missing_on_reference"])) == ({"b2": 63}, ["b2", "b3"])
    (cause,) = found.explanations
    assert cause.cause.startswith(FAILED_LEADER)
    assert cause.speaks_for == ("the leader epochs differ there",)
    assert list(found.next) == [f"kaudit inspect --records --around 60 /{name}/orders-0" for name in ("b2", "b1")]


UNNOTICED = "does not notice: by its leader epochs b2 agrees with b1 up to offset 61, so what differs from 60 on stays"


@pytest.mark.parametrize(
    ("cut", "end", "broker", "noticed"),
    [
        (None, 80, "has no leader epochs to go by: b2 truncates to its high watermark when it follows b1", False),
        (59, 80, f"truncates b2 to offset 59 when it follows b1 {KIP}, which drops its offsets 59..79", True),
        (60, 60, f"truncates b2 to offset 60 when it follows b1 {KIP}", True),
        (61, 80, f"{UNNOTICED} {KIP}", False),
    ],
)
def test_what_a_broker_does_about_it(cut, end, broker, noticed):
    comparison = parting(
        ends={"b1": 100, "b2": end}, relations={"b2": DIVERGED}, cut=cut, b1=THREE["b1"], b2=THREE["b2"]
    )
    (found,) = reported(replicas_diverged, comparison)
    assert found.evidence["broker"] == broker
    assert found.explanations[0].speaks_for == (("the leader epochs differ there",) if noticed else ())


def test_one_leader_epoch_has_other_causes():
    (found,) = reported(
        replicas_diverged,
        parting(ends={"b1": 100, "b2": 80}, relations={"b2": DIVERGED}, b1=held(60, 69), b2=THREE["b2"]),
    )
    assert found.message == "b2 holds other records than b1 from offset 60 on"
    assert [each.speaks_for for each in found.explanations] == [("both batches carry the same leader epoch",), ()]
    assert "two leaders wrote under one leader epoch" in found.explanations[0].cause
    assert cost_of(found) == Impact(records_lost_at_least=0)  # what is missing could not be counted


@pytest.mark.parametrize(
    ("missing", "cut", "nothing_lost", "again"),
    [
        (lacking(0), 60, True, True),
        (lacking(0), 61, True, False),
        (lacking(0), None, True, False),
        (lacking(1), 60, False, False),
        (lacking(0, 0, 1), 60, False, False),
        (None, 60, False, False),
    ],
)
def test_the_same_records_under_another_leader_epoch(missing, cut, nothing_lost, again):
    (found,) = reported(
        replicas_diverged,
        parting(
            ends={"b1": 100, "b2": 80}, relations={"b2": DIVERGED}, cut=cut, b1=held(60, 69, epoch=1), b2=held(60, 69)
        ),
        missing={} if missing is None else {"b2": missing},
    )
    text = "b2 holds the same records under another leader epoch than b1 from offset 60 on"
    acknowledged = missing is None or missing.records or cut != 60
    outcome = (
        ": nothing is lost" if nothing_lost else "" if acknowledged else ": no record is lost that was acknowledged"
    )
    assert found.message == text + outcome
    assert grade(found) == (("note" if outcome else "error"), "certain")
    evidence: Any = found.evidence
    assert (evidence.get("class"), evidence.get("count")) == (("leader-epoch", 1) if nothing_lost else (None, None))
    assert evidence["broker"].endswith(" and are fetched again") is again
    assert found.explanations[-1].cause.startswith("a bit of the leader epoch flipped")


def test_several_that_hold_the_same_are_named_together():
    four = {"b1": held(60, 69, epoch=2), "b2": held(60, 64), "b3": held(60, 64), "b4": held(60, 69, epoch=2)}
    comparison = parting(ends=dict.fromkeys(four, 100), relations={"b2": DIVERGED, "b3": DIVERGED, "b4": SAME}, **four)
    (found,) = reported(replicas_diverged, comparison, missing={"b2": lacking(5, 1), "b3": lacking(6, 2)})
    assert found.message == "b2 and b3 hold other records than b1 and b4 from offset 60 on"
    assert found.replica == "b2"
    # both hold the same there: the records of the longer one
    assert cost_of(found) == Impact(records_lost_at_least=2, records_lost_at_most=6)
    assert found.evidence["previous"] is None


def test_of_copies_that_hold_the_same_the_highest_high_watermark_counts():
    four = {"b1": held(60, 69, epoch=2), "b2": held(60, 64), "b3": held(60, 64)}
    comparison = parting(ends=dict.fromkeys(four, 100), relations={"b2": DIVERGED, "b3": DIVERGED}, **four)
    for missing in ((lacking(6, 4), lacking(6, 2)), (lacking(5, 4), lacking(6, 2)), (lacking(6, 2), lacking(6, 4))):
        (found,) = reported(replicas_diverged, comparison, missing=dict(zip(("b2", "b3"), missing, strict=True)))
        assert cost_of(found) == Impact(records_lost_at_least=4, records_lost_at_most=6)


def test_what_one_copy_lost_is_not_hidden_by_another():
    same = {"b1": held(60, 69, epoch=1), "b2": held(60, 69), "b3": held(60, 69)}
    comparison = parting(ends=dict.fromkeys(same, 100), relations={"b2": DIVERGED, "b3": DIVERGED}, **same)
    for lost in (lacking(2), lacking(0)):
        (found,) = reported(replicas_diverged, comparison, missing={"b2": lacking(0), "b3": lost})
        assert found.severity.value == ("error" if lost.records else "note")
        assert found.evidence.get("count") == (None if lost.records else 2)


def test_a_difference_is_about_a_copy_that_holds_something_there():
    comparison = parting(relations={"b2": DIVERGED, "b3": DIVERGED}, b1=THREE["b1"], b3=held(60, 69, crc=3))
    (found,) = reported(replicas_diverged, comparison)
    assert (found.replica, found.message) == ("b3", "b3 holds other records than b1 from offset 60 on")
    (found,) = reported(replicas_diverged, parting(relations={"b2": DIVERGED, "b3": SAME}, b2=THREE["b2"]))
    assert (found.replica, found.message) == ("b2", "b2 holds other records than b1 from offset 60 on")


def test_what_replicas_with_other_batches_lack_is_added_up():
    four = {"b1": held(60, 69, epoch=2), "b2": held(60, 64), "b3": held(60, 61, crc=3)}
    comparison = parting(ends=dict.fromkeys(four, 100), relations={"b2": DIVERGED, "b3": DIVERGED}, **four)
    (found,) = reported(replicas_diverged, comparison, missing={"b2": lacking(5, 1), "b3": lacking(6, 2)})
    assert found.message == "b2 holds other records than b1 and b3 from offset 60 on"
    assert cost_of(found) == Impact(records_lost_at_least=3, records_lost_at_most=11)
    assert [command.split()[-1] for command in found.next] == ["/b2/orders-0", "/b1/orders-0"]


def test_a_difference_between_followers_alone_is_about_the_first_of_them():
    comparison = parting(relations={"b2": SAME, "b3": SAME}, b2=THREE["b2"], b3=held(60, 69, crc=3))
    (found,) = reported(replicas_diverged, comparison)
    assert found.message == "b2 holds other records than b3 from offset 60 on"
    assert cost_of(found) == Impact(records_lost_at_least=0, records_lost_at_most=0)


def test_topics_created_again_are_two_topics():
    (found,) = reported(replicas_diverged, parting(**THREE), topic_ids={"b1": "A", "b2": "B", "b3": "A"})
    assert found.explanations[0].cause == "the topic was deleted and created again: these are two topics"
    assert found.explanations[0].speaks_for == ("b1 A, b2 B, b3 A",)
    (found,) = reported(replicas_diverged, parting(**THREE), topic_ids={"b1": "A", "b2": "A", "b3": "A"})
    assert found.explanations[0].cause.startswith(FAILED_LEADER)


def test_of_topics_without_a_batch_in_common_records_are_compared():
    command = "kaudit diff --by records /b1/orders-0 /b2/orders-0"
    (found,) = reported(replicas_diverged, replace(parting(**THREE), common_end_offset=0))
    assert found.next[-1] == command
    (found,) = reported(replicas_diverged, parting(**THREE))
    assert command not in found.next


def test_the_newest_leader_epochs_are_listed():
    history = [EpochEntry(number, 10 * number) for number in range(7)]
    comparison = parting(**THREE)
    comparison = compared(
        comparison.end_offsets,
        relations=comparison.relations,
        first_difference=comparison.first_difference,
        leader_epochs={"b1": history, "b2": history[:2], "b3": []},
        only_on=alone(b2=(60, 79)),
    )
    (found,) = reported(replicas_diverged, comparison)
    listed: Any = found.evidence["leader_epochs"]
    assert {name: [row["epoch"] for row in rows] for name, rows in listed.items()} == {
        "b1": [2, 3, 4, 5, 6],
        "b2": [0, 1],
        "b3": [],
    }
    assert found.evidence["only_on"] == {"b2": {"first_offset": 60, "last_offset": 79}}


# What a newer leader began without


def passed_over(epoch: int = 1, **fields: Any):
    """b1 began leader epoch `epoch` at its end, 60; b2 and b3 go on under an older one."""
    ends = {"b1": 60, "b2": 70, "b3": 80, "b4": 60}
    relations = {"b2": DIVERGED, "b3": DIVERGED, "b4": SAME}
    epochs = {name: [EpochEntry(0, 0)] for name in ends} | {"b1": [EpochEntry(0, 0), EpochEntry(epoch, 60)]}
    cuts = {"b2": 60, "b3": 60, "b4": 60}
    return compared(ends, relations=relations, leader_epochs=epochs, truncation_offsets=cuts, **fields)


def test_what_a_newer_leader_began_without():
    (found,) = reported(replicas_diverged, passed_over(), missing={"b2": lacking(7, 1), "b3": lacking(15, 1)})
    assert found.message == "b2 and b3 hold offsets 60..79 (20 offsets), which b1 began leader epoch 1 without"
    assert grade(found) == ("error", "certain")
    assert (found.replica, found.offset, found.last_offset, found.anchor) == ("b3", 60, 79, "60")
    # the shorter one's records are the longer one's too
    assert cost_of(found) == Impact(records_lost_at_least=1, records_lost_at_most=15)
    assert found.evidence["broker"] == (
        f"truncates b3 to offset 60 when it follows b1 {KIP}, which drops its offsets 60..79"
    )
    (cause,) = found.explanations
    assert cause.speaks_for == ("leader epoch 1 of b1 begins at offset 60",)
    assert list(found.next) == ["kaudit inspect --records --around 60 /b3/orders-0"]


def test_it_is_one_finding_beside_a_difference():
    """b4 holds something else before the end of b1; that b2 and b3 go on behind it is another finding."""
    four = {"b1": held(50, 59), "b2": held(50, 59), "b3": held(50, 59), "b4": held(50, 54, crc=4)}
    comparison = passed_over(first_difference=parted(50, **four))
    comparison = compared(
        comparison.end_offsets,
        relations={"b2": DIVERGED, "b3": DIVERGED, "b4": DIVERGED},
        first_difference=comparison.first_difference,
        leader_epochs=comparison.leader_epochs,
        truncation_offsets={"b2": 60, "b3": 60, "b4": 50},
    )
    missing = {"b2": lacking(10), "b3": lacking(20), "b4": lacking(4)}
    different, beyond = reported(replicas_diverged, comparison, missing=missing)
    # of those that parted at 50, none is counted that goes on behind the reference's end: those are in the other finding
    assert cost_of(different) == Impact(records_lost_at_least=0, records_lost_at_most=4)
    assert cost_of(beyond) == Impact(records_lost_at_least=0, records_lost_at_most=20)


@pytest.mark.parametrize(
    ("leaders", "most", "leader"),
    [
        ({}, None, "the broker that led under leader epoch 2"),
        ({1: -1, 2: 7}, None, "broker 7 from before"),
        ({1: -1, 2: -1}, 15, None),
    ],
    ids=["not-known", "another", "none"],
)
def test_brokers_that_led_in_between_may_have_had_more(leaders, most, leader):
    missing = {"b2": lacking(7, 1), "b3": lacking(15, 1)}
    (found,) = reported(replicas_diverged, passed_over(3), missing=missing, leaders=leaders)
    assert cost_of(found) == Impact(records_lost_at_least=1, records_lost_at_most=most)
    certain = found.evidence.get("to_be_certain")
    begins = None if leader is None else f"server.log of {leader}: where its log ended under leader epoch 2,"
    assert certain == begins or str(certain).startswith(str(begins))
    # where nothing is lost that the copies show, nothing says that another leader lost anything
    (found,) = reported(
        replicas_diverged, passed_over(3), missing={"b2": lacking(0), "b3": lacking(0)}, leaders=leaders
    )
    assert cost_of(found).records_lost_at_most == 0


def test_topics_that_only_one_copy_has_are_not_compared():
    comparison = compared({"b1": 60}, relation=Relation.MISSING, first_difference=parted(3, b1=held(3, 4)))
    assert reported(replicas_diverged, comparison) == []


# What copies lack in between


@pytest.mark.parametrize(
    ("missing_on", "held_by", "records", "compaction", "message"),
    [
        (("b2",), ("b1",), 5, False, "b2 lacks offsets 10..19, where b1 holds 5 records"),
        (("b2", "b3"), ("b1",), 1, False, "b2 and b3 lack offsets 10..19, where b1 holds 1 record"),
        (("b3",), ("b1", "b2"), None, True, "b3 lacks offsets 10..19, where b1 and b2 hold records"),
    ],
)
def test_what_copies_lack(missing_on, held_by, records, compaction, message):
    gap = ReplicaGap(10, 19, missing_on, held_by, 1, 350, records, compaction)
    ends = {"b1": 100, "b2": 100, "b3": 100}
    (found,) = reported(replicas_diverged, compared(ends, gaps=(gap,)))
    assert found.message == message
    assert grade(found) == (("warning", "possible") if compaction else ("error", "certain"))
    assert (found.replica, found.offset, found.last_offset, found.anchor) == (missing_on[0], 10, 19, "10")
    assert (found.segment, found.position) == (SECOND, 350)
    assert cost_of(found) == Impact(records_lost_at_least=0, records_lost_at_most=records)
    evidence: Any = found.evidence
    assert (evidence["missing_on"], evidence["held_by"]) == (list(missing_on), list(held_by))
    assert (evidence["records"], evidence["end_offsets"]) == (records, ends)
    assert [each.innocent for each in found.explanations] == ([False, True] if compaction else [False])
    assert [command.split()[-1] for command in found.next] == [
        f"/{name}/orders-0" for name in (held_by[0], missing_on[0])
    ]


def test_each_gap_is_a_finding():
    gaps = [ReplicaGap(first, first + 3, ("b2",), ("b1",), 0, 70, 4, False) for first in (10, 20)]
    found = reported(replicas_diverged, compared({"b1": 100, "b2": 100}, gaps=gaps))
    assert [each.offset for each in found] == [10, 20]
