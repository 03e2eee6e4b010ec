"""`producers --live`: what log and broker remember, side by side."""

import json

import pytest

from kaudit.model.producer_listing import ComparedPartition, ComparedProducer, DescribedState, Relation
from kaudit.report.console import Console
from kaudit.report.text.live_producers import live_document, live_table

LOG = DescribedState(3, 41, 1_700_000_000_000, -1, -1)
BROKER = DescribedState(3, 42, -1, 0, 900)
SAME = ComparedProducer(1, Relation.IDENTICAL, LOG, LOG)
OTHER = ComparedProducer(2, Relation.DIFFERENT, LOG, BROKER, ("last_sequence", "last_timestamp", "coordinator_epoch"))
EXPIRED = ComparedProducer(3, Relation.LOG_ONLY, LOG, None, explanation="the broker has forgotten it")
GAINED = ComparedProducer(4, Relation.BROKER_ONLY, None, BROKER)


def part(*producers, topic="orders", number=0):
    return ComparedPartition(topic, number, 7, producers)


def test_each_way_to_differ():
    assert live_table([part(SAME, OTHER, EXPIRED, GAINED), part(SAME, topic="a\x1b", number=1)], Console()) == (
        "orders-0 on broker 7: 4 producers, 1 identical\n"
        "  producer 2: last_sequence is 41 in the log, 42 on the broker; "
        "last_timestamp is 2023-11-14 22:13:20 in the log, -1 on the broker; "
        "coordinator_epoch is -1 in the log, 0 on the broker\n"
        "  producer 3: only in the log (producer_epoch 3, last_sequence 41, last_timestamp 2023-11-14 22:13:20, "
        "coordinator_epoch -1, current_txn_start_offset -1)\n"
        "    = the broker has forgotten it\n"
        "  producer 4: only on the broker (producer_epoch 3, last_sequence 42, last_timestamp -1, "
        "coordinator_epoch 0, current_txn_start_offset 900)\n"
        "a\\x1b-1 on broker 7: 1 producer, 1 identical\n"
        "\n"
        "5 producers in 2 partitions: 3 differ, 2 of them without an explanation\n"
    )


@pytest.mark.parametrize(("parts", "verdict"), [
    ([], "0 producers in 0 partitions: the brokers remember what the logs yield"),
    ([part(SAME)], "1 producer in 1 partition: the brokers remember what the logs yield"),
    ([part(EXPIRED)], "1 producer in 1 partition: 1 differ, 0 of them without an explanation"),
])  # fmt: skip
def test_verdict(parts, verdict):
    assert live_table(parts, Console()).endswith(f"\n{verdict}\n")


def test_the_epoch_of_the_clock_is_a_time():
    at_zero = DescribedState(0, 0, 0, -1, -1)
    shown = live_table([part(ComparedProducer(1, Relation.LOG_ONLY, at_zero, None))], Console())
    assert "last_timestamp 1970-01-01 00:00:00, coordinator_epoch -1" in shown


def test_document():
    shown = json.loads(live_document([part(SAME, OTHER, EXPIRED, GAINED), part(SAME, number=1)]))
    assert shown["schema"] == "kaudit.producers-live/1"
    assert shown["summary"] == {"partitions": 2, "producers": 5, "differing": 3, "unexplained": 2}
    assert [[each["relation"] for each in entry["producers"]] for entry in shown["partitions"]] == [
        ["identical", "different", "log-only", "broker-only"],
        ["identical"],
    ]
    assert shown["partitions"][0]["producers"][2]["explanation"] == "the broker has forgotten it"
