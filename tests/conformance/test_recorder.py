"""The recorder without a live broker: what it would play, and how it makes sense of what comes back."""

import tarfile
import xml.etree.ElementTree as ET
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conformance.recorder import disk, failover, kept
from tests.conformance.recorder.batches import Sent
from tests.conformance.recorder.events import (
    events,
    levels,
)
from tests.conformance.recorder.histories import FAIL_OVERS, fail_overs, histories
from tests.conformance.recorder.recording import Recording, renamed, same_difference
from tests.conformance.recorder.scenarios import FAIL_OVER, SCENARIOS, named
from tests.conformance.recorder.script import Recorder
from tests.conformance.recorder.shrink import shrink
from tests.conformance.recorder.topic import Topic
from tests.live_brokers import server_logs
from tests.live_brokers.jars import pom
from tests.live_brokers.protocol import (
    DESCRIBE_PRODUCERS,
    Connection,
    Led,
)

NOBODY = Connection(0)


def steps_of(rounds):
    return [step for one in rounds for scenario in one for step in scenario["steps"]]


def test_a_seed_gives_the_same_histories_every_time():
    assert histories(7, 40) == histories(7, 40)
    assert histories(7, 40) != histories(8, 40)


@pytest.mark.parametrize("expires", [False, True])
def test_as_many_histories_as_asked_for_each_under_a_name_of_its_own(expires):
    names = [scenario["name"] for one in histories(3, 47, expires=expires) for scenario in one]
    assert len(set(names)) == len(names) == 47


def test_the_histories_of_a_round_see_the_same_restarts():
    for one in histories(5, 60):
        restarts = {tuple(step["kind"] for step in scenario["steps"] if step["op"] == "barrier") for scenario in one}
        assert len(restarts) == 1


def test_every_wrong_turn_comes_up_in_a_thousand_histories():
    steps = steps_of(histories(1, 1000))
    sequences = {str(step["seq"]) for step in steps if step["op"] == "produce" and "seq" in step}
    assert {f"back:{depth}" for depth in range(1, 8)} <= sequences
    assert {"next", "next+1", "next+-1", "0", "-1", "back:3:2"} <= sequences
    assert {step["op"] for step in steps} == {
        "produce", "init_pid", "add_partitions", "end_txn", "write_marker", "delete_records", "check_txn", "sleep",
        "barrier",
    }  # fmt: skip
    assert {step["acks"] for step in steps if "acks" in step} == {-1, 0, 1}
    restarts = Counter(step["kind"] for step in steps if step["op"] == "barrier")
    assert min(restarts.values()) > 100
    tamperings = {key for step in steps for key in step.get("tamper", {})}
    assert tamperings == {"truncate_batches", "tear_last", "corrupt_last", "delete_snapshots", "corrupt_snapshots"}
    configs = {key for one in histories(1, 1000) for scenario in one for key in scenario["topic_config"]}
    assert "compression.type" in configs
    assert any(step.get("epoch") == -2 for step in steps)


def test_only_a_broker_with_a_short_expiry_is_waited_for():
    patient = [step for step in steps_of(histories(2, 200, expires=True)) if step["op"] == "sleep"]
    assert len(patient) > 20


def test_the_recorder_knows_every_step_of_every_list_of_scenarios():
    nobody: Any = SimpleNamespace(port=0)
    known = set(Recorder(nobody).steps) | {"barrier"}
    for name in SCENARIOS:
        assert {step["op"] for scenario in named(name) for step in scenario["steps"]} <= known
    played = [*histories(1, 300), fail_overs(1, 100), events(1, 100), levels(1, 20, "tv0")]
    assert {step["op"] for step in steps_of(played)} <= known


# -- fail-over -------------------------------------------------------------------------------------------------------
def barriers(scenario):
    return [step for step in scenario["steps"] if step["op"] == "barrier"]


def test_a_seed_gives_the_same_fail_overs_every_time():
    assert fail_overs(7, 20) == fail_overs(7, 20)
    assert fail_overs(7, 20) != fail_overs(8, 20)


def test_random_fail_overs_see_what_those_by_hand_do_and_are_played_with_them():
    by_hand, drawn = named(FAIL_OVER), fail_overs(3, 2 * len(FAIL_OVERS))
    seen = [barriers(scenario) for scenario in by_hand]
    assert all(barriers(scenario) in seen for scenario in drawn)
    assert len(failover.groups(by_hand + drawn)) == len(failover.groups(drawn)) == len(FAIL_OVERS)


def test_while_followers_lag_only_the_leader_is_asked_for():
    for scenario in fail_overs(5, 40):
        behind = False
        for step in scenario["steps"]:
            if step["op"] == "barrier":
                behind = step["kind"] == "lag"
            elif step["op"] == "produce" and "acks" in step:
                assert step["acks"] == (1 if behind else -1)
            else:
                assert not behind


