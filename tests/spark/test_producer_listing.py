"""The list of producer ids: Spark's tasks join, filter and sort shares of them, and show and write what the local engine does."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kaudit.cli.app import run
from kaudit.scanning.audit import Audit
from kaudit.spark import producer_listing as spark_listing
from tests.checks.transactions.coordinator_log import EMPTY, state, tombstone, write_partition, write_states
from tests.engines.faulty_logs import FAULTS, gap, healthy
from tests.report.test_json_schemas import DOCUMENT, validator

SAMPLES = Path(__file__).parents[2] / "samples"
BLOCKS = ("--blocks", str(SAMPLES / "producer-ids/blocks.jsonl"))


@pytest.fixture
def logs(tmp_path):
    """Partitions that share their producer ids, some in two replicas of different length; with faults."""
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    gap(tmp_path / "logs" / "payments-0")
    healthy(tmp_path / "one" / "stock-0", producers=7, batches=30)
    healthy(tmp_path / "two" / "stock-0", producers=9, batches=50)
    return [str(tmp_path / name) for name in ("logs", "one", "two")]


@pytest.fixture
def small_shares(monkeypatch):
    """Several shares, and several tasks that group kinds of clients."""
    monkeypatch.setattr(spark_listing, "_SHARE_IDS", 5)


def listed(capsys, paths, engine, *options):
    code = run(["producers", *paths, "--engine", engine, "--output-format", "json", "--reproducible", *options])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--summary", "--min-batches", "8"),
        ("--sort", "batches", "--limit", "0"),
        ("--min-batches", "1000000"),
        ("--with-findings", "--select", "KA104", "--sort", "findings", "--reverse"),
        ("--producer-id", "100", "--producer-id", "102", "--sort", "records"),
        ("--broker-version", "2.0.0", "--sort", "last", "--limit", "6"),
    ],
)
def test_lists_are_those_of_the_local_engine(arrow_session, small_shares, logs, capsys, options):
    ours, theirs = (listed(capsys, logs, engine, "-q", *options) for engine in ("local", "spark"))
    assert theirs == ours
    document = json.loads(ours[1])
    assert document["summary"]["ids"]["found"] > 8
    assert document["summary"]["findings"]["error"]


@pytest.mark.parametrize(
    ("paths", "more"),
    [
        (("producer-ids",), (*BLOCKS, "--sort", "first", "--reverse", "--max-age", "1h")),
        (("coordinator", "duplicates", "retries"), ("--since", "2020-01-01T00:00:00Z", "--sort", "partitions")),
    ],
)
def test_blocks_and_transactional_ids_are_those_of_the_local_engine(arrow_session, small_shares, capsys, paths, more):
    places = [str(SAMPLES / path) for path in paths]
    ours, theirs = (listed(capsys, places, engine, "-q", *more) for engine in ("local", "spark"))
    assert theirs == ours
    document = json.loads(ours[1])
    assert any(one["block"] or one["transactional_id"] for one in document["producers"])


@pytest.mark.parametrize("options", [(), ("--summary",), ("--producer-id", "8")])
def test_expired_transactional_ids_are_those_of_the_local_engine(arrow_session, tmp_path, capsys, options):
    states = [state("t", EMPTY), tombstone("t"), state("t", EMPTY, producer_id=8), tombstone("t"), tombstone("u")]
    for broker, first in (("b1", 0), ("b2", 1)):
        write_states(tmp_path / broker, states[first:], offsets=range(first, 5))
        write_partition(tmp_path / broker, "orders", (True,), producer_id=8)
    ours, theirs = (listed(capsys, [str(tmp_path)], engine, "-q", *options) for engine in ("local", "spark"))
    assert theirs == ours
    document = json.loads(ours[1])
    count = 2 if "--producer-id" in options else 3
    assert document["summary"]["expired_transactional_ids"] == count
    assert len(document["expired_transactional_ids"]) == (0 if "--summary" in options else count)


def test_the_driver_lists_the_first_ids_and_counts_the_rest(arrow_session, small_shares, logs, capsys, monkeypatch):
    everything = json.loads(listed(capsys, logs, "local", "-q", "--sort", "batches")[1])
    ids = len(everything["producers"])
    monkeypatch.setattr(spark_listing, "PRODUCERS", 3)
    code, out, err = listed(capsys, logs, "spark", "--sort", "batches")
    some = json.loads(out)
    assert code == 1
    assert some["producers"] == everything["producers"][:3]
    assert some["producers_omitted"] == ids - 3
    validator(DOCUMENT).validate(some)
    assert f"kaudit: the first 3 producer ids of {ids}; " in err
    assert {**some, "producers": everything["producers"]} == {**everything, "producers_omitted": ids - 3}
    # what is asked for is listed
    ours, theirs = (listed(capsys, logs, engine, "-q", "--limit", "5") for engine in ("local", "spark"))
    assert theirs == ours
    assert len(json.loads(ours[1])["producers"]) == 5
    # ids that are in many partitions take more: the replicas count too
    monkeypatch.setattr(spark_listing, "PRODUCER_REPLICAS", 1)
    assert json.loads(listed(capsys, logs, "spark", "-q", "--sort", "batches")[1])["producers_omitted"] == ids - 1


def rows(files):
    return [row for file in sorted(files) for row in pq.read_table(file, partitioning=None).to_pylist()]


@pytest.mark.parametrize("options", [BLOCKS, ("--sort", "records", "--limit", "4")])
def test_tables_brought_to_the_driver_have_every_id_in_order(
    arrow_session, small_shares, logs, tmp_path, monkeypatch, options
):
    monkeypatch.setattr(spark_listing, "PRODUCERS", 2)
    arguments = ("--output-format", "parquet", "--reproducible", "--exit-zero", "-q", *options)
    paths = [*logs, str(SAMPLES / "coordinator")]
    for engine in ("local", "spark"):
        assert run(["producers", *paths, *arguments, "--engine", engine, "-o", str(tmp_path / engine)]) == 0
    assert files_of(tmp_path / "spark") == files_of(tmp_path / "local")
    assert len(rows((tmp_path / "spark" / "producers").glob("*.parquet"))) >= 4


def test_names_of_all_ids_are_put_into_timelines_in_tasks(arrow_session, logs, tmp_path, monkeypatch):
    arguments = ("--output-format", "parquet", "--reproducible", "--exit-zero", "-q")
    paths = [*logs, str(SAMPLES / "coordinator")]
    assert run(["timeline", *paths, *arguments, "-o", str(tmp_path / "local")]) == 0
    monkeypatch.setattr(spark_listing, "_SHARE_BYTES", 100)
    assert run(["timeline", *paths, *arguments, "--engine", "spark", "-o", str(tmp_path / "spark")]) == 0
    assert files_of(tmp_path / "spark") == files_of(tmp_path / "local")
    named = {row["transactional_id"] for row in rows((tmp_path / "spark" / "timelines").glob("*.parquet"))}
    assert named > {None}


def files_of(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.jvm
@pytest.mark.parametrize("options", [BLOCKS, ("--sort", "records", "--limit", "4")])
def test_tables_have_every_id_in_order(spark_session, small_shares, logs, tmp_path, monkeypatch, options):
    monkeypatch.setattr(spark_listing, "PRODUCERS", 2)
    arguments = ("--output-format", "parquet", "--reproducible", "--exit-zero", "-q", *options)
    paths = [*logs, str(SAMPLES / "coordinator")]
    assert run(["producers", *paths, *arguments, "-o", str(tmp_path / "local")]) == 0
    assert run(["producers", *paths, *arguments, "--engine", "spark", "-o", str(tmp_path / "spark")]) == 0
    url = f"{(tmp_path / 'url').as_uri()}/run_id=one"
    assert run(["producers", *paths, *arguments, "--engine", "spark", "-o", url]) == 0
    manifests = [
        json.loads((tmp_path / place).read_text())
        for place in ("local/manifest.json", "spark/manifest.json", "url/manifests/run_id=one.json")
    ]
    assert manifests[0] == manifests[1]
    assert manifests[0]["rows"] == manifests[2]["rows"]
    for table in ("findings", "partitions", "segments", "producers", "blocks"):
        ours = rows((tmp_path / "local" / table).glob("*.parquet"))
        assert rows((tmp_path / "spark" / table).glob("*.parquet")) == ours, table
        written = pq.read_table(tmp_path / "url" / table / "run_id=one").to_pylist()
        names = pq.read_schema(next((tmp_path / "local" / table).glob("*.parquet"))).names
        assert sorted(repr([row[name] for name in names]) for row in written) == sorted(
            repr([row[name] for name in names]) for row in ours
        ), table
    assert manifests[0]["rows"]["findings"]
    assert manifests[0]["rows"]["producers"] >= 4


@pytest.mark.jvm
def test_timelines_of_all_ids_have_their_transactional_ids(spark_session, logs, tmp_path, monkeypatch):
    """The names of all ids are put into the rows in tasks: the driver is never asked for them."""
    arguments = ("--output-format", "parquet", "--reproducible", "--exit-zero", "-q")
    paths = [*logs, str(SAMPLES / "coordinator")]
    assert run(["timeline", *paths, *arguments, "-o", str(tmp_path / "local")]) == 0
    monkeypatch.setattr(spark_listing, "_SHARE_BYTES", 100)
    read = Audit.transactional_ids

    def some(self, wanted):
        assert wanted is not None
        return read(self, wanted)

    monkeypatch.setattr(Audit, "transactional_ids", some)
    assert run(["timeline", *paths, *arguments, "--engine", "spark", "-o", str(tmp_path / "spark")]) == 0
    url = f"{(tmp_path / 'url').as_uri()}/run_id=one"
    assert run(["timeline", *paths, *arguments, "--engine", "spark", "-o", url]) == 0
    for table in ("timelines", "producers"):
        ours = rows((tmp_path / "local" / table).glob("*.parquet"))
        assert rows((tmp_path / "spark" / table).glob("*.parquet")) == ours, table
        written = pq.read_table(tmp_path / "url" / table / "run_id=one").to_pylist()
        assert sorted(repr([row[name] for name in ours[0]]) for row in written) == sorted(
            repr(list(row.values())) for row in ours
        ), table
        assert {row["transactional_id"] for row in ours} > {None}
