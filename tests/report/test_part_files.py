"""Tables in files of row groups, read again by pyarrow: however rows come, groups and files are of one size."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.report.machine import parquet
from kaudit.report.machine.parquet import PartFiles

SCHEMA = pa.schema([("number", pa.int64())])
GROUP_ROWS, FILE_ROWS = 4, 8


@pytest.fixture(scope="module", autouse=True)
def _small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", GROUP_ROWS)
        yield


def written(sizes, directory):
    """Write so many rows at a time, numbered from 0; return the files."""
    number = 0
    with PartFiles(SCHEMA, directory / "table", FILE_ROWS) as parts:
        for size in sizes:
            parts.write(pa.table({"number": range(number, number + size)}, SCHEMA))
            number += size
            assert parts.rows == number
        parts.finish()
    return sorted((directory / "table").iterdir())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 19), max_size=8))
def test_groups_and_files_are_full_but_for_the_last(sizes):
    with tempfile.TemporaryDirectory() as folder:
        files = written(sizes, Path(folder))
        assert [file.name for file in files] == [f"part-{number:05d}.parquet" for number in range(len(files))]
        assert pa.concat_tables(map(pq.read_table, files))["number"].to_pylist() == list(range(sum(sizes)))
        metadata = [pq.read_metadata(file) for file in files]
        groups = [file.row_group(at).num_rows for file in metadata for at in range(file.num_row_groups)]
        whole, rest = divmod(sum(sizes), GROUP_ROWS)
        assert [group for group in groups if group] == [GROUP_ROWS] * whole + [rest] * bool(rest)
        assert [file.num_rows for file in metadata[:-1]] == [FILE_ROWS] * (len(files) - 1)
        assert len(files) == max(-(-sum(sizes) // FILE_ROWS), 1)
        assert {file.row_group(at).column(0).compression for file in metadata for at in range(file.num_row_groups)} <= {
            "ZSTD"
        }


def test_a_table_without_rows_shows_its_schema(tmp_path):
    (file,) = written([], tmp_path)
    assert (pq.read_schema(file).names, pq.read_metadata(file).num_rows) == (["number"], 0)
