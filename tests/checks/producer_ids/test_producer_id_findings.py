"""KA401 and KA404 from facts: a producer id nobody granted, and one that two producers write with."""

import pytest
from msgspec.structs import replace

from kaudit.checks.producer_ids.blocks import unallocated_producer_id
from kaudit.checks.producer_ids.producer_id_shared import producer_id_shared
from kaudit.model.producer_ids import BlockEntry, EntryKind, FirstBatch, Unallocated, UnallocatedId, UnallocatedReason
from kaudit.model.producer_patterns import Chain, InterleavedWriters, SharedProducerId
from tests.checks.facts import CONTEXT, batch, gap, reported, summary

FIRST = FirstBatch(70, 74, 123, 3, 700, 1)
BELOW = BlockEntry(EntryKind.GRANTED, "zookeeper", 3000, 3999, broker=2)


@pytest.mark.parametrize(
    ("proven", "after", "severity", "confidence"),
    [
        (True, False, "error", "certain"),
        (True, None, "error", "certain"),
        (True, True, "warning", "possible"),
        (False, False, "warning", "likely"),
        (False, None, "warning", "possible"),
        (False, True, "warning", "possible"),
    ],
)
def test_an_id_nobody_granted_is_an_error_where_the_history_is_complete_and_no_older(
    proven, after, severity, confidence
):
    unallocated = Unallocated(4500, UnallocatedReason.BEYOND, BELOW, proven, after)
    (found,) = reported(unallocated_producer_id, UnallocatedId(unallocated, FIRST, 2, (4000, 4999), "zookeeper"))
    assert summary(found) == (severity, confidence, 70, 74)
    assert (found.producer_id, found.producer_epoch, found.position) == (4500, 3, 700)
    assert "the next block is 4000..4999" in found.message
    assert found.evidence["next_block"] == {"start": 4000, "end": 4999}
    assert found.explanations[0].speaks_for == ("the nearest block below is 3000..3999 of broker 2",)
    innocent = [each.cause for each in found.explanations if each.innocent]
    assert len(innocent) == 1 + (after is True) + (not proven)
    assert any("after the history was saved" in text for text in innocent) is (after is True)
    assert any("the history is incomplete" in text for text in innocent) is (not proven)
    assert found.next


def test_a_negative_id_has_no_history_to_show():
    unallocated = Unallocated(-5, UnallocatedReason.NEGATIVE, None, True, False)
    (found,) = reported(unallocated_producer_id, UnallocatedId(unallocated, FIRST, 1, None, "zookeeper"))
    assert found.explanations[0].speaks_for == ()
    assert "exhausted" in found.explanations[0].cause
    assert (list(found.next), found.evidence["next_block"], found.evidence["block_below"]) == ([], None, None)
    assert "the next block" not in found.message


@pytest.mark.parametrize(("rewritten", "confidence"), [(0, "certain"), (1, "likely")])
@pytest.mark.parametrize(
    ("grants", "speaks_for", "speaks_against"),
    [(0, 0, 0), (1, 0, 1), (2, 1, 0)],
)
def test_two_writers_of_one_id(rewritten, confidence, grants, speaks_for, speaks_against):
    observed = [
        gap(7, batch(0, 0, 2, 0), batch(20, 9, 2, 20)._replace(position=700), 7, 0),
        gap(7, batch(0, 0, 2, 0), batch(40, 3, 2, 40)._replace(position=900, segment=1), 1, 0),
    ]
    writers = InterleavedWriters(Chain(0, 90, 0, 50, 9), Chain(40, 60, 3, 30, 5), 6, 2, rewritten)
    (found,) = reported(producer_id_shared, SharedProducerId(7, 1, writers, observed, grants))
    assert summary(found) == ("error", confidence, 40, 90)
    assert (found.producer_id, found.producer_epoch) == (7, 1)
    # it lies where the second writer begins; at the first observation where that batch shows nothing
    assert (found.position, found.segment) == (900, CONTEXT.segments[1])
    (unseen,) = reported(
        producer_id_shared, SharedProducerId(7, 1, replace(writers, second=Chain(41, 60, 3, 30, 5)), observed, grants)
    )
    assert (unseen.offset, unseen.position, unseen.segment) == (41, 700, CONTEXT.segments[0])
    assert found.evidence["replaces"] == {"KA104": 2}
    twice = found.explanations[0]
    assert (len(twice.speaks_for), len(twice.speaks_against)) == (speaks_for, speaks_against)


def test_id_0_is_an_id_of_a_producer():
    unallocated = Unallocated(0, UnallocatedReason.BEFORE, None, True, False)
    (found,) = reported(unallocated_producer_id, UnallocatedId(unallocated, FIRST, 1, None, "zookeeper"))
    assert list(found.next) == ["kaudit timeline /logs --topic orders --partition 0 --producer-id 0"]
    assert "before the first block" in found.message
