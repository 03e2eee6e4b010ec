"""Findings as a stream of an HDFS and an S3 server: what a merged table has is what a scan finds, restart for restart."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.conftest import kaudit, plain_environment
from tests.cluster.test_stores import put_in_s3, put_on_hdfs
from tests.engines.faulty_logs import duplicates, healthy

pytestmark = pytest.mark.cluster
SCRIPT = Path(__file__).with_name("stream_findings.py")
TOPICS = {"0042", "7"}
SHOWN = ("code", "fingerprint", "topic")


def rows_of(*places, **environment):
    """Run the stream in a process of its own, from its checkpoint; return the rows of its table by time."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, places)],
        capture_output=True, text=True, check=False, timeout=600, env=plain_environment(**environment),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(map(json.loads, done.stdout.splitlines()), key=lambda row: row["audited_at"])


def merged(rows):
    """The table after a MERGE of each batch by the key."""
    table = {row["merge_key"]: row for row in rows}
    return sorted([row[name] for name in SHOWN] for row in table.values() if row["change"] != "withdrawn")


@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_segments_that_arrive_in_a_store(request, tmp_path, store):
    """Topics are numbers. First the newest segment is half copied, then all of it and another topic are there, then nothing has changed."""
    if store == "s3":
        environment, root, put = request.getfixturevalue("s3"), "s3://kafka", put_in_s3
        server, prefix, own = environment, "kafka/", tmp_path
    else:
        server, prefix, put, environment = request.getfixturevalue("hdfs"), "/", put_on_hdfs, {}
        root = own = server.url
    places = (f"{root}/stream/logs", f"{root}/stream/state", f"{own}/stream/checkpoint", f"{own}/stream/table")
    first, second = tmp_path / "first", tmp_path / "second"
    segment = max(duplicates(first / "0042-0").glob("*.log"))
    (second / "0042-0").mkdir(parents=True)
    (second / "0042-0" / segment.name).write_bytes(segment.read_bytes())
    segment.write_bytes(segment.read_bytes()[:-7])
    healthy(second / "7-0")
    newest = max((second / "7-0").glob("*.log"))
    newest.write_bytes(newest.read_bytes()[:-9])

    batches: list[list[dict[str, str]]] = []
    for arrives in (first, second, tmp_path / "nothing"):
        put(server, arrives, f"{prefix}stream/logs")
        before = sum(len(batch) for batch in batches)
        rows = rows_of(*places, **environment)
        batches.append(rows[before:])
        scan = kaudit("scan", places[0], "--state", places[1], "--output-format", "json", **environment)
        found = json.loads(scan.stdout)["findings"]
        assert merged(rows) == sorted([each[name] for name in SHOWN] for each in found) != []
        (line,) = [line for line in scan.stderr.splitlines() if "--state: segments" in line]
        assert "unchanged" in line  # the stream has saved what it read
        assert "new" not in line
    torn, whole, unchanged = batches
    assert {row["change"] for row in torn} == {"found"}
    assert {row["merge_key"] for row in whole if row["change"] == "withdrawn"} & {row["merge_key"] for row in torn}
    assert {row["topic"] for row in whole if row["change"] == "found"} == {"7"}
    assert unchanged == []
    assert {row["topic"] for batch in batches for row in batch} == TOPICS
    assert len({row["run_id"] for row in whole}) == 1
