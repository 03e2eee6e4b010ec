"""`kaudit diff` on trial: replicas caught in the middle of a fail-over, compared with what the model knows of each."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kaudit.cli.app import run
from kaudit.simulate.cluster.replica_log import ReplicaLog
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.simulation import Simulation
from tests.simulate.schedules import drawn_scenario

quick = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)


def caught(seed: int, directory: Path) -> int:
    """Stop a schedule somewhere in its troubles and compare all replicas; returns how many differed."""
    scenario = drawn_scenario(seed, all_faults=True)
    if scenario.cluster.brokers < 2:
        return 0
    moment = random.Random(f"moment {seed}").randint(250, 2500)
    simulation = Simulation(replace(scenario, duration_ms=moment), seed, 0).run()
    target = directory / f"caught-{seed}"
    write_run(target, simulation, Truth(simulation))
    output = target / "diff.json"
    brokers = [str(target / f"broker-{number}") for number in simulation.cluster.brokers]
    assert run(["diff", *brokers, "--output-format", f"json:{output}", "-q", "--fail-on", "never"]) == 0
    listed = {(row["topic"], row["partition"]): row for row in json.loads(output.read_text())["partitions"]}
    differing = 0
    for key, partition in simulation.cluster.partitions.items():
        logs = {f"broker-{broker}": log for broker, log in partition.logs.items()}
        if not all(log.batches and not log.log_start for log in logs.values()):
            continue
        row = listed[key]
        assert row["end_offset"] == {name: log.log_end for name, log in logs.items()}
        reference = logs[row["reference"]]
        for name, relation in row["relations"].items():
            expected = relation_of(logs[name], reference)
            assert relation == expected, (seed, key, name)
            differing += expected != "identical"
            if partition.leader is not None and row["reference"] == f"broker-{partition.leader}":
                assert row["truncation_offset"][name] == shared_end(logs[name], reference)
    return differing


def shared_end(mine: ReplicaLog, other: ReplicaLog) -> int:
    """Return where two logs stop holding the same batches: what Kafka's leader epochs must find without reading them."""
    end = 0
    for ours, theirs in zip(mine.batches, other.batches, strict=False):
        if ours is not theirs:
            break
        end = ours.last_offset + 1
    return end


def relation_of(mine, reference) -> str:
    """How a replica stands to another, batch by batch, as the model stored them."""
    ours = [(batch.base_offset, batch.leader_epoch, batch.data) for batch in mine.batches]
    theirs = [(batch.base_offset, batch.leader_epoch, batch.data) for batch in reference.batches]
    if ours == theirs:
        return "identical"
    return "behind" if ours == theirs[: len(ours)] else "diverged"


@quick
@given(st.integers(0, 10**6))
def test_replicas_of_any_moment_are_compared_as_they_are(tmp_path_factory, seed):
    caught(seed, tmp_path_factory.mktemp("caught"))


@pytest.mark.cluster
def test_hundreds_of_moments(tmp_path):
    assert sum(caught(seed, tmp_path) for seed in range(600)) > 100