class Leader:
    """A connection to a leader with `end` records and one producer."""

    def __init__(self, end):
        self.end = end

    def offset(self, *_):
        return 0, self.end

    def describe_producers(self, *_):
        return [{"producer_id": 5}]

    def close(self):
        pass


@pytest.mark.parametrize(("end", "stated"), [(8, {}), (6, {"lost_from_offset": 6})])
def test_what_the_new_leader_lacks_is_what_its_end_says(monkeypatch, end, stated):
    nobody: Any = SimpleNamespace(port=0, leaders={"t": 1}, replicas={2: SimpleNamespace(port=2)})
    recorder = failover.FailOverRecorder(nobody)
    monkeypatch.setattr(recorder, "_versions", {DESCRIBE_PRODUCERS: (0, 0)})
    monkeypatch.setattr(recorder, "_led", lambda _: Led(2, [2, 3]))
    monkeypatch.setattr(failover, "Connection", lambda _: Leader(end))
    topic = Topic({"name": "t", "steps": []}, NOBODY, NOBODY)
    topic.ends[0] = 8
    recorder.note_leaders({"how": "kill9"}, [topic], 77)
    ((attempt, answer),) = topic.lines
    assert attempt == {
        "topic": "t", "partition": 0, "op": "leader_change", "how": "kill9", "old_leader": 1, "new_leader": 2, "at": 77,
        **stated,
    }  # fmt: skip
    assert answer == {"outcome": "ok", "producers": [{"producer_id": 5}]}
    assert topic.ends[0] == end


# -- what a step sends -----------------------------------------------------------------------------------------------
def topic_with(*written):
    topic = Topic({"name": "t", "steps": []}, NOBODY, NOBODY)
    for epoch, sequence, count in written:
        topic.wrote(0, (1, epoch), sequence, count)
    return topic


@pytest.mark.parametrize(
    ("seq", "expected"),
    [
        ("next", (5, 1)),
        ("next+2", (7, 1)),
        ("next+-1", (4, 1)),
        ("back:1", (3, 2)),
        ("back:2", (0, 3)),
        ("back:2:2", (0, 5)),
        ("back:7", (0, 3)),
        (9, (9, 1)),
    ],
)
def test_a_sequence_follows_from_what_was_written(seq, expected):
    assert topic_with((0, 0, 3), (0, 3, 2)).batch(0, (1, 0), {"seq": seq}) == expected


def test_a_new_epoch_begins_at_0():
    assert topic_with((0, 0, 3)).batch(0, (1, 1), {"seq": "next"}) == (0, 1)


def test_behind_the_last_sequence_comes_0():
    assert topic_with((0, 2**31 - 2, 2)).batch(0, (1, 0), {"seq": "next"}) == (0, 1)


def test_producers_are_named_and_keep_what_they_had_when_refused():
    topic = Topic({"name": "t", "steps": []}, NOBODY, NOBODY)
    topic.name_producer("A", (7, 3))
    topic.name_producer("B", (8, 0))
    topic.name_producer("A", None)
    assert topic.producer({"pid": "A", "epoch": "A+-1"}) == (7, 2)


# -- files -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def segment(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    batches = [Sent(1, 0, number, 1, 1_000, {"base_offset": number}).encode() for number in range(3)]
    path.write_bytes(b"".join(batches) + bytes(100))
    return path


@pytest.mark.parametrize(
    ("step", "stated", "whole"),
    [
        ({"truncate_batches": 2}, {"truncated_to_offset": 1}, 1),
        ({"tear_last": True}, {"torn_batch_offset": 2}, 3),
        ({"corrupt_last": True}, {"corrupted_batch_offset": 2}, 3),
        ({}, {}, 3),
    ],
)
def test_an_attempt_states_what_was_done_to_the_log(segment, step, stated, whole):
    size = disk.end_of(segment)
    assert disk.tamper(step, segment, []) == stated
    assert len(disk.positions_of(segment)) == whole
    assert ("tear_last" in step) == (0 < segment.stat().st_size < size and whole == 3)


def test_the_checkpointed_log_start_is_read_as_the_broker_wrote_it(tmp_path):
    (tmp_path / disk.CHECKPOINT).write_text("0\n2\na b 0 7\nt-1 2 11\n")
    assert disk.checkpointed_log_start(tmp_path, "t-1", 2) == 11
    assert disk.checkpointed_log_start(tmp_path, "t-1", 0) == 0


@pytest.mark.parametrize(("written", "expected"), [("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n", 1), (None, 0)])
def test_a_topic_id_is_read_as_the_broker_wrote_it(tmp_path, written, expected):
    (tmp_path / "t-0").mkdir()
    if written is not None:
        (tmp_path / "t-0" / "partition.metadata").write_text(written)
    assert disk.topic_id(tmp_path, "t") == expected.to_bytes(16, "big")


# -- recordings ------------------------------------------------------------------------------------------------------
def produce(sequence):
    return {
        "topic": "t", "partition": 0, "op": "produce", "at": 1_000, "producer_id": 5, "producer_epoch": 0,
        "base_sequence": sequence, "record_count": 1, "timestamp": 1_000,
    }  # fmt: skip


