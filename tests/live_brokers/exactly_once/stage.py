"""One broker, applications that read and write there, and the truth of what became of each input."""

import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.live_brokers.jars import CACHE, fetched_jars, jars_of
from tests.live_brokers.java_producer import ProducerProgram, logging_jars
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import Connection

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "data" / "exactly-once"
TRUTH = DATA / "truth.json"
INPUTS, OUTPUTS = "inputs", "outputs"
_SECONDS = 60
_SOON: Mapping[str, object] = {
    "group.min.session.timeout.ms": 1000,
    "log.segment.bytes": 1 << 20,
    "offsets.topic.segment.bytes": 1 << 20,
    "transaction.state.log.segment.bytes": 1 << 20,
    "log.cleaner.enable": "false",
}
_QUICK_MEMBER: Mapping[str, object] = {
    "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 500,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "max.poll.records": 10,
    "max.partition.fetch.bytes": 1 << 20,
}
_NAME = re.compile(r"inputs-(\d+)@(\d+)")


class Truth(msgspec.Struct, kw_only=True):
    """What a consumer with `isolation.level=read_committed` reads of the outputs; ranges of inputs are [first, last] by partition."""

    played: str
    broker: str
    client: str
    healthy: bool
    """Whether nothing is wrong that the logs can show."""
    inputs: int
    outputs: int
    doubled: dict[str, list[tuple[int, int]]]
    skipped: dict[str, list[tuple[int, int]]]
    """Inputs below the last one whose output is there, without an output."""
    commits: dict[str, int]
    """Transactions whose commit was acknowledged to a loop, by transactional id."""


class Loop:
    """A running Loop.java, which is told each step."""

    def __init__(self, program: ProducerProgram, process: "subprocess.Popen[str]", name: str) -> None:
        self._program, self.process, self.name = program, process, name
        self.commits = 0

    def __call__(self, *lines: str) -> list[str]:
        """Have it carry out lines one by one; return what it says of each."""
        answers = [self._program.ask(line).removeprefix(f"{line}: ") for line in lines]
        self.commits += sum(line == "commit" and answer == "done" for line, answer in zip(lines, answers, strict=True))
        return answers

    def pause(self) -> None:
        """Stop it as a long garbage collection does."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it in the middle of what it does."""
        self.process.kill()
        self.process.wait()


