"""Topics of live clusters compared with their mirrors, in clusters and in directories."""

import pytest

from kaudit.cli.app import run
from tests.mirrors.compared import wrong
from tests.mirrors.histories import History
from tests.mirrors.log import Log, Record
from tests.source.kafka.fake_broker import LIST_TRANSACTIONS, FakeBroker

SEEDS = range(40, 48)
CLOSED = "127.0.0.1:1"


def serving(topic: str, logs: list[Log], *, compacted: bool) -> FakeBroker:
    broker = FakeBroker({(topic, number): [batch.encode() for batch in log.batches] for number, log in enumerate(logs)})
    broker.log_start = {(topic, number): log.start for number, log in enumerate(logs)}
    del broker.versions[LIST_TRANSACTIONS]
    broker.configs[topic] = {"cleanup.policy": "compact" if compacted else "delete"}
    return broker


@pytest.mark.parametrize("seed", SEEDS)
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


def log_of(*numbers: int) -> Log:
    log = Log()
    log.append([Record(number, b"key", b"%d" % number, (), 1000 + number) for number in numbers])
    return log


def compare(*arguments: str) -> int:
    return run(["diff", "--by", "records", "-q", *arguments])


def test_one_topic_of_either_cluster_is_a_pair_and_either_has_its_own_connection(tmp_path, capsys):
    with (
        serving("orders", [log_of(1, 2, 3, 4)], compacted=False) as primary,
        serving("archive", [log_of(1, 3, 4, 4)], compacted=False) as backup,
    ):
        configs = [tmp_path / "a.properties", tmp_path / "b.properties"]
        for config, broker in zip(configs, (primary, backup), strict=True):
            config.write_text(f"bootstrap.servers={broker.address}\n")
        options = ("--command-config", str(configs[0]), "--target-command-config", str(configs[1]))
        assert compare("kafka:///orders", "kafka:///archive", *options) == 1
    said = " ".join(capsys.readouterr().out.split())  # as wide as the terminal
    assert said.startswith("orders -> archive: 1 source record missing on target (source offset 1), 1 twice (target 3)")


def test_copies_with_headers_of_the_tool_that_restored_them_are_the_same_but_for_headers(tmp_path, capsys):
    restored = Log()
    restored.append([Record(1, b"key", b"1", (("x-original-offset", b"0"),), 1001)])
    log_of(1).write(tmp_path / "a" / "orders-0")
    restored.write(tmp_path / "b" / "orders-0")
    sides = str(tmp_path / "a"), str(tmp_path / "b")
    assert compare(*sides) == 0
    assert "1 record the same but for headers" in " ".join(capsys.readouterr().out.split())
    assert compare(*sides, "--identity", "key,value,headers,timestamp") == 1


def test_a_cluster_that_does_not_answer_is_named(tmp_path, capsys):
    log_of(1).write(tmp_path / "orders-0")
    assert compare(str(tmp_path / "orders-0"), f"kafka://{CLOSED}/orders") == 4
    said = capsys.readouterr().out
    assert said.startswith("no topic compared; ")
    assert f"kafka://{CLOSED}/orders: {CLOSED}: connection refused" in said
