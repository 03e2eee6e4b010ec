"""What the driver asks of Spark when executors write tables: files, their rows and the manifest, with a stand-in for Spark."""

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kaudit.spark import table_target as spark_tables
from kaudit.spark.jobs import SparkFailedError
from kaudit.spark.table_target import TableTarget, _HadoopFiles, _in_files
from kaudit.spark.tables import _pieces_frame
from tests.recorded_calls import RecordedCalls
from tests.spark.arrow_session import ArrowSession


def session(*, s3: str | None = None) -> Any:
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jsc=SimpleNamespace(hadoopConfiguration=lambda: {"fs.s3.impl": s3} if s3 is not None else {})
        )
    )


@pytest.mark.parametrize(
    ("url", "s3", "place"),
    [
        ("hdfs://nn/audits/run_id=nightly", None, "hdfs://nn/audits"),
        ("hdfs://nn/audits/run_id=nightly/", None, "hdfs://nn/audits"),
        ("s3://bucket/audits/run_id=nightly", None, "s3a://bucket/audits"),
        ("s3://bucket/audits/run_id=nightly", "com.amazon.EmrFileSystem", "s3://bucket/audits"),
        ("s3a://bucket/audits/run_id=nightly", None, "s3a://bucket/audits"),
    ],
)
def test_a_url_that_ends_in_a_run_names_it(url, s3, place):
    assert TableTarget.of(session(s3=s3), url, {"kaudit": "1"}) == TableTarget(place, "nightly", {"kaudit": "1"})


def test_else_the_time_names_it_and_no_two_runs_have_one_name():
    one, two = (TableTarget.of(session(), "hdfs://nn/audits/", {}) for _ in range(2))
    assert one.url == two.url == "hdfs://nn/audits"
    assert one.run_id != two.run_id
    for each in (one, two):
        time, _, rest = each.run_id.partition("-")
        assert (len(time), time[8], time[-1], len(rest)) == (len("20261124T184500Z"), "T", "Z", 4)


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        (0, "rows.coalesce(1).sortWithinPartitions('topic', 'number')"),
        (1, "rows.coalesce(1).sortWithinPartitions('topic', 'number')"),
        (2, "rows.repartitionByRange(2, 'topic', 'number').sortWithinPartitions('topic', 'number')"),
    ],
)
def test_rows_are_one_file_at_least_and_sorted(files, asked):
    rows: Any = RecordedCalls("rows")
    assert repr(_in_files(rows, files, "topic", "number")) == asked


def test_each_table_is_written_as_files_of_256_mib_between_two_manifests(monkeypatch):
    """Of the pieces, 768 MiB are three files, one byte more four; 5 million rows of 64 bytes are two."""
    log: list[object] = []
    mib = 1 << 20
    sizes = {"findings": (5, 768 * mib), "batches": (7, 768 * mib + 1), "names": (9, 1)}
    target = TableTarget("hdfs://nn/audits", "nightly", {"kaudit": "1", "run_id": "?"})
    monkeypatch.setattr(
        spark_tables,
        "_HadoopFiles",
        lambda spark: SimpleNamespace(
            delete=lambda url: log.append(("delete", url)), write=lambda url, content: log.append((url, content))
        ),
    )
    monkeypatch.setattr(spark_tables, "_sizes", lambda pieces: sizes)
    monkeypatch.setattr(spark_tables, "_unpacked", lambda pieces, files, schema: (repr(pieces), files, schema))
    monkeypatch.setattr(
        TableTarget, "_write_table", lambda self, spark, written, name, rows: log.append((name, rows, written))
    )
    schemas = {name: pa.schema([(name, pa.int64())]) for name in ("findings", "batches", "digests")}
    listed = pa.schema([("producer_id", pa.int64()), ("topic", pa.string())])
    producers: Any = RecordedCalls("producers")
    producers.count = lambda: 5_000_000
    spark: Any = ArrowSession()
    target.write(spark, RecordedCalls("pieces"), {**schemas, "producers": listed}, {"producers": producers})  # type: ignore[arg-type]
    manifest = "hdfs://nn/audits/manifests/run_id=nightly.json"
    by = "'topic', '_key', 'producer_id', '_place'"
    sorted_producers = (
        f"producers.repartitionByRange(2, {by}).sortWithinPartitions({by}).select('producer_id', 'topic')"
    )
    log[4] = *log[4][:2], repr(log[4][2])  # type: ignore[index]
    counts = {"findings": 5, "batches": 7, "digests": 0, "producers": 5_000_000}
    text = json.dumps({"kaudit": "1", "rows": counts, "run_id": "nightly"}, indent=2, sort_keys=True) + "\n"
    assert log == [
        ("delete", manifest),
        ("findings", 5, ("pieces.where(pieces[table] == findings)", 3, schemas["findings"])),
        ("batches", 7, ("pieces.where(pieces[table] == batches)", 4, schemas["batches"])),
        ("digests", 0, ("pieces.where(pieces[table] == digests)", 0, schemas["digests"])),
        ("producers", 5_000_000, sorted_producers),
        (manifest, text.encode()),
    ]
    assert spark.jobs == [
        "kaudit: make the tables",
        *(f"kaudit: write the table {name}" for name in ("findings", "batches", "digests", "producers")),
    ]


