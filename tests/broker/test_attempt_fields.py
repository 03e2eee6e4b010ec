"""The range of every number of an attempt: that of the type it has in Kafka's protocol, or what a log can hold of it."""

import pytest
from msgspec import ValidationError

from kaudit.broker.attempts.base import NOT_STATED
from tests.attempts import attempt_of

INT16, INT32, INT64 = (-(2**15), 2**15 - 1), (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
NATURAL, VERSION = (0, 2**63 - 1), (0, 2**15 - 1)
REQUIRED: dict[str, dict[str, object]] = {
    "produce": {},
    "init_producer_id": {},
    "txn_offset_commit": {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0},
    "write_marker": {"producer_id": 7, "producer_epoch": 0, "commit": True, "coordinator_epoch": 0},
    "delete_records": {"before_offset": 0},
    "restart": {"clean": True},
    "leader_change": {"how": "clean"},
    "wait": {"ms": 0},
    "expire_producers": {},
}
FOUND = {"base_offset": 0, "producer_id": 7, "producer_epoch": 0}
RANGES = [
    ("produce", "producer_id", *INT64),
    ("produce", "producer_epoch", *INT16),
    ("produce", "base_sequence", *INT32),
    ("produce", "record_count", *INT32),
    ("produce", "timestamp", *INT64),
    ("produce", "acks", *INT16),
    ("produce", "api_version", *VERSION),
    ("produce", "index", *NATURAL),
    ("produce", "partition", 0, 2**31 - 1),
    ("produce", "at", *INT64),
    ("init_producer_id", "timeout_ms", *INT32),
    ("init_producer_id", "granted_producer_id", *INT64),
    ("txn_offset_commit", "record_count", 1, 2**31 - 1),
    ("write_marker", "coordinator_epoch", *INT32),
    ("write_marker", "transaction_version", 0, 127),
    ("delete_records", "before_offset", -1, 2**63 - 1),
    ("restart", "log_start_offset", *NATURAL),
    ("leader_change", "lost_from_offset", *NATURAL),
    ("leader_change", "new_leader", *INT32),
    ("wait", "ms", *NATURAL),
]


def attempt(op, **fields):
    return attempt_of({"op": op, "topic": "t", "partition": 0, **REQUIRED[op], **fields})


@pytest.mark.parametrize(("op", "field", "least", "most"), RANGES)
def test_numbers_have_the_range_of_their_type(op, field, least, most):
    for number in (least, most):
        assert getattr(attempt(op, **{field: number}), field) == number
    for number in (least - 1, most + 1):
        with pytest.raises(ValidationError):
            attempt(op, **{field: number})


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("base_offset", 0, 2**62),
        ("record_count", 1, 2**31 - 1),
        ("base_sequence", *INT32),
        ("coordinator_epoch", *INT32),
    ],
)
def test_so_have_those_of_a_batch_found_on_disk(field, least, most):
    for number in (least, most):
        (found,) = attempt("restart", found_on_disk=[{**FOUND, field: number}]).found_on_disk
        assert getattr(found, field) == number
    for number in (least - 1, most + 1):
        with pytest.raises(ValidationError):
            attempt("restart", found_on_disk=[{**FOUND, field: number}])


@pytest.mark.parametrize(
    ("op", "defaults"),
    [
        ("produce", {"acks": -1, "api_version": NOT_STATED, "is_transactional": False, "index": -1, "at": None}),
        ("init_producer_id", {"timeout_ms": 60_000, "api_version": NOT_STATED}),
        ("txn_offset_commit", {"record_count": 1, "api_version": NOT_STATED}),
        ("write_marker", {"transaction_version": 0, "api_version": NOT_STATED}),
        ("restart", {"found_on_disk": [], "tamper": None}),
    ],
)
def test_what_a_line_leaves_out(op, defaults):
    made = attempt(op)
    assert {name: getattr(made, name) for name in defaults} == defaults
    (found,) = attempt("restart", found_on_disk=[FOUND]).found_on_disk
    assert (found.base_sequence, found.record_count, found.coordinator_epoch, found.commit) == (0, 1, 0, None)
    assert not found.is_transactional


def test_an_unknown_kind_of_damage_is_refused():
    assert attempt("restart", tamper={"truncated_to_offset": 3}).tamper.truncated_to_offset == 3
    with pytest.raises(ValidationError):
        attempt("restart", tamper={"truncated": 3})
