"""Kafka itself reads what the model writes, loads it, and answers attempts as the model does."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.dump_log import dump_log_command
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import shipped
from kaudit.simulate.simulation import Simulation
from tests.simulate.kafka_broker import RealBroker, Wire, kafka_jars

pytestmark = pytest.mark.cluster
CACHE = Path.home() / ".cache" / "kaudit-benchmarks"
READ = (
    "anything",
    "not-enough-replicas-after-append",
    "sequence-wrap",
    "acks1-leader-dies",
    "batch-split",
    "forgotten-duplicate",
    "zombie-producer",
    "transaction-timeout",
)
LOADED = (
    "anything",
    "sequence-wrap",
    "refused-retry",
    "delivery-timeout-bump",
    "six-in-flight",
    "zombie-producer",
    "cross-session",
)
ANSWERED = (
    "five-in-flight",
    "sequence-wrap",
    "refused-retry",
    "muted-partition",
    "six-in-flight",
    "retry-without-idempotence",
    "cross-session",
    "batch-split",
    "retry-dup",
)


def run_now(name: str, seed: int, directory: Path) -> Simulation:
    """A run that began a minute ago: a broker forgets producers by their records' time."""
    scenario = replace(shipped(name), starts_at=(int(time.time()) - 300) * 1000)
    simulation = Simulation(scenario, seed).run()
    write_run(directory, simulation, Truth(simulation))
    return simulation


@pytest.mark.parametrize("name", READ)
def test_kafka_dump_log_reads_every_file_without_complaint(name, tmp_path):
    command = dump_log_command(CACHE)
    assert not isinstance(command, str), command
    simulation = run_now(name, 3, tmp_path / "run")
    files = sorted(str(path) for path in (tmp_path / "run").rglob("0*") if path.stat().st_size)
    assert files
    sanity = [path for path in files if path.endswith("index")]
    done = subprocess.run([*command, ",".join(files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "isvalid: true" in done.stdout
    for complaint in ("isvalid: false", "Mismatches", "out of order", "Found timestamp mismatch", "Corrupt"):
        assert complaint not in done.stdout, complaint
    assert "Exception" not in done.stderr, done.stderr
    done = subprocess.run(
        [*command, ",".join(sanity), "--index-sanity-check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    passed = done.stdout.count("passed sanity check")
    assert passed == sum(path.endswith((".index", ".timeindex")) for path in sanity)
    batches = sum(
        len(log.batches) for partition in simulation.cluster.partitions.values() for log in partition.logs.values()
    )
    assert len(re.findall(r"^baseOffset: ", done.stdout, re.MULTILINE)) in (0, batches)


@pytest.mark.parametrize("name", LOADED)
def test_a_real_broker_loads_the_log_directory(name, tmp_path):
    simulation = run_now(name, 3, tmp_path / "run")
    model = tmp_path / "run" / "broker-1"
    disk = tmp_path / "disk"
    disk.mkdir()
    shutil.copy(model / "meta.properties", disk)
    (cluster_id,) = re.findall(r"cluster.id=(\S+)", (model / "meta.properties").read_text())
    broker = RealBroker(kafka_jars(CACHE), tmp_path / "node", disk, cluster_id)
    broker.start()
    try:
        with Wire(broker.port) as wire:
            for topic in simulation.scenario.topics:
                wire.create_topic(topic.name, topic.partitions, {"min.insync.replicas": "1"})
                for number in range(topic.partitions):
                    assert wire.end_offset(topic.name, number) == 0
        broker.stop()
        mine = [partition for partition in simulation.cluster.partitions.values() if 1 in partition.replicas]
        mine = [partition for partition in mine if not partition.name.startswith("__")]
        for partition in mine:
            shutil.copy(disk / partition.name / "partition.metadata", model / partition.name)
            shutil.rmtree(disk / partition.name)
            shutil.copytree(model / partition.name, disk / partition.name)
        for file in model.iterdir():
            if file.is_file() and file.name != "meta.properties":
                shutil.copy(file, disk)
        before = len(broker.console.read_text())
        broker.start()
        assert [line for line in broker.complaints() if any(part.name in line for part in mine)] == []
        loading = broker.console.read_text()[before:]
        for partition in mine:
            assert re.search(rf"Completed load of Log\(dir=\S*{partition.name},", loading), partition.name
        with Wire(broker.port) as wire:
            for partition in mine:
                name, number = partition.key
                log = partition.logs[1]
                assert wire.end_offset(name, number) == log.log_end
                stored = (model / partition.name / "00000000000000000000.log").read_bytes()
                assert wire.fetch(name, number, 0) == stored
                states = log.memory.producers.states.items()
                expected = [
                    (pid, state.epoch, state.last_sequence, state.current_txn_first_offset) for pid, state in states
                ]
                assert wire.producers(name, number) == sorted(expected)
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def empty_broker(tmp_path_factory):
    home = tmp_path_factory.mktemp("kafka")
    broker = RealBroker(kafka_jars(CACHE), home / "node", home / "disk", "AAAAAAAAAAAAAAAAAAAAAQ")
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize("name", ANSWERED)
def test_a_real_broker_answers_the_attempts_as_the_model_did(name, empty_broker, tmp_path):
    run_now(name, 5, tmp_path / "run")
    attempts = [json.loads(line) for line in (tmp_path / "run" / "attempts.jsonl").read_text().splitlines()]
    answers = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    compared = 0
    with Wire(empty_broker.port) as wire:
        for attempt, answer in zip(attempts, answers, strict=True):
            topic = f"{name}.{attempt.get('topic')}"
            if attempt["op"] == "topic":
                wire.create_topic(topic, attempt["partition"] + 1, attempt["config"])
                assert wire.end_offset(topic, attempt["partition"]) == 0
            elif attempt["op"] == "produce":
                records = bytes.fromhex(attempt["records_hex"])
                error, offset = wire.produce(topic, attempt["partition"], records, attempt["acks"])
                assert error == answer["error_code"], (attempt, answer)
                assert offset == answer.get("base_offset", -1), (attempt, answer)
                compared += 1
    assert compared >= 5
