"""KA603: records that are on one replica alone, and those a broker had and cut off between two copies of its log."""

from typing import Any

import pytest

from kaudit.checks.replicas.only_copy import only_copy
from kaudit.model.impact import Impact
from kaudit.model.replicas import CopyChange, OffsetRange, Relation
from tests.checks.findings import cautions_of, cost_of
from tests.checks.replicas.facts import alone, compared, grade, held, lacking, parted, reported

ENDS = {"b1": 110, "b2": 100, "b3": 100}
ALONE: Any = {"only_on": alone(b1=(100, 109)), "relation": Relation.BEHIND}
ACKNOWLEDGED = "; 2 records without a producer id may be acks=1"


@pytest.mark.parametrize(
    ("mark", "missing", "expected", "more", "impact"),
    [
        # nothing is known of the high watermark: all of it may have been acknowledged
        (None, None, ("warning", "possible"), "", (0, None)),
        (None, lacking(8), ("warning", "possible"), "", (0, 8)),
        # the first of the records is below it, or all are
        (101, None, ("error", "certain"), ", below the high watermark 101", (0, None)),
        (101, lacking(8, 1), ("error", "certain"), ", below the high watermark 101", (0, 1)),
        (200, lacking(8, 8, without_producer_id=0), ("error", "certain"), ", below the high watermark 200", (0, 8)),
        # above it, and written within replica.lag.time.max.ms
        (100, lacking(8, span_ms=9_999), ("note", "likely"), "above", (0, 0)),
        (
            100,
            lacking(8, without_producer_id=2, span_ms=9_999),
            ("warning", "possible"),
            "above" + ACKNOWLEDGED,
            (0, 2),
        ),
        (100, lacking(8, span_ms=10_000), ("warning", "possible"), "", (0, 8)),
        (100, None, ("warning", "possible"), "", (0, None)),
    ],
)
def test_by_the_high_watermark(mark, missing, expected, more, impact):
    marks = {} if mark is None else {"b2": mark, "b3": 7}
    (found,) = reported(
        only_copy, compared(ENDS, **ALONE), high_watermarks=marks, missing={} if missing is None else {"b1": missing}
    )
    above = ", above the high watermark 100: producers with acks=all had no acknowledgement yet"
    assert found.message == "offsets 100..109 (10 offsets) are on b1 alone" + more.replace("above", above)
    assert grade(found) == expected
    assert (found.replica, found.offset, found.last_offset) == ("b1", 100, 109)
    assert cost_of(found) == Impact(records_lost_at_least=impact[0], records_lost_at_most=impact[1])
    kept = [] if expected[0] == "note" else [("delete", "replica b1"), ("elect", "b2 or b3 (orders-0)")]
    assert cautions_of(found) == kept
    evidence: Any = found.evidence
    assert (evidence["only_on"], evidence["end_offsets"], evidence["ends_in_damage"]) == ("b1", ENDS, [])
    assert (evidence["high_watermark"], evidence["high_watermark_of"]) == (mark, None if mark is None else "b2")
    acknowledged = {101: 100, 200: 109}.get(mark)
    assert evidence["last_acknowledged_offset"] == acknowledged
    assert evidence.get("without_producer_id") == (None if missing is None else missing.without_producer_id)
    unacknowledged = expected[0] == "note"
    assert evidence["broker"] == (
        "acknowledges records to producers with acks=all once every in-sync replica has them"
        if unacknowledged
        else "the records are lost if b2 or b3 is elected without b1"
    )
    assert [each.innocent for each in found.explanations] == ([True] if unacknowledged else [False, False, True])
    if not unacknowledged:
        assert found.explanations[0].cause.startswith("b1 was the only replica in sync")
        passed = ("the high watermark passed these offsets",) if expected[0] == "error" else ()
        assert found.explanations[0].speaks_for == passed
    assert list(found.next) == ["kaudit inspect --records --around 100 /b1/orders-0"]


@pytest.mark.parametrize(("torn", "text"), [(("b2",), "b2 does"), (("b2", "b3"), "b2 and b3 do")])
def test_copies_that_end_in_damage_speak_for_their_loss(torn, text):
    (found,) = reported(only_copy, compared(ENDS, **ALONE), torn=torn)
    assert found.evidence["ends_in_damage"] == list(torn)
    assert found.explanations[2].speaks_for == (text,)


@pytest.mark.parametrize(
    ("fields", "is_reported"),
    [
        ({}, True),
        ({"relation": Relation.MISSING}, False),
        # another replica holds something else at the first of these offsets
        ({"first_difference": parted(100, b1=held(100, 109), b2=held(100, 104, crc=2))}, False),
        ({"first_difference": parted(100, b2=held(100, 109), b3=held(100, 104, crc=2))}, True),
        ({"first_difference": parted(50, b1=held(50, 59), b2=held(50, 59, crc=2))}, True),
        # no other replica ends there: it goes on with something else
        ({"only_on": alone(b1=(101, 109))}, False),
        ({"only_on": alone(b1=(99, 109))}, False),
        # a newer leader began there without them
        (
            {
                "reference": "b2",
                "relations": {"b1": Relation.DIVERGED, "b3": Relation.IDENTICAL},
                "truncation_offsets": {"b1": 100, "b3": 100},
            },
            False,
        ),
    ],
)
def test_what_is_a_divergence_is_left_to_the_check_of_those(fields, is_reported):
    found = reported(only_copy, compared(ENDS, **(ALONE | fields)))
    assert [(each.replica, each.offset) for each in found] == ([("b1", 100)] if is_reported else [])


