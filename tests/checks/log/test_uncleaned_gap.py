"""KA013: what the log cleaner cannot have removed, by its checkpoint and by the active segment (LogCleanerManager)."""

import pytest

from kaudit.checks.log.missing_offsets import uncleaned_gap
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.logs import Batch, data, keyed

THINNED_OUT = Batch(count=3, kept=2)
"""The log cleaner removed one record of three."""


def log_of(directory, *segments, thinned_out=0):
    """Write orders-0 of segments: the offset each begins at, and the offsets of its batches of three records."""
    partition = directory / "orders-0"
    partition.mkdir(parents=True)
    for base, *offsets in segments:
        batches = (THINNED_OUT if offset == thinned_out else Batch(count=3) for offset in offsets)
        content = b"".join(keyed(batch.at(offset)) for batch, offset in zip(batches, offsets, strict=True))
        (partition / f"{base:020d}.log").write_bytes(content)
    return directory


def found(directory, **options):
    result = scan(ScanOptions([str(directory)], jobs=1, **options), SilentProgress())
    return [
        (each.code, each.severity.value, each.offset, each.last_offset, each.evidence["gaps"])
        for each in result.findings
        if each.code in ("KA007", "KA008", "KA013")
    ]


TWO_GAPS = ((0, 0, 6), (9, 9, 15))
"""Offsets 3 to 5 are missing in the closed segment, 12 to 14 in the active one."""


@pytest.mark.parametrize(
    ("first_dirty", "expected"),
    [
        (None, [("KA013", "error", 12, 14, 1)]),  # no checkpoint was copied: only the active segment is known
        (9, [("KA013", "error", 12, 14, 1)]),
        (18, [("KA013", "error", 12, 14, 1)]),  # the active segment is never cleaned
        (19, [("KA013", "error", 3, 14, 2)]),  # beyond the end of the log: the cleaner begins again
        (6, [("KA013", "error", 12, 14, 1)]),
        (3, [("KA013", "error", 3, 14, 2)]),
    ],
)
def test_the_cleaner_excuses_gaps_below_its_checkpoint_and_outside_the_active_segment(tmp_path, first_dirty, expected):
    root = log_of(tmp_path, *TWO_GAPS)
    if first_dirty is not None:
        (root / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {first_dirty}\n")
    assert found(root) == expected
    assert found(root, compacted=True) == []


def test_segments_of_a_capture_are_not_the_brokers(tmp_path):
    root = log_of(tmp_path, *TWO_GAPS)
    (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 18\n")
    (root / "capture.json").write_text("{}")
    assert found(root) == []


def test_a_partition_that_the_checkpoints_do_not_list_was_never_cleaned_here(tmp_path):
    root = log_of(tmp_path, *TWO_GAPS)
    (root / "cleaner-offset-checkpoint").write_text("0\n1\nother 0 99\n")
    assert found(root) == [("KA013", "error", 3, 14, 2)]


def test_gaps_below_a_batch_that_a_cleaner_rewrote_may_be_a_leaders(tmp_path):
    """A follower fetches what its leader's cleaner has left: rewritten batches too, with gaps before them."""
    root = log_of(tmp_path, *TWO_GAPS, (18, 18, 24), thinned_out=15)
    (root / "cleaner-offset-checkpoint").write_text("0\n1\nother 0 99\n")
    assert found(root) == [("KA013", "warning", 3, 14, 2), ("KA013", "error", 21, 23, 1)]


@pytest.mark.parametrize("first_dirty", [0, -1])
def test_a_checkpoint_of_nothing_cleaned_excuses_nothing(tmp_path, first_dirty):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(data(1, 0, 0, 3).encode() + data(1, 0, 5, 3).at(5).encode())
    (tmp_path / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {first_dirty}\n")
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    assert [(each.code, each.severity.value, each.offset) for each in result.findings] == [("KA007", "error", 3)]


def test_uncleaned_gap_is_not_found_in_a_healthy_log():
    assert recorded_findings(uncleaned_gap, "samples/clean") == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((b"a", b"b", b"c"), []),
        # the cleaner keeps no record without a key, and one record of each key (Cleaner.shouldRetainRecord)
        ((b"a", None, b"c"), [("KA013", "error", 2, 2, 1)]),
        ((b"a", b"b", b"a"), [("KA013", "error", 2, 2, 1)]),
        # above the first dirty offset it has not been
        ((b"a", b"b", b"c", b"a"), []),
    ],
)
def test_keys_that_the_cleaner_would_have_removed_say_that_it_was_not_there(tmp_path, keys, expected):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    offsets = (0, 1, 3, 4)
    batches = [Batch(key=key).at(offset).encode() for key, offset in zip(keys, offsets, strict=False)]
    (partition / f"{0:020d}.log").write_bytes(b"".join(batches[:3]))
    (partition / f"{4:020d}.log").write_bytes(b"".join(batches[3:]))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    assert found(tmp_path) == expected
