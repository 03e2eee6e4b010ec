"""Play groups of real clients on a real broker and keep what they leave: python -m tests.live_brokers.groups [NAME ...].

tests/data/groups/NAME.tar.xz has the broker's __consumer_offsets or __share_group_state and the topics, NAME.json what each group did by its
clients' own account. A name is RELEASE (kafka-python), RELEASE-confluent (uv run --with confluent-kafka) or RELEASE-share (Java). It needs
Java 17, Maven and a minute each, and is no part of the tests.
"""

import argparse
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from kaudit.broker.releases.version import Version
from tests.live_brokers.group_clients import Confluent, Given, KafkaPython, Member, Open, read, read_to
from tests.live_brokers.jars import CACHE, fetched_jars, jars_of, tool_jars_of
from tests.live_brokers.java_producer import ProducerProgram, logging_jars
from tests.live_brokers.jvm import Broker

DATA = Path(os.environ.get("KAUDIT_GROUPS", Path(__file__).parents[1] / "data" / "groups"))
TOOLS = "4.4.0"
"""kafka-share-groups.sh resets offsets since 4.2, on brokers of the same line."""
TOPIC, SPREAD = "orders", "events"
RECORDS = 300
PARTITIONS = 6
"""Of SPREAD, whose records are dealt out to them in turn."""
SHARE_CONFIG: Mapping[str, object] = {
    "share.version": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 8000,
}
LOCK_SECONDS = 9
LONG_AGO_SECONDS = 65
KEPT_SECONDS = 75
_MOVED = Version.parse("4.4.0")
"""kafka-dump-log is one of the tools in Java."""
DELIVERIES = 5
"""group.share.delivery.count.limit by default."""


class Stage:
    """A broker with two topics; `done` notes what each group did, `given` what it was given."""

    def __init__(self, broker: Broker, open_member: Open) -> None:
        self.broker, self._open = broker, open_member
        self.servers = f"127.0.0.1:{broker.port}"
        self.done: dict[str, dict[str, Any]] = {}
        self.given: dict[str, Given] = {}
        self.stack = ExitStack()
        self._written = 0
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(SPREAD, PARTITIONS, 1)])
        admin.close()
        self.write(TOPIC, RECORDS)
        self.write(SPREAD, RECORDS)

    def write(self, topic: str, count: int) -> None:
        """Write records, in turn to the partitions that there are."""
        producer = KafkaProducer(bootstrap_servers=self.servers)
        parts = sorted(producer.partitions_for(topic))
        for number in range(count):
            producer.send(topic, b"record %d" % (self._written + number), partition=parts[number % len(parts)])
        self._written += count
        producer.flush()
        producer.close()

    def member(self, group: str, topic: str = TOPIC, **how: Any) -> Member:
        """A consumer that commits when it is asked to; a member of the group, or a program that assigns partition 0 to itself."""
        return self._open(self.servers, group, topic, self.given.setdefault(group, Given()), **how)

    def tool(self, command: str, *arguments: str) -> None:
        """Run kafka-consumer-groups.sh or kafka-share-groups.sh, by the name of its class."""
        java = ["java", "-cp", f"{tool_jars_of(TOOLS)}/*", f"org.apache.kafka.tools.consumer.group.{command}"]
        ran = subprocess.run(
            [*java, "--bootstrap-server", self.servers, *arguments], check=True, capture_output=True, text=True
        )
        assert "Error" not in ran.stdout, ran.stdout

    def given_again(self, group: str) -> int:
        """How many records more than once, each time counted."""
        return sum(count - 1 for count in self.given.get(group, Given()).values())


def healthy(stage: Stage) -> None:
    """Members come and go, and each goes on where the one before had committed."""
    for ends in ((50, 100), (150, RECORDS)):
        member = stage.member("healthy")
        for end in ends:
            read_to(member, end)
        member.close()
    stage.done["healthy"] = {}


def sought(stage: Stage) -> None:
    """The application seeks back, commits, and reads all of it again."""
    member = stage.member("sought")
    read_to(member, 200)
    member.seek(0, 40)
    member.commit({0: 40})
    read_to(member, 100)
    read_to(member, RECORDS)
    member.close()
    stage.done["sought"] = {"code": "KA900", "severity": "warning", "from": 200, "to": 40, "times": 1}