# What a broker cut off


def truncated(missing=None, difference=None, *, mark=None, ids=None):
    """What is reported where broker 1 had offsets up to 10, of which its later copy holds those below 6."""
    change = CopyChange(
        broker_id=1,
        earlier="old",
        later="new",
        relation=Relation.TRUNCATED,
        common_end_offset=6,
        truncated=OffsetRange(6, 10),
        missing=missing,
        first_difference=difference,
    )
    comparison = compared(
        {"old": 11, "new": 9, "b2": 9},
        "new",
        relation=Relation.TRUNCATED,
        only_on=alone(old=(6, 10)),
        copy_changes=(change,),
    )
    return reported(
        only_copy,
        comparison,
        high_watermarks={"new": 9} | ({} if mark is None else {"old": mark}),
        topic_ids=ids or {},
        missing={} if missing is None else {"old": missing},
    )


OTHER = parted(6, old=held(6, 10), new=held(6, 8, epoch=1, crc=2))


def test_an_end_that_is_gone_with_nothing_in_its_place():
    (found,) = truncated()
    assert found.message == "offsets 6..10 (5 offsets) are on old alone: broker 1 truncated them before new was copied"
    assert grade(found) == ("warning", "possible")
    assert (found.replica, found.offset, found.last_offset) == ("old", 6, 10)
    evidence: Any = found.evidence
    assert evidence["broker"] == "has its log end at offset 6 now"
    assert (evidence["only_on"], evidence["later_copy"], evidence["broker_id"]) == ("old", "new", 1)
    assert (evidence["copies"], evidence["end_offsets"]) == ({}, {"old": 11, "new": 9})
    assert (evidence["high_watermark"], evidence["high_watermark_of"]) == (None, None)
    assert evidence["missing_on_later_copy"] is None
    assert cost_of(found) == Impact(records_lost_at_least=0)
    assert [(each.innocent, each.speaks_for) for each in found.explanations] == [
        (False, ("new has nothing in their place",)),
        (True, ()),
    ]
    assert list(found.next) == ["kaudit inspect --records --around 6 /old/orders-0"]


def test_what_lay_below_its_own_high_watermark_was_acknowledged():
    (found,) = truncated(lacking(3, 2, 4), OTHER, mark=8)
    assert found.message == (
        "offsets 6..10 (3 records) are on old alone: broker 1 truncated them before new was copied; "
        "2 lie below its high watermark 8"
    )
    assert grade(found) == ("error", "certain")
    evidence: Any = found.evidence
    assert evidence["broker"].startswith("followed a leader whose log parts at offset 6,")
    assert {name: (batch["offset"], batch["leader_epoch"]) for name, batch in evidence["copies"].items()} == {
        "old": (6, 0),
        "new": (6, 1),
    }
    assert (evidence["high_watermark"], evidence["high_watermark_of"]) == (8, "old")
    assert evidence["missing_on_later_copy"]["records"] == 3
    assert cost_of(found) == Impact(records_lost_at_least=2, records_lost_at_most=3)
    # that it had not been acknowledged is no explanation then
    (cause,) = found.explanations
    assert (cause.innocent, cause.speaks_for) == (False, ("leader epochs 0 and 1 there",))


def test_what_was_sent_again_speaks_for_innocence():
    same_epoch = parted(6, old=held(6, 10), new=held(6, 8, crc=2))
    (found,) = truncated(lacking(3, 0, 4), same_epoch, mark=6)
    assert grade(found) == ("warning", "possible")
    assert "high watermark" not in found.message
    assert cost_of(found) == Impact(records_lost_at_least=0, records_lost_at_most=3)
    assert [(each.innocent, each.speaks_for) for each in found.explanations] == [
        (False, ()),
        (True, ("4 records truncated with them are in new at other offsets",)),
    ]


def test_all_of_it_written_again_is_nothing():
    assert truncated(lacking(0, 0, 4), OTHER) == []


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"old": "A", "new": "B"}, ("warning", "possible")),
        ({"old": "A", "new": "A", "b2": "B"}, ("error", "certain")),
        ({"old": "A", "b2": "B"}, ("error", "certain")),
    ],
)
def test_a_topic_that_was_created_again_lost_nothing_of_its_own(ids, expected):
    (found,) = truncated(lacking(1, 1), OTHER, mark=7, ids=ids)
    assert grade(found) == expected
    recreated = expected[0] == "warning"
    assert ("high watermark" in found.message) is not recreated
    assert ("created again" in found.explanations[0].cause) is recreated
    if recreated:
        assert found.explanations[0].speaks_for == ("old A, new B",)
