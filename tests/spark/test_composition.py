"""findings(runs(batches)) is what scan finds, whatever rows come in what order; all of it without a JVM."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.types import StructType

from kaudit import __version__
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.model.table_columns import DATAFRAME_TABLES
from kaudit.model.timeline import RunEntry
from kaudit.reading.chunk_codec import pack_chunk, unpack_chunk
from kaudit.reading.range_reader import read_planned
from kaudit.reading.shuffle_codec import pack
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark.rows import batches_to_runs
from kaudit.spark.schemas import arrow_schema, milliseconds, to_batch, to_batches
from kaudit.spark.sources import PartitionSource
from tests.engines.faulty_logs import FAULTS, duplicates, healthy
from tests.logs import BASE_TIMESTAMP, Log, data
from tests.reading.test_range_joining import plain
from tests.spark.in_process import asked, findings, histories, joined, load, runs_of, scanned, sorted_rows

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
    assert [row for batch in load("findings", faulty) for row in batch.to_pylist()] == scanned(faulty)


def test_runs_end_with_their_segments(tmp_path):
    healthy(tmp_path / "orders-0")
    segments = sorted(path.name for path in (tmp_path / "orders-0").glob("*.log"))
    rows = [row for batch in load("runs", tmp_path) for row in batch.to_pylist()]
    assert [row["segment"] for row in rows if row["row"] == "chunk"] == segments
    runs: dict[int, list[dict[str, int]]] = {}
    for row in rows:
        if row["row"] == "run":
            runs.setdefault(row["producer_id"], []).append(row)
    timelines = local.timeline(ScanOptions([str(tmp_path)]), SilentProgress()).timelines
    for timeline in timelines:
        own = runs.pop(timeline.producer_id)
        if own[0]["is_transactional"]:
            continue  # its runs end with its transactions
        (entry,) = timeline.entries
        assert isinstance(entry, RunEntry)
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
    reader = PartitionSource({"path": str(tmp_path), "cut": "true"}).reader(StructType())
    planned = reader.partitions()
    newest = max((tmp_path / "orders-0").glob("*.log"))
    newest.unlink()
    rows = [batch for task in planned for batch in reader.read(task)]
    options = asked([tmp_path])
    with pytest.raises(UnreadableInputError, match=rf"{newest}: No such file.*allow_incomplete=True"):
        joined(sorted_rows(rows), options, allow_incomplete=False)
    found = [row for batch in joined(sorted_rows(rows), options) for row in batch.to_pylist()]
    assert "error" not in {row["severity"] for row in found}


def test_no_rows_make_no_runs():
    assert list(batches_to_runs(iter(()))) == []


def one_log(directory, topic, producer_id):
    log = Log()
    for sequence in (0, 1, 5):
        log.append(data(producer_id, 0, sequence))
    log.write(directory / f"{topic}-0")
    return directory


@pytest.mark.parametrize("topic", ["orders", "payments"])
def test_rows_of_two_logs_are_no_rows_of_the_first(tmp_path, topic):
    """What Spark's union gives: the schema, and so the plan, of the first log, and the rows of both."""
    first, second = one_log(tmp_path / "a", "orders", 1), one_log(tmp_path / "b", topic, 2)
    with pytest.raises(UsageError, match=r"b/.*: rows of another log.*give all paths to one batches\(\) or runs\(\)"):
        list(batches_to_runs(iter([*load("batches", first), *load("batches", second)]), [str(first)]))
    of_second = runs_of(load("batches", second))
    if topic != "orders":  # rows of runs do not say where their segment lies
        with pytest.raises(UsageError, match=r"payments-0 .*: rows of another log"):
            findings([*runs_of(load("batches", first)), *of_second], first)
    both = findings(runs_of(load("batches", first, second)), first, second)
    assert {row["producer_id"] for row in both} >= {1, 2}


def test_two_different_chunks_of_the_same_bytes_are_not_of_one_segment(tmp_path):
    first, second = one_log(tmp_path / "a", "orders", 1), tmp_path / "b"
    log = Log(clock=BASE_TIMESTAMP + 1)
    for sequence in (0, 1, 5):
        log.append(data(2, 0, sequence))
    log.write(second / "orders-0")
    rows = [*runs_of(load("batches", first)), *runs_of(load("batches", second))]
    with pytest.raises(UsageError, match="rows of another log"):
        findings(rows, first)


def test_rows_of_a_segment_that_is_gone_since_are_not_passed_over(tmp_path):
    log = Log()
    for sequence in range(4):
        log.append(data(1, 0, sequence))
    directory = log.write(tmp_path / "orders-0", segment_starts=(0, 1, 2, 3))
    rows = runs_of(load("batches", tmp_path))
    for segment in sorted(directory.glob("*.log"))[-2:]:
        segment.unlink()
    with pytest.raises(UsageError, match=r"orders-0 segment .*has changed since"):
        findings(rows, tmp_path)
