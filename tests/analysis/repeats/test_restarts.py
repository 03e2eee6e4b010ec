"""Producers that begin where others ended, found without decoding the log; tests at both depths are in the file beside this."""

from pathlib import Path

import pytest

from kaudit.analysis.repeats.restarts import MAX_RESTARTS
from kaudit.analysis.scan.options import Depth, ScanOptions, SilentProgress
from kaudit.engines.local import scan
from tests.logs import Batch, Log, data


def result(path: Path):
    return scan(ScanOptions([str(path)], jobs=1), SilentProgress())


def repeated(path: Path) -> list[tuple[int | None, int | None]]:
    return [(finding.offset, finding.last_offset) for finding in result(path).findings if finding.code == "KA701"]


def sessions(log: Log, *payloads: list[bytes]) -> None:
    for producer_id, messages in enumerate(payloads):
        for sequence, message in enumerate(messages):
            log.append(data(producer_id, 0, sequence, payload=message))


def test_a_restart_is_found_over_segments_and_other_producers(tmp_path):
    log = Log()
    sessions(log, [b"a", b"b", b"c", b"d"])
    for number in range(400):
        log.append(Batch(payload=b"other %d" % number))
    for sequence, message in enumerate([b"b", b"c", b"d", b"e"]):
        log.append(data(900, 0, sequence, payload=message))
    assert repeated(log.write(tmp_path / "orders-0", segment_starts=(3, 200, 405))) == [(404, 406)]


def test_what_every_producer_writes_is_no_evidence(tmp_path):
    log = Log()
    sessions(log, *[[b"started", b"working", b"stopped"]] * 3)
    assert repeated(log.write(tmp_path / "orders-0")) == []


def test_producers_that_are_not_compared_are_counted(tmp_path):
    log = Log()
    sessions(log, *[[b"%d" % number] for number in range(MAX_RESTARTS + 4)])
    reasons = {note.reason for note in result(log.write(tmp_path / "orders-0")).not_audited}
    assert "3 more producers were not compared with those before them (KA701)" in reasons


@pytest.mark.parametrize("depth", [Depth.CRC, Depth.RECORDS])
@pytest.mark.parametrize(("others", "found"), [(0, [(4, 6)]), (7, [(11, 13)]), (8, [])])
def test_a_producer_is_compared_with_the_eight_that_ended_last(others, found, depth, tmp_path):
    """Those that ended before them cannot be distinguished from any other: an application restarts within minutes."""
    log = Log()
    sessions(log, [b"a", b"b", b"c", b"d"], *[[b"other %d" % number] for number in range(others)])
    for sequence, message in enumerate([b"b", b"c", b"d", b"e"]):
        log.append(data(900, 0, sequence, payload=message))
    options = ScanOptions([str(log.write(tmp_path / "orders-0"))], jobs=1, depth=depth)
    findings = [each for each in scan(options, SilentProgress()).findings if each.code == "KA701"]
    assert [(each.offset, each.last_offset) for each in findings] == found
    for each in findings:
        assert each.impact.records_duplicated == 3
        assert (each.evidence["copied_first_offset"], each.evidence["copied_last_offset"]) == (1, 3)
        assert (each.evidence["copied_producer_id"], each.producer_id) == (0, 900)
