"""The order of findings, field by field, and the numbers of Kafka's formats."""

import pytest
from msgspec.structs import replace

from kaudit.model import batch_fields
from kaudit.model.severity import Severity
from tests.scan_results import old_duplicate

BASE = old_duplicate(
    topic="m", partition=5, replica="5", offset=5, code="KA105", producer_id=5, producer_epoch=5, file="m", position=5
)
FIELDS = ("topic", "partition", "replica", "offset", "code", "producer_id", "producer_epoch", "file", "position")
LESS = {"topic": "l", "replica": "4", "code": "KA104", "file": "l"}
MORE = {"topic": "n", "replica": "6", "code": "KA106", "file": "n"}


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_orders_what_is_alike_before_it(name):
    less, more = LESS.get(name, 4), MORE.get(name, 6)
    later = FIELDS[FIELDS.index(name) + 1 :]
    first = replace(BASE, **{name: less}, **{other: MORE.get(other, 6) for other in later})
    last = replace(BASE, **{name: more}, **{other: LESS.get(other, 4) for other in later})
    assert first.sort_key() < BASE.sort_key() < last.sort_key()
    if name != "code":
        # null before every value, 0 and empty text too
        null = replace(first, **{name: None})
        assert null.sort_key() < first.sort_key()
        if name not in ("topic", "replica", "file"):
            assert null.sort_key() < replace(null, **{name: 0}).sort_key() < first.sort_key()


def test_equal_places_are_ordered_by_fingerprint():
    others = [replace(BASE, anchor=f"{number}") for number in range(8)]
    ordered = sorted(others, key=lambda finding: finding.sort_key())
    assert [finding.fingerprint for finding in ordered] == sorted(finding.fingerprint for finding in others)
    assert BASE.sort_key() == replace(BASE, message="other words").sort_key()
    assert BASE.sort_key() != others[0].sort_key()


def test_severities_are_ordered_by_weight():
    assert sorted([Severity.ERROR, Severity.NOTE, Severity.WARNING]) == [
        Severity.NOTE,
        Severity.WARNING,
        Severity.ERROR,
    ]
    assert [severity.rank for severity in (Severity.NOTE, Severity.WARNING, Severity.ERROR)] == [0, 1, 2]
    assert not Severity.NOTE < Severity.NOTE


def test_every_null_has_its_reason():
    bare = replace(
        BASE, offset=None, last_offset=None, incident=None, absent={"offset": "unreadable", "incident": "one"}
    )
    absent = bare.to_dict()["absent"]
    assert absent == {
        "offset": "unreadable",
        "last_offset": "not applicable",
        "incident": "one",
        "suppression": "not suppressed",
    }
    assert replace(BASE, absent={}).to_dict()["absent"] == {
        "incident": "no other finding has the same cause",
        "suppression": "not suppressed",
    }


def test_numbers_of_record_batches():
    """RecordBatch, DefaultRecordBatch and ControlRecordType."""
    nothing = ("PRODUCER_ID", "PRODUCER_EPOCH", "SEQUENCE", "TIMESTAMP", "LEADER_EPOCH", "OFFSET", "COORDINATOR_EPOCH")
    assert {getattr(batch_fields, f"NO_{name}") for name in nothing} == {-1}
    assert batch_fields.CODEC_MASK == 0b111
    flags = ("LOG_APPEND_TIME", "TRANSACTIONAL", "CONTROL", "DELETE_HORIZON")
    assert [getattr(batch_fields, f"{name}_FLAG") for name in flags] == [1 << 3, 1 << 4, 1 << 5, 1 << 6]
    assert (batch_fields.ABORT_MARKER, batch_fields.COMMIT_MARKER) == (0, 1)
    # a type that a batch may have is 0 or more
    assert (batch_fields.NO_CONTROL_TYPE, batch_fields.UNDECODED_CONTROL, batch_fields.UNREPORTED_CONTROL) == (
        -1,
        -2,
        -3,
    )
