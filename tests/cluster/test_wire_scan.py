"""A scan over the wire is a scan of the broker's directory, apart from what only one of them can know."""

import json
import shlex
import subprocess
import threading
import time

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.results.incidents import incidents_of
from kaudit.scanning.options import ScanOptions
from kaudit.source.kafka.options import ClusterOptions
from tests.cluster.brokers import WITH_EITHER
from tests.cluster.conftest import kaudit, wait_for
from tests.conformance.recorder.scenarios import named
from tests.live_brokers.jars import jars_of, tool_jars_of
from tests.live_brokers.security import USERS, client_properties
from tests.wire_findings import comparable_findings

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("brokers")]
FIRST_TO_TERMINATE = "4.1.0"
HANGING = "s29b-hanging-fixed-pid"
PLAYED = {
    "main": (
        "s10-epoch-bump-seq0", "s23-deleterecords-continue", "s26b-txn-two-open", HANGING, "s29d-late-write-after-abort",
        "s27-txn-zombie",
    ),
    "expiry": ("x01-idle-then-dup", "x03-idle-then-gap"),
}  # fmt: skip


def scanned(paths, topics=(), **cluster):
    options = ScanOptions(paths, jobs=1, topics=topics, broker_version="3.9.2", cluster=ClusterOptions(**cluster))
    return scan(options, SilentProgress())


def test_a_scan_over_the_wire_is_one_of_the_directory(forgetful_broker):
    wanted = {name for names in PLAYED.values() for name in names}
    forgetful_broker.play(*(each for kind in PLAYED for each in named(kind) if each["name"] in wanted))
    for topic in sorted(wanted):
        fetched = scanned([forgetful_broker.url(topic)])
        on_disk = scanned([str(forgetful_broker.broker.logs)], [topic])
        assert comparable_findings(fetched) == comparable_findings(on_disk), topic
        ends = [(entry.partition, entry.log_end_offset, entry.last_stable_offset) for entry in fetched.partitions]
        assert ends == [
            (entry.partition, entry.log_end_offset, entry.last_stable_offset) for entry in on_disk.partitions
        ]
    codes = {found.code for topic in wanted for found in scanned([forgetful_broker.url(topic)]).findings}
    assert {"KA101", "KA104", "KA301"} <= codes


def test_a_hanging_transaction_is_certain_and_its_command_aborts_it(forgetful_broker):
    (hanging,) = (each for each in named("main") if each["name"] == HANGING)
    forgetful_broker.play({**hanging, "name": "wire-hanging"})
    url = forgetful_broker.url("wire-hanging")
    (found,) = [found for found in scanned([url]).findings if found.code == "KA301"]
    assert found.confidence.value == "certain"
    kafka_transactions(suggested(found, "abort"), f"{jars_of(WITH_EITHER)}/*:{tool_jars_of(WITH_EITHER)}/*")
    assert not [found for found in scanned([url]).findings if found.code in ("KA301", "KA302")]


def suggested(found, subcommand):
    """The one command of Kafka's tool that a finding suggests with this subcommand; the line above it says for which releases it is."""
    (number,) = [number for number, command in enumerate(found.next) if f" {subcommand} " in f"{command} "]
    assert found.next[number - 1].startswith("# ")
    return found.next[number]


