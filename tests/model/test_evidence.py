"""Evidence by name and type: a saved scan may hold anything under any key."""

import pickle
from collections.abc import Sequence

import msgspec
import pytest

from kaudit.model.evidence import FindingEvidence, StoredEvidence
from kaudit.model.evidence_parts import (
    BatchEvidence,
    EpochEvidence,
    EventEvidence,
    FoldedNotes,
    NonIdempotent,
    ShownEvents,
    StepEvidence,
)


class Shape(FindingEvidence, frozen=True, kw_only=True):
    kind: str
    broker: str | None = None
    seen: int | None
    steps: Sequence[StepEvidence] = ()
    offending: NonIdempotent | None = None


def test_a_finding_has_none_of_what_its_evidence_lacks():
    empty = StoredEvidence({})
    assert (empty.kind, empty.offending, empty.copies, empty.seen_ids) == (None, None, None, None)
    assert (empty.log_events, empty.leader_epochs) == ([], {})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"timestamp": 5, "leader_epoch": 2, "crc": 7}, BatchEvidence(timestamp=5, leader_epoch=2, crc=7)),
        ({"timestamp": "noon", "leader_epoch": 2}, BatchEvidence(leader_epoch=2)),  # the others are still known
        ({"is_transactional": 1, "producer_epoch": True}, BatchEvidence()),
        ({}, BatchEvidence()),
        ("a batch", None),
        (None, None),
    ],
)
def test_a_batch_has_what_is_of_its_type(value, expected):
    evidence = StoredEvidence({"offending": value, "copies": {"b1": value}})
    assert evidence.offending == expected
    assert evidence.copies == {"b1": expected or BatchEvidence()}


@pytest.mark.parametrize(("value", "expected"), [(5, 5), (True, None), ("5", None), (5.5, None), ([5], None)])
def test_a_number_is_a_number(value, expected):
    assert StoredEvidence({"first_timestamp": value}).first_timestamp == expected


def test_lists_keep_what_is_a_record():
    evidence = StoredEvidence(
        {
            "log_events": [{"event": "retry"}, "retry", {"event": 7}],
            "leader_epochs": {"b1": [{"epoch": 1, "start_offset": 0}, 5], "b2": None},
            "seen_ids": (1, "2", 3),
        }
    )
    assert evidence.log_events == [EventEvidence(event="retry"), EventEvidence()]
    assert evidence.leader_epochs == {"b1": [EpochEvidence(1, 0)], "b2": []}
    assert evidence.seen_ids == [1, 3]


def test_a_shape_has_its_keys_in_order_and_leaves_optional_ones_out():
    assert Shape(kind="near", seen=None).to_dict() == {"class": "near", "seen": None, "joints": []}
    full = Shape(kind="near", broker="stops", seen=3, steps=[StepEvidence(1, 2, 3)])
    assert list(full.to_dict()) == ["class", "broker", "seen", "joints"]
    assert full.to_dict()["joints"] == [{"offset": 1, "step": 2, "records": 3}]
    assert (full.kind, full.seen, full.rule, full.previous, full.count, full.log_events) == (
        "near",
        3,
        None,
        None,
        None,
        (),
    )
    assert pickle.loads(pickle.dumps(full)) == full


def test_what_is_added_to_a_shape_stands_around_its_own_keys():
    event = EventEvidence("server.log", 7, None, "retry", "x")
    added = msgspec.structs.replace(
        Shape(kind="near", seen=1), folded=FoldedNotes(4, 10, 30), events=ShownEvents([event], 2)
    )
    assert list(added) == [
        "count",
        "first_offset",
        "last_offset",
        "class",
        "seen",
        "joints",
        "log_events",
        "log_events_count",
    ]
    assert (added.count, added.log_events, added.log_events_count) == (4, [event], 2)


def test_evidence_of_batches_that_brokers_sent_has_no_places():
    batch = NonIdempotent(offset=5, last_offset=6, timestamp=1, producer_id=-1, record_count=2, crc=9, position=70)
    evidence = Shape(kind="older", seen=1, offending=batch).without_places()
    assert evidence.offending is not None
    assert (evidence.offending.offset, evidence.offending.position) == (5, None)
    assert "position" not in evidence.to_dict()["offending"]  # type: ignore[operator]


def test_evidence_is_a_mapping_of_its_json_form():
    evidence = Shape(kind="near", seen=3)
    assert dict(evidence) == evidence.to_dict()
    assert dict(evidence.items()) == dict(zip(evidence.keys(), evidence.values(), strict=True))
    assert (evidence["class"], evidence.get("seen"), evidence.get("rule", "-")) == ("near", 3, "-")
    assert ("class" in evidence, "kind" in evidence, len(evidence)) == (True, False, 3)
