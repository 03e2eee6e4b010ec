"""A cluster on which an accident is played: its brokers, topics and writers, what a consumer reads, and copies of its directories."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import OffsetOutOfRangeError

from tests.live_brokers.accidents import send
from tests.live_brokers.accidents.truth import Moment, TopicTruth
from tests.live_brokers.cluster import CONTROLLER, Cluster
from tests.live_brokers.jars import CACHE, jars_of, tiered_jars_of
from tests.live_brokers.java_producer import ProducerProgram, java_program
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import Connection, Led

CHANGE_SECONDS = 90
READ_SECONDS = 20
INDEX_BYTES = 4096
"""Index files are allocated in advance: ten megabytes each, unless this is set."""
SMALL: dict[str, object] = {
    "log.index.size.max.bytes": INDEX_BYTES,
    "replica.high.watermark.checkpoint.interval.ms": 500,  # an accident here comes sooner than the five seconds
}
TIERED: dict[str, object] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": 500,
    "transaction.state.log.replication.factor": 2,
    "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
    "rlmm.config.remote.log.metadata.topic.replication.factor": 2,
    "rlmm.config.remote.log.metadata.topic.min.isr": 1,
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": 500,
}
"""Remote storage as Kafka's own tests have it; its metadata is in one partition."""
RECORD_BYTES = 60
CONFLUENT = "confluent-kafka==2.16.1"
JAVA = "java"
JAVA_4 = "java-4.1.1"
"""With brokers of 4.0 or later it uses transaction version 2 (KIP-890)."""
SERVER_LOGS = ("server", "state-change", "controller", "log-cleaner")
ISOLATIONS = ("read_committed", "read_uncommitted")


class Writer:
    """A producer in a process of its own; which of its records were acknowledged, and which were not."""

    def __init__(self, program: ProducerProgram, *, transactional: bool) -> None:
        self._program = program
        self._transactional = transactional
        self._topics: dict[str, str] = {}
        self._pending: list[str] = []
        self.acknowledged: list[tuple[str, str]] = []
        """(topic, key); of transactions when their commit was acknowledged."""
        self.failed: list[tuple[str, str]] = []
        self.errors: list[str] = []

    def send(self, topic: str, prefix: str, numbers: Iterable[int], timestamp: int | None = None) -> None:
        """Send records whose keys are `prefix` and a number, with `~` before it only their values; answers come later."""
        dated = "" if timestamp is None else f" {timestamp}"
        for number in numbers:
            key = f"{prefix}{number}"
            self._topics[key] = topic.partition(":")[0]
            self._program.say(f"send {topic} {key} {RECORD_BYTES}{dated}")

    def write(self, topic: str, prefix: str, numbers: Iterable[int], each: int = 20, pause: float = 0.02) -> None:
        """Send records in groups of `each`, and wait after each until all are answered."""
        numbers = list(numbers)
        for at in range(0, len(numbers), each):
            self.send(topic, prefix, numbers[at : at + each])
            self.ask("flush")
            time.sleep(pause)

    def ask(self, line: str) -> str:
        """Say a line, and note everything that is answered until its own answer comes."""
        self._program.say(line)
        while not (answer := self._program.answer()).startswith(f"{line}: "):
            self._note(answer)
        result = answer.removeprefix(f"{line}: ")
        if result != "done":
            self.errors.append(answer)
        if line in ("commit", "abort"):
            kept = self.acknowledged if line == "commit" and result == "done" else self.failed
            kept += [(self._topics[key], key) for key in self._pending]
            self._pending = []
        return result

    def answers(self) -> None:
        """Note what was answered so far."""
        for answer in self._program.answers():
            self._note(answer)

    def kill(self) -> None:
        """End it as kill -9 does; what it had not been answered counts as failed."""
        self.answers()
        self._program.kill()
        known = {key for _, key in (*self.acknowledged, *self.failed)}
        self.failed += [(topic, key) for key, topic in self._topics.items() if key not in known]

    def _note(self, answer: str) -> None:
        match = re.match(r"send (\S+): (.*)", answer)
        if match is None:
            return
        key, result = match.groups()
        if not result.startswith("offset "):
            self.errors.append(answer)
            self.failed.append((self._topics[key], key))
        elif self._transactional:
            self._pending.append(key)
        else:
            self.acknowledged.append((self._topics[key], key))


