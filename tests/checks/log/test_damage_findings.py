"""Damage of small segments, to the byte: what is wrong, where it ends, what it costs, and what a broker does about it."""

from typing import Any

import pytest

from kaudit.checks.log.stray_file import stray_file
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.impact import Impact
from kaudit.scanning.options import ScanOptions
from tests.checks.stories import Missing, findings, log_of, plain
from tests.logs import data

FIRST, SECOND = f"{0:020d}.log", f"{3:020d}.log"
SIZE = 69


def batch(offset: int) -> bytes:
    encoded = data(1, 0, offset).at(offset).encode()
    assert len(encoded) == SIZE
    return encoded


WHOLE = batch(0) + batch(1) + batch(2)
TRUNCATES, SERVES, PREALLOCATED = "after an unclean stop", "does not notice", "cuts the zeros off"
GARBAGE = b"\x07" * SIZE

DAMAGES: dict[str, tuple[list[bytes], tuple[Any, ...], dict[str, Any], Impact, str]] = {
    # (segments, (code, severity, offset, last offset, byte, segment), evidence, impact, what a broker does)
    "the last segment ends inside a batch": (
        [WHOLE[:-5]],
        ("KA002", "warning", None, None, 2 * SIZE, FIRST),
        {"bytes": SIZE - 5, "end_position": 3 * SIZE - 5, "resynchronised_at": None, "expected_offset": 2},
        Impact(bytes_truncated=SIZE - 5),
        TRUNCATES,
    ),
    "a closed segment ends inside a batch": (
        [WHOLE[:-5], batch(3)],
        ("KA002", "error", 2, 2, 2 * SIZE, FIRST),
        {"bytes": SIZE - 5, "first_missing_offset": 2, "last_missing_offset": 2},
        Impact(records_lost_at_least=1, records_lost_at_most=1, bytes_truncated=2 * SIZE - 5),
        TRUNCATES,
    ),
    "zeros at the end of the last segment": (
        [WHOLE + bytes(500)],
        ("KA004", "note", None, None, 3 * SIZE, FIRST),
        {"bytes": 500, "detail": "500 zero bytes to the end of the file", "resynchronised_at": None},
        Impact(),
        PREALLOCATED,
    ),
    "zeros and other bytes at the end of the last segment": (
        [batch(0) + batch(1) + bytes(30) + GARBAGE],
        ("KA003", "error", None, None, 2 * SIZE, FIRST),
        {"bytes": 30 + SIZE, "detail": "30 zero bytes", "resynchronised_at": None, "expected_offset": 2},
        Impact(bytes_truncated=30 + SIZE),
        TRUNCATES,
    ),
    "zeros at the end of a closed segment": (
        [WHOLE + bytes(500), batch(3)],
        ("KA004", "error", None, None, 3 * SIZE, FIRST),
        {"bytes": 500, "detail": "500 zero bytes to the end of the file"},
        Impact(bytes_truncated=500 + SIZE),
        TRUNCATES,
    ),
    "zeros in place of a batch": (
        [batch(0) + bytes(SIZE) + batch(2)],
        ("KA004", "error", 1, 1, SIZE, FIRST),
        {"bytes": SIZE, "detail": f"{SIZE} zero bytes", "resynchronised_at": 2 * SIZE},
        Impact(records_lost_at_least=1, records_lost_at_most=1, bytes_truncated=2 * SIZE),
        TRUNCATES,
    ),
    "zeros in place of two batches": (
        [batch(0) + bytes(2 * SIZE) + batch(3)],
        ("KA004", "error", 1, 2, SIZE, FIRST),
        {"bytes": 2 * SIZE, "expected_offset": 1, "first_missing_offset": 1, "last_missing_offset": 2},
        Impact(records_lost_at_least=2, records_lost_at_most=2, bytes_truncated=3 * SIZE),
        TRUNCATES,
    ),
    "zeros between batches": (
        [batch(0) + bytes(100) + batch(1) + batch(2)],
        ("KA004", "error", None, None, SIZE, FIRST),
        {"bytes": 100, "detail": "100 zero bytes", "expected_offset": 1, "first_missing_offset": None},
        Impact(bytes_truncated=100 + 2 * SIZE),
        TRUNCATES,
    ),
    "garbage between batches": (
        [batch(0) + GARBAGE[:40] + batch(1)],
        ("KA003", "error", None, None, SIZE, FIRST),
        {"bytes": 40, "detail": "unknown magic 7", "end_position": SIZE + 40, "resynchronised_at": SIZE + 40},
        Impact(bytes_truncated=40 + SIZE),
        TRUNCATES,
    ),
    "two batches again, one after the other": (
        [WHOLE + batch(0) + batch(1) + batch(3)],
        ("KA006", "error", 0, 1, 3 * SIZE, FIRST),
        {"bytes": 2 * SIZE, "count": 2, "detail": "offset 2 had already been written", "expected_offset": 3},
        Impact(),
        SERVES,
    ),
    "a batch again": (
        [batch(0) + batch(1) + batch(0) + batch(2)],
        ("KA006", "error", 0, 0, 2 * SIZE, FIRST),
        {"bytes": SIZE, "detail": "offset 1 had already been written"},
        Impact(),
        SERVES,
    ),
    "a batch from far ahead": (
        [batch(0) + batch(50) + batch(1) + batch(2)],
        ("KA006", "error", 50, 50, SIZE, FIRST),
        {"detail": "the next batch goes on at offset 1", "expected_offset": 1},
        Impact(),
        SERVES,
    ),
    "a batch from beyond the segment": (
        [batch(0) + batch(50) + batch(1) + batch(2), batch(3)],
        ("KA006", "error", 50, 50, SIZE, FIRST),
        {"detail": "its segment cannot hold these offsets"},
        Impact(),
        SERVES,
    ),
    "a batch from the next segment": (
        [WHOLE + batch(3), batch(3)],
        ("KA006", "error", 3, 3, 3 * SIZE, FIRST),
        {"detail": "its segment cannot hold these offsets"},
        Impact(),
        SERVES,
    ),
}


