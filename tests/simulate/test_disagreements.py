"""What the model and the auditor disagreed about, kept: each was somebody's mistake, and the log that showed it."""

import shutil

import kaudit
from kaudit.broker.attempts import Produce
from kaudit.broker.broker import Broker
from kaudit.replay.session import Session
from kaudit.simulate.output.directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.shipped import shipped
from kaudit.simulate.simulation import Simulation
from tests.simulate.schedules import drawn_scenario
from tests.simulate.test_auditor_on_trial import tried
from tests.simulate.test_scenarios import disagreements


def test_a_log_directory_may_be_called_like_a_partition(tmp_path):
    """kaudit took broker-1, for its checkpoints, to be partition 1 of a topic `broker`, and audited nothing."""
    simulation = Simulation(shipped("forgotten-duplicate"), 9).run()
    write_run(tmp_path / "run", simulation, Truth(simulation))
    for name in ("kafka-1", "data-2024", "broker-1"):
        target = tmp_path / name / name
        shutil.copytree(tmp_path / "run" / "broker-1", target)
        assert {finding.topic for finding in kaudit.scan([target]).findings} == {"orders"}


def test_a_zombie_may_write_on_when_deleting_records_deleted_its_fence(tmp_path):
    """2.0.1 forgets a producer whose records were deleted, its fence with it: the transaction hangs, and KA301 says so."""
    simulation = tried(2361, tmp_path, forgetful=False)
    findings = kaudit.scan([tmp_path / "run-2361"], select=["KA301"]).findings
    assert {(finding.topic, finding.offset) for finding in findings} == {("events", 12)}
    assert simulation.scenario.cluster.version == "2.0.1"


def test_a_replica_named_in_a_restart_leads_with_what_it_then_remembered():
    """Replay gave every restarted follower's memory to whichever replica led next: attempts name the replica now."""
    for seed in (32, 44, 46, 562, 1109):
        assert disagreements(Simulation(drawn_scenario(seed), seed, 0).run()) == []
    batch = '{"op": "produce", "topic": "t", "partition": 0, "producer_id": 1, "producer_epoch": 0, "record_count": 1, '
    move = '{"op": "leader_change", "topic": "t", "partition": 0, "how": "clean", '
    lines = [
        '{"op": "broker", "broker_version": "3.9.1"}',
        *(f'{batch} "base_sequence": {sequence}}}' for sequence in range(3)),
        '{"op": "follower_restart", "topic": "t", "partition": 0, "replica": 3, "log_end_offset": 3}',
        f'{move} "old_leader": 1, "new_leader": 2}}',
        f'{batch} "base_sequence": 1}}',
        f'{move} "old_leader": 2, "new_leader": 3}}',
        f'{batch} "base_sequence": 1}}',
    ]
    answers = [
        answer.fields["outcome"]
        for attempt, answer in Session(map(str.encode, lines), Broker()).answered()
        if isinstance(attempt, Produce)
    ]
    assert answers == ["appended"] * 3 + ["duplicate", "rejected"]
