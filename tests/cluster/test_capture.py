"""`kaudit capture` of live brokers: the batches of their disks, byte for byte, however often it was interrupted."""

import json
import signal
import subprocess
import sys

import pytest

from tests.cluster.conftest import kaudit, plain_environment, wait_for
from tests.live_brokers.security import USERS, client_properties

pytestmark = pytest.mark.cluster
IDEMPOTENT = {"pid": "p", "epoch": "p"}
SMALL_SEGMENTS = {"segment.bytes": "20000"}


def produce(count, **more):
    return {"op": "produce", **IDEMPOTENT, "seq": "next", "count": count, **more}


def scenario(topic, *steps, **more):
    return {"name": topic, "steps": [{"op": "init_pid", "as": "p"}, *steps], **more}


def transaction(topic, *, commit):
    """Steps of a transaction of two batches."""
    own = {"pid": "t", "epoch": "t", "txn_id": f"tx-{topic}"}
    return [
        {"op": "init_pid", "as": "t", "txn_id": f"tx-{topic}"},
        {"op": "add_partitions", **own},
        {"op": "produce", **own, "seq": "next", "count": 2, "txn": True},
        {"op": "produce", **own, "seq": "next", "count": 1, "txn": True},
        {"op": "end_txn", **own, "commit": commit},
    ]


def log_bytes(directory):
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def captured(live, capture, topic, partition=0):
    """Assert that a capture holds a partition's batches as they lie on the broker's disk."""
    own, disk = capture / f"{topic}-{partition}", live.directory(topic, partition)
    assert log_bytes(own) == log_bytes(disk)
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        assert not (disk / name).exists() or (own / name).read_bytes() == (disk / name).read_bytes(), name
    return own, disk


def is_cleaned(live, topic):
    """Whether the log cleaner has been through all but the active segment, and the broker has removed what it replaced."""
    disk = live.directory(topic)
    active = max(int(path.stem) for path in disk.glob("*.log"))
    checkpoint = (live.broker.logs / "cleaner-offset-checkpoint").read_text().splitlines()
    return f"{topic} 0 {active}" in checkpoint and not list(disk.glob("*.deleted"))


def account(capture):
    return json.loads((capture / "capture.json").read_text())


def findings(*arguments):
    """What a scan says of partitions, apart from where they lie."""
    done = kaudit("scan", *arguments, "--output-format", "json", "--reproducible", "-q")
    document = json.loads(done.stdout)
    found = [
        {name: each[name] for name in ("code", "fingerprint", "severity", "message")} for each in document["findings"]
    ]
    partitions = [
        {name: value for name, value in each.items() if name not in ("replica", "segments")}
        for each in document["partitions"]
    ]
    return done.returncode, found, partitions, document["summary"]["records"]


def test_a_capture_is_the_brokers_disk(each_broker, tmp_path):
    topic = "captured"
    steps = [produce(5, value_size=300) for _ in range(60)] + [produce(9, codec=1) for _ in range(5)]
    each_broker.play(
        scenario(topic, *steps, *transaction(topic, commit=True), *transaction(topic, commit=False), partitions=2,
                 topic_config=SMALL_SEGMENTS)
    )  # fmt: skip
    done = kaudit("capture", "-o", tmp_path / "copy", each_broker.url(topic))
    assert (done.returncode, done.stderr) == (0, "")
    own, disk = captured(each_broker, tmp_path / "copy", topic)
    assert [path.name for path in sorted(own.glob("*.log"))] == [path.name for path in sorted(disk.glob("*.log"))]
    captured(each_broker, tmp_path / "copy", topic, 1)
    assert findings(tmp_path / "copy") == findings(each_broker.broker.logs, "--topic", topic)


