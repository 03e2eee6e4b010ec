"""A broker's answer in short."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kaudit.broker.attempts import Attempt
from kaudit.report.text.answers import TABLE_HEADER, answer_text, as_row, request_text

FETCHED = {"high_watermark": 9, "log_start_offset": 2, "last_stable_offset": 7, "aborted": [{}, {}]}


@pytest.mark.parametrize(("fields", "text"), [
    ({}, ""),
    ({"outcome": "appended", "error": "NONE", "error_code": 0, "base_offset": 0}, "appended at 0"),
    ({"outcome": "duplicate", "error": "NONE", "error_code": 0, "base_offset": 7}, "duplicate of offset 7"),
    ({"outcome": "rejected", "error": "INVALID_PRODUCER_EPOCH", "error_code": 47}, "rejected, 47 INVALID_PRODUCER_EPOCH"),
    ({"outcome": "initialized", "producer_id": 3, "producer_epoch": 0}, "initialized, id 3 epoch 0"),
    ({"outcome": "initialized", "producer_id": -1, "producer_epoch": -1}, "initialized"),
    (FETCHED, "high watermark 9, log start 2, stable to 7, 2 aborted"),
    ({"outcome": "described", "producers": [{}]}, "described, 1 producer"),
    ({"outcome": "described", "producers": []}, "described, 0 producers"),
])  # fmt: skip
def test_answers(fields, text):
    assert answer_text(cast("Any", SimpleNamespace(fields=fields))) == text


PRODUCER = {"producer_id": 4000, "producer_epoch": 1}


@pytest.mark.parametrize(("attempt", "text"), [
    ({"op": "produce", **PRODUCER, "base_sequence": 5, "record_count": 3}, "id 4000 epoch 1 seq 5 x3"),
    ({"op": "produce", **PRODUCER, "base_sequence": 5, "record_count": 3, "is_transactional": True},
     "id 4000 epoch 1 seq 5 x3 txn"),
    ({"op": "produce", **PRODUCER, "base_sequence": 5}, "produce"),
    ({"op": "end_txn", "transactional_id": "t", **PRODUCER, "commit": True}, "end_txn id 4000 epoch 1 commit"),
    ({"op": "write_marker", **PRODUCER, "commit": False, "coordinator_epoch": 0}, "write_marker id 4000 epoch 1 abort"),
    ({"op": "restart", "clean": True}, "restart clean"),
    ({"op": "follower_restart", "clean": False}, "follower_restart unclean"),
    ({"op": "init_producer_id"}, "init_producer_id"),
    ({"op": "init_producer_id", "transactional_id": "pay\x1b"}, "init_producer_id pay"),
    ({"op": "add_partitions", "transactional_id": "t", **PRODUCER}, "add_partitions t"),
    ({"op": "delete_records", "before_offset": 9}, "delete_records 9"),
])  # fmt: skip
def test_attempts(attempt, text):
    converted: Attempt = msgspec.convert({"topic": "orders", "partition": 3, **attempt}, Attempt)
    assert request_text(converted) == text


@pytest.mark.parametrize(("outcome", "shown"), [("rejected", True), ("connection-closed", True), ("appended", False)])
def test_a_refusal_has_its_reason_below(outcome, shown):
    answer: Any = SimpleNamespace(attempt=12, fields={"outcome": outcome}, why="gap\x1b[2J")
    attempt: Attempt = msgspec.convert({"op": "restart", "topic": "orders", "partition": 3, "clean": True}, Attempt)
    first, *more = as_row(attempt, answer).split("\n")
    assert first.split() == ["12", "orders-3", "restart", "clean", outcome]
    assert first.index(outcome) == TABLE_HEADER.index("ANSWER")
    assert more == (["         gap[2J"] if shown else [])
