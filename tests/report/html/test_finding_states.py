"""The producer's state before and after a finding, and the facts beside it, from evidence as scans and saved scans hold it."""

import pytest

from kaudit.report.html.finding_rows import finding_row, profile_of
from tests.scan_results import MORNING, batch, old_duplicate

NEWEST = profile_of(None)


def row(evidence, **changes):
    return finding_row(old_duplicate(evidence=evidence, **changes), 0, None, NEWEST, many_inputs=False)


def state(epoch, last_sequence, last_offset, batches, *, coordinator="none", transaction="none"):
    return [
        ("producer epoch", epoch),
        ("last sequence", last_sequence),
        ("last offset", last_offset),
        ("coordinator epoch", coordinator),
        ("transaction open since offset", transaction),
        ("remembered batches (sequences @ offset)", batches),
    ]


def held(*window, **fields):
    known = {"producer_epoch": 2, "last_sequence": 9, "coordinator_epoch": -1, "current_txn_start_offset": -1}
    return {**known, **fields, "window": list(window)}


def test_without_evidence_there_is_no_state():
    for evidence in ({}, {"offending": None}, {"offending": "x", "remembered": 5}, {"offending": {"offset": 5}}):
        shown = row(evidence)
        assert (shown.state_before, shown.state_after) == ([], [])


def test_the_window_and_the_batch_after_it():
    window = [
        {"offset": 100, "last_offset": 104, "base_sequence": 0, "last_sequence": 4},
        {"offset": 110, "last_offset": 114, "base_sequence": 5, "last_sequence": 9},
    ]
    evidence = {"remembered": held(*window), "offending": batch(120, 122, 0, 10, 12, producer_epoch=2)}
    shown = row(evidence)
    assert shown.state_before == state("2", "9", "114", "0..4 @ 100, 5..9 @ 110")
    assert shown.state_after == state("2", "12", "122", "0..4 @ 100, 5..9 @ 110, 10..12 @ 120")


def test_a_producer_nobody_knew():
    shown = row({"offending": batch(120, 122, 0, 0, 2, producer_epoch=0, is_transactional=True)})
    assert shown.state_before == [("producer", "unknown")]
    assert shown.state_after == state("0", "2", "122", "0..2 @ 120", transaction="120")
    plain = row({"offending": batch(120, 122, 0, 0, 2, is_transactional="yes")})
    assert plain.state_after == state("0", "2", "122", "0..2 @ 120")


def test_a_batch_before_offset_and_time_zero():
    shown = row({"offending": batch(0, 0, 0, 0, 0, producer_id=0)})
    assert shown.state_after == state("0", "0", "0", "0..0 @ 0")
    for left_out in ("producer_id", "base_sequence"):
        offending = batch(0, 0, 0, 0, 0)
        del offending[left_out]
        assert row({"offending": offending}).state_after == []


def test_a_marker_ends_the_transaction():
    remembered = held(coordinator_epoch=3, current_txn_start_offset=100)
    for kind in ("COMMIT", "ABORT"):
        offending = {
            "offset": 130,
            "producer_id": 1000,
            "producer_epoch": 2,
            "coordinator_epoch": 4,
            "type": kind,
            "timestamp": 5,
        }
        shown = row({"remembered": remembered, "offending": offending})
        assert shown.state_before == state("2", "none", "none", "none", coordinator="3", transaction="100")
        assert shown.state_after == state("2", "none", "none", "none", coordinator="4")


@pytest.mark.parametrize(("previous", "batches"), [
    # its length in offsets
    ({"offset": 50, "last_offset": 54, "base_sequence": 5, "last_sequence": 9}, "5..9 @ 50"),
    ({"offset": 50, "last_offset": 52, "base_sequence": 5, "last_sequence": 9}, "7..9 @ 50"),
    # else in sequences
    ({"offset": 50, "base_sequence": 6, "last_sequence": 9}, "6..9 @ 50"),
    ({"offset": 0, "base_sequence": 9, "last_sequence": 9}, "9..9 @ 0"),
    # values that say impossible things
    ({"offset": 50, "last_offset": 40, "base_sequence": 5, "last_sequence": 9}, "9..9 @ 50"),
    ({"offset": 50, "base_sequence": 12, "last_sequence": 9}, "9..9 @ 50"),
    ({"offset": 50, "last_offset": "x", "base_sequence": 5, "last_sequence": 9}, "5..9 @ 50"),
    # not the batch that is remembered
    ({"offset": 50, "last_offset": 54, "base_sequence": 4, "last_sequence": 8}, "none"),
    ({"offset": -1, "last_offset": 54, "base_sequence": 5, "last_sequence": 9}, "none"),
    ("no batch", "none"), (None, "none"),
])  # fmt: skip
def test_without_a_window_the_batch_before_is_remembered(previous, batches):
    for window in ([], None, "x", [{"offset": -5}]):
        shown = row({"remembered": {**held(), "window": window}, "previous": previous})
        assert shown.state_before[-1] == ("remembered batches (sequences @ offset)", batches)
        assert shown.state_after == []
    other = {"offset": 10, "last_offset": 11, "base_sequence": 8, "last_sequence": 9}
    shown = row({"remembered": held(other), "previous": previous})
    assert shown.state_before[-1] == ("remembered batches (sequences @ offset)", "8..9 @ 10")


def test_a_batch_without_sequences_is_not_listed():
    window = [
        {"offset": 1, "last_offset": 1, "base_sequence": -1, "last_sequence": -1},
        {"offset": 2, "base_sequence": 0, "last_sequence": 0},
    ]
    shown = row({"remembered": held(*window, producer_epoch=0)})
    assert shown.state_before == state("0", "0", "2", "0..0 @ 2")


def test_facts_are_what_is_shown_nowhere_else():
    hidden = dict.fromkeys(("rule", "broker", "remembered", "previous", "offending", "next", "copies"), "x")
    shown = row(
        {
            **hidden, "nothing": None, "first_timestamp": MORNING, "bad_timestamp": 10**18, "some_count": 5, "text_timestamp": "now",
            "list": [1, {"ä": 2}], "pair": (1, 2), "held": {"a": None}, "yes": True,
        }
    )  # fmt: skip
    assert shown.facts == [
        ("first timestamp", "2023-11-14T22:13:20.000Z"),
        ("bad timestamp", "1000000000000000000"),
        ("some count", "5"),
        ("text timestamp", "now"),
        ("list", '[1, {"ä": 2}]'),
        ("pair", "[1, 2]"),
        ("held", '{"a": null}'),
        ("yes", "True"),
    ]
    assert (shown.rule, shown.broker) == ("x", "x")
    assert (row({"rule": 5}).rule, row({}).broker) == (None, None)


def test_numbers_are_text_and_checks_have_their_sentence():
    shown = row({"offending": {"timestamp": MORNING}}, producer_id=2**62, offset=0, last_offset=None)
    assert (shown.producer_id, shown.offset, shown.last_offset, shown.timestamp) == (
        str(2**62),
        "0",
        None,
        str(MORNING),
    )
    assert shown.doc
    assert row({}, code="KA999").doc == ""
    assert (row({}).timestamp, row({}).producer_epoch) == (None, 0)


def test_rules_of_a_release_nobody_knows_are_the_newest():
    assert profile_of("99.0.0") == profile_of(None) == NEWEST
    assert profile_of("0.11.0.0") != NEWEST
