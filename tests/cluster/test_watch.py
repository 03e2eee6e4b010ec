"""`kaudit watch` beside live brokers: a duplicate is seen soon after it is written, over the wire and in the directory."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.cluster
PRODUCER = {"pid": "p", "epoch": "p"}
NEXT = {"op": "produce", **PRODUCER, "seq": "next", "count": 2}
AGAIN = {**NEXT, "seq": 2}


def forgotten(topic):
    """A producer that is forgotten after four seconds sends its last batch again."""
    steps = [{"op": "init_pid", "as": "p"}, NEXT, NEXT, {"op": "sleep", "ms": 9000}, AGAIN]
    return {"name": topic, "steps": steps}


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def watch():
    """Start a watch with jsonl; it is ended with the test."""
    running = []

    def begin(*arguments):
        command = [
            sys.executable,
            "-m",
            "kaudit",
            "watch",
            "--output-format",
            "jsonl",
            "--fail-on",
            "warning",
            *map(str, arguments),
        ]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("over_the_wire", [True, False])
def test_a_duplicate_is_seen_within_two_seconds(forgetful_broker, watch, tmp_path, over_the_wire):
    topic = f"watched-{over_the_wire}".lower()
    played = threading.Thread(target=forgetful_broker.play, args=[forgotten(topic)])
    played.start()
    directory = forgetful_broker.directory(topic)
    segment = directory / f"{0:020}.log"
    wait_for(lambda: segment.exists() and segment.stat().st_size, 60)
    time.sleep(1)  # both batches are there, and the third one is not
    before = segment.stat().st_size
    metrics = tmp_path / "metrics.prom"
    process = watch("--metrics-file", metrics, forgetful_broker.url(topic) if over_the_wire else directory)
    wait_for(lambda: metrics.exists() and "kaudit_partitions 1\n" in metrics.read_text(), 8)
    assert segment.stat().st_size == before
    wait_for(lambda: segment.stat().st_size > before, 60)
    written = time.monotonic()
    finding = json.loads(process.stdout.readline())
    seconds = time.monotonic() - written
    assert (finding["code"], finding["offset"]) == ("KA101", 4)
    assert seconds < 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 1
    played.join()
