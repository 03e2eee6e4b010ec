"""`kaudit attempts`: segments and server logs as attempts, and what kaudit replay answers to them."""

import gzip
import json

import pytest

from kaudit.broker.broker import Broker
from kaudit.cli.app import run as kaudit
from kaudit.replay.session import Session
from tests.conformance.server_logs import recording

CLEAN = "samples/clean"


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = kaudit(["attempts", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err.splitlines()

    return run


def replayed(lines):
    """(line, answer) of every line."""
    text = (json.dumps(line).encode() for line in lines)
    return list(zip(lines, (answer.fields for _, answer in Session(text, Broker()).answered()), strict=True))


def test_a_log_and_the_log_of_its_broker_become_attempts_that_replay_answers_as_the_broker_did(run):
    recorded = recording("2.8.2", "histories")
    logs = [argument for path in recorded.server_logs for argument in ("--server-log", path)]
    code, lines, said = run(*logs, *recorded.log_directories)
    assert code == 0
    assert lines[0]["op"] == "broker"
    assert lines[0]["broker_version"] == "2.8.2"
    assert lines[0]["config"]["zookeeper.connect"].startswith("127.0.0.1")
    for line, answer in replayed(lines):
        if "recorded" in line:
            assert line["recorded"] in (answer["outcome"], answer.get("error")), line
    refused = [line for line in lines if line.get("recorded") == "OUT_OF_ORDER_SEQUENCE_NUMBER"]
    assert len(refused) == 36
    assert all("server.log:" in line["source"] and "record_count" in line["assumed"] for line in refused)
    assert {line["place"] for line in refused} == {"offset"}
    assert any("local time UTC+00:00" in line for line in said)
    assert any("left out: 30 refusals" in line and "30 record_rejected" in line for line in said)


@pytest.mark.parametrize(("release", "what"), [("2.8.2", "histories"), ("3.9.2", "failover")])
def test_logs_read_side_by_side_give_the_same_attempts_and_remarks(run, release, what):
    recorded = recording(release, what)
    logs = [argument for path in recorded.server_logs for argument in ("--server-log", path)]
    one, *others = (run("--jobs", jobs, *logs, *recorded.log_directories) for jobs in (1, 2, 5))
    assert len(recorded.server_logs) > 2
    assert one[1:] != ([], [])
    assert all(other == one for other in others)


def test_a_log_that_another_process_cannot_read_ends_in_one_line(run, tmp_path):
    broken = tmp_path / "server.log.gz"
    broken.write_bytes(gzip.compress(b"[2026-11-22 10:15:30,123] INFO Kafka version: 3.9.2\n" * 999)[:-40])
    logs = [
        argument
        for path in (broken, *recording("2.8.2", "histories").server_logs)
        for argument in ("--server-log", path)
    ]
    one, two = (run("--jobs", jobs, "--broker-version", "3.9.2", *logs, CLEAN) for jobs in (1, 2))
    assert one == two
    assert any(str(broken) in line for line in one[2])


def test_the_zone_of_a_log_is_found(run):
    recorded = recording("2.4.1", "histories")
    code, lines, said = run("--server-log", recorded.server_logs[1], *recorded.log_directories)
    assert code == 0
    assert any("local time UTC-03:30" in line for line in said)
    times = [line["at"] for line in lines if "at" in line]
    assert max(times) - min(times) < 3_600_000  # the log's own times are three and a half hours away


def test_leaders_and_restarts_come_from_the_logs_of_three_brokers(run):
    recorded = recording("3.9.2", "failover")
    logs = [argument for path in recorded.server_logs for argument in ("--server-log", path)]
    code, lines, said = run(*logs, *recorded.log_directories)
    recorded_changes = [one for one in recorded.lines("attempts") if one["op"] == "leader_change"]
    assert code == 0
    changes = [line for line in lines if line["op"] == "leader_change"]
    assert {(one["old_leader"], one["new_leader"]) for one in changes} <= {
        (a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b
    }
    assert {line["how"] for line in changes} == {"clean", "kill9"}
    first = {one["topic"]: (one["old_leader"], one["new_leader"]) for one in reversed(recorded_changes)}
    made = {one["topic"]: (one["old_leader"], one["new_leader"]) for one in reversed(changes)}
    same = [topic for topic in first if made.get(topic) == first[topic]]
    assert len(same) >= 0.9 * len(first)
    assert any("at offsets that a later leader does not have" in line for line in said)


def test_without_state_change_logs_the_broker_that_refuses_is_the_leader(run):
    recorded = recording("3.9.2", "failover")
    logs = [argument for path in recorded.server_logs if "server.log" in path for argument in ("--server-log", path)]
    code, lines, said = run(*logs, *recorded.log_directories)
    assert code == 0
    assert all(line["recorded"] in (answer["outcome"], answer.get("error")) for line, answer in replayed(lines)[1:])
    assert sum(line["recorded"] == "OUT_OF_ORDER_SEQUENCE_NUMBER" for line in lines[1:]) == 58
    assert any(line["op"] == "leader_change" for line in lines)
    assert not any(line["op"] == "restart" for line in lines)  # another may have led since
    assert said


def test_a_log_alone_gives_its_batches_and_markers(run):
    code, lines, said = run("--broker-version", "2.8.2", "samples/zombie")
    assert code == 0
    assert all(
        line["recorded"] in (answer["outcome"], answer.get("error"))
        for line, answer in replayed(lines)
        if "recorded" in line
    )
    assert {line["op"] for line in lines} >= {"broker", "produce"}
    assert any(line.startswith("kaudit: written: ") for line in said)


def test_batches_behind_a_deleted_head_are_written_as_found_on_disk(run):
    code, lines, said = run("--broker-version", "2.8.2", "samples/truncated-head")
    assert code == 0
    found = [line for line in lines if "found_on_disk" in line]
    assert found
    assert all(line["found_on_disk"][0]["base_offset"] > 0 for line in found)
    assert any("as found on disk" in line for line in said)
    assert all(line["recorded"] in (answer["outcome"], answer.get("error")) for line, answer in replayed(lines)[1:])


def test_a_release_must_be_known(run):
    assert run(CLEAN) == (2, [], ["kaudit: no server log names the broker's release: pass --broker-version"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--server-log", "/nowhere.log", CLEAN), "/nowhere.log: no such file or directory"),
        (("--client-log", "/nowhere.log", CLEAN), "/nowhere.log: no such file or directory"),
        (("--broker-version", "2.8.2", "--topic", "nobody", CLEAN), "nobody"),
        (("--broker-version", "1999", CLEAN), "1999"),
    ],
)
def test_what_cannot_be_is_one_line(run, arguments, said):
    code, lines, errors = run(*arguments)
    assert code in (2, 3)
    assert lines == []
    assert len(errors) == 1
    assert said in errors[0]


def test_logs_that_are_none_are_said_to_be(run, tmp_path):
    noise = tmp_path / "noise.log"
    noise.write_bytes(b"\xff\xfe\x00garbage\n\x1b[31mred\n" * 50)
    code, _, said = run("--broker-version", "2.8.2", "--server-log", noise, "samples/zombie")
    assert code == 0
    assert any("no line of it is understood as a server's" in line for line in said)


@pytest.mark.parametrize("release", ["2.8.2", "4.2.2"])
def test_logs_alone_give_every_attempt_that_was_refused_as_out_of_order(run, release):
    recorded = recording(release, "histories")
    code, lines, _ = run(*recorded.server_logs)
    asked = zip(recorded.lines("attempts"), recorded.lines("answers"), strict=True)
    refused = {batch_of(one) for one, answer in asked if answer.get("error") == OUT_OF_ORDER}
    assert code == 1
    assert lines[0]["broker_version"] == release
    found = [line for line in lines if line.get("recorded") == OUT_OF_ORDER]
    assert refused <= {batch_of(line) for line in found}
    assert all("server.log:" in line["source"] and line["retries"] >= 0 for line in found)
    for line, answer in replayed(lines)[1:]:
        assert "differs" in line or line["recorded"] in (answer["outcome"], answer.get("error")), line


OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def batch_of(line):
    return line["topic"], line["partition"], line["producer_id"], line["base_sequence"]


HEAD = "[2024-06-24 08:11:02,411] ERROR [ReplicaManager broker=2] Error processing append operation on partition t-0 (kafka.server.ReplicaManager)"
THROWN = "org.apache.kafka.common.errors."
LATE = f"{HEAD}\n{THROWN}OutOfOrderSequenceException: Out of order sequence number for producer 29003 at offset 164 in partition t-0: 158 (incoming seq. number), 155 (current end sequence number)\n"
OLD = f"{HEAD}\n{THROWN}OutOfOrderSequenceException: Out of order sequence number for producerId 29003: 158 (incoming seq. number), 155 (current end sequence number)\n"
FENCED = f"{HEAD}\n{THROWN}InvalidProducerEpochException: Epoch of producer 7 at offset 9 in t-0 is 3, which is smaller than the last seen epoch 5\n"
JAVA = "[2024-06-24 08:11:02,500] ERROR [Producer clientId=a] The broker returned org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker received an out of order sequence number. for topic-partition t-0 with producerId 29003, epoch 0, and sequence number 158 (org.apache.kafka.clients.producer.internals.TransactionManager)\n"
COMMIT = "[2024-06-24 08:11:02,901] INFO [TransactionCoordinator id=1] TransactionalId: app's state is COMPLETE_ABORT, but received transaction marker result to send: COMMIT (kafka.coordinator.transaction.TransactionCoordinator)\n"


@pytest.mark.parametrize(
    ("text", "release", "found"),
    [
        (LATE, "4.4.0", [{"producer_id": 29003, "base_sequence": 158, "expected_sequence": 156, "retries": 0}]),
        (LATE * 2, "4.4.0", [{"base_sequence": 158, "retries": 0}, {"base_sequence": 158, "retries": 1}]),
        (LATE + JAVA, "4.4.0", [{"base_sequence": 158, "place": "offset"}]),
        (OLD, "2.1.1", [{"base_sequence": 158, "expected_sequence": 156, "place": "order"}]),
        (FENCED, "4.1.2", [{"producer_id": 7, "producer_epoch": 3, "recorded": "INVALID_PRODUCER_EPOCH"}]),
        (JAVA, "4.4.0", [{"producer_id": 29003, "base_sequence": 158, "differs": True, "recorded": OUT_OF_ORDER}]),
        (COMMIT, "4.4.0", []),
    ],
    ids=["broker", "twice", "broker-and-client", "old-broker", "epoch", "client", "commit"],
)
def test_a_line_alone_gives_its_attempt(run, tmp_path, text, release, found):
    log = tmp_path / "pasted.log"
    log.write_text(text)
    code, lines, said = run(log)
    assert code == 1  # as kaudit scan
    refused = [line for line in lines if line["op"] == "produce" and "retries" in line]
    assert [{name: line.get(name) for name in expected} for line, expected in zip(refused, found, strict=True)] == found
    assert (lines[0]["broker_version"], any(f"taken for {release};" in line for line in said)) == (release, True)
    assert any("left out: 1 refusal whose lines name no partition" in line for line in said) == (not found)


def test_the_output_is_a_file_of_its_own(run, tmp_path):
    place = tmp_path / "attempts.jsonl"
    code, lines, _ = run("--broker-version", "2.8.2", "-o", place, "samples/zombie")
    assert (code, lines) == (0, [])
    assert json.loads(place.read_text().splitlines()[0])["op"] == "broker"


def test_quiet_says_only_what_could_not_be_read(run, tmp_path):
    damaged = "samples/damaged/flip-body"
    code, lines, said = run("-q", "--broker-version", "2.8.1", damaged)
    assert (code, said) == (0, [])
    assert run("--broker-version", "2.8.1", damaged)[1] == lines
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").symlink_to(tmp_path / "gone")
    code, _, (line,) = run("--quiet", "--broker-version", "2.8.1", tmp_path)
    assert code == 4
    assert line.endswith("No such file or directory")