def kafka_transactions(command, classpath):
    """What Kafka's tool prints on a command that a finding suggests."""
    script, *arguments = shlex.split(command)
    assert script == "kafka-transactions.sh"
    java = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", classpath]
    tool = [*java, "org.apache.kafka.tools.TransactionsCommand"]
    done = subprocess.run([*tool, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["zookeeper_broker", "forgetful_broker"])
def test_what_an_application_left_open_is_one_incident_and_its_commands_abort_it(request, name):
    broker, topic = request.getfixturevalue(name), "left-open"
    ids = [f"{name} sink-{subtask}-17" for subtask in range(3)]
    left = [
        [
            {"op": "init_pid", "as": each, "txn_id": each},
            {"op": "add_partitions", "pid": each, "epoch": each, "txn_id": each},
            {"op": "produce", "pid": each, "epoch": each, "txn_id": each, "seq": "next", "count": 2, "txn": True},
        ]
        for each in ids
    ]
    broker.play({"name": topic, "steps": [step for steps in left for step in steps]})

    def unfinished():
        in_an_hour = (int(time.time()) + 3600) * 1000
        options = ScanOptions([str(broker.broker.logs)], jobs=1, topics=[topic], now_ms=in_an_hour)
        return [found for found in scan(options, SilentProgress()).findings if found.severity.value != "note"]

    found = unfinished()
    (incident,) = incidents_of(found)
    assert (incident.cause, incident.transactional_ids) == ("transaction", ids)
    assert [each.code for each in found] == ["KA302"] * 3
    tools = f"{tool_jars_of(FIRST_TO_TERMINATE)}/*"
    for each in found:
        describe, terminate = (
            suggested(each, subcommand).replace("HOST:9092", broker.address())
            for subcommand in ("describe", "forceTerminateTransaction")
        )
        if name != "zookeeper_broker":  # DescribeTransactions is of 3.0
            assert "Ongoing" in kafka_transactions(describe, tools)
        kafka_transactions(terminate, tools)
    wait_for("the markers", lambda: not unfinished())
    assert not [each for each in scanned([broker.url(topic)]).findings if each.name == found[0].name]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_users_come_in_with_their_password_over_tls(newest_broker, certificate, tmp_path, mechanism):
    topic = f"wire-{mechanism.lower()}"
    newest_broker.play({**_one_batch(topic), "name": topic})
    newest_broker.connection.allow("auditor", "topic", topic, ("DESCRIBE", "READ"))
    config = tmp_path / "client.properties"
    config.write_text(client_properties(certificate.pem, mechanism, "auditor", USERS["auditor"]))
    url = newest_broker.url(topic, protocol="SASL_SSL")
    done = kaudit("scan", url, "--command-config", config, "--output-format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["records"] == 3
    assert USERS["auditor"] not in done.stdout + done.stderr


def test_what_keeps_users_out_is_one_sentence(newest_broker, certificate, tmp_path):
    newest_broker.play({**_one_batch("wire-closed"), "name": "wire-closed"})
    right = client_properties(certificate.pem, "SCRAM-SHA-512", "auditor", USERS["auditor"])
    stranger = client_properties(certificate.pem, "SCRAM-SHA-512", "stranger", USERS["stranger"])
    cases = {
        "authentication failed": right.replace(USERS["auditor"], "wrong"),
        "certificate is not trusted": right.replace(f"ssl.truststore.location={certificate.pem}", ""),
        "not authorised": stranger,
        "TLS": "security.protocol=PLAINTEXT\n",
    }
    url = newest_broker.url("wire-closed", protocol="SASL_SSL")
    for expected, text in cases.items():
        config = tmp_path / "client.properties"
        config.write_text(text)
        done = kaudit("scan", url, "--command-config", config, "-q")
        assert done.returncode == 4, (expected, done.stderr)
        (line,) = done.stderr.strip().splitlines()
        assert expected in line
        assert not any(secret in line for secret in USERS.values())


def test_a_broker_killed_in_the_middle_leaves_its_leadership_to_another(three_brokers):
    first, second, third = three_brokers.values()
    steps = [{"op": "produce", "pid": "p", "epoch": "p", "seq": "next", "count": 2000} for _ in range(30)]
    scenario = {"name": "wire-killed", "replicas": [2, 1, 3], "steps": [{"op": "init_pid", "as": "p"}, *steps]}
    second.play(scenario)
    url = f"kafka://{first.address()},{third.address()}/wire-killed"
    size = sum(path.stat().st_size for path in second.directory("wire-killed").glob("*.log"))
    killer = threading.Timer(1, second.broker.kill)
    killer.start()
    try:
        begun = time.monotonic()
        result = scan(
            ScanOptions([url], jobs=1, cluster=ClusterOptions(max_bytes_per_second=size // 3)),
            SilentProgress(),
        )
        assert time.monotonic() - begun > 2, "the broker died while it was read"
    finally:
        killer.join()
        second.close()
        second.broker.start()
    assert not result.incomplete, result.not_audited
    assert (result.summary.records, result.findings) == (60_000, [])


def _one_batch(topic):
    return {
        "name": topic,
        "steps": [
            {"op": "init_pid", "as": "p"},
            {"op": "produce", "pid": "p", "epoch": "p", "seq": "next", "count": 3},
        ],
    }
