"""What became of every offset, against logs whose bytes say it: each class, who knows the end, and what is not accounted for."""

import struct

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.coverage import EndWitness, OffsetClass
from kaudit.partition import continuity
from kaudit.scanning.options import ScanOptions
from tests.logs import Batch, data, keyed

MARKER = Batch(1, 0, attributes=0x30, control=(1, 0))
EMPTY_SNAPSHOT = bytes.fromhex("0001 edc63c71 00000000")
"""Version 1, CRC32C of the entry count, no entries."""


def log_of(directory, *segments, **files):
    """Write orders-0 of segments: the offset each begins at, and its batches by offset; `files` by name beside it."""
    partition = directory / "orders-0"
    partition.mkdir(parents=True)
    for base, batches in segments:
        content = b"".join(encoded(batch.at(offset)) for offset, batch in batches.items())
        (partition / f"{base:020d}.log").write_bytes(content)
    for name, text in files.items():
        (directory / name.replace("_", "-")).write_text(f"0\n1\norders 0 {text}\n")
    return directory


def encoded(batch):
    return keyed(batch) if batch.producer_id < 0 else batch.encode()


def audited(directory, **options):
    return scan(ScanOptions([str(directory)], jobs=1, **options), SilentProgress())


def account(directory, **options):
    (found,) = audited(directory, **options).coverage
    return found


def ranges(found):
    return [
        (each.first_offset, each.last_offset, each.offsets, each.kind.value, each.incomplete) for each in found.ranges
    ]


def three(sequence, offset):
    return {offset: data(1, 0, sequence, 3)}


WHOLE = (0, three(0, 0) | three(3, 3))


def test_a_whole_log_has_data_and_markers(tmp_path):
    found = account(log_of(tmp_path, (0, three(0, 0) | {3: MARKER} | three(3, 4))))
    assert found.offsets == {"data": 6, "marker": 1}
    assert (found.log_start_offset, found.log_start_source) == (0, "name of the first segment")
    assert (found.log_end_offset, found.witnesses, found.ranges, found.all_accounted) == (7, [], [], True)


def test_offsets_below_the_log_start_are_retentions_also_inside_a_batch(tmp_path):
    log_of(tmp_path, (10, three(0, 10) | three(3, 13)), log_start_offset_checkpoint=14)
    found = account(tmp_path)
    assert (found.offsets, found.log_start_offset) == ({"data": 2, "retention": 14}, 14)
    assert found.log_start_source == "log-start-offset-checkpoint"
    assert found.witnesses == [EndWitness("log-start-offset-checkpoint", 14)]
    given = account(tmp_path, log_start_offset=13)
    assert (given.log_start_offset, given.log_start_source) == (13, "--log-start-offset")


def test_what_a_log_cleaner_removed_from_batches_and_between_them_is_compacted(tmp_path):
    thinned_out = Batch(count=3, kept=1)
    log_of(
        tmp_path,
        (0, {0: thinned_out, 6: Batch(count=3)}),
        (12, {12: Batch(count=3)}),
        cleaner_offset_checkpoint=12,
    )
    found = account(tmp_path)
    assert (found.offsets, found.all_accounted) == ({"data": 7, "compacted": 8}, True)


@pytest.mark.parametrize(
    ("first_dirty", "expected", "incomplete"),
    [
        # nothing says how far the cleaner has been: at least to the end of the segment with the rewritten batch
        (None, [(9, 11, 3, "unknown", False)], False),
        (6, [(9, 11, 3, "missing", False)], False),
        (15, [], False),
    ],
)
def test_gaps_that_nothing_explains(tmp_path, first_dirty, expected, incomplete):
    own = {} if first_dirty is None else {"cleaner_offset_checkpoint": first_dirty}
    segments = [
        (0, {0: Batch(count=3, kept=2)}),
        (6, {6: Batch(count=3), 12: Batch(count=3)}),
        (15, {15: Batch(count=3)}),
    ]
    log_of(tmp_path, *segments, **own)
    result = audited(tmp_path)
    assert ranges(result.coverage[0]) == expected
    assert result.incomplete is incomplete
    told = account(tmp_path, compacted=True)
    assert (told.offsets, told.all_accounted) == ({"data": 11, "compacted": 7}, True)


def test_offsets_below_a_batch_that_a_leaders_cleaner_rewrote_leave_the_audit_incomplete(tmp_path):
    log_of(tmp_path, (0, {0: Batch(count=3), 6: Batch(count=3, kept=1)}), cleaner_offset_checkpoint=0)
    result = audited(tmp_path)
    assert ranges(result.coverage[0]) == [(3, 5, 3, "unknown", True)]
    assert result.incomplete
    assert [entry.path for entry in result.not_audited if entry.unreadable] == ["orders-0"]


