"""What the shipped scenarios are there to show, and that a run depends on scenario and seed alone."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kaudit
from kaudit.broker.attempts import EndTxn, InitProducerId, LeaderChange, Produce, Restart, op_of
from kaudit.broker.broker import Broker
from kaudit.cli.app import run
from kaudit.replay.session import Session
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.record_outcomes import Acknowledgement, DeliveryOutcome
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import ORDER, parse_scenario, scenario_text, shipped
from kaudit.simulate.simulation import Simulation

ROOT = Path(__file__).parents[2]


def played(name):
    scenario = shipped(name)
    return Truth(Simulation(scenario, scenario.seed).run())


def findings(truth, directory):
    """Codes and severities of what kaudit finds, notes left out, per broker."""
    write_run(directory, truth.simulation, truth)
    found = kaudit.scan([directory]).findings
    return sorted({(finding.code, finding.severity.value, finding.topic, finding.offset) for finding in found})


def disagreements(simulation):
    """Attempts that `kaudit replay` answers otherwise than the model did."""
    lines = simulation.recorder.attempts_text().encode().splitlines()
    wrong = []
    for (_, answer), (attempt, mine) in zip(
        Session(lines, Broker()).answered(), simulation.recorder.lines, strict=True
    ):
        fields = dict(answer.fields)
        if isinstance(attempt, Restart | LeaderChange):
            fields.pop("producers", None)
        if fields != mine:
            wrong.append((attempt.index, op_of(attempt), mine, fields))
    return wrong


@pytest.mark.parametrize("name", ORDER)
def test_replaying_the_attempts_gives_the_answers_of_the_run(name):
    truth = played(name)
    assert disagreements(truth.simulation) == []
    assert len(truth.simulation.recorder.lines) > 8


def test_five_in_flight_are_all_recognised(tmp_path):
    truth = played("five-in-flight")
    outcomes = [
        answer["outcome"] for attempt, answer in truth.simulation.recorder.lines if isinstance(attempt, Produce)
    ]
    assert outcomes == ["appended"] * 5 + ["duplicate"] * 5 + ["appended"] * 3
    assert truth.summary()["duplicate_copies"] == 0
    assert findings(truth, tmp_path / "run") == []


def test_six_in_flight_are_written_twice_in_a_new_epoch(tmp_path):
    truth = played("six-in-flight")
    summary = truth.summary()
    assert (summary["sent"], summary["acknowledged"], summary["duplicate_copies"]) == (8, 8, 6)
    assert ("KA704", "error", "orders", 6) in findings(truth, tmp_path / "run")
    outcome = truth.outcomes["orders", 0][0]
    assert (outcome.copies, "went on as id 0 epoch 1" in outcome.why) == ([0, 6], True)


def test_without_idempotence_twice_and_out_of_order_and_one_in_flight_twice_only():
    several, one = played("retry-without-idempotence").summary(), played("one-in-flight").summary()
    assert (several["duplicate_copies"], several["out_of_order"] > 0) == (1, True)
    assert (one["duplicate_copies"], one["out_of_order"]) == (1, 0)


def test_acks1_loses_what_only_the_dead_leader_had(tmp_path):
    truth = played("acks1-leader-dies")
    lost = [outcome for outcome in truth.outcomes["orders", 0] if outcome.delivery is DeliveryOutcome.NOWHERE]
    assert lost
    assert all(outcome.acknowledgement is Acknowledgement.ACKNOWLEDGED for outcome in lost)
    assert "then broker 2 became leader of epoch 1" in lost[0].why
    assert truth.simulation.cluster.partitions["orders", 0].truncations[0].broker == 1
    assert findings(truth, tmp_path / "run") == []


def test_an_unclean_election_loses_what_acks_all_acknowledged_and_the_epoch_shows_it(tmp_path):
    truth = played("unclean-election")
    assert truth.summary()["acknowledged_but_lost"] == 8
    assert {found[:2] for found in findings(truth, tmp_path / "run")} == {("KA206", "warning")}
    assert any("an unclean election made broker" in outcome.why for outcome in truth.outcomes["orders", 0])


def test_a_zombie_is_refused_and_leaves_nothing(tmp_path):
    truth = played("zombie-producer")
    refused = [
        answer["error"]
        for attempt, answer in truth.simulation.recorder.lines
        if isinstance(attempt, Produce | EndTxn) and answer.get("error", "NONE") != "NONE"
    ]
    assert refused == ["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"]
    assert {code for code, *_ in findings(truth, tmp_path / "run")} == {"KA203"}


def test_a_transaction_that_takes_too_long_is_aborted_with_a_higher_epoch(tmp_path):
    truth = played("transaction-timeout")
    (ended,) = truth.simulation.cluster.transactions.ended
    assert (ended.commit, ended.by_timeout, ended.marker_epoch) == (False, True, 1)
    assert truth.simulation.applications["shop"].transactions[0][2].value == "unknown"
    assert findings(truth, tmp_path / "run") == [("KA203", "note", "orders", 3)]


def test_a_restarted_application_repeats_itself_under_another_id():
    truth = played("cross-session")
    assert truth.summary()["repeated_across_sessions"] == 4
    assert truth.summary()["duplicate_copies"] == 0
    assert truth.simulation.applications["shop"].sessions == 2


def test_an_expired_producer_is_accepted_again_without_state():
    truth = played("expired-producer")
    asked = list(Session(truth.simulation.recorder.attempts_text().encode().splitlines(), Broker()).answered())
    words = [answer.why for _, answer in asked if answer.fields.get("outcome") == "appended"]
    assert any("without state may start anywhere" in text for text in words)
    assert truth.summary()["duplicate_copies"] == 0


def test_a_forgetful_broker_writes_a_duplicate_and_kaudit_finds_it(tmp_path):
    truth = played("forgotten-duplicate")
    (outcome,) = [outcome for outcome in truth.outcomes["orders", 0] if outcome.delivery is DeliveryOutcome.TWICE]
    errors = [row for row in findings(truth, tmp_path / "run") if row[1] == "error"]
    assert ("KA101", "error", "orders", outcome.copies[1]) in errors
    assert "the broker had forgotten the producer" in outcome.why


def test_a_batch_too_large_arrives_in_parts_and_in_sequence():
    truth = played("batch-split")
    answers = [answer["error"] for attempt, answer in truth.simulation.recorder.lines if isinstance(attempt, Produce)]
    assert answers.count("MESSAGE_TOO_LARGE") >= 1
    assert truth.summary()["present"] == truth.summary()["sent"] == 18
    assert truth.summary()["out_of_order"] == 0


def test_after_the_last_epoch_comes_a_new_producer_id():
    truth = played("epoch-exhaustion")
    granted = [
        (answer["producer_id"], answer["producer_epoch"])
        for attempt, answer in truth.simulation.recorder.lines
        if isinstance(attempt, InitProducerId)
    ]
    assert granted[:2] == [(0, 0), (0, 1)]
    assert (0, 32766) in granted
    assert granted[granted.index((0, 32766)) + 1] == (1, 0)
    assert max(epoch for _, epoch in granted) == 32766
    assert truth.summary()["acknowledged"] == truth.summary()["present"]


def test_a_lost_answer_of_the_store_costs_a_block_and_grants_none_twice(tmp_path):
    truth = played("two-allocators")
    write_run(tmp_path / "run", truth.simulation, truth)
    blocks = [json.loads(line) for line in (tmp_path / "run" / "blocks.jsonl").read_text().splitlines()]
    assert [json.loads(block["data"])["block_start"] for block in blocks] == ["0", "1000", "2000"]
    assert {json.loads(block["data"])["broker"] for block in blocks} == {1, 2}
    granted = [
        a["producer_id"] for attempt, a in truth.simulation.recorder.lines if isinstance(attempt, InitProducerId)
    ]
    assert len(granted) == len(set(granted)) == 4


def errors_of(truth):
    """The errors brokers gave to produce requests, in order."""
    return [
        answer["error"]
        for attempt, answer in truth.simulation.recorder.lines
        if isinstance(attempt, Produce) and answer.get("error", "NONE") != "NONE"
    ]


def written(truth):
    """Producer id, epoch and first sequence of the batches in the leader's log, in order."""
    log = truth.simulation.cluster.partitions["orders", 0].leader_log()
    return [
        (stored.state.producer_id, stored.state.producer_epoch, stored.state.base_sequence) for stored in log.batches
    ]