def fighting(stage: Stage) -> None:
    """Two programs assign the partition to themselves, and commit their own positions to one group."""
    ahead, late = (stage.member("fighting", subscribes=False) for _ in range(2))
    for step in range(4):
        read_to(ahead, 100 + 20 * step)
        read_to(late, 10 + step)
    read_to(ahead, 200)
    for member in (ahead, late):
        member.close()
    stage.done["fighting"] = {"code": "KA901", "severity": "error", "from": 100, "to": 10, "times": 4}


def reset(stage: Stage) -> None:
    """kafka-consumer-groups.sh sets the group back while it has no members; it reads everything again."""
    member = stage.member("reset")
    read_to(member, RECORDS)
    member.close()
    how = "--group", "reset", "--topic", TOPIC, "--reset-offsets", "--to-offset", "20", "--execute"
    stage.tool("ConsumerGroupCommand", *how)
    again = stage.member("reset")
    read_to(again, RECORDS)
    again.close()
    stage.done["reset"] = {"code": "KA902", "severity": "note", "from": RECORDS, "to": 20, "times": 1}


def deleted(stage: Stage) -> None:
    """The group is deleted; its next member begins at the beginning."""
    member = stage.member("deleted")
    read_to(member, 250)
    member.close()
    stage.tool("ConsumerGroupCommand", "--group", "deleted", "--delete")
    again = stage.member("deleted")
    read_to(again, 50)
    read_to(again, RECORDS)
    again.close()
    stage.done["deleted"] = {"code": "KA903", "severity": "warning", "from": 250, "to": 50, "times": 1}


_AUTOMATIC = {"enable.auto.commit": "true", "auto.commit.interval.ms": "200"}
"""Members that one thread polls must not wait for an answer while the others rebalance."""


