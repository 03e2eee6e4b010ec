"""A transaction that hangs though its batches are deleted: live brokers' last stable offset beside kaudit's."""

import json
import shutil

import pytest

from tests.cluster.conftest import kaudit, wait_for
from tests.cluster.test_capture import produce, scenario

pytestmark = pytest.mark.cluster
SMALL_SEGMENTS = {"segment.bytes": "400"}


def audited(broker, topic, copy):
    """What a scan of a copy of the log directory says of the topic."""
    shutil.copytree(broker.broker.logs, copy)
    done = kaudit("scan", copy, "--topic", topic, "--output-format", "json")
    document = json.loads(done.stdout)
    (part,) = document["partitions"]
    return document["findings"], part


@pytest.mark.parametrize("name", ["zookeeper_broker", "forgetful_broker"])
def test_the_last_stable_offset_is_the_brokers(request, name, tmp_path):
    broker, topic = request.getfixturevalue(name), "hangs-below-the-log-start"
    own = {"pid": "t", "epoch": "t", "txn_id": f"tx-{topic}"}
    late = [
        {"op": "init_pid", "as": "t", "txn_id": own["txn_id"]},
        {"op": "add_partitions", **own},
        {"op": "produce", **own, "seq": "next", "count": 3, "txn": True},
        {"op": "end_txn", **own, "commit": False},
        {"op": "produce", **own, "seq": "next", "count": 2, "txn": True},
    ]
    deleted = [produce(5), produce(5), {"op": "delete_records", "offset": 14}]
    # a broker that stops writes down where the log starts, and its producers' state
    restart = {"op": "barrier", "kind": "clean"}
    broker.play(scenario(topic, *late, *deleted, produce(5), restart, topic_config=SMALL_SEGMENTS))
    broker.close()
    first, end = (broker.connection.offset(topic, which, 0)[1] for which in (-2, -1))
    assert (first, end) == (14, 21)
    stable = broker.connection.fetch(topic, 0, first).last_stable_offset
    (described,) = [
        each for each in broker.connection.describe_producers(topic, 0) if each["current_txn_start_offset"] >= 0
    ]

    found, part = audited(broker, topic, tmp_path / "open")
    assert (part["last_stable_offset"], part["log_end_offset"]) == (stable, end)
    (hangs,) = found
    assert (hangs["name"], hangs["confidence"]) == ("hanging-transaction", "certain")
    assert hangs["offset"] == described["current_txn_start_offset"]
    assert (hangs["producer_id"], hangs["producer_epoch"]) == (described["producer_id"], described["producer_epoch"])
    assert hangs["impact"] == {"last_stable_offset": stable, "offsets_invisible": end - stable}

    producer = described["producer_id"], described["producer_epoch"]
    coordinator_epoch = described["coordinator_epoch"]
    aborted = broker.connection.write_marker(1, producer, (topic, 0), commit=False, coordinator_epoch=coordinator_epoch)
    assert aborted == 0
    wait_for("the marker", lambda: broker.connection.fetch(topic, 0, first).last_stable_offset == end + 1)
    found, part = audited(broker, topic, tmp_path / "ended")
    assert (found, part["last_stable_offset"]) == ([], end + 1)
