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


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_dedup_has_the_duplicates_and_ranges_of_the_command(tmp_path, level):
    tables = tables_of(tmp_path, "dedup", "--isolation-level", level, REPEATS)
    rows = rows_of("dedup", REPEATS, isolation_level=level)
    for kind, names in DUPLICATE_TABLES.items():
        own = [{name: in_ms(row[name]) for name in names} for row in rows if row["row"] == kind]
        assert own == [{name: row[name] for name in names} for row in tables[kind]] != []


def in_ms(value):
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def test_the_ledger_has_the_ranges_and_the_map_of_the_command(tmp_path):
    tables = tables_of(tmp_path, "diff", "--by", "records", *MIRROR)
    rows = rows_of("ledger", MIRROR[0], target=MIRROR[1])
    assert [row for row in rows if row["difference"] != "matched"] == tables["record_ranges"] != []
    matched = [row for row in rows if row["difference"] == "matched"]
    assert [(row["partition"], row["first_offset"], row["source_first_offset"], row["records"]) for row in matched] == [
        (row["target_partition"], row["target_first_offset"], row["source_first_offset"], row["records"])
        for row in tables["offset_map"]
    ]


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
