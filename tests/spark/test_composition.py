"""findings(runs(batches)) is what scan finds, whatever rows come in what order; all of it without a JVM."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kaudit import __version__
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.model.table_columns import DATAFRAME_TABLES
from kaudit.model.timeline import HistoryRow
from kaudit.reading.chunk_codec import pack_chunk, unpack_chunk
from kaudit.reading.range_reader import read_planned
from kaudit.reading.shuffle_codec import pack
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark.rows import batches_to_runs
from kaudit.spark.schemas import arrow_schema, milliseconds, to_batch, to_batches
from tests.engines.faulty_logs import FAULTS, duplicates, healthy
from tests.logs import BASE_TIMESTAMP, Log, data
from tests.reading.test_range_joining import plain
from tests.spark.in_process import (
    Steps,
    as_table,
    findings,
    histories,
    joined,
    load,
    planned,
    replayed_works,
    runs_of,
    scanned,
)
from tests.timelines import timelines_of

SAMPLES = ["committed-offsets", "compacted", "consumed-offsets", "coordinator", "crafted", "duplicates", "hanging-transaction", "malformed", "open-transaction",
           "replicas", "side-files", "tiered", "zombie", "damaged/flip-body", "damaged/truncate-mid-batch-active"]  # fmt: skip


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    root = tmp_path_factory.mktemp("logs")
    for number, make in enumerate(FAULTS):
        make(root / f"orders-{number}")
    return root


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_have_the_findings_of_scan(sample):
    logs = Path("samples").absolute() / sample
    expected = scanned(logs)
    assert findings(runs_of(load("batches", logs)), logs) == expected
    assert findings(None, logs) == expected


def test_faults_have_the_findings_of_scan(faulty):
    expected = scanned(faulty)
    assert len({row["code"] for row in expected}) >= 8
    assert findings(runs_of(load("batches", faulty)), faulty) == expected
    assert findings(load("runs", faulty), faulty) == expected


def test_rows_in_any_order_and_twice_change_nothing(faulty):
    rows = pa.Table.from_batches(load("batches", faulty))
    order = list(range(rows.num_rows)) + list(range(0, rows.num_rows, 3))
    random.Random(24).shuffle(order)
    shuffled = rows.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=101)
    assert findings(runs_of(shuffled), faulty) == scanned(faulty)


def test_what_a_filter_leaves_out_is_neither_lost_nor_reported(tmp_path):
    # a healthy partition and one with faults: every second batch of both, then one producer, then the healthy one alone
    healthy(tmp_path / "orders-0")
    duplicates(tmp_path / "orders-1")
    rows = pa.Table.from_batches(load("batches", tmp_path))
    expected = scanned(tmp_path)
    at = {(row["partition"], row["position"]) for row in expected}
    half = rows.take(pa.array(range(0, rows.num_rows, 2)))
    kept = {(row["partition"], row["position"]) for row in half.to_pylist()}
    found = findings(runs_of(half.to_batches()), tmp_path)
    assert found == [row for row in expected if (row["partition"], row["position"]) in kept or row["position"] is None]
    offending = rows.filter(pc.is_in(rows["position"], pa.array([position for _, position in at]))).filter(
        pc.equal(pc.field("partition"), 1)
    )
    assert findings(runs_of(offending.to_batches()), tmp_path) == expected
    only_healthy = rows.filter(pc.equal(rows["partition"], 0))
    assert findings(runs_of(only_healthy.to_batches()), tmp_path) == []


def test_a_header_that_columns_cannot_hold_is_read_again(tmp_path):
    log = Log()
    for number in range(4):  # as clients write that give no producer id, and an epoch all the same
        log.append(data(-1, 0, 0, 2, timestamp=1_700_000_000_000 + number))
    log.append(data(7, 0, 0, 2))
    log.append(data(7, 0, 9, 2))
    log.write(tmp_path / "orders-0")
    (rows,) = load("batches", tmp_path)
    assert rows.column("exact").to_pylist() == [False] * 4 + [True] * 2
    assert findings(runs_of([rows]), tmp_path) == scanned(tmp_path) != []


def test_timelines_and_producers_are_those_of_the_tables(faulty):
    with local.record(ScanOptions([str(faulty)]), SilentProgress()) as recorded:
        from kaudit.report.machine.tables import write_histories

        expected: dict[str, list[object]] = {"timelines": [], "producers": []}
        for table, piece in recorded.write_histories(write_histories, recorded.result.findings):
            expected[table] += pa.ipc.open_stream(piece).read_all().to_pylist()
    runs = runs_of(load("batches", faulty))
    for table, rows in expected.items():
        found = histories(table, runs, faulty)
        assert len(found) == len(rows) > 10
        assert sorted(map(str, found)) == sorted(map(str, rows))
        assert [row for batch in load(table, faulty) for row in batch.to_pylist()] == rows
    found = [row for batch in load("findings", faulty) for row in batch.to_pylist()]
    assert as_table(found) == scanned(faulty)


def test_runs_end_with_their_segments(tmp_path):
    healthy(tmp_path / "orders-0")
    segments = sorted(path.name for path in (tmp_path / "orders-0").glob("*.log"))
    rows = [row for batch in load("runs", tmp_path) for row in batch.to_pylist()]
    assert [row["segment"] for row in rows if row["row"] == "chunk"] == segments
    runs: dict[int, list[dict[str, int]]] = {}
    for row in rows:
        if row["row"] == "run":
            runs.setdefault(row["producer_id"], []).append(row)
    for timeline in timelines_of(local.timeline(ScanOptions([str(tmp_path)]), SilentProgress()).histories):
        own = runs.pop(timeline.producer_id)
        if own[0]["is_transactional"]:
            continue  # its runs end with its transactions
        (entry,) = timeline.entries
        assert isinstance(entry, HistoryRow)
        assert entry.kind == "run"
        assert [first["last_sequence"] + 1 for first in own[:-1]] == [row["first_sequence"] for row in own[1:]]
        assert (own[0]["first_offset"], own[-1]["last_offset"]) == (entry.first_offset, entry.last_offset)
        assert sum(row["records"] for row in own) == entry.records
    assert not runs


def test_every_table_has_its_columns(faulty):
    for table in ("batches", "runs", "records"):
        for rows in load(table, faulty):
            assert rows.schema == arrow_schema(table)
            assert rows.schema.names == list(DATAFRAME_TABLES[table])


KEPT_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last that Spark's timestamps show."""


