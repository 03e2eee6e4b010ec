"""Damage on a real log: one damage, one finding, at its byte; its neighbours undamaged; wherever the log is cut.

The damages are those of the torn-writes capture (tests/data/captures/torn-writes.md), made anew on the same source.
"""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data

POSITION, SIZE, OFFSET = 16297, 99, 990
MIDDLE, LAST = "00000000000000000662.log", "00000000000000001322.log"


def run(path: Path, chunk_bytes: int | None = None):
    result = local.scan(ScanOptions([str(path)], jobs=1, chunk_bytes=chunk_bytes), SilentProgress())
    # the source is a flood of short-lived producers (KA405), which no damage changes
    return replace(result, findings=[finding for finding in result.findings if finding.code != "KA405"])


def found(path: Path) -> list[tuple[str, str, int | None, int | None, int | None]]:
    return [
        (finding.code, finding.severity.value, finding.position, finding.offset, finding.last_offset)
        for finding in run(path).findings
        if finding.code != "KA011"
    ]


@pytest.fixture
def partition(evidence, tmp_path) -> Path:
    source = evidence.capture("cross-session") / "logdirs/b1/explosion-0"
    return Path(shutil.copytree(source, tmp_path / "explosion-0"))


def flip(path: Path, position: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


FLIPS = [
    ("body", 16367, 3, "KA001", OFFSET),
    ("base sequence", 16353, 0, "KA001", OFFSET),
    ("producer id", 16347, 1, "KA001", OFFSET),
    ("crc", 16314, 4, "KA001", OFFSET),
    ("attributes", 16319, 0, "KA001", OFFSET),
    ("base offset down", 16304, 2, "KA006", 986),
    ("base offset up", 16304, 5, "KA006", 1022),
    ("base offset far up", 16298, 6, "KA006", None),
    ("leader epoch", 16312, 1, "KA009", OFFSET),
    ("length by two", 16308, 1, "KA003", OFFSET),
    ("length beyond the file", 16305, 6, "KA003", OFFSET),
    ("length negative", 16305, 7, "KA003", OFFSET),
    ("magic 10", 16313, 3, "KA003", OFFSET),
    ("magic 3", 16313, 0, "KA003", OFFSET),
    ("magic 0", 16313, 1, "KA003", OFFSET),
]


@pytest.mark.parametrize(("what", "position", "bit", "code", "offset"), FLIPS, ids=[entry[0] for entry in FLIPS])
def test_a_flipped_bit(partition, what, position, bit, code, offset):
    flip(partition / MIDDLE, position, bit)
    (finding,) = found(partition)
    assert finding[:3] == (code, "error", POSITION)
    if offset is not None:
        assert finding[3] == offset


def test_truncations(partition):
    whole = (partition / LAST).read_bytes()
    for size in (13772, 13732):
        (partition / LAST).write_bytes(whole[:size])
        # the snapshot of the clean stop knows that the batch was whole
        assert sorted(found(partition), key=str) == [
            ("KA002", "warning", 13723, None, None),
            ("KA014", "error", None, 1598, 1599),
        ]
    (partition / LAST).write_bytes(whole)
    closed = (partition / MIDDLE).read_bytes()
    (partition / MIDDLE).write_bytes(closed[:16346])
    assert found(partition) == [("KA002", "error", POSITION, 990, 1321)]
    (partition / MIDDLE).write_bytes(closed[:POSITION])
    assert found(partition) == [("KA008", "error", None, 990, 1321)]


def test_zero_holes_and_garbage(partition):
    closed, active = (partition / MIDDLE).read_bytes(), (partition / LAST).read_bytes()
    aligned = bytearray(closed)
    aligned[POSITION : POSITION + 4096] = bytes(4096)
    (partition / MIDDLE).write_bytes(aligned)
    ((code, severity, position, offset, _),) = found(partition)
    assert (code, severity, position, offset) == ("KA004", "error", POSITION, OFFSET)
    inside = bytearray(closed)
    inside[16327 : 16327 + 4096] = bytes(4096)
    (partition / MIDDLE).write_bytes(inside)
    ((code, severity, position, offset, _),) = found(partition)
    assert (code, severity, offset) == ("KA004", "error", OFFSET)
    assert position is not None
    assert 16320 <= position <= 16327  # the header's own zero bytes may come right before the hole
    garbage = bytes((number * 37 + 11) % 251 + 3 for number in range(512))
    (partition / MIDDLE).write_bytes(closed[:POSITION] + garbage + closed[POSITION:])
    assert found(partition) == [("KA003", "error", POSITION, None, None)]
    (partition / MIDDLE).write_bytes(closed)
    (partition / LAST).write_bytes(active + garbage)
    assert found(partition) == [("KA003", "error", len(active), None, None)]
    (partition / LAST).write_bytes(active + bytes(8192))
    assert found(partition) == [("KA004", "note", len(active), None, None)]


def test_batches_removed_doubled_and_swapped(partition):
    closed = (partition / MIDDLE).read_bytes()
    batch = closed[POSITION : POSITION + SIZE]
    following = closed[POSITION + SIZE : POSITION + 2 * SIZE]
    (partition / MIDDLE).write_bytes(closed[:POSITION] + closed[POSITION + SIZE :])
    assert found(partition) == [("KA007", "error", POSITION, 990, 991)]
    (partition / MIDDLE).write_bytes(closed[: POSITION + SIZE] + batch + closed[POSITION + SIZE :])
    assert found(partition) == [("KA006", "error", POSITION + SIZE, 990, 991)]
    (partition / MIDDLE).write_bytes(closed[:POSITION] + following + batch + closed[POSITION + 2 * SIZE :])
    ((code, severity, position, _, _),) = found(partition)
    assert (code, severity, position) == ("KA006", "error", POSITION)


Found = tuple[str, int | None, int, int]
BESIDE: dict[str, tuple[dict[int, str], list[Found]]] = {
    "behind": ({0: "flip", 1: "cut"}, [("KA001", 0, 990, 991), ("KA007", SIZE, 992, 993)]),
    "in front": ({0: "cut", 1: "flip"}, [("KA007", 0, 990, 991), ("KA001", 0, 992, 993)]),
    "between": (
        {0: "flip", 1: "cut", 2: "flip"},
        [("KA001", 0, 990, 991), ("KA007", SIZE, 992, 993), ("KA001", SIZE, 994, 995)],
    ),
    "around": (
        {0: "cut", 1: "flip", 2: "cut"},
        [("KA007", 0, 990, 991), ("KA001", 0, 992, 993), ("KA007", SIZE, 994, 995)],
    ),
    "the rest of the segment": (
        {0: "flip", **dict.fromkeys(range(1, 166), "cut")},
        [("KA001", 0, 990, 991), ("KA008", None, 992, 1321)],
    ),
}


@pytest.mark.parametrize("chunk_bytes", [None, 150])
@pytest.mark.parametrize("place", BESIDE)
def test_batches_cut_out_beside_a_corrupt_one_are_lost_as_well(partition, place, chunk_bytes):
    changes, expected = BESIDE[place]
    for path in partition.glob(f"{0:020d}.*"):  # a shorter log has as many damages
        path.unlink()
    whole = (partition / MIDDLE).read_bytes()
    batches = [whole[at : at + SIZE] for at in range(POSITION, len(whole), SIZE)]
    for number, change in changes.items():
        batches[number] = batches[number][:70] + b"!" + batches[number][71:] if change == "flip" else b""
    (partition / MIDDLE).write_bytes(whole[:POSITION] + b"".join(batches))
    findings = run(partition, chunk_bytes).findings
    assert [(entry.code, entry.position, entry.offset, entry.last_offset) for entry in findings] == [
        (code, None if at is None else POSITION + at, first, last) for code, at, first, last in expected
    ]
    lost = sum(last - first + 1 for _, _, first, last in expected)
    assert sum(entry.impact.records_lost_at_most or 0 for entry in findings) == lost


def test_segments_missing_empty_or_renamed(partition):
    path = partition / MIDDLE
    whole = path.read_bytes()
    path.unlink()
    assert found(partition) == [("KA008", "error", None, 662, 1321)]
    path.touch()
    assert found(partition) == [("KA008", "error", 0, 662, 1321)]
    path.unlink()
    for suffix in ("deleted", "swap"):
        beside = partition / f"{MIDDLE}.{suffix}"
        beside.write_bytes(whole)
        result = run(partition)
        assert [finding.code for finding in result.findings] == ["KA011", "KA008"]
        assert result.findings[1].evidence["leftovers"] == [beside.name]
        beside.unlink()
    path.write_bytes(whole)
    (partition / f"{MIDDLE}.cleaned").write_bytes(whole[:1000])
    assert [finding.code for finding in run(partition).findings] == ["KA011"]


def test_a_marker_cut_out_is_a_missing_offset(evidence, tmp_path):
    source = evidence.capture("txn-mix-2.8.2") / "logdirs/b0/tx-roll-0"
    partition = Path(shutil.copytree(source, tmp_path / "tx-roll-0"))
    path = partition / "00000000000000000128.log"
    content = path.read_bytes()
    path.write_bytes(content[:20147] + content[20147 + 78 :])
    graves = [entry for entry in found(partition) if entry[1] == "error"]
    assert ("KA007", "error", 20147, 150, 150) in graves


SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def damaged_logs(draw):
    """A log of several producers with a few bytes changed, removed, doubled or zeroed."""
    log = Log()
    sequences = [0, 0, 0]
    for number in range(draw(st.integers(4, 30))):
        who, count = draw(st.integers(0, 2)), draw(st.integers(1, 3))
        log.append(data(who, 0, sequences[who], count, payload=b"%d" % number))
        sequences[who] += count
    content = bytearray(log.encode())
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("flip", "zero", "cut", "double", "insert")))
        at = draw(st.integers(0, len(content) - 1))
        length = draw(st.integers(1, 120))
        if kind == "flip":
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "zero":
            content[at : at + length] = bytes(len(content[at : at + length]))
        elif kind == "cut":
            del content[at : at + length]
        elif kind == "double":
            content[at:at] = content[at : at + length]
        else:
            content[at:at] = draw(st.binary(min_size=length, max_size=length))
        if not content:
            break
    return bytes(content)


def test_a_batch_that_claims_bytes_behind_its_range_is_one_damage_with_the_one_before(tmp_path):
    log = Log()
    for number in range(6):
        log.append(data(0, 0, number, 1, payload=b"%d" % number))
    content = bytearray(log.encode())
    del content[20:70]
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(content)
    for chunk_bytes in (None, 60):
        (found,) = run(directory, chunk_bytes=chunk_bytes).findings
        assert (found.code, found.position, found.evidence["resynchronised_at"]) == ("KA003", 0, 88)


@SMALL
@given(damaged_logs(), st.integers(60, 400))
def test_cutting_a_damaged_log_anywhere_changes_nothing(tmp_path_factory, content, chunk_bytes):
    directory = tmp_path_factory.mktemp("damaged") / "t-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(content)
    whole = run(directory)
    pieces = run(directory, chunk_bytes=chunk_bytes)
    assert [finding.to_dict() for finding in pieces.findings] == [finding.to_dict() for finding in whole.findings]
    assert pieces.summary == whole.summary
    assert pieces.partitions == whole.partitions
