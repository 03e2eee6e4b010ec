"""The auditor on trial: what `scan` and `producers` say about logs of thousands of schedules equals what is true.

Nothing the log can show is missed, nothing healthy alarmed. The truth is derived in tests/simulate/schedules.py from what
the model stored, not from anything kaudit decides.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kaudit
from kaudit.cli.app import run
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.simulation import Simulation
from tests.simulate.schedules import drawn_scenario, truth_of
from tests.simulate.test_scenarios import disagreements

REPEATED = {"KA101", "KA102", "KA103"}
OPEN = {"KA301": "error", "KA302": "warning"}
RESTARTED = {"KA105", "KA106"}
SEVERITIES = {
    **dict.fromkeys(("KA102", "KA103", "KA107", "KA201", "KA202", "KA502", "KA305"), "error"),
    **dict.fromkeys((*RESTARTED, "KA206", "KA207", "KA208", "KA701", "KA702", "KA703"), "warning"),
    **OPEN,
    "KA101": "error, or a warning where other records stand under the sequences",
    "KA203": "note",
    "KA104": "error, or a warning where the partition's leader changed in between",
    "KA704": "error, or a warning where one record or batch alone is repeated or timestamps differ",
}
EITHER = {"KA704"}
"""A warning where one batch alone is repeated or other records lie between."""
# What a broker that lost its snapshots leaves beside wrong sequences: files that do not say what the log says.
FORGOTTEN = {"KA502", "KA305", "KA303", "KA304", "KA306", "KA308"}


def tried(seed: int, directory: Path, *, forgetful: bool, all_faults: bool = True) -> Simulation:
    """Run a schedule, audit every replica, compare."""
    scenario = drawn_scenario(seed, forgetful=forgetful, all_faults=all_faults)
    simulation = Simulation(scenario, seed, 0).run()
    assert disagreements(simulation) == []
    target = directory / f"run-{seed}"
    write_run(target, simulation, Truth(simulation))
    brokers = [number for number in simulation.cluster.brokers if any((target / f"broker-{number}").glob("*/*.log"))]
    result = kaudit.scan([target / f"broker-{number}" for number in brokers])
    found = defaultdict(list)
    for finding in result.findings:
        assert finding.log_dir is not None
        broker = int(Path(finding.log_dir).name.removeprefix("broker-"))
        found[broker, finding.topic, finding.partition].append(finding)
    for key, partition in simulation.cluster.partitions.items():
        for broker, log in partition.logs.items():
            compare(found.pop((broker, *key), []), truth_of(log), forgetful=forgetful)
    assert not found
    if not forgetful:
        producers_agree(simulation, target)
    return simulation


def compare(findings, truth, *, forgetful: bool) -> None:
    """Every finding is about an offset where the truth has it, in the severity of its check, and none is missing."""
    alarms = [finding for finding in findings if finding.severity.value in ("error", "warning")]
    places = defaultdict(set)
    for finding in findings:
        places[finding.code].add(finding.offset)
        if finding in alarms or finding.code == "KA203":
            assert finding.severity.value in SEVERITIES.get(finding.code, finding.severity.value), finding
    assert set.union(*(places[code] for code in REPEATED)) == truth.repeats
    assert places["KA104"] | places["KA107"] == truth.gaps
    assert (places["KA201"], places["KA202"]) == (truth.stale, truth.bumps_beyond_zero)
    opened = {finding.producer_id: finding.offset for finding in findings if finding.code in OPEN}
    assert opened == truth.open_transactions
    compare_impact(findings, truth)
    restarted = {finding.offset for finding in alarms if finding.code in RESTARTED}
    assert restarted <= truth.restarts | truth.unknown_starts
    twice = [finding for finding in alarms if finding.code == "KA702"]
    copies = {copy for finding in twice for _, copy in finding.evidence["copies"]}
    assert truth.plain_repeats <= copies <= truth.plain_repeats | truth.sent_again
    for finding in alarms:
        if finding.code == "KA703":
            span = set(range(finding.offset, finding.last_offset + 1))
            assert span & (truth.older | truth.plain_repeats), finding
    assert places["KA203"] <= truth.fences
    bumped = {finding.offset for finding in alarms if finding.code == "KA206"}
    assert bumped == truth.bumps_at_leader_change - places["KA704"]
    assert places["KA704"] <= truth.repeated_epochs
    assert places["KA701"] <= truth.resent
    others = {finding.code for finding in alarms} - set(SEVERITIES) - EITHER | {
        code for code in FORGOTTEN if places[code]
    }
    hanging = places["KA304"] <= set(truth.open_transactions.values())  # a late write began what nobody ends
    assert others - ({"KA304"} if hanging else set()) <= (FORGOTTEN if forgetful else set())


def compare_impact(findings, truth) -> None:
    repeated = [finding.impact.records_duplicated or 0 for finding in findings if finding.code in REPEATED]
    assert sum(repeated) == truth.copied_records
    costs = {finding.impact for finding in findings if finding.impact.last_stable_offset is not None}
    held_back = {(cost.last_stable_offset, cost.offsets_invisible) for cost in costs}
    oldest = min(truth.open_transactions.values(), default=None)
    assert held_back == (set() if oldest is None else {(oldest, truth.log_end - oldest)})
    for finding in findings:
        impact = finding.impact
        if impact.records_lost_at_most is not None:
            assert 0 <= (impact.records_lost_at_least or 0) <= impact.records_lost_at_most


def producers_agree(simulation: Simulation, target: Path) -> None:
    """`kaudit producers` of one broker against what its logs were given."""
    broker = next(iter(simulation.cluster.brokers))
    directory = target / f"broker-{broker}"
    if not any(directory.glob("*/*.log")):
        return
    output = target / "producers.json"
    assert run(["producers", str(directory), "--output-format", f"json:{output}", "-q", "--fail-on", "never"]) == 0
    listed = {
        (place["topic"], place["partition"], producer["producer_id"]): place
        for producer in json.loads(output.read_text())["producers"]
        for place in producer["partitions"]
    }
    expected = {}
    for key, partition in simulation.cluster.partitions.items():
        log = partition.logs.get(broker)
        if log is None or log.log_start:
            continue
        truth = truth_of(log)
        for producer_id, batches in truth.batches.items():
            expected[(*key, producer_id)] = (batches, truth.records[producer_id], len(truth.epochs[producer_id]))
    deleted = {
        key
        for key, part in simulation.cluster.partitions.items()
        if broker in part.logs and part.logs[broker].log_start
    }
    seen = {
        key: (place["batches"], place["records"], place["epochs"]["count"])
        for key, place in listed.items()
        if key[:2] not in deleted and key[2] >= 0 and place["batches"]
    }
    assert seen == expected


quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)


@quick
@given(st.integers(0, 10**6))
def test_healthy_schedules_raise_no_alarm_and_hide_nothing(tmp_path_factory, seed):
    tried(seed, tmp_path_factory.mktemp("healthy"), forgetful=False)


@quick
@given(st.integers(0, 10**6))
def test_what_forgetful_brokers_write_twice_is_found_to_the_offset(tmp_path_factory, seed):
    tried(seed, tmp_path_factory.mktemp("forgetful"), forgetful=True)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(60151, id="an idle producer expired before its empty transaction was aborted"),
        pytest.param(80435, id="a replica forgot what was deleted"),
        pytest.param(80473, id="a batch fails while the epoch is raised"),
        pytest.param(81772, id="a state was rebuilt from a marker that is deleted by now"),
        pytest.param(82334, id="a batch came after its transaction had been aborted"),
        pytest.param(81232, id="an open transaction was deleted"),
        pytest.param(61032, id="the sequences of a batch given up were used again"),
        pytest.param(101122, id="the first records of a session are copies under its next epoch"),
        pytest.param(
            101351, id="a follower that had all of a producer's batches forgets it with its leader's log start"
        ),
    ],
)
def test_schedules_that_few_seeds_draw(tmp_path, seed):
    tried(seed, tmp_path, forgetful=seed % 3 == 0)


@pytest.mark.cluster
def test_hundreds_of_schedules(tmp_path):
    """`python -m tests.simulate.trial --seeds 5000` tries as many as you like."""
    for seed in range(100):
        tried(seed, tmp_path, forgetful=seed % 3 == 0)