def test_timestamps_that_no_column_holds_are_null():
    times = np.ma.masked_array([0, -1, KEPT_MS, KEPT_MS + 1, 5], [False, False, False, False, True])
    expected = [0, -1, KEPT_MS, -1, -1]
    masked = to_batch("batches", {"max_timestamp": times})
    assert milliseconds(masked.column("max_timestamp")).tolist() == expected
    plain_times = to_batch("batches", {"max_timestamp": np.ma.getdata(times)})
    assert milliseconds(plain_times.column("max_timestamp")).tolist() == [*expected[:-1], 5]
    rows = [{"max_timestamp": int(time)} for time in np.ma.getdata(times)[:4]] + [{}]
    pieces = list(to_batches("batches", rows, most_rows=2))
    assert [piece.num_rows for piece in pieces] == [2, 2, 1]
    column = pa.Table.from_batches(pieces)["max_timestamp"].combine_chunks()
    assert milliseconds(column).tolist() == expected
    assert [piece.num_rows for piece in to_batches("batches", rows[:4], most_rows=2)] == [2, 2]


def test_a_chunk_is_read_back_only_as_what_it_is(tmp_path):
    healthy(tmp_path / "orders-0")
    (runs, *_) = load("runs", tmp_path)
    packed = runs.column("chunk")[0].as_py()
    read_back = unpack_chunk(packed)
    assert list(map(plain, unpack_chunk(pack_chunk(read_back)))) == list(map(plain, read_back))
    scan = ScanOptions([str(tmp_path)])
    (job,) = plan_jobs(scan, find_input(scan), all_needs)
    for spec in job.ranges():
        outcomes = read_planned(spec)
        assert list(map(plain, unpack_chunk(pack_chunk(outcomes)))) == list(map(plain, outcomes))

    for bad in (pack((__version__, [])), b"", packed[:40], b"\x00" * 30):
        with pytest.raises(UsageError, match="chunk"):
            unpack_chunk(bad)


def test_a_segment_that_is_gone_is_no_clean_verdict(tmp_path):
    healthy(tmp_path / "orders-0")
    known, plan = planned(tmp_path)
    newest = max((tmp_path / "orders-0").glob("*.log"))
    newest.unlink()
    rows = Steps([known, *replayed_works(plan.works)], plan.shuffle_partitions)
    with pytest.raises(UnreadableInputError, match=rf"{newest}: No such file.*allow_incomplete=True"):
        joined(rows, allow_incomplete=False)
    found = [row for batch in joined(rows) for row in batch.to_pylist()]
    assert "error" not in {row["severity"] for row in found}


def test_no_rows_make_no_runs():
    assert list(batches_to_runs(iter(()))) == []


