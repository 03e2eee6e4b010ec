"""All that the page of a replayed story knows, byte for byte: messages, decisions, what the broker remembers.

Changed on purpose: `uv run pytest -n 0 tests/report --snapshot-update`, and read what changed.
"""

import json

import msgspec
import pytest

from kaudit.broker.broker import Broker
from kaudit.replay.session import Session
from kaudit.report.sequence.replayed import ReplayDiagram
from tests.report.test_explain import STORY, other, produce

TRANSACTION = [
    STORY[0],
    other(1, "init_producer_id", transactional_id="x", timeout_ms=60000, api_version=1),
    other(2, "add_partitions", transactional_id="x", producer_id=0, producer_epoch=0),
    produce(3, 0, 2, producer_id=0, is_transactional=True, transactional_id="x"),
    produce(4, 5, producer_id=0, is_transactional=True, transactional_id="x"),
    other(5, "end_txn", transactional_id="x", producer_id=0, producer_epoch=0, commit=False),
    other(6, "restart", clean=False),
    produce(7, 2, producer_id=0, is_transactional=True, transactional_id="x"),
    other(8, "delete_records", before_offset=2),
    other(9, "leader_change", how="unclean", lost_from_offset=3),
    other(10, "describe"),
]


@pytest.mark.parametrize("story", [STORY, TRANSACTION], ids=["fenced", "transaction"])
def test_the_page_of_a_story(story, golden):
    session = Session((json.dumps(attempt).encode() for attempt in story), Broker())
    diagram = ReplayDiagram(session.broker, 100)
    for attempt, answer in session.answered():
        diagram.add(attempt, answer)
    page = diagram.page("Replay", "kaudit replay attempts.jsonl")
    assert json.dumps(msgspec.to_builtins(page), indent=1, ensure_ascii=False) == golden
