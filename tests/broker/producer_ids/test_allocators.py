"""The allocator models give the ids that real brokers gave, event by event."""

import json
from pathlib import Path
from typing import Any

import pytest

from kaudit.broker.producer_ids.allocators import AllocationError, Controller, ControllerBroker, Grant, Znode
from kaudit.broker.producer_ids.block_history import ProducerIdsRecord
from tests.broker.producer_ids.zookeeper_broker import ZooKeeperBroker

DATA = Path(__file__).parents[2] / "data" / "oracle"
MAX = 2**63 - 1


def timeline(version: str, name: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads((DATA / version / name).read_text())["timeline"]
    return events


class Cluster:
    """The brokers 35 and 36 of the recording; by hand is what the recording's script did to the znode."""

    def __init__(self) -> None:
        self.znode = Znode()
        self.brokers: dict[int, ZooKeeperBroker] = {}

    def answers(self, broker: int, count: int) -> list[tuple[int | str, int | str, int]]:
        """The first and last id and the number of each run of answers, in the form of `recorded_runs`."""
        runs: list[tuple[int | str, int | str, int]] = []
        for _ in range(count):
            try:
                answer: int | str = self.brokers[broker].generate()
            except AllocationError:
                answer = "UNKNOWN_SERVER_ERROR"
            except TimeoutError:
                answer = "CLIENT_TIMEOUT_15s"
            first, last, length = runs[-1] if runs else ("", "", 0)
            following = answer == last if isinstance(answer, str) else isinstance(last, int) and answer == last + 1
            if following:
                runs[-1] = (first, answer, length + 1)
            else:
                runs.append((answer, answer, 1))
            if answer == "CLIENT_TIMEOUT_15s":
                break
        return runs


def recorded_runs(event: dict[str, Any]) -> list[tuple[int | str, int | str, int]]:
    runs = event.get("runs") or [{**event["response"], "count": 1}]
    return [
        (run["error"], run["error"], run["count"])
        if run["error"] != "NONE"
        else (run.get("first", run.get("producer_id")), run.get("last", run.get("producer_id")), run["count"])
        for run in runs
    ]


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2"])
def test_the_zookeeper_form_gives_every_recorded_answer(version: str):
    cluster = Cluster()
    compared = 0
    for event in timeline(version, "pid_blocks.json"):
        name = event["event"]
        if name.startswith("broker ") and "start" in name:
            broker = int(name.split()[1])
            cluster.brokers[broker] = ZooKeeperBroker(broker, cluster.znode)
        elif name.startswith("znode deleted"):
            cluster.znode.data = cluster.znode.version = None
        elif name.startswith("znode"):
            cluster.znode.set_by_hand(event["znode"]["data"].encode())
        elif "runs" in event or "response" in event:
            expected = recorded_runs(event)
            assert cluster.answers(event["broker"], sum(count for _, _, count in expected)) == expected, name
            compared += sum(count for _, _, count in expected)
        znode = event["znode"]
        if "data" in znode:
            assert (cluster.znode.data or b"").decode() == znode["data"], name
            assert cluster.znode.version == znode["version"], name
        elif compared:
            assert cluster.znode.version is None, name
    # 20 single answers; the runs of the other events add up to 17,503 (summed apart from this test).
    assert compared == 17_523


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_the_controller_form_gives_every_recorded_id(version: str):
    controller = Controller()
    broker = ControllerBroker(1, 0, controller)
    compared = refusals = 0
    for event in timeline(version, "pid_alloc.json"):
        if "restart" in event["event"]:
            broker = ControllerBroker(1, 0, controller)
            continue
        if event["event"] == "started":
            continue
        for _ in range(event.get("refused_with_COORDINATOR_LOAD_IN_PROGRESS", 0)):
            assert broker.generate() is None
        for first, last, count in recorded_runs(event):
            if first == "COORDINATOR_LOAD_IN_PROGRESS":
                assert [broker.generate() for _ in range(count)] == [None] * count
                refusals += count
                continue
            # The answer takes the controller as long as the recorded refusals say: it is there when ids go on.
            controller.commit()
            broker.receive()
            assert [broker.generate() for _ in range(count)] == list(range(int(first), int(last) + 1))
            compared += count
        controller.commit()
        broker.receive()
    assert compared > 3000
    assert refusals > 150
    # cluster-metadata-pid1.txt has six PRODUCER_IDS_RECORDs, up to 6000, on both versions.
    assert [record.next_producer_id for record in controller.committed] == [1000, 2000, 3000, 4000, 5000, 6000]


def test_the_next_block_is_asked_for_with_the_first_id_of_the_last_tenth():
    """RPCProducerIdManager.PID_PREFETCH_THRESHOLD is 0.90; it asks once."""
    controller = Controller()
    broker = ControllerBroker(1, 0, controller)
    assert broker.generate() is None
    granted = []
    for number in range(2000):
        controller.commit()
        broker.receive()
        assert broker.generate() == number
        controller.commit()
        granted.append(len(controller.committed))
    assert granted == [1] * 900 + [2] * 1000 + [3] * 100


def test_the_controller_refuses_the_last_block():
    controller = Controller()
    last_start = MAX - 1000  # one id short of the end: the last id is never granted
    for last_next, refused in ((last_start, False), (last_start + 1, True)):
        controller.committed = [ProducerIdsRecord(0, None, 1, 0, last_next)]
        if refused:
            with pytest.raises(AllocationError):
                controller.request(1, 0)
        else:
            assert controller.request(1, 0).grant == Grant(1, MAX - 1000, MAX - 1)


def test_a_fail_over_takes_the_uncommitted_block_back():
    controller = Controller()
    one, two = (ControllerBroker(number, 0, controller) for number in (1, 2))
    assert one.generate() is None
    controller.fail_over()
    assert two.generate() is None
    controller.commit()
    assert one.receive() is None
    assert two.receive() == Grant(2, 0, 999)
    one.lose_answer()
    assert one.generate() is None
    controller.commit()
    assert one.receive() == Grant(1, 1000, 1999)


def test_a_lost_answer_costs_a_block():
    controller = Controller()
    broker = ControllerBroker(1, 0, controller)
    assert broker.generate() is None
    controller.commit()
    broker.lose_answer()
    assert broker.generate() is None
    controller.commit()
    assert broker.receive() == Grant(1, 1000, 1999)
    assert broker.generate() == 1000