def numbers_written(truth):
    log = truth.simulation.cluster.partitions["orders", 0].leader_log()
    return [number for stored in log.batches for number in stored.sent.numbers]


def test_the_batches_behind_a_refused_one_are_refused_too_and_all_come_in_order(tmp_path):
    truth = played("refused-retry")
    assert errors_of(truth) == ["OUT_OF_ORDER_SEQUENCE_NUMBER"] * 4
    assert written(truth) == [(0, 0, sequence) for sequence in range(8)]
    assert truth.hidden() == []
    assert findings(truth, tmp_path / "run") == []


def test_after_not_enough_replicas_after_append_only_the_plain_producer_writes_twice(tmp_path):
    truth = played("not-enough-replicas-after-append")
    twice = [outcome for outcome in truth.outcomes["orders", 0] if outcome.delivery is DeliveryOutcome.TWICE]
    assert [(outcome.batch.payload.producer, outcome.batch.numbers) for outcome in twice] == [("clicks", [1])]
    texts = [event.text for event in truth.simulation.trace.events]
    assert texts.count("NOT_ENOUGH_REPLICAS_AFTER_APPEND") == 2
    assert any(text.startswith("duplicate of offset") for text in texts)
    assert truth.hidden() == []
    found = findings(truth, tmp_path / "run")
    assert {row[:2] for row in found} == {("KA702", "warning")}
    assert {row[3] for row in found} == {twice[0].copies[1]}


