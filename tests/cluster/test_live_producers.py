"""`kaudit producers` of real brokers: what the log yields beside what they remember, and the ids that they let expire."""

import json

import pytest

from kaudit.model.json_record import rfc3339
from tests.cluster.brokers import IDLE_MS
from tests.cluster.conftest import kaudit, wait_for
from tests.cluster.test_capture import produce, scenario, transaction
from tests.conformance.recorder.topic import clock

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


def test_an_id_that_expires_and_the_producer_that_is_refused_for_it(newest_broker):
    topic, name = "expires", "tx-expires"

    def played(*steps):
        """What the broker answered about the id, by what was asked; and between which times."""
        start = clock()
        lines = newest_broker.play(scenario(topic, *steps))
        own = [(asked["op"], answer) for asked, answer in lines if asked.get("transactional_id") == name]
        return own, (start, clock())

    def listed(producer_id):
        asked = ("--topic", topic, "--producer-id", producer_id, "--output-format", "json", "-q")
        done = kaudit("producers", newest_broker.broker.logs, *asked)
        assert (done.returncode, done.stderr) == (0, "")
        (entry,) = json.loads(done.stdout)["expired_transactional_ids"]
        return entry

    answers, used = played(*transaction(topic, commit=True))
    first = dict(answers)["init_producer_id"]
    wait_for("the id to expire", lambda: not newest_broker.connection.transaction_state(name))
    gone = clock()
    entry = listed(first["producer_id"])
    assert (entry["transactional_id"], entry["next_producer_id"]) == (name, None)
    assert (entry["producer_id"], entry["producer_epoch"]) == (first["producer_id"], first["producer_epoch"])
    assert rfc3339(used[0]) <= entry["last_update_timestamp"] <= rfc3339(used[1])
    assert rfc3339(used[0] + IDLE_MS) <= entry["expired_timestamp"] <= rfc3339(gone)

    old = {"pid": first["producer_id"], "epoch": first["producer_epoch"], "txn_id": name}
    late = [{"op": "add_partitions", **old}, {"op": "end_txn", **old, "commit": True}]
    answers, _ = played(*late, *transaction(topic, commit=True))
    assert [answer["error"] for _, answer in answers[:2]] == ["INVALID_PRODUCER_ID_MAPPING"] * 2
    second = dict(answers)["init_producer_id"]
    assert second["producer_id"] != first["producer_id"]
    entry["next_producer_id"] = second["producer_id"]
    assert listed(first["producer_id"]) == listed(second["producer_id"]) == entry
