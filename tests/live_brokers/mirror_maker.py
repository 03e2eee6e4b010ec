"""Mirror topics with MirrorMaker 2 between two clusters, and keep what both have: python -m tests.live_brokers.mirror_maker [NAME ...].

Producers write to `primary` while MirrorMaker is killed, stopped and started again; a group commits offsets on the way.
tests/data/mirrors/NAME.tar.xz has the log directories of both brokers after a clean stop, and truth.json: what consumers
of another client read of each topic on both sides, and MirrorMaker's own offset syncs and checkpoints. It needs Java 17, Maven
and two minutes for each, and is no part of the tests; `.ci/full mirror` compares fresh ones with
the ledger.
"""

import argparse
import io
import json
import shutil
import signal
import struct
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.live_brokers.jars import fetched_jars, jars_of
from tests.live_brokers.java_producer import logging_jars
from tests.live_brokers.jvm import Broker, Jvm

VERSION = "4.1.1"
DATA = Path(__file__).parents[1] / "data" / "mirrors"
SOURCE, TARGET = "primary", "backup"
FLUSH_SECONDS = 5
"""How often MirrorMaker notes what it has mirrored; what it mirrored since is mirrored again after kill -9."""
WAIT_SECONDS = 120
IDLE_SECONDS = 3
ISOLATIONS = ("read_committed", "read_uncommitted")
OFFSET_SYNCS = f"mm2-offset-syncs.{TARGET}.internal"
CHECKPOINTS = f"{SOURCE}.checkpoints.internal"
_CLUSTER_IDS = {SOURCE: "cHJpbWFyeS1jbHVzdGVyMQ", TARGET: "YmFja3VwLWNsdXN0ZXItMQ"}
_SMALL: dict[str, object] = {"log.index.size.max.bytes": 4096, "log.cleaner.enable": "true"}
_SETTINGS: dict[str, object] = {
    "clusters": f"{SOURCE}, {TARGET}",
    f"{SOURCE}->{TARGET}.enabled": "true",
    f"{TARGET}->{SOURCE}.enabled": "false",
    f"{SOURCE}->{TARGET}.topics": "orders, payments, customers",
    f"{SOURCE}->{TARGET}.groups": "billing, shipping",
    "replication.factor": 1,
    "offset-syncs.topic.replication.factor": 1,
    "checkpoints.topic.replication.factor": 1,
    "heartbeats.topic.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1,
    "config.storage.replication.factor": 1,
    "offset.storage.partitions": 1,
    "status.storage.partitions": 1,
    "tasks.max": 2,
    "emit.checkpoints.interval.seconds": 1,
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": 1,
    "refresh.groups.interval.seconds": 2,
    "refresh.topics.interval.seconds": 2,
    "offset.flush.interval.ms": FLUSH_SECONDS * 1000,
}
SETTINGS: dict[str, dict[str, object]] = {
    "killed": {"offset.lag.max": 10},
    "exactly-once": {
        f"{SOURCE}.consumer.isolation.level": "read_committed",
        f"{TARGET}.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
    },
}
"""What is set beside `_SETTINGS`: as it comes, aborted records are mirrored like others and a kill doubles records."""


class _Topic(NamedTuple):
    partitions: int
    transactional: bool
    config: Mapping[str, str] = {}


TOPICS = {
    "orders": _Topic(2, transactional=False),
    "payments": _Topic(1, transactional=True),
    "customers": _Topic(1, transactional=False, config={"cleanup.policy": "compact", "segment.ms": "3000"}),
}


