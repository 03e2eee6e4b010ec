"""Producers that begin where others ended, found without decoding the log; tests at both depths are in the file beside this."""

from pathlib import Path

import numpy as np
import pytest

from kaudit.audits.repeats.restarts import MAX_RESTARTS, RestartTracker
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import BoundaryBatch, Run
from kaudit.scanning.options import Depth, ScanOptions
from tests.logs import Batch, Log, data

_RUN, _BOUNDARY = dtype_of(Run), dtype_of(BoundaryBatch)


def result(path: Path, depth: Depth = Depth.CRC):
    return scan(ScanOptions([str(path)], jobs=1, depth=depth), SilentProgress())


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


@pytest.mark.parametrize(
    ("steps", "depth", "found"),
    [(3, Depth.CRC, 0), (9, Depth.CRC, 0), (10, Depth.CRC, 2), (3, Depth.RECORDS, 2)],
)
def test_what_every_producer_writes_is_no_evidence_unless_it_is_much(tmp_path, steps, found, depth):
    log = Log()
    sessions(log, *[[b"step %d" % number for number in range(steps)]] * 3)
    codes = [finding.code for finding in result(log.write(tmp_path / "orders-0"), depth).findings]
    assert codes.count("KA701") == found


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


def begun(*producers: tuple[int, int]) -> RestartTracker:
    """A tracker fed with a run of one batch for each producer id and offset, one chunk each."""
    tracker = RestartTracker()
    feed(tracker, *producers)
    return tracker


def feed(
    tracker: RestartTracker, *producers: tuple[int, int], first_sequence: int = 0, transactional: bool = False
) -> None:
    for producer_id, offset in producers:
        runs: dict[str, np.ndarray | int] = dict.fromkeys(_RUN.names or (), 0)
        runs |= {"producer_id": producer_id, "first_sequence": first_sequence, "is_transactional": int(transactional)}
        batch: dict[str, np.ndarray | int] = dict.fromkeys(_BOUNDARY.names or (), 0)
        batch |= {"base_offset": offset, "last_offset": offset}
        tracker.feed(Columns(_RUN, 1, runs), Columns(_BOUNDARY, 1, batch))


def ended(*producers: tuple[int, int], has_last: bool = True, txn: int = -1) -> np.ndarray:
    """Rows of producers that ended at these offsets."""
    names = [
        ("producer_id", "<i8"),
        ("epoch", "<i2"),
        ("has_last", "?"),
        ("txn_first_offset", "<i8"),
        ("last", _BOUNDARY),
    ]
    rows = np.zeros(len(producers), dtype=names)
    for number, (producer_id, offset) in enumerate(producers):
        rows[number]["producer_id"], rows[number]["last"]["last_offset"] = producer_id, offset
        rows[number]["has_last"], rows[number]["txn_first_offset"] = has_last, txn
    return rows


def listed(tracker: RestartTracker, table: np.ndarray) -> tuple[list[tuple[int, int, list[int]]], int]:
    found, more = tracker.restarts(table)
    return [
        (one.first.producer_id, one.first.batch.base_offset, [edge.producer_id for edge in one.before]) for one in found
    ], more


def test_producers_and_those_that_ended_before_them_the_latest_first():
    tracker = begun((3, 30), (2, 20), (1, 10), (1, 15))
    # 1 ended where 2 began, and has not ended before it
    table = ended((1, 20), (4, 19), (5, 5), (2, 29))
    assert listed(tracker, table) == ([(1, 10, [5]), (2, 20, [4, 5]), (3, 30, [2, 1, 4, 5])], 0)
    assert listed(tracker, ended((1, 5), has_last=False)) == ([], 0)
    assert listed(tracker, ended((1, 5), txn=0)) == ([], 0)
    assert listed(tracker, ended((1, 5))) == ([(1, 10, [1]), (2, 20, [1]), (3, 30, [1])], 0)


def test_runs_that_do_not_begin_at_0_and_transactions_begin_nothing():
    tracker = begun()
    feed(tracker, (1, 10), first_sequence=1)
    feed(tracker, (2, 20), transactional=True)
    assert listed(tracker, ended((9, 0))) == ([], 0)


def test_it_comes_back_from_a_saved_state_as_it_was():
    tracker = RestartTracker.of(*begun((3, 30), (2, 20)).saved())
    feed(tracker, (3, 40), (4, 50))
    assert listed(tracker, ended((1, 5))) == ([(2, 20, [1]), (3, 30, [1]), (4, 50, [1])], 0)


def test_with_too_many_producers_nothing_is_compared(monkeypatch):
    monkeypatch.setattr("kaudit.audits.repeats.restarts.MAX_PRODUCERS", 3)
    tracker = begun((1, 10), (2, 20), (3, 30), (3, 31))
    assert len(listed(tracker, ended((7, 0), (8, 1), (9, 2)))[0]) == 3
    assert listed(tracker, ended((6, 0), (7, 0), (8, 1), (9, 2))) == ([], 4)
    feed(tracker, (4, 40))
    assert listed(tracker, ended((7, 0))) == ([], 0)
    copy = RestartTracker.of(*tracker.saved())
    for each in (tracker, copy):
        feed(each, (5, 50))
        assert listed(each, ended((7, 0))) == ([], 0)


@pytest.mark.parametrize("more", [0, 1])
def test_a_hundred_producers_are_looked_into(more):
    tracker = begun(*((number, 10 + number) for number in range(100 + more)))
    found, left = listed(tracker, ended((999, 0)))
    assert (len(found), left) == (100, more)
