"""What the model and the auditor disagreed about, kept: each was somebody's mistake, and the log that showed it."""

import shutil

import kaudit
from kaudit.broker.attempts import Produce
from kaudit.broker.broker import Broker
from kaudit.replay.session import Session
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import parse_scenario, shipped
from kaudit.simulate.simulation import Simulation
from tests.simulate.schedules import drawn_scenario
from tests.simulate.test_scenarios import disagreements


def test_a_log_directory_may_be_called_like_a_partition(tmp_path):
    """kaudit took broker-1, for its checkpoints, to be partition 1 of a topic `broker`, and audited nothing."""
    simulation = Simulation(shipped("forgotten-duplicate"), 9).run()
    write_run(tmp_path / "run", simulation, Truth(simulation))
    for name in ("kafka-1", "data-2024", "broker-1"):
        target = tmp_path / name / name
        shutil.copytree(tmp_path / "run" / "broker-1", target)
        assert {finding.topic for finding in kaudit.scan([target]).findings} == {"orders"}


ZOMBIE = """
duration_ms = 60000
[cluster]
version = "2.0.1"
config = { "transaction.abort.timed.out.transaction.cleanup.interval.ms" = 500 }
[[topics]]
name = "events"
[[producers]]
name = "zombie"
client = "java 2.0.1"
records = 10
every_ms = 10
config = { "linger.ms" = 0, "transactional.id" = "t", "transaction.timeout.ms" = 1000 }
transaction = { records = 10 }
[[faults]]
kind = "pause-producer"
at_ms = 70
for_ms = 4000
[[faults]]
kind = "delete-records"
at_ms = 3000
"""


def test_a_zombie_may_write_on_when_deleting_records_deleted_its_fence(tmp_path):
    """2.0.1 forgets a producer whose records were deleted, its fence with it: the transaction hangs, and KA301 says so.

    Offsets 0 to 4 and the abort marker are deleted; what the zombie then begins at 6 its coordinator knows nothing of.
    """
    simulation = Simulation(parse_scenario(ZOMBIE, "zombie"), 1).run()
    truth = Truth(simulation)
    write_run(tmp_path / "run", simulation, truth)
    assert truth.summary()["open_transactions"] == 1
    findings = kaudit.scan([tmp_path / "run"], select=["KA301"]).findings
    assert {(finding.topic, finding.offset) for finding in findings} == {("events", 6)}


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
