"""Evidence by name and type: a saved scan may hold anything under any key."""

import pytest

from kaudit.model.evidence import StoredEvidence
from kaudit.model.evidence_parts import BatchEvidence, EpochEvidence, EventEvidence


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
