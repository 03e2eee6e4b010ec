"""One transactional id whose epochs run out, as recorded on real brokers."""

import json
from collections import Counter
from itertools import groupby

import pytest

from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from tests.attempts import attempt_of
from tests.conftest import DATA, ORACLE_VERSIONS

TOPIC = "e01-epoch-exhaustion"


class Client:
    """A producer of one transactional id talking to a replayed broker; request versions 0, as recorded."""

    def __init__(self, version):
        self.broker = Broker(profile_for(version))
        self.index = 0
        self.sequences: Counter[tuple[int, int]] = Counter()

    def ask(self, op, **fields):
        self.index += 1
        attempt = {"index": self.index, "op": op, "topic": TOPIC, "partition": 0, "at": self.index, **fields}
        return self.broker.answer(attempt_of(attempt)).fields

    def init(self):
        answer = self.ask("init_producer_id", transactional_id="tx", api_version=0, timeout_ms=600000)
        assert answer["outcome"] == "ok"
        return answer["producer_id"], answer["producer_epoch"]

    def add(self, producer_id, epoch):
        return self.ask("add_partitions", transactional_id="tx", producer_id=producer_id, producer_epoch=epoch)

    def produce(self, producer_id, epoch):
        sequence = self.sequences[producer_id, epoch]
        self.sequences[producer_id, epoch] += 1
        return self.ask(
            "produce", transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence,
            record_count=1, is_transactional=True,
        )  # fmt: skip

    def end(self, producer_id, epoch):
        return self.ask(
            "end_txn", transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, commit=True, api_version=0
        )


def assert_same(answer, recorded):
    assert (answer["error"], answer["error_code"]) == (recorded["error"], recorded["error_code"])
    if "base_offset" in recorded and recorded["error_code"] == 0:
        assert answer["base_offset"] == recorded["base_offset"]


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_after_the_last_epoch_comes_a_new_producer_id(version):
    recorded = json.loads((DATA / "oracle" / version / "epoch_exhaustion.json").read_text())
    client = Client(version)
    tail = recorded["tail"]
    with_transaction = {tuple(step["transaction_with"]): step for step in tail if "transaction_with" in step}
    granted = []
    for run in recorded["runs"]:
        for _ in range(run["first_epoch"], run["last_epoch"] + 1):
            producer = client.init()
            granted.append(producer)
            step = with_transaction.get(producer)
            if step is not None:
                assert_same(client.add(*producer), step["add_partitions"])
                assert_same(client.produce(*producer), step["produce"])
                assert_same(client.end(*producer), step["end_txn"])
    runs = []
    for producer_id, producers in groupby(granted, key=lambda producer: producer[0]):
        epochs = [epoch for _, epoch in producers]
        runs.append({"producer_id": producer_id, "first_epoch": epochs[0], "last_epoch": epochs[-1]})
        assert epochs == list(range(epochs[0], epochs[-1] + 1))
    assert runs == recorded["runs"]
    last_inits = [(step["producer_id"], step["producer_epoch"]) for step in tail if "producer_id" in step]
    assert granted[-len(last_inits) :] == last_inits
    for step in recorded["after"]:
        producer = tuple(step.get("key") or (0, 32766))
        assert_same(client.add(*producer), step["add_partitions"])
        assert_same(client.produce(*producer), step["produce"])
        if "end_txn" in step:
            assert_same(client.end(*producer), step["end_txn"])