def _members_come_and_go(stage: Stage, group: str, protocol: Mapping[str, str]) -> None:
    """Three members share six partitions out among themselves; one leaves, and the others read what is left."""
    members: list[Member] = []

    def until(is_reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 180
        while not is_reached():
            for member in members:
                member.poll(0.1)
            assert time.monotonic() < deadline

    for _ in range(3):
        members.append(stage.member(group, SPREAD, protocol={**protocol, **_AUTOMATIC}))
        until(lambda: all(member.assigned() for member in members))
        stage.write(SPREAD, 60)
    members.pop(0).close()
    until(lambda: sum(len(member.assigned()) for member in members) == PARTITIONS)
    stage.write(SPREAD, 60)
    end = time.monotonic() + 5
    until(lambda: time.monotonic() > end)
    for member in members:
        member.close()
    stage.done[group] = {}


def cooperative(stage: Stage) -> None:
    """Members rebalance cooperatively (KIP-429), and commit what they give up, as the client does by itself."""
    own = {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": "10000"}
    _members_come_and_go(stage, "cooperative", own)


def next_protocol(stage: Stage) -> None:
    """Members are assigned partitions by the broker (KIP-848), one by one."""
    _members_come_and_go(stage, "next-protocol", {"group.protocol": "consumer"})


def sent_again(stage: Stage) -> None:
    """A commit fails while the broker restarts; the program sends it again once it has committed what it read since."""
    member = stage.member("sent-again")
    assert isinstance(member, KafkaPython)
    joined = time.monotonic()
    read_to(member, 100)
    read(member, 120)
    while time.monotonic() < joined + LONG_AGO_SECONDS:  # the restart is all that happens to the group
        time.sleep(1)
    stage.broker.stop(clean=True)
    member.send({0: 120})
    member.poll(1)
    stage.broker.start()
    read_to(member, 160)
    assert member.send_again() == 1
    read_to(member, 200)
    member.close()
    stage.done["sent-again"] = {"code": "KA900", "severity": "note", "from": 160, "to": 120, "times": 1}


def late_worker(stage: Stage) -> None:
    """A member leaves. Of the other's threads the one that had the earlier records commits them last."""
    members = [stage.member("late-worker") for _ in range(2)]
    deadline = time.monotonic() + 180
    while not any(member.position(0) for member in members):
        for member in members:
            member.poll(0.1)
        assert time.monotonic() < deadline
    (owner,) = (member for member in members if member.position(0))
    read_to(owner, 100)
    members.remove(owner)
    members[0].close()
    read_to(owner, 160)
    owner.commit({0: 130})
    read_to(owner, 200)
    owner.close()
    stage.done["late-worker"] = {"code": "KA900", "severity": "note", "from": 160, "to": 130, "times": 1}


def expired(stage: Stage) -> None:
    """The group has no members for longer than its offsets are kept; its next member begins at the beginning (librdkafka#1442)."""
    member = stage.member("expired")
    read_to(member, 250)
    member.close()
    time.sleep(KEPT_SECONDS)
    again = stage.member("expired")
    read_to(again, 50)
    read_to(again, RECORDS)
    again.close()
    stage.done["expired"] = {"code": "KA903", "severity": "warning", "from": 250, "to": 50, "times": 1}


def overtaken(stage: Stage) -> None:
    """DeleteRecords removes what the group has not read; its next member goes on at the new beginning, and has not committed yet."""
    admin = KafkaAdminClient(bootstrap_servers=stage.servers)
    admin.create_topics([NewTopic("removed", 1, 1)])
    stage.write("removed", 200)
    member = stage.member("overtaken", "removed")
    read_to(member, 50)
    member.close()
    admin.delete_records({TopicPartition("removed", 0): 120})
    admin.close()
    read(stage.member("overtaken", "removed"), 200)
    given = {offset for _, offset in stage.given["overtaken"]}
    assert given & set(range(60, 200)) == set(range(120, 200)), given
    skipped = len(set(range(200)) - given)
    stage.done["overtaken"] = {
        "code": "KA904",
        "severity": "warning",
        "from": 50,
        "to": 120,
        "times": 1,
        "skipped": skipped,
    }


class Sharer(ProducerProgram):
    """A running Share.java, which takes records for a share group and acknowledges them as it is asked to."""

    def __init__(self, stage: Stage, version: str, group: str, topic: str = TOPIC) -> None:
        home = stage.broker.home / f"client-{len(stage.done)}-{time.monotonic_ns()}"
        home.mkdir()
        settings = {"bootstrap.servers": stage.servers, "group.id": group, "share.acknowledgement.mode": "explicit"}
        (home / "client.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        jars = fetched_jars(f"clients-{version}", [("org.apache.kafka", "kafka-clients", version)]).resolve()
        source, folder = Path(__file__).with_name("Share.java"), CACHE / f"share-{version}"
        subprocess.run(["javac", "-d", folder, "-cp", f"{jars}/*", source], check=True, timeout=120)
        command = ["java", "-Xmx128m", "-cp", f"{folder.resolve()}:{logging_jars()}:{jars}/*", "Share"]
        with (home / "stderr").open("w") as errors:
            self.process = subprocess.Popen(
                [*command, str(home / "client.properties"), topic],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=home,
            )  # fmt: skip
        super().__init__(self.process, home)
        stage.stack.callback(self.process.wait)
        stage.stack.callback(self.process.kill)
        self._given = stage.given.setdefault(group, Given())

    def take(self, seconds: float = 5) -> list[int]:
        """Take the records that there are; their offsets."""
        offsets = [int(word) for word in self.ask(f"poll {int(seconds * 1000)}").partition(": ")[2].split()]
        self._given.update((0, offset) for offset in offsets)
        return offsets

    def answer_with(self, kind: str, offsets: Sequence[int]) -> None:
        """Acknowledge these in one way."""
        if offsets:
            line = " ".join([kind, *map(str, offsets)])
            assert self.ask(line).endswith(": done")

    def commit(self) -> None:
        """Send the acknowledgements."""
        answer = self.ask("commit")
        assert answer.endswith(": done"), answer

    def drain(self, **kinds: Sequence[int]) -> None:
        """Take all there is, accept it, and what is named otherwise."""
        offsets = self.take(40)
        assert offsets
        while offsets:
            for kind, chosen in kinds.items():
                self.answer_with(kind, [offset for offset in offsets if offset in chosen])
            others = {offset for chosen in kinds.values() for offset in chosen}
            self.answer_with("accept", [offset for offset in offsets if offset not in others])
            self.commit()
            offsets = self.take()


def _taker(stage: Stage, group: str, topic: str = TOPIC) -> Sharer:
    """A consumer of a share group that begins at the beginning."""
    if group not in stage.given:
        admin = KafkaAdminClient(bootstrap_servers=stage.servers)
        begin = {"share.auto.offset.reset": "earliest"}
        admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, begin)])
        admin.close()
    return Sharer(stage, stage.broker.version, group, topic)


