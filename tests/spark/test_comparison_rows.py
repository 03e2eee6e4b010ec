"""diff, dedup and the ledger as data sources: the rows of the commands' tables, options typed, those of others refused by name."""

import shutil
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaudit.cli.app import run
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.table_columns import DUPLICATE_TABLES
from kaudit.spark import comparisons
from kaudit.spark.readers import reader_of
from tests.commits import commit_log
from tests.formats import encoders
from tests.spark.in_process import load

BROKERS = [Path(f"samples/replicas/b{number}").absolute() for number in (1, 2, 3)]
MIRROR = [Path("samples/mirror", side).absolute() for side in ("source", "target")]
REPEATS = Path("samples/retries").absolute()


def tables_of(directory, *arguments):
    """Return the tables of Parquet that a command writes, each its rows."""
    assert run([*map(str, arguments), "-q", "--output-format", "parquet", "-o", str(directory)]) in (0, 1)
    return {
        table.name: pa.concat_tables(map(pq.read_table, sorted(table.glob("*.parquet")))).to_pylist()
        for table in directory.iterdir()
        if table.is_dir()
    }


def rows_of(table, *paths, **options):
    return [row for batch in load(table, *paths, **options) for row in batch.to_pylist()]


def test_diff_has_the_comparisons_of_the_command(tmp_path):
    expected = tables_of(tmp_path, "diff", *BROKERS)["comparisons"]
    assert rows_of("diff", *BROKERS) == expected != []
    names = {f"broker-{number}": path for number, path in enumerate(BROKERS)}
    named = rows_of("diff", *BROKERS, names=",".join(f"{name}={path}" for name, path in names.items()))
    assert {row["replica"] for row in named} == set(names)


def test_partitions_are_compared_in_tasks(tmp_path, monkeypatch):
    brokers = [tmp_path / name for name in ("one", "two")]
    for broker in brokers:
        for number in range(3):
            shutil.copytree(BROKERS[0] / "orders-0", broker / f"orders-{number}")
    shorter = max((brokers[1] / "orders-2").glob("*.log"))
    shorter.write_bytes(shorter.read_bytes()[:-1])
    expected = tables_of(tmp_path / "tables", "diff", *brokers)["comparisons"]
    assert in_tasks(monkeypatch, 3, "diff", *brokers) == expected
    assert [row["partition"] for row in expected] == [0, 0, 1, 1, 2, 2]


def in_tasks(monkeypatch, tasks, table, *paths, **options):
    """Return the rows of so many tasks, each with one part of the work, having seen that one task gives them in any order."""
    text = {name: str(value) for name, value in options.items()} | {"paths": [*paths]}
    rows = {}
    for size, count in ((1 << 30, 1), (1, tasks)):
        monkeypatch.setattr(comparisons, "task_bytes", lambda *_, size=size: size)
        assert len(reader_of(table, text).parts()) == count
        rows[count] = rows_of(table, *paths, **options)
    assert sorted(rows[1], key=repr) == sorted(rows[tasks], key=repr)
    return rows[tasks]


def test_records_of_partitions_are_compared_in_tasks(tmp_path, monkeypatch):
    for number in range(3):
        shutil.copytree(REPEATS / "invoices-0", tmp_path / "logs" / f"orders-{number}")
    tables = tables_of(tmp_path / "tables", "dedup", tmp_path / "logs")
    rows = in_tasks(monkeypatch, 3, "dedup", tmp_path / "logs")
    assert_duplicates(rows, tables)
    assert {row["partition"] for row in rows} == {0, 1, 2}