@pytest.mark.parametrize("story", DAMAGES)
def test_damage(story, tmp_path):
    segments, expected, evidence, impact, broker = DAMAGES[story]
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for name, content in zip((FIRST, SECOND), segments, strict=False):
        (directory / name).write_bytes(content)
    found = scan(ScanOptions([str(directory)]), SilentProgress()).findings
    (finding,) = [each for each in found if each.code.startswith("KA0")]
    seen = finding.code, finding.severity.value, finding.offset, finding.last_offset, finding.position, finding.segment
    assert seen == expected
    assert {key: finding.evidence[key] for key in evidence} == evidence
    assert finding.impact == impact
    assert str(finding.evidence["broker"]).startswith(broker)
    # what the damage explains is not reported again as a gap in a producer's sequences
    assert [each.code for each in found if each.code in ("KA007", "KA104")] == []


LACKING = [
    {"producer_id": 1, "producer_epoch": 0, "missing_sequences": 2, "offset": 8},
    {"producer_id": 2, "producer_epoch": 0, "missing_sequences": 2, "offset": 9},
]


@pytest.mark.parametrize(("leader_epoch", "at_least"), [(0, 4), (1, 0)])
def test_producers_that_lack_sequences_where_offsets_are_missing(leader_epoch, at_least, tmp_path):
    """A change of leader makes clients skip sequences: then it is not known how many records there were."""
    both = [plain(4, who=who, leader_epoch=leader_epoch) for who in (1, 2)]
    (found,) = findings(log_of(plain(0, 2), plain(0, 2, who=2), Missing(4), *both), tmp_path, "KA0", "KA1")
    assert (found.code, found.offset, found.last_offset) == ("KA007", 4, 7)
    assert found.evidence["consequences"] == LACKING
    assert found.impact == Impact(records_lost_at_least=at_least, records_lost_at_most=4)


def test_sequences_that_either_of_two_holes_can_have_held_are_certain_in_neither(tmp_path):
    log = log_of(plain(0, 2), Missing(2), plain(0, who=2), Missing(3), plain(5))
    found = findings(log, tmp_path, "KA0", "KA1")
    assert [(each.offset, each.impact) for each in found] == [
        (2, Impact(records_lost_at_least=0, records_lost_at_most=2)),
        (5, Impact(records_lost_at_least=1, records_lost_at_most=3)),
    ]


def test_of_many_producers_twenty_are_listed(tmp_path):
    log = log_of(*[plain(0, who=who) for who in range(22)], Missing(22), *[plain(2, who=who) for who in range(22)])
    (found,) = findings(log, tmp_path, "KA0", "KA1")
    listed: Any = found.evidence["consequences"]
    assert [each.get("producer_id") for each in listed[:20]] == list(range(20))
    assert listed[20:] == [{"more": 2}]
    assert found.impact == Impact(records_lost_at_least=22, records_lost_at_most=22)


def test_what_brokers_leave_behind_is_one_note_for_each_kind_and_directory(tmp_path):
    log = log_of(plain(0))
    directory = log.write(tmp_path / "b" / "orders-0")
    for name in (f"{7:020d}.log.deleted", f"{2:020d}.log.deleted", f"{0:020d}.index.deleted", f"{0:020d}.log.cleaned"):
        (directory / name).write_bytes(b"x")
    for name in (
        "orders-1.0123456789abcdef0123456789abcdef-delete",
        "orders-2.0123456789abcdef0123456789abcdef-future",
    ):
        log.write(tmp_path / "b" / name)
    found = scan(ScanOptions([str(tmp_path / "b")]), SilentProgress()).findings
    notes = sorted(
        (
            str(each.evidence["class"]),
            each.evidence["count"],
            each.evidence["first_offset"],
            each.evidence["last_offset"],
        )
        for each in found
        if each.code == stray_file.code
    )
    assert notes == [
        ("cleaned", 1, 0, 0),
        ("delete", 1, 0, 0),
        ("deleted", 3, 2, 7),  # of the logs among them
        ("future", 1, 0, 0),
    ]
