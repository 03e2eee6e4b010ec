"""Client epoch bumps by where they are: at a change of the partition's leader, or not."""

import json

import pytest

import kaudit
from kaudit.checks.epochs.epoch_bumps import bump_at_leader_change, fencing
from kaudit.model.impact import Impact
from tests.checks.findings import findings_of
from tests.crafted_sample import leader_change
from tests.logs import Log, data, marker


def reported(directory, log, **options):
    """What KA206 and what KA203 reports of a log."""
    return (
        findings_of(bump_at_leader_change, directory, log, **options),
        findings_of(fencing, directory, log, **options),
    )


def the_finding(directory, log):
    (found,) = kaudit.scan([log.write(directory / "orders-0")], select=["KA206"]).findings
    return found


def fail_over(*producers: tuple[int, bool], before: int = 3) -> Log:
    """Producers (id, raises its epoch) write `before` batches each, then the leader changes, then two each."""
    log = Log()
    for sequence in range(before):
        for producer_id, _ in producers:
            log.append(data(producer_id, 0, sequence, payload=b"before %d" % sequence))
    for number in range(2):
        for producer_id, bumps in producers:
            sequence = number if bumps else before + number
            log.append(data(producer_id, int(bumps), sequence, leader_epoch=4, payload=b"after %d" % number))
    return log


def test_a_bump_at_a_change_of_leader_takes_the_place_of_the_note(tmp_path):
    assert reported(tmp_path, fail_over((1, True))) == ([("warning", 1, 3)], [])


def test_the_finding_names_the_leader_epoch_and_where_it_begins(tmp_path):
    found = the_finding(tmp_path, fail_over((1, False), (2, True)))
    assert found.offset == 7
    assert (found.evidence["leader_epoch"], found.evidence["leader_epoch_start_offset"]) == (4, 6)
    assert found.evidence["previous_leader_epoch"] == 0
    assert (found.confidence.value, found.impact) == ("possible", Impact(records_lost_at_least=0))


def test_who_bumped_too_speaks_for_a_cut_and_who_went_on_against_it(tmp_path):
    log = fail_over((1, True), (2, True), (3, True), (4, False), (5, False))
    log.append(data(6, 0, 0, leader_epoch=4))  # began after it: says nothing
    found = kaudit.scan([log.write(tmp_path / "orders-0")], select=["KA206"]).findings
    assert [finding.producer_id for finding in found] == [1, 2, 3]
    assert {(f.evidence["others_that_bumped"], f.evidence["others_in_sequence"]) for f in found} == {(2, 2)}
    cut, given_up = found[0].explanations
    assert "2 other producers raised their epoch at the same leader change" in cut.speaks_for
    assert cut.speaks_against == given_up.speaks_for == ["2 other producers went on in sequence across it"]


def test_only_producers_of_the_same_change_of_leader_are_counted(tmp_path):
    log = fail_over((1, True), (2, False))
    log.append(data(2, 0, 5, leader_epoch=5))
    log.append(data(1, 2, 0, leader_epoch=5))
    found = kaudit.scan([log.write(tmp_path / "orders-0")], select=["KA206"]).findings
    counts = [
        (f.evidence["leader_epoch"], f.evidence["others_that_bumped"], f.evidence["others_in_sequence"]) for f in found
    ]
    assert counts == [(4, 0, 1), (5, 0, 1)]


@pytest.mark.parametrize("segment_starts", [(), (24,), (5, 20, 24, 26), tuple(range(40))])
def test_the_evidence_does_not_depend_on_where_the_log_is_cut(tmp_path, segment_starts):
    log = fail_over((1, True), *((number, False) for number in range(2, 9)))
    log.write(tmp_path / "orders-0", segment_starts=segment_starts)
    (found,) = kaudit.scan([tmp_path / "orders-0"], select=["KA206"]).findings
    assert (found.evidence["others_in_sequence"], found.evidence["leader_epoch_start_offset"]) == (7, 24)


def test_a_clean_fail_over_is_silent(tmp_path):
    assert reported(tmp_path, fail_over((1, False), (2, False))) == ([], [])


def test_a_bump_under_one_leader_is_a_note_and_not_called_harmless(tmp_path):
    log = Log()
    log.append(data(1, 0, 0))
    log.append(data(2, 0, 0))
    log.append(data(2, 0, 1, leader_epoch=1))
    log.append(data(1, 0, 1, leader_epoch=1))
    log.append(data(1, 1, 0, leader_epoch=1))
    assert reported(tmp_path, log) == ([], [("note", 1, 4)])
    (note,) = kaudit.scan([tmp_path / "orders-0"], select=["KA203"]).findings
    assert not [cause for cause in note.explanations if cause.innocent]


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_transactional_producers_are_never_meant(tmp_path, version):
    log = Log()
    for epoch in range(3):
        log.append(data(1, epoch, 0, transactional=True, leader_epoch=epoch))
        log.append(marker(1, epoch + 1, leader_epoch=epoch))
    log.append(data(2, 0, 0, transactional=True, leader_epoch=2))
    log.append(marker(2, 0, leader_epoch=2))
    log.append(data(2, 1, 0, transactional=True, leader_epoch=3))
    found, _ = reported(tmp_path, log, broker_version=version)
    assert found == []


def test_what_compaction_removed_before_the_bump_may_have_had_the_new_leader_epoch(tmp_path):
    log = Log()
    log.append(data(1, 0, 0))
    log.skip(3)
    log.append(data(1, 1, 0, leader_epoch=1))
    assert reported(tmp_path / "kept", log) == ([("warning", 1, 4)], [])
    assert reported(tmp_path / "compacted", log, compacted_topics=["orders"]) == ([], [("note", 1, 4)])


def test_a_log_without_leader_epochs_shows_no_change(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, leader_epoch=-1))
    log.append(data(1, 1, 0, leader_epoch=0))
    assert reported(tmp_path, log) == ([], [("note", 1, 1)])


def test_the_sample_shows_it(tmp_path):
    assert findings_of(bump_at_leader_change, tmp_path, leader_change()) == [("warning", 10, 5)]


def test_the_recorded_loss_is_named_from_the_recovered_replica_alone(evidence):
    """1,157 acknowledged records of all-idem-unclean were lost; the other topics' fail-overs were clean, or left no trace."""
    capture = evidence.capture("failover-acks1")
    for broker in ("b1", "b2", "b3"):
        found = kaudit.scan([capture / "B3-recovered" / broker], select=["KA206"]).findings
        assert [(f.topic, f.producer_id, f.offset, f.evidence["leader_epoch_start_offset"]) for f in found] == [
            ("all-idem-unclean", 0, 6053, 6053)
        ]


def test_the_old_leaders_copy_says_how_many_records_at_most(evidence):
    capture = evidence.capture("failover-acks1")
    account = json.loads((capture / "truth.json").read_text())["all-idem-unclean"]
    copies = [capture / "B2-unclean-leader-old-one-down" / broker for broker in ("b1", "b2")]
    (found,) = kaudit.scan(copies, select=["KA206"]).findings
    assert found.impact == Impact(records_lost_at_least=0, records_lost_at_most=account["lost_acked_count"])
    assert found.confidence.value == "likely"
    assert "b1 holds 1,157 records at offsets 6053..7209 under leader epoch 2" in found.explanations[0].speaks_for[1]
    assert found.next[0] == f"kaudit diff {copies[0]}/all-idem-unclean-0 {copies[1]}/all-idem-unclean-0"
