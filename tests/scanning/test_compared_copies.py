"""What a scan of several brokers reports of their copies: what `diff` reports, without lag, and without a second reading."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.replicas.comparison import ranges_to_read
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.digests import LEAF_OFFSETS, PartitionDigest, RangeDigests
from kaudit.model.finding import Finding
from kaudit.reading.digest_tree import WholeLog, widened
from kaudit.scanning.options import ScanOptions
from tests.diff.replicas import Copy, broker, history
from tests.diff.test_relations import replicas
from tests.diff.test_relations import run as compare
from tests.logs import BASE_TIMESTAMP, TRANSACTIONAL, Batch, marker

WIDE = 400
"""Times the offsets of a small history: its copies have several ranges with digests then."""


def found(*paths: Path, **options: object) -> list[Finding]:
    """The findings of a scan about copies."""
    result = scan(ScanOptions([str(path) for path in paths], jobs=1, **options), SilentProgress())  # type: ignore[arg-type]
    return [finding for finding in result.findings if finding.code.startswith("KA60")]


def widened_copy(copy: Copy) -> Copy:
    batches = [replace(each, count=WIDE * each.count, base_offset=WIDE * each.base_offset) for each in copy.batches]
    return replace(copy, batches=batches, rolls=tuple(WIDE * roll for roll in copy.rolls))


@settings(max_examples=25, deadline=None)
@given(replicas())
def test_a_scan_finds_where_copies_part_as_diff_does(made):
    copies, _, _ = made
    with tempfile.TemporaryDirectory() as root:
        paths = [widened_copy(copy).write(Path(root) / f"b{at}") for at, copy in enumerate(copies)]
        by_diff = [finding for finding in compare(*paths).scan.findings if finding.code == "KA601"]

        def facts(findings):
            return [(each.code, each.offset, each.message, each.impact, each.evidence.to_dict()) for each in findings]

        own = facts(found(*paths))
        for fields in (fields for *_, fields in own):
            # what lag leaves on one copy is no part of a scan
            fields["only_on"] = by_diff[0].evidence["only_on"]
        assert own == facts(by_diff)


@pytest.mark.parametrize(("other_ends", "expected"), [(6, (0, 0)), (5, (2, 2))], ids=["held", "short"])
def test_the_end_that_a_copy_lost_costs_nothing_where_another_holds_it(tmp_path, other_ends, expected):
    log = history((0, 6))
    log.high_watermark = log.end
    other = log.copy()
    other.batches, other.high_watermark = other.batches[:other_ends], None
    one, two = log.write(tmp_path / "b1"), other.write(tmp_path / "b2")
    (segment,) = one.glob("*/*.log")
    content = segment.read_bytes()
    segment.write_bytes(content[: len(content) * 5 // 8])
    result = scan(ScanOptions([str(one), str(two)], jobs=1), SilentProgress())
    (known,) = (each for each in result.findings if each.code == "KA505")
    bounds = (known.impact.records_lost_at_least, known.impact.records_lost_at_most)
    assert (known.offset, known.last_offset, bounds) == (6, 11, expected)


def test_what_a_follower_has_not_fetched_yet_is_no_finding(tmp_path):
    log = history((0, 6))
    behind = log.copy()
    behind.batches = behind.batches[:4]
    log.high_watermark = log.end
    assert found(*(each.write(tmp_path / name) for name, each in (("b1", log), ("b2", behind), ("b3", log)))) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_suffix_that_the_next_leader_lacks(tmp_path, moment):
    """Before the old leader comes back, and beside its log of after: its producers went on with the next leader."""
    log = history((0, 4))
    old, new = log.copy().append(3, 0, b"acks=1").append(2, 0, b"acks=1 too"), log.copy().append(4, 1, b"later")
    paths = [broker(old.write(tmp_path / "b1"), 1), broker(new.write(tmp_path / "b2"), 2)]
    if moment == "after":
        later = new.copy().append(1, 1, b"more", timestamp=BASE_TIMESTAMP + 60_000)
        paths.append(broker(later.write(tmp_path / "again" / "b1"), 1))
    (finding,) = found(*paths)
    assert (finding.code, finding.offset) == ("KA601" if moment == "before" else "KA603", log.end)
    assert (finding.impact.records_lost_at_least, finding.impact.records_lost_at_most) == (5, 5)


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "open"])
def test_whether_a_transaction_has_ended_is_in_the_leaders_log(tmp_path, ended):
    """The follower lacks the last batch: the marker, or the last of the transaction that is open on the leader too."""
    leader = history((0, 2))
    leader.batches.append(Batch(7, 0, 0, 3, attributes=TRANSACTIONAL, base_offset=leader.end))
    follower = leader.copy()
    last = marker(7, 0) if ended else Batch(7, 0, 3, 3, attributes=TRANSACTIONAL)
    leader.batches.append(last.at(leader.end))
    paths = [copy.write(tmp_path / name) for name, copy in (("b1", follower), ("b2", leader))]
    findings = scan(
        ScanOptions([str(path) for path in paths], jobs=1, now_ms=BASE_TIMESTAMP + 3_600_000), SilentProgress()
    ).findings
    assert [each.replica for each in findings] == ([] if ended else ["b2"])


def test_a_state_has_what_copies_are_compared_by(tmp_path):
    log = history((0, 4))
    copies = log.copy().append(3, 0, b"old"), log.copy().append(4, 1, b"new")
    paths = [copy.write(tmp_path / f"b{number}") for number, copy in enumerate(copies)]
    findings = [found(*paths, state=str(tmp_path / "state")) for _ in range(2)]
    assert [[each.code for each in own] for own in findings] == [["KA601"]] * 2


def digest(start: int, end: int, *digests: int, width: int = LEAF_OFFSETS) -> PartitionDigest:
    first = start // width * width
    held = RangeDigests(first, width, [f"{each:064x}" for each in digests])
    return PartitionDigest("orders", 0, "", start, end, 1, None, held, compacted=False, damaged=False)


LEAF = LEAF_OFFSETS


@pytest.mark.parametrize(("logs", "expected"), [
    ([digest(0, 3 * LEAF, 1, 2, 3), digest(0, 3 * LEAF, 1, 2, 3)], []),
    ([digest(0, 3 * LEAF, 1, 2, 3), digest(0, 3 * LEAF, 1, 4, 3)], [range(LEAF - 1, 2 * LEAF)]),
    ([digest(0, 3 * LEAF, 1, 2, 3), digest(0, 3 * LEAF, 4, 5, 3)], [range(2 * LEAF)]),
    # the end of one is in the last range of the other; what only one holds is compared with nothing
    ([digest(0, 3 * LEAF, 1, 2, 3), digest(0, LEAF + 5, 1, 4)], [range(LEAF - 1, 2 * LEAF)]),
    ([digest(0, 2 * LEAF, 1, 2), digest(0, LEAF, 1)], []),
    # retention went further in one of them
    ([digest(0, 2 * LEAF, 1, 2), digest(LEAF // 2, 2 * LEAF, 4, 2)], [range(LEAF)]),
    ([digest(0, LEAF, 1)], []),
], ids=["same", "middle", "beginning", "shorter", "prefix", "retention", "alone"])  # fmt: skip
def test_the_ranges_in_which_copies_may_differ(logs, expected):
    assert ranges_to_read(logs) == expected


@given(st.lists(st.integers(0, 60), min_size=1, unique=True).map(sorted), st.integers(1, 4))
def test_a_wider_range_has_the_digest_that_a_tree_of_that_width_has(leaves, most):
    """Digests of the same leaves in few wide ranges and in many narrow ones."""
    narrow, wide = WholeLog(), WholeLog(most)
    for leaf in leaves:
        for tree in (narrow, wide):
            tree.add((leaf, b"%032d" % leaf))
    end = (leaves[-1] + 1) * LEAF
    own, few = narrow.ranges(leaves[0] * LEAF, end), wide.ranges(leaves[0] * LEAF, end)
    assert own is not None
    assert few is not None
    for at, expected in enumerate(few.digests):
        assert widened(own, few.first_offset + at * few.width, few.width) == expected
