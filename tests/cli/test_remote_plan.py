"""`scan --remote --plan` lists what an audit reads of a store, and reads nothing."""

import json
import shutil

import pytest

from tests.logs import Log, data
from tests.remote_storage import AivenPlugin, move, split

READ = ("GET", "HEAD")


@pytest.fixture
def stored(tmp_path, s3_server):
    """A log of four segments, two on the disk, three in the store: one is in both."""
    log = Log()
    for number in range(200):
        log.append(data(100, 0, number, payload=b"x" * 1000))
    split(log.write(tmp_path / "data" / "orders-0"))
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    copies = move(tmp_path / "data" / "orders-0", tmp_path / "remote", AivenPlugin(compression=True), kept=2)
    s3_server.upload(tmp_path / "remote", "tier")
    s3_server.requests.clear()
    return tmp_path / "data", tmp_path / "remote", copies


def rows(outcome):
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_nothing_is_read_and_what_is_read_later_was_listed(kaudit, stored, s3_server):
    here, there, copies = stored
    given = ("scan", str(here), "--remote", "s3://kafka/tier")
    planned = rows(kaudit(*given, "--plan", "--output-format", "jsonl"))
    assert [request for request in s3_server.requests if request.kind == "GET"] == []
    assert {request.key for request in s3_server.requests} <= {"tier", "tier/"}
    objects = {file for copy in copies[:2] for file in copy.parent.glob(f"{copy.stem}.*")}
    assert {(row["path"], row["bytes"]) for row in planned} == {
        (f"s3://kafka/tier/{file.relative_to(there)}", file.stat().st_size) for file in objects
    }
    s3_server.requests.clear()
    assert kaudit(*given).code == 0
    read = [request for request in s3_server.requests if request.kind in READ and request.key != "tier"]
    assert {f"s3://kafka/{request.key}" for request in read} == {row["path"] for row in planned}
    assert len(read) <= sum(row["requests"] for row in planned) <= 4 * len(read)


def test_people_see_the_sum(kaudit, stored):
    here, _, copies = stored
    lines = kaudit("scan", str(here), "--remote", "s3://kafka/tier", "--plan").out.splitlines()
    total = sum(file.stat().st_size for copy in copies[:2] for file in copy.parent.glob(f"{copy.stem}.*"))
    assert len(lines) == 1 + 6 + 1
    assert lines[-1] == f"6 objects, {total / 1000:.1f} kB, about 48 requests; nothing was read"


def test_topics_choose(kaudit, stored):
    here, *_ = stored
    given = ("scan", str(here), "--remote", "s3://kafka/tier", "--plan", "--output-format", "jsonl")
    assert rows(kaudit(*given, "--topic", "other")) == []
    assert len(rows(kaudit(*given, "--topic", "orders"))) == 6


def test_names_are_redacted(kaudit, stored):
    here, there, _ = stored
    shutil.rmtree(there)
    outcome = kaudit("scan", str(here), "--remote", "s3://kafka/tier", "--plan", "--redact", "--output-format", "jsonl")
    assert len(rows(outcome)) == 6
    assert "orders" not in outcome.out


def test_what_means_nothing_is_refused(kaudit, stored):
    here, *_ = stored
    assert kaudit("scan", str(here), "--plan").err == "kaudit: --plan needs --remote\n"
    outcome = kaudit("scan", str(here), "--remote", "s3://kafka/tier", "--plan", "--output-format", "json")
    assert (outcome.code, outcome.err) == (2, "kaudit: --plan: --output-format json is not one of table and jsonl\n")