def share_healthy(stage: Stage) -> None:
    """Two consumers of a share group accept everything, some records once they were released."""
    first, second = _taker(stage, "share-healthy"), _taker(stage, "share-healthy")
    taken = first.take(40)
    first.answer_with("release", taken[:3])
    first.answer_with("accept", taken[3:])
    first.commit()
    while stage.given_again("share-healthy") < len(taken[:3]):
        for taker in (first, second):
            taker.answer_with("accept", taker.take(1))
            taker.commit()
    stage.done["share-healthy"] = {}


def share_rejected(stage: Stage) -> None:
    """A consumer rejects three records."""
    _taker(stage, "share-rejected").drain(reject=(5, 16, 27))
    stage.done["share-rejected"] = {"code": "KA910", "severity": "warning", "rejected": [5, 16, 27], "exhausted": []}


def share_exhausted(stage: Stage) -> None:
    """A consumer releases one record whenever it is given it."""
    _taker(stage, "share-exhausted").drain(release=(7,))
    assert stage.given["share-exhausted"][0, 7] == DELIVERIES
    stage.done["share-exhausted"] = {"code": "KA910", "severity": "warning", "rejected": [], "exhausted": [7]}


def share_unanswered(stage: Stage) -> None:
    """One consumer after the other takes a record and does nothing until its lock has ended. 4.2 and later give what was
    delivered often record by record: there is one."""
    admin = KafkaAdminClient(bootstrap_servers=stage.servers)
    admin.create_topics([NewTopic("unanswered", 1, 1)])
    admin.close()
    stage.write("unanswered", 1)
    seconds = 40
    while (taker := _taker(stage, "share-unanswered", "unanswered")).take(seconds):
        time.sleep(LOCK_SECONDS)
        taker.process.kill()
        seconds = 3 * LOCK_SECONDS  # the broker may have given it to a consumer that did not ask for it any more
    taker.process.kill()
    lost = sorted({offset for _, offset in stage.given["share-unanswered"]})
    stage.write("unanswered", 3)
    _taker(stage, "share-unanswered", "unanswered").drain()
    given = stage.given["share-unanswered"]
    assert [given[0, offset] for offset in range(4)] == [given[0, 0], 1, 1, 1], given
    stage.done["share-unanswered"] = {"code": "KA910", "severity": "warning", "rejected": [], "exhausted": lost}


def share_reset(stage: Stage) -> None:
    """kafka-share-groups.sh sets the group back to the beginning while it has no members; 4.1 cannot."""
    if stage.broker.version.startswith("4.1."):
        return
    taker = _taker(stage, "share-reset")
    taker.drain()
    taker.ask("close")
    time.sleep(LOCK_SECONDS)
    how = "--group", "share-reset", "--topic", TOPIC, "--reset-offsets", "--to-earliest", "--execute"
    stage.tool("ShareGroupCommand", *how)
    stage.done["share-reset"] = {"code": "KA912", "severity": "note", "from": RECORDS, "to": 0, "unread": 0}


def share_overtaken(stage: Stage) -> None:
    """DeleteRecords removes records that the group has not been given."""
    admin = KafkaAdminClient(bootstrap_servers=stage.servers)
    admin.create_topics([NewTopic("overtaken", 1, 1)])
    stage.write("overtaken", 50)
    taker = _taker(stage, "share-overtaken", "overtaken")
    taker.drain()
    taker.ask("close")
    stage.write("overtaken", 150)
    admin.delete_records({TopicPartition("overtaken", 0): 120})
    admin.close()
    _taker(stage, "share-overtaken", "overtaken").drain()
    stage.done["share-overtaken"] = {"code": "KA912", "severity": "warning", "from": 50, "to": 120, "unread": 70}