class Stage:
    """A cluster of `version`; `home` is for the cluster, `kept` for the copies.

    `tiered`: it has remote storage in the directory `remote`.
    """

    def __init__(
        self,
        version: str,
        home: Path,
        kept: Path,
        replicas: Sequence[int],
        config: dict[str, object],
        *,
        tiered: bool = False,
    ) -> None:
        self._home, self._kept = home, kept
        settings: dict[str, object] = {**SMALL, **config}
        self.remote: Path | None = None
        if tiered:
            self.remote = home / "remote"
            settings |= {**TIERED, "rsm.config.dir": self.remote}
        self.cluster = Cluster(
            version,
            (tiered_jars_of(version) if tiered else jars_of(version)).resolve(),
            home / f"b{CONTROLLER}",
            settings,
            nodes=tuple(replicas),
            server_logs="stock",
        )
        self.brokers: dict[int, Broker] = {**self.cluster.replicas, CONTROLLER: self.cluster}
        self.writers: list[Writer] = []
        self.clients: set[str] = set()
        self.moments: list[Moment] = []
        self._unread: list[Moment] = []
        self._programs = ExitStack()
        self._topics: list[str] = []
        self._deleted: set[str] = set()

    def start(self) -> None:
        """Start the controller, then the others."""
        self.cluster.start()
        self.cluster.start_replicas()
        self.until(self.registered, set(self.brokers).__eq__)

    def end(self) -> None:
        """End every process."""
        for writer in self.writers:
            writer.kill()
        for broker in self.brokers.values():
            broker.resume()
            broker.kill()
        self._programs.close()

    def small_disk(self, directory: Path, size: str) -> None:
        """Put a directory of a stopped broker, with what it has, on a file system of its own of so many bytes, e.g. `1m`."""
        aside = directory.rename(directory.with_name("aside"))
        directory.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], check=True)
        self._programs.callback(lambda: subprocess.run(["umount", "-l", directory], check=True))
        shutil.copytree(aside, directory, dirs_exist_ok=True)
        shutil.rmtree(aside)

    # -- topics and clients --------------------------------------------------------------------------------------------
    def topic(self, name: str, replicas: Sequence[int], **config: object) -> None:
        """Create a topic of one partition with these replicas, the first of which leads; `_` in a name stands for a dot."""
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        with self.connection() as connection:
            self.until(lambda: connection.create_topic(name, 1, settings, tuple(replicas)), (0).__eq__)
        self.led(name, lambda led: led.leader == replicas[0] and set(led.in_sync) == set(replicas))
        if name not in self._topics:
            self._topics.append(name)

    def delete_records(self, topic: str, before: int) -> None:
        """Have the leader, broker 1, delete the records of a topic before an offset."""
        self._deleted.update(key for offset, key in self.consumed(topic, "read_uncommitted") if offset < before)
        with self.connection(1) as leader:
            assert leader.delete_records(topic, 0, before) == 0

    def delete_topic(self, topic: str) -> None:
        """Have the controller delete a topic."""
        self._deleted.update(self.read(topic, "read_uncommitted"))
        with self.connection() as connection:
            assert connection.delete_topic(topic) == 0

    def deleted_meanwhile(self, topic: str) -> None:
        """Count what was acknowledged while the controller deleted a topic that was written, and is not in the one created since."""
        there = set(self.read(topic, "read_uncommitted"))
        acknowledged = {key for writer in self.writers for where, key in writer.acknowledged if where == topic}
        self._deleted.update(acknowledged - there)

    def writer(self, client: str, name: str, **config: object) -> Writer:
        """Start a producer; `_` in a setting's name stands for a dot."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        home = self._home / f"client-{name}"
        java = {JAVA: "3.9.2", JAVA_4: JAVA_4.removeprefix("java-")}.get(client)
        program = _python_program(client, home) if java is None else java_program(java, home)
        running = self._programs.enter_context(program)
        servers = ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers.values())
        running.open(self.cluster.port, {**settings, "client.id": name, "bootstrap.servers": servers})
        self.clients.add(client)
        self.writers.append(Writer(running, transactional="transactional.id" in settings))
        if "transactional.id" in settings:
            assert self.writers[-1].ask("init") == "done", self.writers[-1].errors
        return self.writers[-1]

    @contextmanager
    def connection(self, node: int | None = None) -> Iterator[Connection]:
        """Connect to a broker, by default to one that runs, to the controller if it does."""
        running = [broker for broker in self.brokers.values() if broker.running]
        connection = Connection(running[-1].port if node is None else self.brokers[node].port)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def admin(self) -> Iterator[Any]:
        """An admin client of kafka-python."""
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{self.cluster.port}")
        try:
            yield admin
        finally:
            admin.close()

    def led(self, topic: str, settled: Callable[[Led], bool], seconds: float = CHANGE_SECONDS) -> Led:
        """Wait until a topic's leader and in-sync replicas are as they should be."""
        led: Led = self.until(lambda: self._metadata(topic)[1].get(0, Led(-1, [])), settled, seconds)
        return led

    def registered(self) -> set[int]:
        """The brokers that the controller knows."""
        return self._metadata()[0]

    def _metadata(self, topic: str | None = None) -> tuple[set[int], dict[int, Led]]:
        with self.connection() as connection:
            return connection.metadata(topic)

    def until(self, ask: Callable[[], Any], settled: Callable[[Any], bool], seconds: float = CHANGE_SECONDS) -> Any:
        """Ask until the answer is as it should be. Raises TimeoutError with the last answer."""
        deadline = time.monotonic() + seconds
        while not settled(answer := ask()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"still {answer}")
            time.sleep(0.2)
        return answer

    # -- what is kept --------------------------------------------------------------------------------------------------
    def moment(self, name: str, *, healthy: bool = False, read: bool = True, nodes: Sequence[int] = ()) -> None:
        """Copy the directories and logs of brokers, all or `nodes`, and the logs of clients, and say what a consumer reads by then.

        What nothing can read (`read` is false) has the truth of the next moment that is read.
        """
        for node in nodes or self.brokers:
            _copy(self.brokers[node], node, self._kept / name)
        for log in sorted(self._home.glob("client-*/client.log")):
            if log.stat().st_size:
                shutil.copy(log, self._kept / name / f"{log.parent.name}.log")
        if self.remote is not None:
            shutil.copytree(self.remote, self._kept / f"remote-{name}", copy_function=_copy_if_there)
            for topic in self._topics if read else ():
                consumed = {isolation: self.consumed(topic, isolation) for isolation in ISOLATIONS}
                (self._kept / f"consumed-{name}-{topic}.json").write_text(json.dumps(consumed), encoding="utf-8")
        self._unread.append(Moment(name, healthy))
        self.moments.append(self._unread[-1])
        if read:
            topics = self.truth()
            for moment in self._unread:
                moment.topics = topics
            self._unread = []

    def truth(self) -> dict[str, TopicTruth]:
        """What was acknowledged of each topic, beside what a consumer reads of it."""
        for writer in self.writers:
            writer.answers()
        return {topic: self._truth(topic) for topic in self._topics}

    def _truth(self, topic: str) -> TopicTruth:
        acknowledged, failed = (
            [key for writer in self.writers for where, key in getattr(writer, kind) if where == topic]
            for kind in ("acknowledged", "failed")
        )
        committed, there = Counter(self.read(topic, "read_committed")), Counter(self.read(topic, "read_uncommitted"))
        gone = [key for key in acknowledged if key not in there]
        lost = [key for key in gone if key not in self._deleted]
        return TopicTruth(
            acknowledged=len(acknowledged),
            failed=len(failed),
            read=committed.total(),
            lost=len(lost),
            deleted=len(gone) - len(lost),
            doubled=committed.total() - len(committed),
            hidden=sum(key in there and key not in committed for key in acknowledged),
            failed_but_read=sum(key in committed for key in set(failed) - set(acknowledged)),
            lost_keys=[lost[0], lost[-1]] if lost else [],
        )

    def read(self, topic: str, isolation: str) -> list[str]:
        """The keys of partition 0 as a consumer gets them."""
        return [key for _, key in self.consumed(topic, isolation)]

    def consumed(self, topic: str, isolation: str) -> list[tuple[int, str]]:
        """Offset and key of each record of partition 0 as a consumer gets them, none of a topic that was deleted."""
        if not self._metadata(topic)[1]:
            return []
        servers = [f"127.0.0.1:{broker.port}" for broker in self.brokers.values() if broker.running]
        consumer = KafkaConsumer(
            bootstrap_servers=servers, isolation_level=isolation, enable_auto_commit=False, auto_offset_reset="none"
        )
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, consumer.beginning_offsets([partition])[partition])
            end = consumer.end_offsets([partition])[partition]
            found: list[tuple[int, str]] = []
            deadline = time.monotonic() + READ_SECONDS
            while consumer.position(partition) < end and time.monotonic() < deadline:
                try:
                    polled = consumer.poll(500)
                except OffsetOutOfRangeError:  # in remote storage it is not, and nowhere else
                    consumer.seek(partition, consumer.position(partition) + 1)
                    continue
                for records in polled.values():
                    found += [(each.offset, (each.key or each.value.split()[0]).decode()) for each in records]
            return found
        finally:
            consumer.close()


