"""KA402, KA403, KA405 and KA406 from facts: blocks of producer ids, and producer ids by the hundreds."""

from typing import Any

import pytest

from kaudit.checks.producer_ids.blocks import block_malformed, block_overlap, block_range_near_end
from kaudit.checks.producer_ids.producer_id_flood import producer_id_flood
from kaudit.model.producer_ids import (
    BlockEntry,
    BlockOverlap,
    EntryKind,
    MalformedBlock,
    NearEnd,
    ProducerIdStatistics,
    RegressionCause,
    SharedBlock,
)
from tests.checks.facts import reported, summary

EARLIER = BlockEntry(EntryKind.GRANTED, "zk.log", 3000, 3999, broker=2, version=4, zxid=9, at_ms=5, position=70)
LATER = BlockEntry(EntryKind.GRANTED, "00.log", 3500, 4499, offset=17)


@pytest.mark.parametrize(
    ("entry", "anchor"),
    [
        (EARLIER, "zxid9"),
        (LATER, "offset17"),
        (BlockEntry(EntryKind.GRANTED, "x", 0, 999, version=4), "version4"),
        (BlockEntry(EntryKind.GRANTED, "x", 0, 999, zxid=0), "zxid0"),
        (BlockEntry(EntryKind.GRANTED, "x", 0, 999), "0-999"),
    ],
)
def test_an_entry_is_named_by_what_stays_the_same_in_copies(entry, anchor):
    (found,) = reported(block_malformed, MalformedBlock(entry, ("too long", "no broker")))
    assert found.message == "a block of producer ids is not as brokers write it: too long; no broker"
    assert (*summary(found), found.anchor, found.file, found.position) == (
        ("warning", "certain", None, None, anchor, entry.source, entry.position)
    )
    assert found.evidence["defects"] == ["too long", "no broker"]
    assert [each.innocent for each in found.explanations] == [False, True]


CAUSES = {
    RegressionCause.MIGRATION: "KAFKA-15552",
    RegressionCause.RECREATED: "the znode was deleted",
    RegressionCause.SAME_BLOCK: "one block went to two brokers",
    RegressionCause.SET_BACK: "an older value again",
    None: "the history does not show",
}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    ("count", "seen"),
    [(0, "none of them is in these logs"), (1, "1 of these ids is in the logs"), (2, "2 of these ids are in the logs")],
)
def test_ids_granted_twice(cause, count, seen):
    (found,) = reported(
        block_overlap, SharedBlock(BlockOverlap(EARLIER, LATER, 3500, 3999), cause, count, (3501,) * count)
    )
    assert found.message == (
        f"producer ids 3500..3999 were granted twice: as 3000..3999 of broker 2, then as 3500..4499; {seen}"
    )
    assert (*summary(found)[:2], found.anchor, found.file) == ("error", "certain", "3500-3999-offset17", "00.log")
    evidence: Any = found.evidence
    assert (evidence["first_id"], evidence["last_id"]) == (3500, 3999)
    assert evidence["class"] == (cause.value if cause else "unknown")
    assert evidence["earlier"] == {
        "start": 3000, "end": 3999, "broker": 2, "version": 4, "zxid": 9, "offset": None, "timestamp": 5,
        "source": "zk.log", "position": 70,
    }  # fmt: skip
    assert (evidence["later"]["start"], evidence["later"]["offset"]) == (3500, 17)
    assert (evidence["seen"], evidence["seen_ids"]) == (count, [3501] * count)
    (explanation,) = found.explanations
    assert CAUSES[cause] in explanation.cause


@pytest.mark.parametrize(
    ("days", "exhausted", "message", "kind"),
    [
        (None, False, "1,500 producer ids are left after 3500..4499", "near"),
        (1234.56, False, "1,500 producer ids are left after 3500..4499, 1,234.6 days at the observed rate", "near"),
        (1234.56, True, "no block can follow 3500..4499: the producer ids are used up", "exhausted"),
    ],
)
def test_ids_that_run_out(days, exhausted, message, kind):
    (found,) = reported(block_range_near_end, NearEnd(LATER, 1500, days, exhausted))
    assert (found.message, found.evidence["class"]) == (message, kind)
    assert (*summary(found)[:2], found.anchor) == ("warning", "certain", "offset17")
    assert (found.evidence["ids_left"], found.evidence["days_left"]) == (1500, days)
    assert [each.innocent for each in found.explanations] == [False, False]


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("producers", "batches", "span_ms", "per_hour"),
    [
        (500, 500, 5 * HOUR, 100.0),
        (499, 499, 4 * HOUR, None),  # too few
        (500, 5000, 5 * HOUR, 100.0),
        (500, 5001, 5 * HOUR, None),  # they write more than ten batches each
        (500, 500, 5 * HOUR + 1, None),  # fewer than a hundred an hour
        (600, 900, HOUR // 2, 600.0),  # within one hour, however short
        (600, 900, 7 * HOUR // 2, 171.4),
    ],
)
@pytest.mark.parametrize("begin", [0, 1_700_000_000_000])
def test_producer_ids_by_the_hundreds(producers, batches, span_ms, per_hour, begin):
    found = reported(producer_id_flood, ProducerIdStatistics(producers, batches, begin, begin + span_ms))
    assert [each.evidence["producers_per_hour"] for each in found] == ([] if per_hour is None else [per_hour])
    for each in found:
        assert (*summary(each), each.anchor) == ("note", "certain", None, None, "flood")
        assert each.message == (
            f"{producers:,} producer ids, {per_hour:.0f} an hour, with {batches / producers:.1f} batches each"
        )
        assert (each.evidence["class"], each.evidence["count"]) == ("flood", producers)
        assert each.evidence["batches_per_producer"] == batches / producers
        assert (each.evidence["first_timestamp"], each.evidence["last_timestamp"]) == (begin, begin + span_ms)
        assert [cause.innocent for cause in each.explanations] == [False, False, True]
        assert list(each.next) == ["kaudit producers /logs --topic orders --partition 0 --summary -v"]


def test_a_rate_needs_times_and_one_partition_does_not_hide_another():
    none = ProducerIdStatistics(5000, 5000, -1, -1)
    many = ProducerIdStatistics(1234, 1521, 0, HOUR)
    (found,) = reported(
        producer_id_flood, none, ProducerIdStatistics(1, 1, 0, 1), ProducerIdStatistics(500, 9000, 0, 1), many
    )
    assert found.message == "1,234 producer ids, 1,234 an hour, with 1.2 batches each"
    assert found.evidence["batches_per_producer"] == 1.23