class Stage:
    """One broker of `version`; everything lies below `home`."""

    def __init__(self, version: str, home: Path, config: Mapping[str, object]) -> None:
        self.home = home
        self.broker = Broker(version, jars_of(version).resolve(), home / "broker", {**_SOON, **config})
        self.loops: list[Loop] = []
        self._programs = ExitStack()
        self._keys = 0

    def start(self, partitions: int) -> None:
        """Start the broker, and create the topics."""
        self.broker.start()
        connection = Connection(self.broker.port)
        try:
            for topic in (INPUTS, OUTPUTS):
                deadline = time.monotonic() + _SECONDS
                while connection.create_topic(topic, partitions, {}) != 0:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)
        finally:
            connection.close()

    def end(self) -> None:
        """End every process; the broker is stopped cleanly."""
        for loop in self.loops:
            loop.process.kill()
        self._programs.close()
        self.broker.stop(clean=True)

    @property
    def servers(self) -> str:
        """Where clients connect to."""
        return f"127.0.0.1:{self.broker.port}"

    def feed(self, count: int, partition: int = 0) -> None:
        """Write inputs with keys of their own."""
        producer = KafkaProducer(bootstrap_servers=self.servers, linger_ms=50)
        for number in range(self._keys, self._keys + count):
            producer.send(INPUTS, key=f"k{number}".encode(), value=b"v", partition=partition)
        self._keys += count
        producer.flush()
        producer.close()

    def loop(self, name: str, group: str, version: str = "4.1.1", **config: object) -> Loop:
        """Start a loop whose transactional id is its name, and which reads as a member of `group`."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        home = self.home / f"client-{len(self.loops)}-{name}"
        process = self._java(
            version, home, {"group.id": group, "transactional.id": name, **_QUICK_MEMBER, **settings}, "Loop"
        )
        loop = Loop(ProducerProgram(process, home), process, name)
        self.loops.append(loop)
        assert loop("init") == ["done"]
        return loop

    def streams(self, name: str, version: str, guarantee: str, directory: str) -> "subprocess.Popen[str]":
        """Start a Streams application of one thread; its standard output is `home/client-NAME/stdout`."""
        settings = {
            "application.id": "app",
            "client.id": name,
            "state.dir": str(self.home / directory),
            "processing.guarantee": guarantee,
            "commit.interval.ms": 300,
            "replication.factor": 1,
            "consumer.session.timeout.ms": 3000,
            "consumer.heartbeat.interval.ms": 500,
            "consumer.max.poll.records": 7,
            "consumer.auto.offset.reset": "earliest",
            "producer.transaction.timeout.ms": 6000,
        }
        return self._java(version, self.home / f"client-{name}", settings, "Stream", INPUTS, OUTPUTS, to_file=True)

    def _java(
        self, version: str, home: Path, settings: Mapping[str, object], *program: str, to_file: bool = False
    ) -> "subprocess.Popen[str]":
        home.mkdir(parents=True)
        lines = [f"{name}={value}\n" for name, value in {"bootstrap.servers": self.servers, **settings}.items()]
        (home / "client.properties").write_text("".join(lines))
        (home / "log4j.properties").write_text(
            "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.FileAppender\n"
            f"log4j.appender.out.File={home / 'client.log'}\nlog4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )
        jars = fetched_jars(f"streams-{version}", [("org.apache.kafka", "kafka-streams", version)]).resolve()
        main, *arguments = program
        command = [
            "java", "-Xmx160m", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{home / 'log4j.properties'}",
            "-cp", f"{_compiled(version, jars)}:{logging_jars()}:{jars}/*", main, str(home / "client.properties"), *arguments,
        ]  # fmt: skip
        out = (home / "stdout").open("w") if to_file else subprocess.PIPE
        with (home / "stderr").open("w") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True, cwd=home
            )  # fmt: skip
        self._programs.callback(process.wait)
        self._programs.callback(process.kill)
        return process

    def truth(self, played: str, client: str, *, healthy: bool) -> Truth:
        """What a consumer reads of the outputs by now."""
        outputs = Counter((int(partition), int(offset)) for partition, offset in self._outputs())
        inputs = [(where.partition, offset) for where, end in self._ends(INPUTS).items() for offset in range(end)]
        last = {partition: max(own for where, own in outputs if where == partition) for partition, _ in outputs}
        commits = Counter[str]()
        for loop in self.loops:
            commits[loop.name] += loop.commits
        return Truth(
            played=" ".join(played.split()),
            broker=self.broker.version,
            client=client,
            healthy=healthy,
            inputs=len(inputs),
            outputs=outputs.total(),
            doubled=_ranges(key for key, count in outputs.items() if count > 1),
            skipped=_ranges(key for key in inputs if key not in outputs and key[1] < last.get(key[0], -1)),
            commits=dict(commits),
        )

    def _ends(self, topic: str) -> dict[TopicPartition, int]:
        with ExitStack() as stack:
            consumer = KafkaConsumer(bootstrap_servers=self.servers)
            stack.callback(consumer.close)
            where = [
                TopicPartition(topic, partition) for partition in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            ends: dict[TopicPartition, int] = consumer.end_offsets(where)
            return ends

    def _outputs(self) -> Iterator[tuple[str, str]]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        try:
            ends = self._ends(OUTPUTS)
            consumer.assign(list(ends))
            consumer.seek_to_beginning(*ends)
            deadline = time.monotonic() + 20
            while any(consumer.position(where) < end for where, end in ends.items()) and time.monotonic() < deadline:
                for records in consumer.poll(500).values():
                    for record in records:
                        found = _NAME.fullmatch(record.value.decode())
                        assert found, record.value
                        yield found[1], found[2]
        finally:
            consumer.close()

    def kept(self, target: Path, *without: str) -> None:
        """Copy what the stopped broker has, but for its metadata log, and what these patterns name."""
        others = ".lock", ".kafka_cleanshutdown", "__cluster_metadata-*", "bootstrap.checkpoint"
        shutil.copytree(self.broker.logs, target, ignore=shutil.ignore_patterns(*others, *without))


def _ranges(keys: Iterator[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for partition, own in groupby(sorted(keys), key=lambda key: key[0]):
        offsets = [offset for _, offset in own]
        runs = [list(run) for _, run in groupby(enumerate(offsets), key=lambda pair: pair[1] - pair[0])]
        found[str(partition)] = [(run[0][1], run[-1][1]) for run in runs]
    return found


def _compiled(version: str, jars: Path) -> Path:
    folder = CACHE / f"exactly-once-{version}"
    sources = [HERE / "Loop.java", HERE / "Stream.java"]
    now = b"".join(source.read_bytes() for source in sources)
    compiled = folder / "sources"
    if not compiled.exists() or compiled.read_bytes() != now:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-d", folder, "-cp", f"{jars}/*", *sources], check=True, timeout=120)
        compiled.write_bytes(now)
    return folder.resolve()


def truths() -> dict[str, Truth]:
    """Every recording's truth by name."""
    return msgspec.json.decode(TRUTH.read_bytes(), type=dict[str, Truth]) if TRUTH.exists() else {}
