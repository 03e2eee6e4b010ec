"""`kaudit inspect --output-format parquet`: the rows of jsonl, in tables."""

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from kaudit.source.inspect_columns import INSPECT_TABLES
from tests.cli.conftest import kaudit, plain_environment  # noqa: F401 - fixtures
from tests.logs import Log, data


def same_rows(kaudit, target, *arguments):  # noqa: F811
    jsonl = kaudit("inspect", *arguments, "--output-format", "jsonl")
    outcome = kaudit("inspect", *arguments, "--output-format", "parquet", "-o", target)
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    expected: dict[str, Any] = {}
    for line in jsonl.out.splitlines():
        row = json.loads(line)
        expected.setdefault(row.pop("row"), []).append(row)
    manifest = json.loads((target / "manifest.json").read_text())
    assert set(manifest["tables"]) == set(INSPECT_TABLES)
    for kind in INSPECT_TABLES:
        rows = pq.read_table(target / kind).to_pylist()
        assert manifest["tables"][kind]["rows"] == len(rows) == len(expected.get(kind, []))
        for row, own in zip(rows, expected.get(kind, []), strict=True):
            if kind == "field":
                row["value"] = row.pop("value_number")
            more = json.loads(row.pop("more") or "{}")
            more |= {name: json.loads(row.pop(name)) for name in ("identity", "content") if row.get(name)}
            assert {name: value for name, value in (row | more).items() if value is not None} == {
                name: value for name, value in own.items() if value is not None
            }
    return set(expected)


@pytest.mark.parametrize(
    ("capture", "place", "kinds"),
    [
        ("txn-mix-2.8.2", "logdirs/b0", {"batch", "record", "marker", "txn_state", "offset_commit", "group_metadata"}),
        ("legacy-formats", "logdirs/b0/m1-gzip-0", {"batch", "record"}),
        ("clients-mix", "logdirs/b1/__cluster_metadata-0", {"batch", "metadata", "control"}),
        ("torn-writes", "artificial/garbage-middle", {"batch", "record", "damage"}),
    ],
)
def test_batches_and_records(kaudit, evidence, tmp_path, capture, place, kinds):  # noqa: F811
    path = evidence.capture(capture) / place
    if not path.exists():
        path = next(entry for entry in sorted(path.parent.glob("garbage*")))
    assert same_rows(kaudit, tmp_path / "out", path, "--records") >= kinds


def test_side_files_and_one_header(kaudit, evidence, tmp_path):  # noqa: F811
    root = evidence.capture("txn-mix-2.8.2") / "logdirs" / "b0"
    for number, pattern in enumerate(("*/*.index", "*/*.timeindex", "*/*.txnindex", "*/*.snapshot", "replication*")):
        path = next(entry for entry in sorted(root.glob(pattern)) if entry.stat().st_size)
        assert same_rows(kaudit, tmp_path / str(number), path)
    log = Log()
    log.append(data(7, 0, 0, 3))
    path = log.write(tmp_path / "orders-0") / "00000000000000000000.log"
    assert same_rows(kaudit, tmp_path / "header", path, "--at", 30) == {"field"}


def test_int64_and_nulls_are_exact(kaudit, tmp_path):  # noqa: F811
    log = Log()
    log.append(data(2**63 - 1, 32767, 2**31 - 1, 2))
    log.append(data(-1, -1, -1, 1))
    path = log.write(tmp_path / "orders-0") / "00000000000000000000.log"
    same_rows(kaudit, tmp_path / "out", path)
    rows = pq.read_table(tmp_path / "out" / "batch").to_pylist()
    assert [(row["producer_id"], row["producer_epoch"]) for row in rows] == [(2**63 - 1, 32767), (None, None)]


def test_where_it_goes(kaudit, tmp_path):  # noqa: F811
    log = Log()
    log.append(data(7, 0, 0))
    path = log.write(tmp_path / "orders-0") / "00000000000000000000.log"
    assert kaudit("inspect", path, "--output-format", "parquet").code == 2
    out = tmp_path / "out"
    assert kaudit("inspect", path, "--output-format", "parquet", "-o", out).code == 0
    assert kaudit("inspect", path, "--output-format", "parquet", "-o", out).code == 0  # an earlier result is replaced
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    assert kaudit("inspect", path, "--output-format", "parquet", "-o", tmp_path / "mine").code == 2
    inside = kaudit("inspect", tmp_path / "orders-0", "--output-format", "parquet", "-o", tmp_path / "orders-0" / "out")
    assert inside.code == 2