@contextmanager
def _python_program(client: str, home: Path) -> Iterator[ProducerProgram]:
    folder = CACHE / CONFLUENT
    if client == "confluent-kafka" and not folder.exists():
        command = ["uv", "pip", "install", "-q", "--python", sys.executable, "--target", str(folder), CONFLUENT]
        subprocess.run(command, check=True)
    home.mkdir(parents=True)
    with (home / "client.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, send.__file__, client], cwd=home, env={"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    try:
        yield ProducerProgram(process, home)
    finally:
        process.kill()
        process.wait()


def _copy(broker: Broker, node: int, moment: Path) -> None:
    """Copy what a broker has: `b1/` as its log directory, or the folder of several, and its logs, `server-b1.log` and others."""
    shutil.copytree(
        broker.home / "data", moment / f"b{node}", symlinks=True, ignore=shutil.ignore_patterns(".lock"), dirs_exist_ok=True,
        copy_function=_copy_if_there,
    )  # fmt: skip
    for kind in SERVER_LOGS:
        logs = sorted((broker.home / "logs").glob(f"{kind}.log*"), key=lambda path: (path.suffix == ".log", path.name))
        if content := b"".join(path.read_bytes() for path in logs):
            (moment / f"{kind}-b{node}.log").write_bytes(content)


def _copy_if_there(source: str, target: str) -> None:
    """A running broker deletes and renames files while they are copied."""
    if Path(source).exists():
        shutil.copy2(source, target)