def share_killed(stage: Stage) -> None:
    """The broker is killed while two groups have acquired what came last; one takes it again, the other never comes back."""
    admin = KafkaAdminClient(bootstrap_servers=stage.servers)
    admin.create_topics([NewTopic("killed", 1, 1)])
    admin.close()
    stage.write("killed", 20)
    groups = "share-killed", "share-acquired"
    takers = [_taker(stage, group, "killed") for group in groups]
    for taker in takers:
        taker.drain()
    stage.write("killed", 10)
    assert [len(taker.take(40)) for taker in takers] == [10, 10]
    stage.broker.kill()
    for taker in takers:
        taker.process.kill()
    stage.broker.start()
    _taker(stage, "share-killed", "killed").drain()
    stage.done |= {group: {} for group in groups}


_COMMITTING = (healthy, sought, fighting, reset, deleted)
_SHARING = (share_healthy, share_rejected, share_exhausted, share_unanswered, share_reset, share_overtaken)
_CLIENTS: Mapping[str, tuple[Open, Sequence[Callable[[Stage], None]], Mapping[str, object]]] = {
    "": (KafkaPython, _COMMITTING, {}),
    "confluent": (Confluent, (*_COMMITTING, cooperative, next_protocol), {}),
    "share": (KafkaPython, _SHARING, SHARE_CONFIG),
    "restart": (KafkaPython, (sent_again, late_worker), {}),
    "expired": (
        KafkaPython,
        (expired, overtaken),
        {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 2000},
    ),
    "share-restart": (KafkaPython, (share_killed,), SHARE_CONFIG),
}


def record(name: str, target: Path) -> None:
    """Play all of one name, and keep what is left in `target`."""
    release, _, client = name.partition("-")
    open_member, acts, config = _CLIENTS[client]
    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(release, jars_of(release).resolve(), Path(temporary) / "broker", dict(config))
        broker.start()
        try:
            stage = Stage(broker, open_member)
            with stage.stack:
                for act in acts:
                    act(stage)
                    sys.stderr.write(f"{name}: {act.__name__}\n")
            broker.stop(clean=True)
        finally:
            broker.end()
        for group, done in stage.done.items():
            done["given_again"] = stage.given_again(group)
        target.mkdir(parents=True, exist_ok=True)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for directory in sorted(path for path in broker.logs.glob("*-*") if path.is_dir()):
                if not directory.name.startswith("__cluster_metadata"):
                    for path in sorted(directory.rglob("*")):
                        if path.suffix in (".log", ".metadata") and path.is_file() and path.stat().st_size:
                            tar.add(path, f"{directory.name}/{path.name}")
            tar.add(broker.logs / "log-start-offset-checkpoint", "log-start-offset-checkpoint")
        (target / f"{name}.tar.xz").write_bytes(lzma.compress(packed.getvalue(), preset=9))
        (target / f"{name}.txt.xz").write_bytes(lzma.compress(_printed(broker, client), preset=9))
        (target / f"{name}.json").write_text(json.dumps(stage.done, indent=1) + "\n", encoding="utf-8")


def _printed(broker: Broker, client: str) -> bytes:
    """What kafka-dump-log of the broker's release prints of the groups' records."""
    topic, option = (
        ("__share_group_state", "share-group-state")
        if client.startswith("share")
        else ("__consumer_offsets", "offsets")
    )
    is_moved = Version.parse(broker.version) >= _MOVED
    jars, package = (
        (tool_jars_of(broker.version), "org.apache.kafka.tools") if is_moved else (broker.jars, "kafka.tools")
    )
    java = [
        "java",
        "-cp",
        f"{jars.resolve()}/*",
        f"{package}.DumpLogSegments",
        "--deep-iteration",
        f"--{option}-decoder",
    ]
    files = ",".join(str(path.relative_to(broker.logs)) for path in broker.segments(topic, 0))
    return subprocess.run([*java, "--files", files], check=True, capture_output=True, cwd=broker.logs).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["4.1.1"])
    parser.add_argument("--into", type=Path, default=DATA, metavar="DIRECTORY", help="keep the recordings there")
    asked = parser.parse_args()
    for each in asked.names:
        record(each, asked.into)
