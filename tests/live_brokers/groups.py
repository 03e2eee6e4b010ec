"""Play consumer groups on a real broker and keep what they leave: python -m tests.live_brokers.groups [RELEASE ...].

tests/data/groups/RELEASE.tar.xz has the broker's __consumer_offsets and the topic, RELEASE.json what each group did by its clients' own
account. It needs Java 17, Maven and half a minute, and is no part of the tests.
"""

import io
import json
import lzma
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from tests.live_brokers.jars import jars_of, tool_jars_of
from tests.live_brokers.jvm import Broker

DATA = Path(__file__).parents[1] / "data" / "groups"
TOOLS = "4.1.0"
TOPIC = "orders"
RECORDS = 300
PLACE = TopicPartition(TOPIC, 0)


class Stage:
    """A broker with one topic; `done` notes what each group did."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.servers = f"127.0.0.1:{broker.port}"
        self.done: dict[str, Any] = {}
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
        admin.close()
        producer = KafkaProducer(bootstrap_servers=self.servers)
        for number in range(RECORDS):
            producer.send(TOPIC, b"order %d" % number)
        producer.flush()
        producer.close()

    def consumer(self, group: str, *, subscribes: bool = True) -> KafkaConsumer:
        """A consumer that commits when it is told; a member of the group, or a program that assigns the partition to itself."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
            session_timeout_ms=10_000, heartbeat_interval_ms=500, client_id=f"client-{group}", max_poll_records=50,
        )  # fmt: skip
        if subscribes:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([PLACE])
        return consumer

    def tool(self, *arguments: str) -> None:
        """Run kafka-consumer-groups.sh."""
        jars = tool_jars_of(TOOLS)
        command = ["java", "-cp", f"{jars}/*", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
        subprocess.run([*command, "--bootstrap-server", self.servers, *arguments], check=True, capture_output=True)


def read_to(consumer: KafkaConsumer, offset: int) -> None:
    """Poll until the position is `offset` or beyond, and commit exactly that."""
    deadline = time.monotonic() + 60
    while PLACE not in consumer.assignment() or consumer.position(PLACE) < offset:
        consumer.poll(200)
        assert time.monotonic() < deadline
    consumer.commit({PLACE: OffsetAndMetadata(offset, "", 0)})


def healthy(stage: Stage) -> None:
    """Members come and go, and each goes on where the one before had committed."""
    first = stage.consumer("healthy")
    read_to(first, 50)
    read_to(first, 100)
    first.close()
    second = stage.consumer("healthy")
    read_to(second, 150)
    read_to(second, RECORDS)
    second.close()
    stage.done["healthy"] = {}


def sought(stage: Stage) -> None:
    """The application seeks back, commits, and reads all of it again."""
    consumer = stage.consumer("sought")
    read_to(consumer, 200)
    consumer.seek(PLACE, 40)
    consumer.commit({PLACE: OffsetAndMetadata(40, "", 0)})
    read_to(consumer, 100)
    read_to(consumer, RECORDS)
    consumer.close()
    stage.done["sought"] = {"code": "KA900", "severity": "warning", "from": 200, "to": 40, "times": 1}


def fighting(stage: Stage) -> None:
    """Two programs assign the partition to themselves, and commit their own positions to one group."""
    ahead, late = (stage.consumer("fighting", subscribes=False) for _ in range(2))
    for step in range(4):
        read_to(ahead, 100 + 20 * step)
        read_to(late, 10 + step)
    read_to(ahead, 200)
    for consumer in (ahead, late):
        consumer.close()
    stage.done["fighting"] = {"code": "KA901", "severity": "error", "from": 100, "to": 10, "times": 4}


def reset(stage: Stage) -> None:
    """kafka-consumer-groups.sh sets the group back while it has no members; it reads everything again."""
    consumer = stage.consumer("reset")
    read_to(consumer, RECORDS)
    consumer.close()
    stage.tool("--group", "reset", "--topic", TOPIC, "--reset-offsets", "--to-offset", "20", "--execute")
    again = stage.consumer("reset")
    read_to(again, RECORDS)
    again.close()
    stage.done["reset"] = {"code": "KA902", "severity": "note", "from": RECORDS, "to": 20, "times": 1}


def deleted(stage: Stage) -> None:
    """The group is deleted; its next member begins at the beginning."""
    consumer = stage.consumer("deleted")
    read_to(consumer, 250)
    consumer.close()
    stage.tool("--group", "deleted", "--delete")
    again = stage.consumer("deleted")
    read_to(again, 50)
    read_to(again, RECORDS)
    again.close()
    stage.done["deleted"] = {"code": "KA903", "severity": "warning", "from": 250, "to": 50, "times": 1}


def record(release: str) -> None:
    """Play all on one release."""
    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(release, jars_of(release), Path(temporary) / "broker")
        broker.start()
        try:
            stage = Stage(broker)
            for act in (healthy, sought, fighting, reset, deleted):
                act(stage)
            broker.stop(clean=True)
        finally:
            broker.end()
        DATA.mkdir(parents=True, exist_ok=True)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for directory in sorted(
                path for path in broker.logs.rglob("*-0") if path.name in ("__consumer_offsets-0", f"{TOPIC}-0")
            ):
                for path in sorted(directory.rglob("*")):
                    if path.suffix in (".log", ".metadata") and path.is_file():
                        tar.add(path, f"{directory.name}/{path.name}")
        (DATA / f"{release}.tar.xz").write_bytes(lzma.compress(packed.getvalue()))
        (DATA / f"{release}.json").write_text(json.dumps(stage.done, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or ["4.1.1"]:
        record(each)
