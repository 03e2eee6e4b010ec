"""What two sites find out by their fingerprints is what `kaudit diff` finds with both logs at hand."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.model.replicas import OffsetRange, Relation
from tests.diff.fingerprint.sites import compared, exchange, fingerprint_of
from tests.diff.replicas import TOPIC, Copy, history
from tests.diff.test_relations import parting, replicas, run
from tests.logs import Batch


@settings(max_examples=60, deadline=None)
@given(replicas(), st.sampled_from((1, 40, 7000)))
def test_relation_and_first_difference_are_those_of_the_making(made, apart):
    copies, leaves, ends = made
    # offsets far apart lie in ranges of their own
    for copy in copies:
        copy.batches = [replace(batch, base_offset=batch.base_offset * apart) for batch in copy.batches]
        copy.rolls = tuple(offset * apart for offset in copy.rolls)
    with tempfile.TemporaryDirectory() as root:
        paths = [copy.write(Path(root) / f"b{number}") for number, copy in enumerate(copies[:2])]
        (found,), _ = exchange(*paths)
    left = parting(0, leaves, ends, 1)
    starts, stops = [copy.batches[0].base_offset for copy in copies[:2]], [copy.end for copy in copies[:2]]
    if max(starts) >= min(stops):
        assert (found.relation, found.identical_up_to, found.differing) == (None, None, [])
    elif left is not None and left * apart < min(stops):
        assert found.relation is Relation.DIVERGED
        assert found.differing[0].first == found.identical_up_to == left * apart
        held = {None if batch is None else batch.leader_epoch for batch in (found.first_difference or {}).values()}
        assert len(held) == 2
    else:
        assert found.relation is (Relation.IDENTICAL if ends[0] == ends[1] else Relation.BEHIND)
        assert (found.identical_up_to, found.differing) == (min(stops), [])
    assert sorted(found.end_offsets.values()) == sorted(stops)


@pytest.mark.parametrize("moment", ["A2-new-leader-old-one-down", "B2-unclean-leader-old-one-down", "B3-recovered"])
def test_a_failover_of_real_brokers(evidence, moment):
    capture = evidence.capture("failover-acks1") / moment
    left, right = sorted(capture.iterdir())[:2]
    known = {(entry.topic, entry.partition): entry for entry in run(left, right).partitions}
    found, _ = exchange(left, right)
    assert {(entry.topic, entry.partition) for entry in found} == {
        key for key, entry in known.items() if entry.relation is not Relation.MISSING
    }
    for entry in found:
        expected = known[entry.topic, entry.partition]
        assert entry.relation is expected.relation
        assert sorted(entry.end_offsets.values()) == sorted(expected.end_offsets.values())
        if expected.relation is Relation.DIVERGED:
            assert entry.differing[0].first == expected.common_end_offset


def test_one_changed_record_among_a_million_takes_four_documents_of_kilobytes(tmp_path):
    alike, other = (Batch(count=1000, payload=payload).encode() for payload in (b"alike", b"other"))
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, changed in zip(paths, (None, 617), strict=True):
        (path / f"{TOPIC}-0").mkdir(parents=True)
        # the CRC does not cover the base offset
        content = b"".join(
            (number * 1000).to_bytes(8, "big") + (other if number == changed else alike)[8:] for number in range(1000)
        )
        (path / f"{TOPIC}-0" / f"{0:020d}.log").write_bytes(content)
    sent = fingerprint_of(paths[0])
    assert len(sent.partitions[0].ranges[0].digests) in range(32, 65)
    (found,), rounds = exchange(*paths)
    assert rounds <= 4
    assert found.differing == [OffsetRange(617_000, 617_999)]
    assert found.identical_up_to == 617_000
    assert {batch.base_offset for batch in (found.first_difference or {}).values() if batch} == {617_000}


def test_a_batch_that_one_site_lacks_in_the_middle(tmp_path):
    whole = history((0, 6))
    cut = whole.copy()
    del cut.batches[2:4]
    (found,), _ = exchange(whole.write(tmp_path / "a"), cut.write(tmp_path / "b"))
    assert (found.relation, found.differing) == (Relation.DIVERGED, [OffsetRange(4, 7)])
    assert sorted(batch is None for batch in (found.first_difference or {}).values()) == [False, True]


def test_retention_that_was_at_work_on_one_site_alone_is_healthy(tmp_path):
    whole = history((0, 10))
    shorter = whole.copy()
    shorter.batches = shorter.batches[4:]
    paths = [whole.write(tmp_path / "a"), shorter.write(tmp_path / "b")]
    for left, right in (paths, paths[::-1]):
        (found,), _ = exchange(left, right)
        assert (found.relation, found.identical_up_to, found.differing) == (Relation.IDENTICAL, 20, [])


def test_logs_without_a_common_offset(tmp_path):
    early, late = history((0, 3)), history((0, 6))
    late.batches = late.batches[4:]
    (found,), _ = exchange(early.write(tmp_path / "a"), late.write(tmp_path / "b"))
    assert (found.relation, found.identical_up_to, found.differing) == (None, None, [])


def test_two_empty_logs_are_identical(tmp_path):
    (found,), _ = exchange(Copy().write(tmp_path / "a"), Copy().write(tmp_path / "b"))
    assert found.relation is Relation.IDENTICAL


@pytest.mark.parametrize("checkpoint", [False, True])
def test_below_the_cleaners_checkpoint_nothing_is_compared(tmp_path, checkpoint):
    log = history((0, 8))
    cleaned = log.copy()
    del cleaned.batches[1]  # two records of a key that came again
    paths = [copy.write(tmp_path / name) for name, copy in (("a", log), ("b", cleaned))]
    if checkpoint:
        (paths[1] / "cleaner-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 8\n")
    (found,), _ = exchange(*paths, compacted=not checkpoint)
    assert found.relation is (Relation.IDENTICAL if checkpoint else None)
    assert found.compacted is not checkpoint
    assert found.differing == ([] if checkpoint else [OffsetRange(2, 3)])


def test_a_damaged_batch_is_a_difference_and_said_to_be_damage(tmp_path):
    log = history((0, 3))
    paths = [log.write(tmp_path / name) for name in ("a", "b")]
    segment = paths[1] / f"{TOPIC}-0" / f"{0:020d}.log"
    content = bytearray(segment.read_bytes())
    content[len(log.batches[0].encode()) + 70] ^= 1
    segment.write_bytes(content)
    (found,) = compared(paths[1], fingerprint_of(paths[0])).partitions
    assert (found.relation, found.damaged_on) == (Relation.DIVERGED, ["here"])