class Cluster:
    """One broker that is a cluster."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        jars = jars_of(VERSION).resolve()
        self.broker = Broker(VERSION, jars, home / name, _SMALL, heap="256m", cluster_id=_CLUSTER_IDS[name])
        self.address = f"127.0.0.1:{self.broker.port}"

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The log end offset by partition; empty while there is no such topic."""
        with self._consumer() as consumer:
            partitions = [TopicPartition(topic, each) for each in consumer.partitions_for_topic(topic) or ()]
            return {each.partition: end for each, end in consumer.end_offsets(partitions).items()}

    def read(self, topic: str, isolation: str) -> Iterator[Any]:
        """All records of a topic as a consumer gets them, partition by partition."""
        with self._consumer(isolation_level=isolation) as consumer:
            for number in sorted(consumer.partitions_for_topic(topic) or ()):
                partition = TopicPartition(topic, number)
                consumer.assign([partition])
                consumer.seek_to_beginning(partition)
                end = consumer.end_offsets([partition])[partition]
                deadline = time.monotonic() + IDLE_SECONDS  # a position does not pass the markers at the end
                while consumer.position(partition) < end and time.monotonic() < deadline:
                    for records in consumer.poll(200).values():
                        deadline = time.monotonic() + IDLE_SECONDS
                        yield from records

    @contextmanager
    def _consumer(self, **config: Any) -> Iterator[Any]:
        consumer = KafkaConsumer(bootstrap_servers=self.address, enable_auto_commit=False, **config)
        try:
            yield consumer
        finally:
            consumer.close()

    def create(self, topics: Mapping[str, _Topic]) -> None:
        """Create topics."""
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        try:
            admin.create_topics(
                [NewTopic(name, each.partitions, 1, topic_configs=dict(each.config)) for name, each in topics.items()]
            )
        finally:
            admin.close()

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets as a member of a group that is alone."""
        with self._consumer(group_id=group) as consumer:
            partitions = {
                TopicPartition(*where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()
            }
            consumer.assign(list(partitions))
            consumer.commit(partitions)

    def committed(self, group: str) -> list[tuple[str, int, int]]:
        """(topic, partition, offset) of a group."""
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        try:
            found = admin.list_group_offsets({group: None})
        finally:
            admin.close()
        return sorted((each.topic, each.partition, value.offset) for each, value in found[group].items())


class Writers:
    """An idempotent producer and a transactional one; every value is written once, keys come back."""

    def __init__(self, cluster: Cluster) -> None:
        plain = {"bootstrap_servers": cluster.address, "linger_ms": 5, "batch_size": 2048}
        self._plain = KafkaProducer(**plain, compression_type="gzip", enable_idempotence=True)
        self._transactional = KafkaProducer(**plain, transactional_id="payments-1")
        self._transactional.init_transactions()
        self._numbers = count()

    def write(self, records: int) -> None:
        """Write so many records to every topic; every third transaction is aborted, some end within a batch."""
        for begin in range(0, records, 20):
            self._transactional.begin_transaction()
            for at in range(20):
                number = next(self._numbers)
                value = json.dumps({"number": number, "amount": number * 7 % 1000}).encode()
                self._plain.send("orders", value, f"customer-{number % 13}".encode(), [("trace", b"%d" % number)])
                self._plain.send("customers", value, f"customer-{number % 31}".encode())
                self._transactional.send("payments", value, None if at % 5 else f"payment-{number}".encode())
            self._transactional.flush()
            self._plain.flush()
            if begin // 20 % 3 == 1:
                self._transactional.abort_transaction()
            else:
                self._transactional.commit_transaction()
            time.sleep(0.05)

    def close(self) -> None:
        """Close both."""
        self._plain.close()
        self._transactional.close()


class Run:
    """Two clusters and a MirrorMaker between them."""

    def __init__(self, home: Path, settings: Mapping[str, object]) -> None:
        self.source, self.target = Cluster(SOURCE, home), Cluster(TARGET, home)
        properties = home / "mm2.properties"
        addresses = {f"{each.name}.bootstrap.servers": each.address for each in (self.source, self.target)}
        everything = {**_SETTINGS, **addresses, **settings}
        properties.write_text("".join(f"{name} = {value}\n" for name, value in everything.items()))
        logging = home / "mm2-log4j.properties"
        logging.write_text(
            "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )
        jars = fetched_jars(
            f"mirror-maker-{VERSION}",
            [("org.apache.kafka", artifact, VERSION) for artifact in ("connect-mirror", "connect-runtime")],
        )
        command = [
            "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{logging}",
            "-cp", f"{logging_jars()}:{jars.resolve()}/*", "org.apache.kafka.connect.mirror.MirrorMaker", str(properties),
        ]  # fmt: skip
        self.mirror = Jvm(command, home / "mm2.out")

    def play(self) -> None:
        """Write, mirror, kill MirrorMaker, mirror, stop it while records come, mirror, and write what it never sees."""
        self.source.create(TOPICS)
        writers = Writers(self.source)
        writers.write(60)
        self.mirror.start()
        writers.write(100)
        self._mirrored()
        self.source.commit("billing", {("orders", 0): 11, ("orders", 1): 23, ("payments", 0): 64})
        self._checkpointed("billing", 3)
        time.sleep(FLUSH_SECONDS + 2)
        writers.write(160)
        self._mirrored()
        self.mirror.stop(signal.SIGKILL)
        writers.write(40)
        self.mirror.start()
        writers.write(80)
        self._mirrored()
        self.source.commit("billing", {("orders", 0): 171, ("orders", 1): 180, ("payments", 0): 330})
        self.source.commit("shipping", {("orders", 0): 95, ("customers", 0): 300})
        time.sleep(FLUSH_SECONDS + 2)
        self.mirror.stop(signal.SIGTERM)
        writers.write(60)
        self.mirror.start()
        self._mirrored()
        writers.write(60)
        self._mirrored()
        end = self.source.end_offsets("orders")
        self.source.commit("billing", {("orders", 0): end[0], ("orders", 1): end[1] - 9, ("payments", 0): 480})
        time.sleep(FLUSH_SECONDS + 2)
        self.mirror.stop(signal.SIGTERM)
        writers.write(20)
        writers.close()

    def _mirrored(self) -> None:
        """Wait until the last committed record of each partition is on the other side, or a later one."""
        for topic in TOPICS:
            self._until(partial(self._holds, topic, _last(self.source, topic)), f"{topic} mirrored")

    def _holds(self, topic: str, wanted: Mapping[int, int]) -> bool:
        found = _last(self.target, f"{SOURCE}.{topic}")
        return all(found.get(partition, -1) >= number for partition, number in wanted.items())

    def _checkpointed(self, group: str, partitions: int) -> None:
        self._until(
            lambda: len({each[1:3] for each in checkpoints(self.target) if each[0] == group}) >= partitions,
            f"checkpoints of {group}",
        )

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            if self.mirror.ended or time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {self.mirror.output.read_text()[-3000:]}")
            time.sleep(0.5)

    def truth(self) -> dict[str, object]:
        """What consumers read on both sides, and what MirrorMaker says of offsets."""
        return {
            "version": VERSION,
            "topics": {
                topic: {
                    isolation: {
                        SOURCE: _numbers(self.source.read(topic, isolation)),
                        TARGET: _numbers(self.target.read(f"{SOURCE}.{topic}", isolation)),
                    }
                    for isolation in ISOLATIONS
                }
                for topic in TOPICS
            },
            "offset_syncs": list(offset_syncs(self.source)),
            "checkpoints": list(checkpoints(self.target)),
            "groups": {
                side.name: {group: side.committed(group) for group in ("billing", "shipping")}
                for side in (self.source, self.target)
            },
        }


def _last(cluster: Cluster, topic: str) -> dict[int, int]:
    """The greatest number by partition; repeats come after it too."""
    found = _numbers(cluster.read(topic, "read_committed"))
    return {partition: max(number for _, number in records) for partition, records in found.items()}


def _number(value: bytes) -> int:
    return int(json.loads(value)["number"]) if value else -1


def _numbers(records: Iterable[Any]) -> dict[int, list[tuple[int, int]]]:
    """(offset, number in the value) by partition."""
    found: dict[int, list[tuple[int, int]]] = {}
    for record in records:
        found.setdefault(record.partition, []).append((record.offset, _number(record.value)))
    return found


def offset_syncs(source: Cluster) -> Iterator[tuple[str, int, int, int]]:
    """(topic, partition, source offset, target offset), as org.apache.kafka.connect.mirror.OffsetSync writes them."""
    for record in source.read(OFFSET_SYNCS, "read_committed"):
        key = io.BytesIO(record.key)
        topic, (partition,) = _string(key), struct.unpack(">i", key.read(4))
        yield (topic, partition, *struct.unpack(">qq", record.value))


def checkpoints(target: Cluster) -> Iterator[tuple[str, str, int, int, int]]:
    """(group, topic, partition, source offset, target offset), as org.apache.kafka.connect.mirror.Checkpoint writes them."""
    for record in target.read(CHECKPOINTS, "read_committed"):
        key = io.BytesIO(record.key)
        group, topic, (partition,) = _string(key), _string(key), struct.unpack(">i", key.read(4))
        yield (group, topic, partition, *struct.unpack_from(">qq", record.value, 2))  # after the version


def _string(data: io.BytesIO) -> str:
    (size,) = struct.unpack(">h", data.read(2))
    return data.read(size).decode()


def record(settings: Mapping[str, object], kept: Path) -> dict[str, object]:
    """Run once; `kept/primary` and `kept/backup` are the log directories after a clean stop. Returns the truth."""
    with tempfile.TemporaryDirectory(prefix="kaudit-mirrors-") as folder:
        run = Run(Path(folder), settings)
        clusters = (run.source, run.target)
        try:
            for cluster in clusters:
                cluster.broker.start()
            run.play()
            truth = run.truth()
        finally:
            run.mirror.stop(signal.SIGKILL)
            for cluster in clusters:
                cluster.broker.end()
        for cluster in clusters:
            # topics of Connect's own and the metadata log say nothing of the mirror
            left_out = shutil.ignore_patterns(".lock", "__cluster_metadata*", "mm2-configs*", "mm2-status*")
            shutil.copytree(cluster.broker.logs, kept / cluster.name, ignore=left_out)
    return truth


def main() -> None:
    """Record the settings named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.live_brokers.mirror_maker", description="Mirror and record.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(SETTINGS)}; default: all")
    parser.add_argument("--into", type=Path, default=DATA, metavar="DIRECTORY", help="where recordings go")
    chosen = parser.parse_args()
    chosen.into.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or SETTINGS:
        with tempfile.TemporaryDirectory(prefix="kaudit-mirrors-") as folder:
            kept = Path(folder)
            truth = record(SETTINGS[name], kept)
            (kept / "truth.json").write_text(json.dumps(truth))
            with tarfile.open(chosen.into / f"{name}.tar.xz", "w:xz", preset=9) as archive:
                for path in sorted(kept.rglob("*")):
                    archive.add(path, path.relative_to(kept), recursive=False, filter=_nobodys)
        sys.stderr.write(f"{name}\n")


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry


if __name__ == "__main__":
    main()
