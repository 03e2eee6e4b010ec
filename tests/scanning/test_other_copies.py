"""What a new leader began without, where another copy of the partition still holds it."""

import json
from dataclasses import replace
from pathlib import Path

from kaudit.model.leader_epochs import OtherCopies, copies_between
from kaudit.partition.assembler import PartitionAssembler
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.range_reader import read_planned
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.other_copies import other_copies
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.schemes import open_segment
from tests.diff.replicas import Copy, broker, history
from tests.logs import BASE_TIMESTAMP, marker


def audited(*paths: Path) -> list[PartitionAudit]:
    options = ScanOptions([str(path) for path in paths])
    parts = []
    for job in plan_jobs(options, find_input(options), all_needs):
        assembler = PartitionAssembler(job, None)
        for spec in job.ranges():
            for outcome in read_planned(spec):
                assembler.take(outcome)
        parts.append(assembler.close())
    return parts


def changes(*paths: Path) -> dict[str, list[OtherCopies]]:
    """The leader changes of the one partition under `paths`, by the copy's name."""
    parts = audited(*paths)
    found = other_copies(parts, open_segment)
    return {part.directory.replica: own for part, own in zip(parts, found, strict=True)}


def test_the_records_lost_in_the_failover_are_those_of_its_account(evidence):
    capture = evidence.capture("failover-acks1")
    truth = json.loads((capture / "truth.json").read_text())
    moments = ("A2-new-leader-old-one-down", "B2-unclean-leader-old-one-down", "B3-recovered")
    parts = audited(*(capture / moment / "b1" for moment in moments))
    lost: dict[str, list[list[int]]] = {}
    for part, found in zip(parts, other_copies(parts, open_segment), strict=True):
        if part.directory.replica.startswith("B3"):
            held = [one for change in found for one in change.held_by]
            assert all(one.records == one.last_offset - one.first_offset + 1 for one in held)
            lost[part.directory.topic] = [[one.first_offset, one.last_offset] for one in held]
    # acks=0 reports no offsets; all acknowledged ones of the old leader's were acknowledged by it alone
    for topic in ("acks1", "acks1-unclean", "all-idem", "all-idem-unclean"):
        assert lost[topic] == truth[topic]["lost_acked_offsets_as_reported"]


def test_a_copy_that_went_on_under_the_old_leader_epoch_holds_what_the_new_leader_lacks(tmp_path):
    old = history((0, 3))
    new = old.copy()
    old.append(3, 0, b"old leader's")
    old.batches.append(marker(7, 0, base_offset=old.end))
    new.append(4, 2, b"new leader's")
    found = changes(old.write(tmp_path / "old"), new.write(tmp_path / "new"))
    (change,) = found["new"]
    assert (change.leader_epoch, change.offset, change.compared) == (2, 6, ("old",))
    (held,) = change.held_by
    # the marker's offset is among those cut off, but is nobody's record
    assert (held.copy, held.first_offset, held.last_offset, held.records) == ("old", 6, 9, 3)
    assert (held.leader_epoch, held.last_timestamp) == (0, BASE_TIMESTAMP)
    assert found["old"] == []


def test_what_lies_far_behind_in_a_large_segment_is_found(tmp_path):
    log = Copy()
    for number in range(1200):
        log.append(1, 0, b"%d" % number + bytes(10_000))
    old, new = log.copy().append(3, 0, b"old"), log.copy().append(1, 1, b"new")
    (change,) = changes(old.write(tmp_path / "old"), new.write(tmp_path / "new"))["new"]
    assert [(held.first_offset, held.records) for held in change.held_by] == [(1200, 3)]


def test_copies_that_agree_or_are_behind_hold_nothing_else(tmp_path):
    log = history((0, 3), (1, 2))
    paths = [log.write(tmp_path / "b1"), history((0, 3)).write(tmp_path / "b2"), history((0, 2)).write(tmp_path / "b3")]
    found = changes(*paths)
    assert found == {"b1": [OtherCopies(1, 6, ("b2", "b3"))], "b2": [], "b3": []}


def test_the_same_records_under_another_leader_epoch_are_not_lost(tmp_path):
    log = history((0, 3), (1, 1))
    other = log.copy()
    other.batches[-1] = replace(other.batches[-1], leader_epoch=0)
    assert changes(log.write(tmp_path / "b1"), other.write(tmp_path / "b2"))["b1"][0].held_by == ()


def test_a_topic_created_again_is_another_topic(tmp_path):
    old = history((0, 3))
    new = old.copy().append(1, 1, b"new")
    old.append(1, 0, b"old")
    for name, log in (("b1", old), ("b2", new)):
        log.write(tmp_path / name)
        (tmp_path / name / "orders-0/partition.metadata").write_text(
            f"version: 0\ntopic_id: {name}aaaaaaaaaaaaaaaaaaaa\n"
        )
    assert changes(tmp_path)["b2"] == [OtherCopies(1, 6, ())]


def test_another_clusters_topic_of_that_name_is_another_topic(tmp_path):
    old = history((0, 3))
    new = old.copy().append(1, 1, b"new")
    old.append(1, 0, b"old")
    for name, log in (("b1", old), ("b2", new)):
        broker(log.write(tmp_path / name), 1, cluster=name)
    assert changes(tmp_path)["b2"] == [OtherCopies(1, 6, ())]


def test_no_more_ends_are_read_than_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.scanning.other_copies.MAX_READ", 1)
    new = history((0, 1), (1, 1), (2, 1))
    old = history((0, 1)).append(8, 0, b"old")
    found = changes(old.write(tmp_path / "old"), new.write(tmp_path / "new"))["new"]
    assert [(change.leader_epoch, change.compared, len(change.held_by)) for change in found] == [
        (1, ("old",), 1),
        (2, (), 0),
    ]


def test_descending_leader_epochs_are_damage_and_not_compared(tmp_path):
    old = history((0, 3))
    new = old.copy().append(1, 2, b"new")
    new.append(1, 1, b"damaged")
    old.append(1, 0, b"old")
    assert changes(old.write(tmp_path / "b1"), new.write(tmp_path / "b2")) == {"b1": [], "b2": []}


def test_copies_between_the_leader_epochs_of_two_batches():
    found = [OtherCopies(epoch, epoch * 10, ()) for epoch in (1, 3, 4)]
    assert [change.leader_epoch for change in copies_between(found, 1, 3)] == [3]
    assert copies_between(found, 4, 4) == []


def test_one_copy_alone_is_compared_with_none(tmp_path):
    log = Copy().append(1, 0, b"a").append(1, 1, b"b")
    assert changes(log.write(tmp_path / "b1")) == {"b1": [OtherCopies(1, 1, ())]}