def test_pairs_of_topics_are_compared_in_tasks(tmp_path, monkeypatch):
    source, target = (shutil.copytree(side, tmp_path / side.name) for side in MIRROR)
    shutil.copytree(source / "orders-0", source / "payments-0")
    copy = shutil.copytree(target / "primary.orders-0", target / "primary.payments-0")
    tables = tables_of(tmp_path / "tables", "diff", "--by", "records", source, target)
    rows = in_tasks(monkeypatch, 2, "ledger", source, target=target)
    assert [row for row in rows if row["difference"] != "matched"] == ranges_of(tables)
    assert {row["source_topic"] for row in rows} == {"orders", "payments"}
    log = max(copy.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(UnreadableInputError, match=r"^primary\.payments-0: has damage"):
        rows_of("ledger", source, target=target)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_dedup_has_the_duplicates_and_ranges_of_the_command(tmp_path, level):
    tables = tables_of(tmp_path, "dedup", "--isolation-level", level, REPEATS)
    assert_duplicates(rows_of("dedup", REPEATS, isolation_level=level), tables)


def assert_duplicates(rows, tables):
    for kind, names in DUPLICATE_TABLES.items():
        own = [{name: in_ms(row[name]) for name in names} for row in rows if row["row"] == kind]
        assert own == [{name: row[name] for name in names} for row in tables[kind]] != []


def in_ms(value):
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def ranges_of(tables):
    """The command writes offsets of groups into a file of their own."""
    return [row | {"group": None} for row in tables["record_ranges"]]


def test_the_ledger_has_the_ranges_and_the_map_of_the_command(tmp_path):
    tables = tables_of(tmp_path, "diff", "--by", "records", *MIRROR)
    rows = rows_of("ledger", MIRROR[0], target=MIRROR[1])
    assert [row for row in rows if row["difference"] != "matched"] == ranges_of(tables) != []
    matched = [row for row in rows if row["difference"] == "matched"]
    assert [(row["partition"], row["first_offset"], row["source_first_offset"], row["records"]) for row in matched] == [
        (row["target_partition"], row["target_first_offset"], row["source_first_offset"], row["records"])
        for row in tables["offset_map"]
    ]


def test_the_ledger_says_where_groups_go_on(tmp_path):
    """By samples/mirror, whose target has the order 25 as its 29th record, after four records that are there twice."""
    for side in MIRROR:
        shutil.copytree(side, tmp_path / side.name)
    place = tmp_path / "source" / "__consumer_offsets-0"
    place.mkdir()
    commits = [("billing", "orders", 0, 25, 0), ("audit, old", "orders", 0, 11, 0), ("other", "orders", 0, 3, 0)]
    (place / f"{0:020d}.log").write_bytes(commit_log(commits))
    source, target = (tmp_path / side.name for side in MIRROR)
    rows = rows_of("ledger", source, target=target, translate_groups='["billing", "audit, old"]')
    of_groups = [row for row in rows if row["difference"] == "group-offset"]
    assert [(row["group"], row["target_topic"], row["partition"], row["first_offset"]) for row in of_groups] == [
        ("audit, old", "primary.orders", 0, 11), ("billing", "primary.orders", 0, 29),
    ]  # fmt: skip
    assert [row for row in rows if row["difference"] != "group-offset"] == rows_of("ledger", source, target=target)
    assert {row["group"] for row in rows if row["difference"] != "group-offset"} == {None}
    with pytest.raises(UsageError, match="nobody: __consumer_offsets of the source has no commit of it"):
        rows_of("ledger", source, target=target, translate_groups="nobody")


def test_the_ledger_reads_windows_and_schemas_as_the_command(tmp_path):
    expected = tables_of(tmp_path / "windows", "diff", "--by", "records", "--windows", "10m", *MIRROR)
    rows = rows_of("ledger", MIRROR[0], target=MIRROR[1], windows="10m", temporary_directory=tmp_path)
    assert [row for row in rows if row["difference"] != "matched"] == ranges_of(expected)
    (tmp_path / "order.avsc").write_text('{"type":"record","name":"O","fields":[{"name":"id","type":"long"}]}')
    for side, schema in (("source", 1), ("target", 2)):
        place = tmp_path / side / "orders-0"
        place.mkdir(parents=True)
        values = [bytes([0, 0, 0, 0, schema, number << 1]) for number in range(3)]
        records = [encoders.record(at, 0, b"k", value) for at, value in enumerate(values)]
        (place / f"{0:020d}.log").write_bytes(encoders.batch(records))
    own = {"target": tmp_path / "target", "identity": "value:id"}
    differing = {
        name: {row["difference"] for row in rows_of("ledger", tmp_path / "source", **own, **schema)}
        for name, schema in (("without", {}), ("with", {"schemas": tmp_path / "order.avsc"}))
    }
    assert differing == {"without": {"missing", "only-in-target"}, "with": {"matched"}}


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("dedup", {"target": "/b"}, r"^option target: only ledger have it$"),
        ("diff", {"isolation_level": "read_committed"}, r"^option isolation_level: only dedup and ledger have it$"),
        ("batches", {"maps": "a=b"}, r"^option maps: only ledger have it$"),
        ("ledger", {"since": "2026-01-01T00:00:00Z"}, r"^option since: comparisons do not have it$"),
        ("dedup", {"identty": "key"}, r"^option identty: there is none; did you mean identity\?"),
        (
            "dedup",
            {"isolation_level": "serializable"},
            r"^option isolation_level serializable: not a valid value: read_u",
        ),
        ("ledger", {}, r"^a ledger compares two inputs: the path of the source, and the option target$"),
        ("diff", {"names": "b1"}, r"^option names b1: NAME=PATH"),
        ("dedup", {"identity": "colour"}, "colour"),
        ("ledger", {"target": "/b", "windows": "ten"}, r"^option windows ten: not a span of time"),
        ("ledger", {"target": "/b", "windows": "0s"}, r"^option windows 0s: a window has a length$"),
        ("dedup", {"schemas": "7=none.avsc"}, r"none\.avsc"),
        ("dedup", {"windows": "10m"}, r"^option windows: only ledger have it$"),
    ],
)
def test_options_are_typed_and_others_refused_by_name(table, options, said):
    with pytest.raises(UsageError, match=said):
        rows_of(table, MIRROR[0], **options)


def test_what_cannot_be_compared_is_an_error_in_one_line(tmp_path):
    with pytest.raises(NothingToAuditError, match="nothing to compare"):
        rows_of("diff", BROKERS[0], REPEATS)
    with pytest.raises(UsageError, match="no such file or directory"):
        rows_of("dedup", tmp_path / "nowhere")
    logs = shutil.copytree(REPEATS, tmp_path / REPEATS.name)
    directory = logs / "orders-0"
    directory.mkdir()
    segment = directory / "00000000000000000000.log"
    segment.symlink_to(segment)
    with pytest.raises(UnreadableInputError, match=segment.name):
        rows_of("dedup", logs)
    assert rows_of("dedup", logs, allow_incomplete="true") == rows_of("dedup", REPEATS)
