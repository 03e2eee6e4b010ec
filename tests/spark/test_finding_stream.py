"""Findings as a stream: a table merged from its rows has, after each batch, the findings of a scan of what is there."""

import json
import os
import shutil
import socket
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

import kaudit
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.report.machine.tables import finding_row
from kaudit.spark.finding_rows import Stamp
from kaudit.spark.schemas import EVIDENCE, WHOLE_EVIDENCE
from kaudit.spark.sources import FindingSource
from tests.spark.in_process import as_table

SAMPLES = sorted(path for path in Path("samples").iterdir() if path.is_dir())


class Query:
    """A streaming query that merges each batch into a table, as Spark runs one: reader by reader, offset by offset."""

    def __init__(self, logs, state, **options):
        self._options = {"path": str(logs), "state": str(state), "allow_incomplete": "true", **options}
        self.table, self.offset, self.before = {}, self.reader().initialOffset(), None

    def reader(self):
        return FindingSource(self._options).streamReader(FindingSource(self._options).schema())

    def batch(self):
        """Run a batch, if there is one; return its rows."""
        self.before, self.offset = self.offset, self.reader().latestOffset(self.offset)
        return self.again()

    def again(self):
        """Read the last batch again, as after a failure."""
        planned = self.reader().partitions(self.before, self.offset)
        rows = [row for part in planned for batch in self.reader().read(part) for row in batch.to_pylist()]
        for row in rows:
            if row["change"] == "withdrawn":
                self.table.pop(row["merge_key"], None)
            else:
                self.table[row["merge_key"]] = row
        self.reader().commit(self.before)
        return rows


def by_key(findings):
    return {finding.key: finding_row(finding) for finding in findings}


def merged(query):
    return dict(zip(query.table, as_table(query.table.values()), strict=True))


@pytest.mark.parametrize("sample", ["duplicates", "zombie", "retries", "open-transaction"])
def test_a_merged_table_has_the_findings_of_a_scan_as_segments_arrive(sample, tmp_path):
    logs, query = tmp_path / "logs", Query(tmp_path / "logs", tmp_path / "state")
    logs.mkdir()
    assert query.batch() == []
    files = sorted(path for path in (Path("samples") / sample).rglob("*") if path.is_file())
    grown = 0
    for file in sorted(files, key=lambda path: (path.name.endswith(".log"), path)):
        target = logs / file.relative_to(Path("samples") / sample)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
        if file.suffix == ".log":
            rows = query.batch()
            grown += bool(rows)
            assert merged(query) == by_key(kaudit.scan(logs).findings)
            assert query.batch() == []
    assert grown


def test_a_batch_that_is_read_again_has_the_same_rows(tmp_path):
    shutil.copytree("samples/duplicates", tmp_path / "logs")
    query = Query(tmp_path / "logs", tmp_path / "state")
    first = query.batch()
    stamped = {"run_id", "audited_at", "found_at"}
    again = [{name: value for name, value in row.items() if name not in stamped} for row in query.again()]
    assert again == [{name: value for name, value in row.items() if name not in stamped} for row in first] != []
    assert {row["change"] for row in first} == {"found"}
    assert len({(row["run_id"], row["kaudit_version"]) for row in first}) == 1
    assert all(row["found_at"] == row["audited_at"] for row in first)


def test_what_the_log_no_longer_shows_is_withdrawn_and_what_retention_deleted_is_not(tmp_path):
    """A file that is still being copied looks like one with a torn end; a broker deletes whole segments from the front."""
    source = next(iter(Path("samples/duplicates").rglob("*.log")))
    logs = tmp_path / "logs"
    target = logs / source.parent.name / source.name
    target.parent.mkdir(parents=True)
    content = source.read_bytes()
    target.write_bytes(content[:-7])
    query = Query(logs, tmp_path / "state")
    torn = {row["merge_key"]: row for row in query.batch()}
    target.write_bytes(content)
    rows = query.batch()
    withdrawn = [row for row in rows if row["change"] == "withdrawn"]
    assert {row["merge_key"] for row in withdrawn} == set(torn) - set(merged(query)) != set()
    assert all(row["found_at"] == torn[row["merge_key"]]["found_at"] < row["audited_at"] for row in withdrawn)
    before = set(query.table)
    (target.parent / "00000000000000900000.log").write_bytes(b"")
    target.unlink()
    assert not [row for row in query.batch() if row["change"] == "withdrawn" and row["offset"] is not None]
    assert before <= set(query.table)


