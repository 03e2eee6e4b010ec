"""Ledgers by windows of event time: what is not read again is as in the ledger of all records, whatever differs."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.audits.records import reading
from kaudit.cli.app import run
from kaudit.diff.records import windows
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LOCAL_RECORDS, LedgerRequest, LocalRecords, record_ledger
from kaudit.model.ledger import TopicLedger, mapped_ranges
from kaudit.model.replicas import Replica
from kaudit.scanning.options import ScanOptions
from tests.mirrors.__main__ import WINDOWS_MS
from tests.mirrors.compared import request_of
from tests.mirrors.histories import History
from tests.mirrors.log import Log, Record

SEEDS = [seed for seed in range(200, 260) if History(seed).settings.with_timestamp]
BEGIN = 1_700_000_000_000
ORDER = "windows follow one another in another order"
CROSSES = windows.ORDER_CROSSES
CLEANED = "a log cleaner has been there: later records explain why earlier ones are gone"


class Counting(LocalRecords):
    """The local engine, which notes how many bytes each comparison reads after the windows."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def compare(self, comparison: Any, *rest: Any) -> Any:
        self.read.append(comparison.bytes)
        return super().compare(comparison, *rest)


def ledger(source: str, target: str, request: LedgerRequest, engine: Any = LOCAL_RECORDS) -> tuple[TopicLedger, Any]:
    """The ledger without its windows, its map and its counts of windows."""
    sides = Replica("source", source), Replica("target", target)
    with record_ledger(ScanOptions([source, target], jobs=1), sides, request, SilentProgress(), engine) as result:
        (one,) = result.ledgers
        return replace(one, windows=None, map_file=""), (list(mapped_ranges(one.map_file)), one.windows)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ledger_is_that_of_all_records(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "CUT_RECORDS", 7)
    history = History(seed)
    sides = history.write(tmp_path)
    whole, (mapped, _) = ledger(*sides, request_of(history))
    for width in WINDOWS_MS:
        narrowed, (own, counts) = ledger(*sides, request_of(history, width))
        assert (narrowed, own) == (whole, mapped)
        assert counts.milliseconds == width
        assert counts.differing or whole.agrees


def topic(*records: tuple[int, bytes]) -> Log:
    """A topic with the values of these seconds; all have one key."""
    log = Log()
    for number, (second, value) in enumerate(records):
        log.append([Record(number, b"key", value, (), BEGIN + 1000 * second)])
    return log


EVEN = [(second, b"%d" % second) for second in range(40)]


def by_windows(tmp_path, source: Log, target: Log, engine: Any = LOCAL_RECORDS) -> tuple[TopicLedger, Any]:
    for side, log in (("a", source), ("b", target)):
        log.write(tmp_path / side / "orders-0")
        (tmp_path / side / "cleaner-offset-checkpoint").write_text(
            f"0\n1\norders 0 {log.cleaned}\n" if log.cleaned else ""
        )
    paths = str(tmp_path / "a"), str(tmp_path / "b")
    found, (mapped, counts) = ledger(*paths, LedgerRequest(window_ms=10_000), engine)
    whole, (wholly_mapped, _) = ledger(*paths, LedgerRequest())
    assert (found, mapped) == (whole, wholly_mapped)
    return found, counts


def test_windows_that_differ_are_named_and_read_alone(tmp_path):
    engine = Counting()
    lost = EVEN[:15] + EVEN[16:]
    found, counts = by_windows(tmp_path, topic(*EVEN), topic(*lost), engine)
    assert [(each.first, each.last) for each in found.missing_ranges] == [(15, 15)]
    assert (counts.windows, counts.differing, counts.compared_whole) == (4, 1, None)
    (window,) = counts.differences
    assert window.to_dict() == {"start": "2023-11-14T22:13:30.000Z", "source_records": 10, "target_records": 9}
    whole = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    assert engine.read[0] < whole * 0.27


def test_equal_topics_are_not_read_again(tmp_path):
    engine = Counting()
    found, counts = by_windows(tmp_path, topic(*EVEN), topic(*EVEN), engine)
    assert (found.matched, found.agrees, counts.differing, engine.read) == (40, True, 0, [0])