@pytest.mark.parametrize(
    ("columns", "by"), [(("producer_id", "topic"), "'topic'"), (("producer_id",), "")], ids=["topics", "no topic"]
)
def test_a_table_lies_below_its_run_by_topic(monkeypatch, columns, by):
    log: list[str] = []
    written: Any = RecordedCalls("rows", columns, log)
    written.schema = "type"
    monkeypatch.setattr(spark_tables, "_rows_seen", lambda spark, path, schema: (3, path, schema)[0])
    TableTarget("hdfs://nn/audits", "nightly", {})._write_table(RecordedCalls("spark"), written, "findings", 3)  # type: ignore[arg-type]
    path = "hdfs://nn/audits/findings/run_id=nightly"
    options = f"rows.write.mode('overwrite').option('compression', 'zstd').partitionBy({by})"
    assert log[-1] == f"{options}.parquet('{path}')"


@pytest.mark.parametrize(("rows", "there", "fails"), [(3, 3, False), (3, 2, True), (3, 0, True), (0, 1, False)])
def test_rows_that_the_driver_does_not_find_again_end_the_run(monkeypatch, rows, there, fails):
    written: Any = RecordedCalls("rows", ("topic",))
    monkeypatch.setattr(spark_tables, "_rows_seen", lambda spark, path, schema: there)
    target = TableTarget("file:/audits", "nightly", {})
    if not fails:
        target._write_table(RecordedCalls("spark"), written, "findings", rows)  # type: ignore[arg-type]
        return
    with pytest.raises(SparkFailedError) as raised:
        target._write_table(RecordedCalls("spark"), written, "findings", rows)  # type: ignore[arg-type]
    assert str(raised.value) == (
        f"file:/audits/findings/run_id=nightly: {there} of 3 rows are there: the workers wrote on disks of their own; give a "
        "URL that the driver and every worker reach"
    )


def test_a_manifest_is_written_beside_its_place_and_renamed():
    """A reader that lists `run_id=*` never sees half of one."""
    log: list[str] = []
    spark: Any = RecordedCalls("spark", log=log)
    files = _HadoopFiles(spark)
    log.clear()
    files.write("hdfs://nn/manifests/run_id=one.json", b"{}")
    path = "spark.sparkContext._jvm.org.apache.hadoop.fs.Path('hdfs://nn/manifests/{}run_id=one.json')"
    system = "{}.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())"
    final, partial = path.format(""), path.format(".")
    out = f"{system.format(final)}.create({partial}, True)"
    assert [text for text in log if text not in {final, partial, system.format(final), system.format(partial)}] == [
        out,
        f"{out}.write(bytearray(b'{{}}'))",
        f"{out}.close()",
        f"{system.format(final)}.rename({partial}, {final})",
    ]
    log.clear()
    files.delete("hdfs://nn/manifests/run_id=one.json")
    assert log[-1] == f"{system.format(final)}.delete({final}, False)"


def test_pieces_of_the_driver_come_before_all_others_and_have_no_topic():
    def piece(count: int) -> bytes:
        sink = pa.BufferOutputStream()
        table = pa.table({"x": list(range(count))})
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        made: bytes = sink.getvalue().to_pybytes()
        return made

    made: Any = [("findings", piece(2)), ("segments", piece(0))]
    spark: Any = ArrowSession()
    rows = sorted(_pieces_frame(spark, made).toArrow().to_pylist(), key=lambda row: row["number"])
    shared = {"output_batch": 0, "job_index": -1, "topic": None}
    assert rows == [
        {**shared, "number": 0, "table": "findings", "rows": 2, "data": made[0][1]},
        {**shared, "number": 1, "table": "segments", "rows": 0, "data": made[1][1]},
    ]