def test_gaps_beyond_the_listed_ones_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(continuity, "MAX_LISTED", 1)
    batches = {offset: Batch(count=3) for offset in (0, 6, 12, 18)}
    log_of(
        tmp_path,
        (0, {0: Batch(count=3, kept=1)} | batches | {0: Batch(count=3, kept=1)}),
        (21, {}),
        cleaner_offset_checkpoint=21,
    )
    found = account(tmp_path)
    assert (found.offsets, found.all_accounted) == ({"data": 10, "compacted": 11}, True)
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    found = account(tmp_path)
    assert sum(found.offsets.values()) == 21
    assert not found.all_accounted


def test_missing_and_damaged_offsets_have_their_bounds(tmp_path):
    root = log_of(tmp_path, (0, three(0, 0) | three(3, 5)), (8, three(6, 8) | three(9, 11) | three(12, 14)))
    segment = root / "orders-0" / f"{8:020d}.log"
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    found = account(root)
    assert ranges(found) == [(3, 4, 2, "missing", False), (11, 13, 3, "damaged", False)]
    assert found.offsets == {"data": 12, "missing": 2, "damaged": 3}


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        ({"replication_offset_checkpoint": 9}, "replication-offset-checkpoint"),
        ({"recovery_point_offset_checkpoint": 9}, "recovery-point-offset-checkpoint"),
        ({"log_start_offset_checkpoint": 9}, "log-start-offset-checkpoint"),
        ({"snapshot": 9}, f"{9:020d}.snapshot"),
        ({"leader_epoch": 9}, "leader-epoch-checkpoint"),
        ({"index": 9}, f"{0:020d}.index"),
        ({"timeindex": 9}, f"{0:020d}.timeindex"),
    ],
)
def test_what_a_witness_knows_beyond_the_end_is_missing(tmp_path, beside, name):
    log_of(tmp_path, WHOLE, **{key: value for key, value in beside.items() if key.endswith("checkpoint")})
    partition = tmp_path / "orders-0"
    match beside:
        case {"snapshot": end}:
            (partition / f"{end:020d}.snapshot").write_bytes(EMPTY_SNAPSHOT)
        case {"leader_epoch": start}:
            (partition / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n1 {start}\n")
        case {"index": end}:
            (partition / f"{0:020d}.index").write_bytes(struct.pack(">ii", end - 1, 100))
        case {"timeindex": end}:
            (partition / f"{0:020d}.timeindex").write_bytes(struct.pack(">qi", 1, end - 1))
    result = audited(tmp_path)
    (found,) = result.coverage
    assert ranges(found) == [(6, 8, 3, "missing", False)]
    assert EndWitness(name, 9) in found.witnesses
    assert found.offsets[OffsetClass.MISSING.value] == 3
    assert [each.severity.value for each in result.findings if each.code in ("KA014", "KA505")] in (
        ["error"],
        ["warning"],
    )


def test_damage_at_the_end_whose_offsets_nothing_tells_is_not_accounted_for(tmp_path):
    log_of(tmp_path, WHOLE)
    segment = tmp_path / "orders-0" / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes() + b"\x7f" * 40)
    found = account(tmp_path)
    assert (ranges(found), found.all_accounted) == ([(6, None, 0, "damaged", False)], False)
    segment.write_bytes(segment.read_bytes()[:-40] + bytes(400))  # a preallocated file
    assert account(tmp_path).all_accounted


@pytest.mark.parametrize(("tiered", "kind"), [(True, "unconfirmed"), (False, "unknown")])
def test_offsets_between_the_log_start_and_the_first_segment(tmp_path, tiered, kind):
    log_of(tmp_path, (10, three(0, 10)), log_start_offset_checkpoint=4)
    if tiered:
        (tmp_path / "remote-log-index-cache").mkdir()
    result = audited(tmp_path)
    (found,) = result.coverage
    assert found.offsets == {"data": 3, "retention": 4, kind: 6}
    assert (found.all_accounted, result.incomplete) == (False, not tiered)
    assert any("offsets 4..9" in entry.reason for entry in result.not_audited)


def test_a_segment_that_cannot_be_read_leaves_its_offsets_unknown(tmp_path, monkeypatch):
    log_of(tmp_path, (0, three(0, 0)), (3, three(3, 3)), (6, three(6, 6)))
    (tmp_path / "orders-0" / f"{3:020d}.log").unlink()
    (tmp_path / "orders-0" / f"{3:020d}.log").symlink_to("/dev/null")
    result = audited(tmp_path)
    assert sum(result.coverage[0].offsets.values()) == 9
    assert not result.coverage[0].all_accounted