@pytest.mark.parametrize(
    ("moved", "reason"),
    [
        # within a window: its digest differs
        ([*EVEN[:3], EVEN[4], EVEN[3], *EVEN[5:]], None),
        # the last of one window and the first of the next
        ([*EVEN[:9], EVEN[10], EVEN[9], *EVEN[11:]], ORDER),
        # a whole window after another
        ([*EVEN[10:20], *EVEN[:10], *EVEN[20:]], ORDER),
        # one of a window that differs, into one that is equal
        ([*EVEN[:4], *EVEN[5:25], EVEN[3 + 1], *EVEN[25:39]], CROSSES),
    ],
    ids=["within", "neighbours", "windows", "far"],
)
def test_another_order_is_never_missed(tmp_path, moved, reason):
    found, counts = by_windows(tmp_path, topic(*EVEN), topic(*moved))
    assert found.out_of_order > 0
    assert counts.compared_whole == reason


def test_partitions_of_other_numbers_are_compared_as_the_ledger_maps_them(tmp_path):
    odd = [(second, b"odd %d" % second) for second in range(40)]
    for side, parts in (("a", (EVEN, odd, EVEN[:3])), ("b", (odd[:15] + odd[16:], EVEN, EVEN[:3]))):
        for number, records in enumerate(parts):
            topic(*records).write(tmp_path / side / f"orders-{number}")
    paths = str(tmp_path / "a"), str(tmp_path / "b")
    found, (mapped, counts) = ledger(*paths, LedgerRequest(window_ms=10_000))
    assert (found, mapped) == (ledger(*paths, LedgerRequest())[0], ledger(*paths, LedgerRequest())[1][0])
    assert (found.missing, found.missing_ranges[0].partition, found.missing_ranges[0].first) == (1, 1, 15)
    assert (counts.windows, counts.differing) == (4, 1)
    assert counts.compared_whole == "partitions of the target have other numbers"


def test_records_without_a_timestamp_are_a_window_of_their_own(tmp_path):
    none = [(second - BEGIN // 1000 - 1, b"%d" % second) for second in (0, 0, 0)]
    _, counts = by_windows(tmp_path, topic(*EVEN, *none), topic(*EVEN, *none[:-1], EVEN[39]))
    assert counts.differences[0].start is None


def test_what_is_remembered_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.engines.record_ledger.MOST_RUNS", 4)
    found, counts = by_windows(tmp_path, topic(*EVEN), topic(*EVEN[:-1]))
    assert (found.pending, counts.compared_whole) == (1, "more windows than are remembered")


def test_a_compacted_topic_is_compared_whole(tmp_path):
    gone = topic(*EVEN)
    gone.compact(30)
    found, counts = by_windows(tmp_path, topic(*EVEN), gone)
    assert (found.missing, counts.compared_whole) == (0, CLEANED)


def test_damage_is_compared_whole(tmp_path):
    for name in ("a", "b"):
        topic(*EVEN).write(tmp_path / name / "orders-0")
    (segment,) = (tmp_path / "b").rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    found, (_, counts) = ledger(str(tmp_path / "a"), str(tmp_path / "b"), LedgerRequest(window_ms=10_000))
    assert (found.missing, counts.compared_whole) == (1, "a part of the log is damaged or cannot be read")


def test_brokers_times_are_left_out(tmp_path):
    stamped = Log()
    for second, value in EVEN[:-1]:
        stamped.append([Record(second, b"key", value, (), 0)], append_time=BEGIN + second)
    topic(*EVEN).write(tmp_path / "a" / "orders-0")
    stamped.write(tmp_path / "b" / "orders-0")
    found, (_, counts) = ledger(str(tmp_path / "a"), str(tmp_path / "b"), LedgerRequest(window_ms=10_000))
    assert (found.matched, found.pending, found.identity) == (39, 1, "key,value,headers")
    assert counts.compared_whole == "brokers have set the timestamps"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--windows", "10m", "--identity", "key,value"], "add timestamp"),
        (["--windows", "10m", "--identity", "debezium"], "add timestamp"),
        (["--windows", "soon"], "not a span of time"),
        (["--windows", "0s"], "a window has a length"),
    ],
    ids=str,
)
def test_windows_need_times_in_the_identity(tmp_path, capsys, options, said):
    for name in ("a", "b"):
        topic(*EVEN).write(tmp_path / name / "orders-0")
    assert run(["diff", "--by", "records", str(tmp_path / "a"), str(tmp_path / "b"), *options]) == 2
    assert said in capsys.readouterr().err


def test_the_report_names_windows(tmp_path, capsys):
    for name, records in (("a", EVEN), ("b", EVEN[:15] + EVEN[16:])):
        topic(*records).write(tmp_path / name / "orders-0")
    assert run(["diff", "--by", "records", "-q", "--windows", "10s", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "1 of 4 windows of 10 s differ (2023-11-14T22:13:30.000Z: 10 records of the source, 9 of the target)" in said
    assert "the ledger has read these alone" in said