def appended(offset):
    return {"outcome": "appended", "error": "NONE", "error_code": 0, "base_offset": offset}


def test_a_recording_is_compared_attempt_by_attempt():
    broker = {"broker_version": "3.6.2", "config": {}}
    recording = Recording(broker, [(produce(0), appended(0)), (produce(1), appended(7))])
    (difference,) = recording.differences()
    assert difference.attempt["base_sequence"] == 1
    assert difference.fields == [("base_offset", 1, 7)]
    assert recording.agreement() == {"produce": (2, 1)}
    assert same_difference(difference)[0] == "produce"
    assert recording.without(["t"]).differences() == []


def test_what_is_played_again_has_a_topic_and_transactional_ids_of_its_own():
    scenario = {"name": "h1", "steps": [{"op": "end_txn", "txn_id": "tx-h1-A", "commit": True}, {"txn_id": "nobody"}]}
    again = renamed(scenario, "-again1")
    assert again["name"] == "h1-again1"
    assert [step["txn_id"] for step in again["steps"]] == ["tx-h1-A-again1", "nobody"]


def test_shrinking_leaves_what_shows_the_difference_and_nothing_else():
    asked = []

    def shows(candidates):
        asked.append(len(candidates))
        return [{3, 17, 40} <= set(candidate) for candidate in candidates]

    assert shrink(list(range(50)), shows, rounds=20) == [3, 17, 40]
    assert len(asked) < 40


@pytest.mark.parametrize(
    ("version", "artifacts"),
    [
        ("0.11.0.2", {"kafka_2.12": "0.11.0.2", "slf4j-log4j12": "1.7.25", "jaxb-api": "2.3.0"}),
        ("2.1.1", {"kafka_2.12": "2.1.1", "slf4j-log4j12": "1.7.25", "zookeeper": "3.4.12"}),
        ("2.3.1", {"kafka_2.12": "2.3.1", "slf4j-log4j12": "1.7.25", "zookeeper": "3.4.12"}),
        ("4.1.0", {"kafka_2.13": "4.1.0"}),
    ],
)
def test_maven_is_asked_for_the_broker_and_what_java_dropped(version, artifacts):
    place = {"m": "http://maven.apache.org/POM/4.0.0"}
    found = {
        dependency.findtext("m:artifactId", namespaces=place): dependency.findtext("m:version", namespaces=place)
        for dependency in ET.fromstring(pom(version)).iterfind(".//m:dependency", place)
    }
    assert found == artifacts


def test_what_brokers_leave_behind_is_kept_by_broker_without_what_follows_from_the_segments(tmp_path):
    home = tmp_path / "home"
    for path in (
        "broker1/logs/server.log", "broker1/logs/server.log.2026-11-22-18", "broker1/logs/kafka-request.log",
        "broker1/data/t-0/00000000000000000000.log", "broker1/data/t-0/00000000000000000000.index",
        "broker1/data/__cluster_metadata-0/00000000000000000000.log", "broker1/replica2/logs/controller.log",
        "broker1/replica2/data/meta.properties", "broker1/zookeeper/version-2/log.1",
    ):  # fmt: skip
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("x")
    kept.write(home, tmp_path / "out", "main")
    with tarfile.open(tmp_path / "out" / "main.server-logs.tar.xz") as logs:
        assert sorted(logs.getnames()) == [
            "broker1/logs/server.log",
            "broker1/logs/server.log.2026-11-22-18",
            "broker1/replica2/logs/controller.log",
        ]
    with tarfile.open(tmp_path / "out" / "main.logdir.tar.xz") as data:
        assert sorted(data.getnames()) == [
            "broker1/data/t-0/00000000000000000000.log",
            "broker1/replica2/data/meta.properties",
        ]


@pytest.mark.parametrize(("version", "state_changes"), [("2.5.1", "TRACE"), ("2.6.0", "INFO"), ("3.9.2", "INFO")])
def test_state_changes_are_logged_at_the_level_of_the_release(version, state_changes, tmp_path, monkeypatch):
    monkeypatch.setattr(server_logs, "logging_jars_of", lambda _: tmp_path)
    server_logs.logging_of(version, tmp_path, "stock")
    configured = (tmp_path / "server-log4j.properties").read_text()
    assert f"log4j.logger.state.change.logger={state_changes}, state-change\n" in configured
    assert "ProducerStateManager" not in configured


def test_from_4_0_on_brokers_log_with_log4j2(tmp_path, monkeypatch):
    monkeypatch.setattr(server_logs, "logging_jars_of", lambda _: tmp_path)
    logging = server_logs.logging_of("4.0.0", tmp_path, "debug")
    assert logging.arguments == (f"-Dlog4j2.configurationFile={tmp_path}/log4j2.properties",)
    assert "ProducerStateManager\n" in (tmp_path / "log4j2.properties").read_text()
