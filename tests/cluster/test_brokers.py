"""The live brokers are what the tests of kafka:// take them for."""

import ssl

import pytest
from kafka import KafkaConsumer

from tests.live_brokers.protocol import LATEST
from tests.live_brokers.security import USERS

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


def test_users_come_in_with_their_password_over_tls_and_see_what_acls_grant(newest_broker, certificate):
    newest_broker.play(idempotent("harness-secured", 1))
    assert newest_broker.connection.allow("auditor", "topic", "harness-secured", ("DESCRIBE", "READ")) == [0, 0]
    counted = {}
    for user, secret in USERS.items():
        consumer = KafkaConsumer(
            bootstrap_servers=newest_broker.address("SASL_SSL"), security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512", sasl_plain_username=user, sasl_plain_password=secret,
            ssl_context=ssl.create_default_context(cafile=certificate.pem),
        )  # fmt: skip
        try:
            counted[user] = consumer.partitions_for_topic("harness-secured")
        finally:
            consumer.close()
    assert counted == {"auditor": {0}, "stranger": set()}


def test_three_brokers_hold_a_partition_and_one_can_be_killed(three_brokers):
    first, second, third = three_brokers.values()
    second.play(idempotent("harness-replicated", 4, replicas=(2, 1, 3)))
    third.close()
    third.broker.kill()
    third.broker.start()
    assert {each.connection.offset("harness-replicated", LATEST, 0) for each in (second,)} == {(0, 4)}
    segments = {each.directory("harness-replicated") / f"{0:020}.log" for each in (first, second, third)}
    assert len({segment.read_bytes() for segment in segments}) == 1
