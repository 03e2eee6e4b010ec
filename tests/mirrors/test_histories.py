"""Ledgers of random histories, from files and from brokers, beside what became of each record."""

import pytest

from tests.mirrors.compared import wrong
from tests.mirrors.histories import History
from tests.mirrors.log import Log
from tests.source.kafka.fake_broker import LIST_TRANSACTIONS, FakeBroker

SEEDS = 40


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_ledger_equals_the_truth(seed, tmp_path):
    history = History(seed)
    assert wrong(history, *history.write(tmp_path)) == []


def serving(topic: str, logs: list[Log], *, compacted: bool) -> FakeBroker:
    broker = FakeBroker({(topic, number): [batch.encode() for batch in log.batches] for number, log in enumerate(logs)})
    broker.log_start = {(topic, number): log.start for number, log in enumerate(logs)}
    del broker.versions[LIST_TRANSACTIONS]
    broker.configs[topic] = {"cleanup.policy": "compact" if compacted else "delete"}
    return broker


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + 8))
@pytest.mark.parametrize("files", ["neither", "source"])
def test_brokers_give_the_same_ledger(seed, files, tmp_path):
    history = History(seed)
    settings = history.settings
    source, _ = history.write(tmp_path)
    with (
        serving("orders", history.source, compacted=settings.source_compacted) as primary,
        serving(settings.renamed, history.target, compacted=settings.target_compacted) as backup,
    ):
        there = f"kafka://{backup.address}/{settings.renamed}"
        assert wrong(history, source if files == "source" else f"kafka://{primary.address}/orders", there) == []
