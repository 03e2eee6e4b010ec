"""`kaudit producers --live`: what the log yields beside what real brokers remember."""

import json

import pytest

from kaudit.model.rfc3339 import rfc3339
from tests.cluster.conftest import kaudit
from tests.cluster.test_capture import produce, scenario, transaction

pytestmark = pytest.mark.cluster


def live(*arguments):
    return kaudit("producers", "--live", *arguments)


@pytest.mark.parametrize("name", ["zookeeper_broker", "newest_broker"])
def test_brokers_remember_what_the_logs_yield(request, name):
    broker, topic = request.getfixturevalue(name), "remembered"
    own = {"pid": "o", "epoch": "o", "txn_id": "tx-open"}
    hanging = [
        {"op": "init_pid", "as": "o", "txn_id": "tx-open"},
        {"op": "add_partitions", **own},
        {"op": "produce", **own, "seq": "next", "count": 3, "txn": True},
    ]
    ended = [*transaction(topic, commit=True), *transaction(topic, commit=False)]
    broker.play(scenario(topic, *ended, *hanging, produce(5), produce(2)))
    done = live(broker.url(topic), "--output-format", "json", "-q")
    (part,) = json.loads(done.stdout)["partitions"]
    assert {each["relation"] for each in part["producers"]} == {"identical"}, done.stdout
    assert done.returncode == 0
    described = broker.connection.describe_producers(topic, 0)
    for own, answered in zip(part["producers"], described, strict=True):
        at = answered.pop("last_timestamp")
        assert own["broker"].pop("last_timestamp") == rfc3339(at)
        assert {"producer_id": own["producer_id"], **own["broker"]} == answered
    assert "the brokers remember what the logs yield" in live(broker.url(topic)).stdout


def test_a_forgotten_producer_has_expired(forgetful_broker):
    forgetful_broker.play(scenario("expired", produce(5), {"op": "sleep", "ms": 5500}))
    done = live(forgetful_broker.url("expired"))
    assert done.returncode == 0
    assert "only in the log" in done.stdout
    assert "producer.id.expiration.ms is 4 s" in done.stdout


def test_a_producer_whose_batches_were_deleted_is_remembered(zookeeper_broker):
    zookeeper_broker.play(scenario("deleted", produce(5), {"op": "delete_records", "offset": -1}))
    done = live(zookeeper_broker.url("deleted"))
    assert done.returncode == 0
    assert "only on the broker" in done.stdout
    assert "the log begins at offset 5" in done.stdout
