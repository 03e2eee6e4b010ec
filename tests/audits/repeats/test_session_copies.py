"""How far back and how far on sessions are compared: to the beginning and to the end of what they have in common."""

from functools import partial

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.partition.find_repeats import find_repeats
from kaudit.scanning.options import Depth, ScanOptions
from tests.logs import Log, data


def found(path, depth):
    result = scan(ScanOptions([str(path)], jobs=1, depth=depth), SilentProgress())
    findings = [one for one in result.findings if one.code in {"KA701", "KA704"}]
    told = [
        (one.code, one.offset, one.last_offset, one.evidence["records"], one.impact.records_duplicated)
        for one in findings
    ]
    return told, {note.reason for note in result.not_audited}


def log_of(tmp_path, again, *, producer_id, epoch, batch=1, between=0):
    """Producer 1 writes 400 records, one a batch; another, or its next epoch, writes again those of `again`, `batch` a batch."""
    log = Log()
    for number in range(400):
        log.append(data(1, 0, number, payload=b"%d" % number))
    for number in range(between):
        log.append(data(2, 0, number, payload=b"other %d" % number))
    for sequence, number in enumerate(again):
        log.append(data(producer_id, epoch, sequence, payload=b"%d" % number))
    log.append(data(producer_id, epoch, len(again), payload=b"new"))
    return log.write(tmp_path / "orders-0", segment_starts=(150, 390))


@pytest.mark.parametrize("again", [range(300, 400), range(395, 400), range(7, 380)], ids=["100", "5", "373"])
@pytest.mark.parametrize(("producer_id", "epoch", "code"), [(9, 0, "KA701"), (1, 1, "KA704")], ids=["id", "epoch"])
def test_all_records_that_are_there_again_are_counted(tmp_path, again, producer_id, epoch, code):
    path = log_of(tmp_path, again, producer_id=producer_id, epoch=epoch, between=20)
    first, last = 420, 420 + len(again) - 1
    told, reasons = found(path, Depth.RECORDS)
    assert told == [(code, first, last, len(again), len(again))]
    assert not [reason for reason in reasons if "KA701" in reason]


@pytest.mark.parametrize("again", [range(300, 400), range(395, 400)], ids=["100", "5"])
def test_the_last_batches_lead_to_records_further_on(tmp_path, again):
    """At the default depth the first batch is searched for among the last 64; what follows it is compared to the end."""
    told, reasons = found(log_of(tmp_path, again, producer_id=9, epoch=0), Depth.CRC)
    there = again[0] >= 336
    assert told == ([("KA701", 400, 400 + len(again) - 1, len(again), len(again))] if there else [])
    assert [reason for reason in reasons if "compared with the last records of those (KA701" in reason]


def test_the_whole_log_before_a_session_is_searched_but_where_it_is_watched(tmp_path, monkeypatch):
    """Each look searches the 256 MiB before a session, and says so; a scan knows no bound."""
    path = log_of(tmp_path, range(10, 20), producer_id=9, epoch=0)
    assert found(path, Depth.RECORDS)[0] == [("KA701", 400, 409, 10, 10)]
    monkeypatch.setattr("kaudit.scanning.audit.find_repeats", partial(find_repeats, most_bytes=4096))
    told, reasons = found(path, Depth.RECORDS)
    assert told == []
    assert [reason for reason in reasons if "compared with the 256 MiB before them (KA701" in reason]


def test_a_record_that_every_session_begins_with_is_no_evidence(tmp_path):
    log = Log()
    for producer_id in range(1, 12):
        log.append(data(producer_id, 0, 0, payload=b"started"))
        for number in range(1, 30):
            log.append(data(producer_id, 0, number, payload=b"%d of %d" % (number, producer_id)))
    assert found(log.write(tmp_path / "orders-0"), Depth.RECORDS)[0] == []


def test_heartbeats_of_sessions_are_no_evidence(tmp_path):
    log = Log()
    for producer_id in (1, 2, 3):
        for number in range(200):
            log.append(data(producer_id, 0, number, payload=b"up"))
    assert found(log.write(tmp_path / "orders-0"), Depth.RECORDS)[0] == []


def test_change_events_are_known_by_their_place_in_the_database(tmp_path):
    """A connector that was restarted sends an event again under another ts_ms."""
    log = Log()
    event = '{"op": "c", "after": {"id": %d}, "source": {"lsn": %d}, "ts_ms": %d}'
    for number in range(60):
        log.append(data(1, 0, number, payload=(event % (number, 900 + number, number)).encode()))
    for sequence, number in enumerate(range(20, 70)):
        log.append(data(2, 0, sequence, payload=(event % (number, 900 + number, 1000 + number)).encode()))
    assert found(log.write(tmp_path / "orders-0"), Depth.RECORDS)[0] == [("KA701", 60, 99, 40, 40)]