@pytest.mark.parametrize(
    ("name", "producers"), [("delivery-timeout-bump", [(0, 0), (0, 1)]), ("delivery-timeout-reset", [(0, 0), (1, 0)])]
)
def test_after_a_delivery_timeout_a_client_goes_on_at_0_under_another_epoch_or_id(name, producers, tmp_path):
    truth = played(name)
    assert list(dict.fromkeys(state[:2] for state in written(truth))) == producers
    assert (*producers[1], 0) in written(truth)
    assert truth.summary()["failed"] >= 3
    assert truth.summary()["duplicate_copies"] == 0
    assert {entry["what"] for entry in truth.hidden()} <= {"failed"}
    assert {row[:2] for row in findings(truth, tmp_path / "run")} <= {("KA203", "note")}


def test_a_client_of_2_4_uses_sequences_again_after_a_delivery_timeout(tmp_path):
    truth = played("delivery-timeout-reuse")
    summary = truth.summary()
    assert (summary["failed"], summary["acknowledged_but_lost"], summary["duplicate_copies"]) == (4, 3, 0)
    lost = {number for entry in truth.outcomes["orders", 0] if not entry.copies for number in entry.batch.numbers}
    assert lost == {6, 7, 8}
    assert findings(truth, tmp_path / "run") == []


@pytest.mark.parametrize(
    ("client", "lost"), [("java 2.1.1", 3), ("java 2.8.2", 0), ("java 3.5.2", 0), ("java 3.9.1", 0)]
)
def test_clients_that_raise_their_epoch_lose_nothing_after_a_delivery_timeout(client, lost):
    text = scenario_text("delivery-timeout-reuse").replace('"java 2.4.1"', f'"{client}"')
    scenario = parse_scenario(text, client)
    assert Truth(Simulation(scenario, scenario.seed).run()).summary()["acknowledged_but_lost"] == lost


