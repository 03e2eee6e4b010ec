"""KA701 and KA704 from facts: what another session, or the epoch before, had written is in the log again."""

from typing import Any

import pytest

from kaudit.checks.repeats.sessions import repeated_across_epochs, repeated_across_sessions
from kaudit.model.impact import Impact
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from tests.checks.facts import CONTEXT, batch, reported, summary

OLD = (batch(10, 5, 3, 10, leader_epoch=2), batch(20, 8, 4, 20, leader_epoch=3))
NEW = (batch(30, 0, 3, 30, leader_epoch=4), batch(40, 3, 4, 40, leader_epoch=6))


def shown(of, producer_id, epoch):
    return {
        "offset": of.base_offset, "last_offset": of.last_offset, "timestamp": of.max_timestamp, "producer_id": producer_id,
        "producer_epoch": epoch, "base_sequence": of.first_sequence, "last_sequence": of.last_sequence,
        "position": of.position, "leader_epoch": of.leader_epoch,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("distinct", "same_times", "to_the_end", "proven"),
    [
        (2, True, True, True),
        (1, True, True, False),
        (2, False, True, False),
        (2, True, False, False),
        (3, True, True, True),
    ],
)
@pytest.mark.parametrize("batches", [1, 2])
def test_an_epochs_tail_again(distinct, same_times, to_the_end, proven, batches):
    repeated = RepeatedEpoch(
        producer_id=7,
        producer_epoch=4,
        previous_epoch=2,
        first_offset=30,
        last_offset=41,
        copied_first=11,
        copied_last=22,
        copied=OLD[:batches],
        again=NEW[:batches],
        records=1234,
        distinct=distinct,
        same_times=same_times,
        to_the_end=to_the_end,
    )
    (found,) = reported(repeated_across_epochs, repeated)
    times = ", timestamps included" if same_times else ", with other timestamps"
    assert found.message == (
        f"producer 7 begins epoch 4 with 1,234 records it had already written in epoch 2, at offsets 11..22{times}"
    )
    assert summary(found) == (*(("error", "certain") if proven else ("warning", "likely")), 30, 41)
    assert (found.producer_id, found.producer_epoch, found.position) == (7, 4, 0)
    assert (found.segment, found.impact) == (CONTEXT.segments[0], Impact(records_duplicated=1234))
    evidence: Any = found.evidence
    assert evidence["previous"] == shown(OLD[0], 7, 2)
    assert evidence["offending"] == shown(NEW[0], 7, 4)
    assert (evidence["records"], evidence["distinct"], evidence["same_timestamps"]) == (1234, distinct, same_times)
    assert evidence["copied"] == {
        "first_offset": 11, "last_offset": 22, "first_sequence": 5, "last_sequence": 7 if batches == 1 else 11,
        "producer_epoch": 2, "first_leader_epoch": 2, "last_leader_epoch": 2 if batches == 1 else 3, "batches": batches,
    }  # fmt: skip
    assert evidence["again"] == {
        "first_offset": 30, "last_offset": 41, "first_sequence": 0, "last_sequence": 2 if batches == 1 else 6,
        "producer_epoch": 4, "first_leader_epoch": 4, "last_leader_epoch": 4 if batches == 1 else 6, "batches": batches,
    }  # fmt: skip
    assert [each.innocent for each in found.explanations] == ([False] if proven else [False, True])
    assert found.explanations[0].speaks_for == (("2 batches in the same order",) if batches == 2 else ())
    assert list(found.next) == [
        "kaudit inspect --records --around 30 /logs/orders-0",
        "kaudit dedup /logs/orders-0",
        "kaudit timeline /logs --topic orders --partition 0 --producer-id 7",
    ]


@pytest.mark.parametrize("same_times", [True, False])
@pytest.mark.parametrize(("previous_id", "ids"), [(3, "3 --producer-id 7"), (9, "7 --producer-id 9"), (7, "7")])
def test_another_sessions_records_again(same_times, previous_id, ids):
    repeated = RepeatedSession(
        producer_id=7,
        producer_epoch=4,
        first_offset=31,
        last_offset=41,
        previous_id=previous_id,
        previous_epoch=2,
        copied_first=11,
        copied_last=22,
        records=1,
        same_times=same_times,
        previous=OLD[0],
        batch=NEW[0],
    )
    (found,) = reported(repeated_across_sessions, repeated)
    times = ", timestamps included" if same_times else ""
    assert found.message == (
        f"producer 7 begins with 1 record that producer {previous_id} had written at offsets 11..22{times}"
    )
    assert summary(found) == ("warning", "likely" if same_times else "possible", 31, 41)
    assert (found.producer_id, found.producer_epoch, found.impact) == (7, 4, Impact(records_duplicated=1))
    evidence: Any = found.evidence
    assert evidence["previous"] == shown(OLD[0], previous_id, 2)
    assert evidence["offending"] == shown(NEW[0], 7, 4)
    copied = [evidence[f"copied_{name}"] for name in ("producer_id", "producer_epoch", "first_offset", "last_offset")]
    assert (copied, evidence["same_timestamps"]) == ([previous_id, 2, 11, 22], same_times)
    assert [each.innocent for each in found.explanations] == [False, True]
    assert list(found.next) == [
        "kaudit inspect --records --around 31 /logs/orders-0",
        "kaudit dedup /logs/orders-0",
        f"kaudit timeline /logs --topic orders --partition 0 --producer-id {ids}",
    ]
