"""The state `producers` shows is what live brokers answered to DescribeProducers before they were stopped."""

import json
from typing import Any

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.listings.query import Query
from kaudit.scanning.options import ScanOptions


@pytest.mark.parametrize(("version", "scenarios"), [("2.8.2", 88), ("3.9.1", 89), ("4.2.0", 92)])
def test_the_rebuilt_state_is_what_the_broker_described(evidence, version, scenarios):
    attempts = [json.loads(line) for line in evidence.oracle_lines(version, "main.attempts.jsonl")]
    answers = {
        answer["index"]: answer for answer in map(json.loads, evidence.oracle_lines(version, "main.answers.jsonl"))
    }
    newest = {attempt["topic"]: attempt for attempt in attempts if "topic" in attempt and attempt["op"] != "topic"}
    options = ScanOptions(paths=[str(evidence.oracle(version, "logdir") / "main")], jobs=1, broker_version=version)
    rebuilt: dict[Any, Any] = {}
    for producer in local.producers(options, SilentProgress(), Query()).producers:
        for place in producer.partitions:
            state = {name: value for name, value in place.state.to_dict().items() if name != "last_offset"}
            rebuilt.setdefault(place.topic, {})[producer.producer_id] = state
    compared = 0
    for topic, attempt in newest.items():
        described = answers[attempt["index"]].get("producers") if attempt["op"] == "describe" else None
        if described is None:
            continue
        answered = {entry.pop("producer_id"): entry for entry in map(dict, described)}
        assert rebuilt.get(topic, {}) == answered, topic
        compared += 1
    assert compared == scenarios