def test_a_client_of_2_0_begins_again_at_0_when_all_it_had_acknowledged_was_deleted(tmp_path):
    truth = played("unknown-producer-id")
    assert errors_of(truth) == ["UNKNOWN_PRODUCER_ID"]
    assert written(truth) == [(0, 0, 0), (0, 0, 1), (0, 0, 2)] * 2
    assert truth.summary()["acknowledged"] == 6
    assert findings(truth, tmp_path / "run") == []


def test_with_acks_0_the_closed_connection_shows_that_the_leader_moved(tmp_path):
    truth = played("acks0-leader-moves")
    summary = truth.summary()
    assert summary["acknowledged"] == summary["sent"] == 20
    assert 1 <= summary["acknowledged_but_lost"] <= 4
    assert numbers_written(truth)[-1] == 19
    assert {entry["what"] for entry in truth.hidden()} == {"acknowledged_but_lost"}
    assert findings(truth, tmp_path / "run") == []


def test_the_sequence_goes_on_at_0_and_a_retry_across_is_a_duplicate(tmp_path):
    truth = played("sequence-wrap")
    firsts = [first for _, _, first in written(truth)]
    assert firsts[0] == 2147483643
    assert firsts[-1] < 20
    assert numbers_written(truth) == list(range(18))
    answers = [line["outcome"] for attempt, line in truth.simulation.recorder.lines if isinstance(attempt, Produce)]
    assert "duplicate" in answers
    assert {row[:2] for row in findings(truth, tmp_path / "run")} == {("KA106", "note")}


def test_one_request_at_a_time_keeps_what_follows_in_the_client(tmp_path):
    truth = played("muted-partition")
    assert numbers_written(truth) == list(range(8))
    requests = [event for event in truth.simulation.trace.events if event.text.startswith("orders-0 #")]
    first, again = requests[:2]
    assert first.text == again.text
    assert findings(truth, tmp_path / "run") == []


def test_before_2_5_an_expired_producer_takes_a_new_id_and_fails_what_was_in_flight(tmp_path):
    truth = played("expired-producer-before-2.5")
    assert set(errors_of(truth)) == {"UNKNOWN_PRODUCER_ID"}
    assert {state[0] for state in written(truth)} == {0, 1}
    assert truth.summary()["failed"] == 2
    assert findings(truth, tmp_path / "run") == []


def test_a_broker_that_remembers_recognises_a_retry_after_eight_seconds(tmp_path):
    truth = played("remembered-producer")
    answers = [line["outcome"] for attempt, line in truth.simulation.recorder.lines if isinstance(attempt, Produce)]
    assert answers.count("duplicate") == 1
    assert numbers_written(truth) == list(range(6))
    assert findings(truth, tmp_path / "run") == []


@pytest.mark.parametrize("name", ["not-enough-replicas-after-append", "acks0-leader-moves"])
def test_the_replicas_are_the_same_in_the_end(name, tmp_path):
    truth = played(name)
    write_run(tmp_path / "run", truth.simulation, truth)
    brokers = [str(path) for path in sorted((tmp_path / "run").glob("broker-*"))]
    assert run(["diff", *brokers, "-q"]) == 0


_DIGEST = """
import hashlib
from kaudit.simulate.scenario.reading import shipped
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.output.truth import Truth
digest = hashlib.sha256()
for seed in range(3):
    run = Simulation(shipped("anything"), seed).run()
    digest.update(run.recorder.attempts_text().encode())
    digest.update("".join(Truth(run).text()).encode())
    digest.update(repr(run.trace.events).encode())
print(digest.hexdigest())
"""


def test_a_run_is_the_same_in_every_process():
    digests = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST], capture_output=True, text=True, check=True, env=environment
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert len(hashlib.sha256().hexdigest()) == len(digests.pop())


def test_another_seed_is_another_run():
    runs = {Simulation(shipped("anything"), seed).run().recorder.attempts_text() for seed in range(4)}
    assert len(runs) == 4
