"""What a ledger says of more than it lists, and of records that it only counts."""

import pytest

from kaudit.diff.records import bucket
from kaudit.diff.records import ledger as builder
from kaudit.diff.records.result import _not_compared
from kaudit.model.ledger import SideCounts, TopicLedger
from tests.engines.test_record_ledger import batches_of, compared, ledger_of, log, rec


@pytest.mark.parametrize("most", [0, 1, 3, 4])
def test_of_records_in_another_order_so_many_are_listed_and_all_counted(tmp_path, monkeypatch, most):
    monkeypatch.setattr(builder, "MOST_RANGES", most)
    sent = [rec(number) for number in range(12)]
    # three pairs of neighbours have changed places
    copied = [sent[number] for number in (1, 0, 2, 3, 5, 4, 6, 7, 9, 8, 10, 11)]
    log(tmp_path / "source", "t-0", batches_of(sent))
    log(tmp_path / "target", "t-0", batches_of(copied))
    found = ledger_of(tmp_path)
    assert [(each.source_offset, each.target_offset) for each in found.moved] == [(1, 0), (5, 4), (9, 8)][:most]
    before = [(each.preceding_source_offset, each.preceding_target_offset) for each in found.moved]
    assert before == [(0, 1), (4, 5), (8, 9)][:most]
    assert (found.out_of_order, found.more_ranges) == (3, max(3 - most, 0))


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (90, 95, {"matched": 90, "repeated": 5, "counted_only": 185}),
        (95, 90, {"matched": 90, "missing": 5, "counted_only": 185}),
        (0, 90, {"only_in_target": 90, "counted_only": 90}),
        (90, 0, {"missing": 90, "counted_only": 90}),
    ],
)
def test_records_that_are_equal_to_too_many_others_are_counted_as_what_they_are(
    tmp_path, monkeypatch, source, target, expected
):
    monkeypatch.setattr(bucket, "MOST_ROWS", 64)
    # a last record that both have: what is before it is neither pending nor ahead
    for side, count in (("source", source), ("target", target)):
        log(tmp_path / side, "t-0", batches_of([*[rec(1)] * count, rec(2)], each=50))
    with compared(tmp_path) as result:
        (found,) = result.ledgers
        notes = [each.reason for each in result.scan.not_audited if "only counted" in each.reason]
    counts = dict.fromkeys(("matched", "missing", "repeated", "only_in_target", "pending", "ahead", "counted_only"), 0)
    counts |= expected
    counts["matched"] += 1
    assert {name: getattr(found, name) for name in counts} == counts
    number = counts["counted_only"]
    assert notes == [f"{number} records on both sides are equal to so many others that they were only counted"]


def test_nothing_is_said_of_counting_where_all_were_compared(tmp_path):
    for side in ("source", "target"):
        log(tmp_path / side, "t-0", batches_of([rec(1)] * 5))
    with compared(tmp_path) as result:
        assert result.scan.not_audited == []


def test_records_that_lie_too_far_are_named_by_side():
    own, none = SideCounts(too_far=1), SideCounts()
    for counts, names in (
        ((own, none), ["t"]),
        ((none, own), ["m.t"]),
        ((own, SideCounts(too_far=2)), ["t", "m.t"]),
        ((none, none), []),
    ):
        found = _not_compared([TopicLedger("t", "m.t", "key", False, *counts)], {})
        assert [(each.path, each.unreadable) for each in found] == [(name, False) for name in names]
        numbers = ["1 record", "2 records"][: len(names)]
        assert [each.reason for each in found] == [f"{number} at offsets that no log can reach" for number in numbers]
    assert [(each.path, each.reason) for each in _not_compared([], {"a": "why", "b": "why not"})] == [
        ("a", "why"),
        ("b", "why not"),
    ]