def test_a_second_run_goes_on(each_broker, tmp_path):
    each_broker.play(scenario("resumed", *(produce(5, value_size=300) for _ in range(20)), topic_config=SMALL_SEGMENTS))
    for again in range(2):
        done = kaudit("capture", "-o", tmp_path / "copy", each_broker.url("resumed"), "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        captured(each_broker, tmp_path / "copy", "resumed")
        if not again:
            each_broker.play(scenario("resumed", *(produce(4, value_size=300) for _ in range(20))))
    assert [run["outcome"] for run in account(tmp_path / "copy")["runs"]] == ["complete"] * 2


def test_a_killed_run_leaves_whole_batches_and_the_next_goes_on(newest_broker, tmp_path):
    steps = [produce(2, value_size=50_000) for _ in range(60)]
    newest_broker.play(scenario("killed", *steps, topic_config={"segment.bytes": str(1 << 20)}))
    arguments = ["capture", "-o", str(tmp_path / "copy"), newest_broker.url("killed", 0)]
    running = subprocess.Popen(
        [sys.executable, "-m", "kaudit", *arguments, "--max-bytes-per-second", str(6 << 20)], env=plain_environment()
    )
    wait_for("segments", lambda: len(list((tmp_path / "copy").glob("killed-0/*.log"))) >= 2)
    running.send_signal(signal.SIGKILL)
    running.wait(30)
    code, found, partitions, _ = findings(tmp_path / "copy")
    assert (code, found) == (0, [])
    assert 0 < partitions[0]["log_end_offset"] < 120
    assert kaudit(*arguments).returncode == 0
    captured(newest_broker, tmp_path / "copy", "killed")


def test_what_retention_took_first_is_in_the_account_and_is_no_finding(zookeeper_broker, tmp_path):
    zookeeper_broker.play(scenario("overtaken", *(produce(5) for _ in range(10))))
    url = zookeeper_broker.url("overtaken")
    assert kaudit("capture", "-o", tmp_path / "copy", url).returncode == 0
    zookeeper_broker.play(
        scenario("overtaken", *(produce(5) for _ in range(10)), {"op": "delete_records", "offset": 80}, produce(3))
    )
    done = kaudit("capture", "-o", tmp_path / "copy", url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "30 offsets are missing" in done.stdout
    (part,) = account(tmp_path / "copy")["partitions"]
    assert [(each["first_offset"], each["last_offset"]) for each in part["missing"]] == [(50, 79)]
    assert findings(tmp_path / "copy")[:2] == (0, [])


def test_a_compacted_topic_needs_no_explanation(forgetful_broker, tmp_path):
    keyed = [produce(4, keys=["a", "b", "c", "d"], value_size=300) for _ in range(80)]
    config = {"cleanup.policy": "compact", "segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01"}
    forgetful_broker.play(scenario("compacted", *keyed, topic_config=config))
    wait_for("the log cleaner", lambda: is_cleaned(forgetful_broker, "compacted"))
    done = kaudit("capture", "-o", tmp_path / "copy", forgetful_broker.url("compacted"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "compacted away" in done.stdout
    captured(forgetful_broker, tmp_path / "copy", "compacted")
    assert findings(tmp_path / "copy") == findings(forgetful_broker.broker.logs, "--topic", "compacted")


def test_a_followers_copy_differs_in_nothing(three_brokers, tmp_path):
    leader = three_brokers[2]
    leader.play(scenario("replicated", *(produce(5, value_size=300) for _ in range(40)), replicas=(2, 1, 3)))
    for node in (2, 3):
        done = kaudit("capture", "--from-replica", node, "-o", tmp_path / f"b{node}", leader.url("replicated"))
        assert (done.returncode, done.stderr) == (0, "")
        captured(three_brokers[node], tmp_path / f"b{node}", "replicated")
        assert account(tmp_path / f"b{node}")["partitions"][0]["brokers"] == [node]
    done = kaudit("diff", tmp_path / "b2", tmp_path / "b3", "--output-format", "json")
    assert done.returncode == 0
    assert [each["relation"] for each in json.loads(done.stdout)["partitions"]] == ["identical"]


def test_a_leader_that_is_killed_is_replaced(three_brokers, tmp_path):
    third, topic = three_brokers[3], "killed-leader"
    third.play(scenario(topic, *(produce(2, value_size=50_000) for _ in range(60)), replicas=(3, 1, 2)))
    running = subprocess.Popen(
        [sys.executable, "-m", "kaudit", "capture", "-o", str(tmp_path / "copy"), three_brokers[1].url(topic),
         "--max-bytes-per-second", str(2 << 20)],
        env=plain_environment(), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    growing = tmp_path / "copy" / ".capturing"
    wait_for("batches", lambda: sum(path.stat().st_size for path in growing.glob("*")) > 0)
    third.close()
    third.broker.kill()
    try:
        _, errors = running.communicate(timeout=90)
        assert (running.returncode, errors) == (0, "")
    finally:
        third.broker.start()
    assert log_bytes(tmp_path / "copy" / f"{topic}-0") == log_bytes(three_brokers[1].directory(topic))
    assert account(tmp_path / "copy")["partitions"][0]["brokers"][0] == 3


def test_following_captures_what_comes_until_it_is_stopped(newest_broker, tmp_path):
    newest_broker.play(scenario("followed", produce(5)))
    running = subprocess.Popen(
        [sys.executable, "-m", "kaudit", "capture", "--follow", "-o", str(tmp_path / "copy"),
         newest_broker.url("followed")],
        env=plain_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    own, disk = tmp_path / "copy" / "followed-0", newest_broker.directory("followed")
    wait_for("the first batch", lambda: log_bytes(own) == log_bytes(disk))
    newest_broker.play(scenario("followed", produce(3), produce(2)))
    wait_for("what came since", lambda: log_bytes(own) == log_bytes(disk))
    running.send_signal(signal.SIGTERM)
    summary, problems = running.communicate(timeout=30)
    assert (running.returncode, problems) == (0, "")
    assert "offsets 0 to 9" in summary
    captured(newest_broker, tmp_path / "copy", "followed")


def test_tls_and_passwords(newest_broker, certificate, tmp_path):
    topic = "secured"
    newest_broker.play(scenario(topic, produce(7)))
    assert newest_broker.connection.allow("auditor", "topic", topic, ("DESCRIBE", "READ")) == [0, 0]
    assert newest_broker.connection.allow("auditor", "cluster", "kafka-cluster", ("DESCRIBE",)) == [0]
    config = tmp_path / "client.properties"
    config.write_text(client_properties(certificate.pem, "SCRAM-SHA-512", "auditor", USERS["auditor"]))
    done = kaudit(
        "capture", "--command-config", config, "-o", tmp_path / "copy", newest_broker.url(topic, protocol="SASL_SSL")
    )
    assert done.returncode == 0, done.stderr
    captured(newest_broker, tmp_path / "copy", topic)
    assert not any(USERS["auditor"] in path.read_text() for path in (tmp_path / "copy").glob("*") if path.is_file())


@pytest.mark.parametrize(
    ("user", "password", "said"),
    [
        ("auditor", "wrong", "authentication failed"),
        ("stranger", USERS["stranger"], "not authorised"),
    ],
)
def test_what_a_broker_refuses_is_one_sentence(newest_broker, certificate, tmp_path, user, password, said):
    newest_broker.play(scenario("refused", produce(1)))
    config = tmp_path / "client.properties"
    config.write_text(client_properties(certificate.pem, "SCRAM-SHA-512", user, password))
    url = newest_broker.url("refused", protocol="SASL_SSL")
    done = kaudit("capture", "--command-config", config, "-o", tmp_path / "copy", url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)
    assert said in done.stderr
    assert password not in done.stderr
    assert not (tmp_path / "copy").exists()


def test_a_certificate_nobody_trusts_a_port_without_tls_and_a_topic_that_is_not_there(newest_broker, tmp_path):
    trusting = tmp_path / "client.properties"
    trusting.write_text("security.protocol=SSL\n")
    asked = {
        "certificate": (4, ["--command-config", trusting, newest_broker.url("any", protocol="SSL")]),
        "TLS": (4, ["--command-config", trusting, newest_broker.url("any")]),
        "no such topic": (2, [newest_broker.url("nothing-there")]),
        "the topic has 1 partitions": (2, [newest_broker.url("refused", 7)]),
    }
    newest_broker.play(scenario("refused", produce(1)))
    for said, (code, arguments) in asked.items():
        done = kaudit("capture", "-o", tmp_path / "copy", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done
        assert said in done.stderr