def one_log(directory, topic, producer_id):
    log = Log()
    for sequence in (0, 1, 5):
        log.append(data(producer_id, 0, sequence))
    log.write(directory / f"{topic}-0")
    return directory


@pytest.mark.parametrize("table", ["timelines", "producers"])
@pytest.mark.parametrize("topic", ["orders", "payments"])
def test_histories_of_rows_in_any_order_are_those_of_all_logs_in_one_table(tmp_path, topic, table):
    first, second = one_log(tmp_path / "a", "orders", 1), one_log(tmp_path / "b", topic, 2)
    expected = [row for batch in load(table, first, second) for row in batch.to_pylist()]
    assert {row["producer_id"] for row in expected} == {1, 2}
    rows = pa.concat_tables(pa.Table.from_batches(load("batches", log)) for log in (second, first))
    order = [*range(rows.num_rows), 0]
    random.Random(7).shuffle(order)
    shuffled = rows.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=2)
    assert sorted(map(str, histories(table, runs_of(shuffled)))) == sorted(map(str, expected))
    own = runs_of(rows.filter(pc.equal(rows["producer_id"], 1)).to_batches())
    assert {row["producer_id"] for row in histories(table, own)} == {1}


@pytest.mark.parametrize("topic", ["orders", "payments"])
@pytest.mark.parametrize("table", ["batches", "runs"])
def test_rows_of_two_logs_have_the_findings_of_both(tmp_path, topic, table):
    """What Spark's union gives: the schema of the first log, and the rows of both."""
    first, second = one_log(tmp_path / "a", "orders", 1), one_log(tmp_path / "b", topic, 2)
    rows = [batch for log in (first, second) for batch in load(table, log)]
    found = findings(runs_of(rows) if table == "batches" else rows, first)
    assert found == scanned(first, second)
    assert {row["producer_id"] for row in found} >= {1, 2}


def test_rows_of_a_log_appended_month_by_month_have_its_findings(tmp_path):
    log = Log()
    for sequence in (0, 1, 5, 6, 9):
        log.append(data(1, 0, sequence))
    directory = log.write(tmp_path / "orders-0", segment_starts=(2, 4))
    newest = max(directory.glob("*.log"))
    content = newest.read_bytes()
    newest.unlink()
    november = runs_of(load("batches", tmp_path))
    newest.write_bytes(content)
    december = runs_of(load("batches", tmp_path, first_offset=4))
    assert findings([*november, *december]) == scanned(tmp_path) != []


def test_rows_read_before_the_first_segments_were_removed_are_put_where_they_belong(tmp_path):
    log = Log()
    for sequence in (0, 1, 5, 6, 9):
        log.append(data(1, 0, sequence))
    directory = log.write(tmp_path / "orders-0", segment_starts=(2, 4))
    rows = runs_of(load("batches", tmp_path, first_offset=2))
    min(directory.glob("*.log")).unlink()
    assert findings(rows) == scanned(tmp_path) != []


def test_rows_that_were_read_in_different_ways_are_no_input(tmp_path):
    log = one_log(tmp_path / "a", "orders", 1)
    rows = [*load("runs", log), *load("runs", log, depth="records")]
    with pytest.raises(
        UsageError, match=r"^these rows were read with different values of depth: give all paths to one"
    ):
        findings(rows)


def test_two_different_chunks_of_the_same_bytes_are_not_of_one_segment(tmp_path):
    first, second = one_log(tmp_path / "a", "orders", 1), tmp_path / "b"
    log = Log(clock=BASE_TIMESTAMP + 1)
    for sequence in (0, 1, 5):
        log.append(data(2, 0, sequence))
    log.write(second / "orders-0")
    rows = [*runs_of(load("batches", first)), *runs_of(load("batches", second))]
    with pytest.raises(UsageError, match="these rows are of no segment of the logs that they name"):
        findings(
            [
                batch.set_column(
                    batch.schema.get_field_index("path"),
                    "path",
                    rows[0].column("path").take(pa.array([0] * batch.num_rows)),
                )
                for batch in rows
            ],
            first,
        )


def test_rows_of_a_segment_that_is_gone_since_are_not_passed_over(tmp_path):
    log = Log()
    for sequence in range(4):
        log.append(data(1, 0, sequence))
    directory = log.write(tmp_path / "orders-0", segment_starts=(0, 1, 2, 3))
    rows = runs_of(load("batches", tmp_path))
    for segment in sorted(directory.glob("*.log"))[-2:]:
        segment.unlink()
    with pytest.raises(
        UsageError,
        match=r"orders-0/.*\.log: these rows are of no segment of the logs that they name, or it has changed since",
    ):
        findings(rows, tmp_path)
