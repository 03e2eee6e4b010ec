"""What is read now and then, and what is remembered of findings that were reported."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.model.severity import Severity, Status
from kaudit.scanning.options import ScanOptions
from kaudit.watch import findings
from kaudit.watch.findings import LiveAudit
from kaudit.watch.memory import Memory, Reported


def test_the_slowest_of_what_is_read_now_and_then():
    def nothing(*_):
        raise AssertionError("nothing is read")

    audit = LiveAudit(ScanOptions([]), nothing)
    assert audit.slowest == 0
    for due, seconds in ((audit._coordinators_due, 2.0), (audit._groups_due, 7.0), (audit._blocks_due, 3.0)):
        due.longest = seconds
        # a tenth of the time may be spent on it
        assert audit.slowest == pytest.approx(
            10
            * max(
                seconds, *(other.longest for other in (audit._coordinators_due, audit._groups_due, audit._blocks_due))
            )
        )
    assert (findings.COORDINATOR_SHARE, findings.GROUPS_SHARE, findings.BLOCKS_SHARE) == (0.1, 0.1, 0.1)


def finding(key, offset=None, last=None, severity=Severity.ERROR, status=Status.NEW, partition=0):
    made: Any = SimpleNamespace(
        key=key,
        code="KA101",
        severity=severity,
        status=status,
        offset=offset,
        last_offset=last,
        log_dir="/l",
        topic="t",
        partition=partition,
    )
    return made


def test_a_finding_is_reported_once_and_counted_if_new():
    memory = Memory()
    first, second = finding("a", 5, 9), finding("b", 7, severity=Severity.NOTE, partition=1)
    known = finding("c", None, status=Status.KNOWN)
    places: dict[tuple[object, ...], str] = {("/l", "t", 0): "/l/t-0"}
    assert memory.take([first, second, known, first], places) == [first, second, known]
    assert memory.take([second, first], places) == []
    assert memory.findings == {
        "a": Reported("KA101", "error", "/l/t-0", 9),
        "b": Reported("KA101", "note", "", 7),
        "c": Reported("KA101", "error", "/l/t-0", None),
    }
    assert memory.take([finding("d", 0, 0)], places)[0].key == "d"
    assert memory.by_check() == {("KA101", "error"): 2, ("KA101", "note"): 1}
    assert memory.by_severity() == {"error": 2, "note": 1}


@pytest.mark.parametrize(
    ("starts", "deleted", "left"),
    [
        ({}, (), "abcd"),
        ({"/l/t-0": 9}, (), "abcd"),
        ({"/l/t-0": 10}, (), "bcd"),
        ({"/l/t-1": 8}, (), "acd"),
        ({"/l/t-0": 1 << 60}, (), "bcd"),
        ({}, ("/l/t-0",), "bd"),
        ({"/l/t-0": 10, "/l/t-1": 10}, ("/l/t-0",), "d"),
    ],
)
def test_what_the_log_has_no_more_is_forgotten(starts, deleted, left):
    memory = Memory()
    for key, directory, offset in (("a", "/l/t-0", 9), ("b", "/l/t-1", 7), ("c", "/l/t-0", None), ("d", "", 5)):
        memory.findings[key] = Reported("KA101", "error", directory, offset)
    memory.forget(starts, deleted)
    assert "".join(memory.findings) == left
