"""`diff --by records` on Spark gives the ledger of the local engine: generated mirrors without a JVM, MirrorMaker's with one."""

from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kaudit.spark as ks
from kaudit.audits.records import reading
from kaudit.cli.app import run
from kaudit.diff.records import bucket
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LOCAL_RECORDS, record_ledger
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.model.ledger import mapped_ranges
from kaudit.model.replicas import Replica
from kaudit.model.table_columns import DATAFRAME_TABLES
from kaudit.scanning.options import ScanOptions
from kaudit.spark import record_ledger as on_spark
from kaudit.spark.session import SparkOptions, session
from tests.engines.conftest import as_reported
from tests.mirrors.compared import Way, request_of, wrong
from tests.mirrors.histories import History
from tests.mirrors.log import Log, Record
from tests.mirrors.recordings import NAMES, Recording
from tests.remote_storage import AivenPlugin, move, split
from tests.source.encrypted_chunks import KEY

SEEDS = range(100, 130)
SPARK = on_spark.SparkRecords(partial(session, SparkOptions()))


def everything(history, source, target, engine):
    """The whole result with the map of offsets, as JSON has it."""
    sides = Replica("source", source), Replica("target", target)
    options = ScanOptions([source, target], jobs=1)
    with record_ledger(options, sides, request_of(history), SilentProgress(), engine) as result:
        ledgers = [(each.to_dict(), list(mapped_ranges(each.map_file))) for each in result.ledgers]
        return ledgers, as_reported(result.scan)


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_mirrors(arrow_session, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "CUT_RECORDS", 7)
    if seed % 2:  # many buckets, some of which are split
        monkeypatch.setattr(bucket, "MOST_ROWS", 16)
        monkeypatch.setattr(on_spark, "_BUCKET_BYTES", 400)
    history = History(seed)
    sides = history.write(tmp_path)
    assert wrong(history, *sides, Way("spark", SPARK)) == []
    assert everything(history, *sides, SPARK) == everything(history, *sides, LOCAL_RECORDS)
    assert "kaudit: match records" in arrow_session.jobs


def own_rows(root, **options):
    """Rows of the DataFrame `ledger` as (difference, partition, first and last offset, records, first offset in the source)."""
    session: Any = SparkSession.getActiveSession()
    rows = ks.ledger(session, root / "a", root / "b", **options).toArrow().to_pylist()
    assert {(row["source_topic"], row["target_topic"]) for row in rows} == {("orders", "b.orders")}
    names = ("difference", "partition", "first_offset", "last_offset", "records", "source_first_offset")
    return [tuple(row[name] for name in names) for row in rows]


def log_of(*numbers):
    log = Log()
    log.append([Record(number, b"key", b"%d" % number, (), 1000 + number) for number in numbers])
    return log


@pytest.fixture
def two_sides(tmp_path):
    log_of(1, 2, 3, 4, 5).write(tmp_path / "a" / "orders-2")
    log_of(1, 3, 4, 4, 9, 3).write(tmp_path / "b" / "b.orders-2")
    return tmp_path


EXPECTED = [
    ("missing", 2, 1, 1, 1, None),
    ("repeated", 2, 3, 3, 1, 3),
    ("repeated", 2, 5, 5, 1, 2),
    ("only-in-target", 2, 4, 4, 1, None),
    ("pending", 2, 4, 4, 1, None),
    ("matched", 2, 0, 0, 1, 0),
    ("matched", 2, 1, 2, 2, 2),
]


def test_the_dataframe_has_every_range(arrow_session, two_sides):
    assert sorted(own_rows(two_sides), key=str) == sorted(EXPECTED, key=str)
    again = ("repeated", 2, 5, 5, 1, 4)  # the sixth record of this key
    assert sorted(own_rows(two_sides, identity="key"), key=str) == [("matched", 2, 0, 4, 5, 0), again]


def test_both_sides_may_have_segments_in_remote_storage(arrow_session, tmp_path):
    for side, name in (("a", "orders-2"), ("b", "b.orders-2")):
        log = Log()
        for number in range(8):
            log.append([Record(number, b"key", b"%d" % number, (), 1000 + number)])
        log.write(tmp_path / side / name)
        move(split(tmp_path / side / name), tmp_path / f"remote-{side}", AivenPlugin(key=KEY))
    there = {"remote": str(tmp_path / "remote-a"), "target_remote": str(tmp_path / "remote-b")}
    assert own_rows(tmp_path, remote_keys=[str(KEY)], **there) == [("matched", 2, 0, 7, 8, 0)]


def test_options_of_the_dataframe_are_checked(arrow_session, two_sides):
    with pytest.raises(
        UsageError, match="isolation_level serializable: not a valid value: read_uncommitted or read_committed"
    ):
        own_rows(two_sides, isolation_level="serializable")
    with pytest.raises(UsageError, match=r"^option idenity: there is none; did you mean identity\?"):
        own_rows(two_sides, idenity="key")
    with pytest.raises(UsageError, match="no such file or directory"):
        own_rows(two_sides / "nowhere")


def test_what_cannot_be_read_is_an_error_of_the_dataframe(arrow_session, two_sides):
    (segment,) = (two_sides / "b" / "b.orders-2").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    with pytest.raises(UnreadableInputError, match=r"b\.orders-2"):
        own_rows(two_sides)
    assert {row[0] for row in own_rows(two_sides, allow_incomplete=True)} == {"missing"}


@pytest.mark.jvm
def test_the_dataframe_on_spark(spark, two_sides):
    rows = ks.ledger(spark, two_sides / "a", two_sides / "b")
    assert rows.schema.names == list(DATAFRAME_TABLES["ledger"])
    named = rows.select("difference", "partition", "first_offset", "last_offset", "records", "source_first_offset")
    assert [tuple(row) for row in named.collect()] == EXPECTED


@pytest.fixture(scope="module", params=NAMES)
def recording(request):
    return Recording(request.param)


def on_both(capsys, *arguments):
    """What the command prints and returns, which both engines agree on."""
    answers = []
    for engine in ("local", "spark"):
        code = run(["diff", "--by", "records", "-q", "--engine", engine, *map(str, arguments)])
        captured = capsys.readouterr()
        answers.append((code, captured.out, captured.err))
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.jvm
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_recorded_mirrors(spark_session, recording, isolation, capsys):
    options = "--output-format", "json", "--reproducible", "--isolation-level", isolation
    code, out, _ = on_both(capsys, *options, recording.source, recording.target)
    assert code in (0, 1)
    assert '"offset_map"' in out