def test_a_stream_needs_a_state_and_a_checkpoint_the_state_it_began_with(tmp_path):
    with pytest.raises(UsageError, match=r"^option state: a stream needs one"):
        FindingSource({"path": "samples/duplicates"}).streamReader(StructType())
    query = Query("samples/duplicates", tmp_path / "state")
    query.batch()
    shutil.rmtree(tmp_path / "state")
    query.before, query.offset = query.offset, {"input": "other"}
    with pytest.raises(UsageError, match=r"has nothing of what this stream reported"):
        query.again()
    with pytest.raises(UsageError, match=r"^option stat: there is none; did you mean state"):
        FindingSource({"path": "samples/duplicates", "stat": "x"}).streamReader(StructType())


def test_what_cannot_be_read_is_an_error_and_withdraws_nothing_where_it_is_allowed(tmp_path):
    logs = tmp_path / "logs"
    shutil.copytree("samples/duplicates", logs)
    lost = max(logs.rglob("*.log"), key=lambda path: path.stat().st_size)
    queries = [Query(logs, tmp_path / allowed, allow_incomplete=allowed) for allowed in ("true", "false")]
    for query in queries:
        query.batch()
    before = set(queries[0].table)
    lost.unlink()
    lost.symlink_to(lost)
    assert [row for row in queries[0].batch() if row["change"] == "withdrawn"] == []
    assert before <= set(queries[0].table) != set()
    with pytest.raises(UnreadableInputError, match=lost.name):
        queries[1].batch()


def test_a_store_that_is_down_is_an_error_and_not_a_stream_without_news(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        dead = f"hdfs://127.0.0.1:{held.getsockname()[1]}/logs"
        with pytest.raises(UnreadableInputError, match="nobody answers at"):
            Query(dead, tmp_path, allow_incomplete="false").batch()
        assert Query(dead, tmp_path).batch() == []


def test_what_was_reported_before_is_removed(tmp_path):
    logs, reported = tmp_path / "logs", tmp_path / "state" / "reported"
    query = Query(logs, tmp_path / "state")
    for number in range(4):
        shutil.copytree("samples/duplicates", logs / f"b{number}")
        query.batch()
        for age, file in enumerate(sorted(reported.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)):
            os.utime(file, (1000 - age, 1000 - age))
        assert len(list(reported.iterdir())) == min(number + 1, 2)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_structs_have_what_the_json_has(sample):
    """By the JSON form, of which every report is made; keys of findings are unique, so that rows can be merged by them."""
    findings = kaudit.scan(sample).findings
    rows = [row for batch in Stamp("run", 0).rows(findings) for row in batch.to_pylist()]
    assert as_table(rows) == [finding_row(finding) for finding in findings]
    assert len({row["merge_key"] for row in rows}) == len(rows)
    for row in rows:
        whole = json.loads(row["evidence"][WHOLE_EVIDENCE])
        for name in {field.name for field in EVIDENCE.type} & set(whole):
            require_same(row["evidence"][name], whole[name])


def require_same(typed, value):
    """A typed value is the JSON's; one of another type than other checks have is null."""
    if isinstance(typed, datetime):
        assert round(typed.timestamp() * 1000) == value
    elif isinstance(typed, dict):
        for name, each in value.items():
            require_same(typed[name], each)
    elif isinstance(typed, list) and isinstance(value, dict):
        assert [name for name, _ in typed] == list(value)
        for (_, own), each in zip(typed, value.values(), strict=True):
            require_same(own, each)
    elif isinstance(typed, list):
        for own, each in zip(typed, value, strict=True):
            require_same(own, each)
    elif typed is not None:
        assert typed == value
