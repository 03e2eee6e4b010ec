"""Whichever read fails in the functions of Spark's tasks: they raise, or their rows are those of a scan of everything."""

import itertools
from pathlib import Path

import pytest

from kaudit.errors import UnreadableInputError, UsageError
from tests.failing_reads import counted_reads
from tests.spark.in_process import as_table, joined, load, made_histories, replayed, runs_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def reads(monkeypatch):
    return counted_reads(monkeypatch)


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def findings_of_batches(path):
    return rows(joined(replayed(runs_of(load("batches", path)), path), allow_incomplete=False))


def findings_of_logs(path):
    return rows(joined(replayed(None, path), allow_incomplete=False))


def findings_of_runs(path):
    return rows(joined(replayed(load("runs", path), path), allow_incomplete=False))


def table(name):
    def read(path):
        found = rows(load(name, path))
        return as_table(found) if name == "findings" else found

    return read


def producers(path):
    return rows(made_histories("producers", runs_of(load("batches", path)), path, allow_incomplete=False))


@pytest.mark.parametrize("sample", ["coordinator"])
@pytest.mark.parametrize(
    "read",
    [
        findings_of_batches, findings_of_logs, findings_of_runs, producers,
        *map(table, ("batches", "runs", "records", "findings", "timelines")),
    ],
)  # fmt: skip
def test_whichever_read_fails_it_is_an_error_or_changes_nothing(reads, sample, read):
    path = ROOT / "samples" / sample
    expected = read(path)
    assert expected
    total = reads.count
    for number in itertools.count(1):
        reads.count, reads.failing, reads.failed = 0, number, None
        try:
            found = read(path)
        except (UnreadableInputError, UsageError, OSError):
            assert reads.failed is not None
            continue
        if reads.failed is None:
            break
        assert found == expected, (number, reads.failed)
    assert number > total
