"""The live brokers are what the tests of kafka:// take them for."""

import pytest

pytestmark = pytest.mark.cluster
PRODUCER = {"pid": "p", "epoch": "p"}


def idempotent(topic, *counts, **more):
    """A scenario: one idempotent producer writes batches of so many records."""
    steps = [{"op": "produce", **PRODUCER, "seq": "next", "count": count} for count in counts]
    return {"name": topic, "steps": [{"op": "init_pid", "as": "p"}, *steps], **more}


def outcomes(lines):
    return [answer["outcome"] for attempt, answer in lines if attempt["op"] == "produce"]


def test_each_release_takes_batches_and_writes_them_to_its_directory(each_broker):
    assert outcomes(each_broker.play(idempotent("harness", 3, 1))) == ["appended"] * 2
    (segment,) = each_broker.directory("harness").glob("*.log")
    assert segment.read_bytes().count(b"/s0+") == 3


def test_a_forgotten_producer_writes_its_batch_twice(forgetful_broker):
    scenario = idempotent("harness-twice", 2)
    again = {"op": "produce", **PRODUCER, "seq": 0, "count": 2}
    scenario["steps"] += [again, {"op": "sleep", "ms": 5500}, again]
    assert outcomes(forgetful_broker.play(scenario)) == ["appended", "duplicate", "appended"]
