"""A real broker of Kafka 3.9 on loopback, its classes run directly with java, and requests by hand to it."""

import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Self

from benchmarks.dump_log import dump_log_command

_READY = "Kafka Server started"
_START_SECONDS = 90


class RealBroker:
    """One KRaft node whose log directory is `log_dir`; metadata lies beside it."""

    def __init__(self, jars: Path, home: Path, log_dir: Path, cluster_id: str):
        self.classpath = f"{jars}/*"
        self.home, self.log_dir = home, log_dir
        self.port, controller = _free_ports(2)
        self.console = home / "console.txt"
        self.config = home / "server.properties"
        home.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\nauto.create.topics.enable=false\n"
            f"log.dirs={log_dir}\nmetadata.log.dir={home / 'metadata'}\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\ntransaction.state.log.num.partitions=1\n"
            "log.message.timestamp.before.max.ms=9223372036854775807\n"
        )
        self.run("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster_id, "-c", str(self.config))
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, main: str, *arguments: str) -> str:
        command = ["java", "-Xmx256m", "-cp", self.classpath, main, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.home)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self) -> None:
        logging = self.home / "log4j.properties"
        logging.write_text(
            "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=%p %m%n\n"
        )
        with self.console.open("a") as out:
            self.process = subprocess.Popen(
                [
                    "java",
                    "-Xmx384m",
                    "-XX:TieredStopAtLevel=1",
                    f"-Dlog4j.configuration=file:{logging}",
                    "-cp",
                    self.classpath,
                    "kafka.Kafka",
                    str(self.config),
                ],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.home,
            )
        started = self.console.read_text().count(_READY)
        deadline = time.monotonic() + _START_SECONDS
        while self.console.read_text().count(_READY) <= started:
            assert self.process is not None
            assert self.process.poll() is None, self.console.read_text()[-4000:]
            assert time.monotonic() < deadline, self.console.read_text()[-4000:]
            time.sleep(0.2)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
            self.process = None

    def complaints(self) -> list[str]:
        """What the broker's own log says at WARN and above."""
        lines = self.console.read_text().splitlines()
        return [line for line in lines if line.startswith(("WARN", "ERROR", "FATAL"))]


class Wire:
    """One connection; requests are written by hand after the protocol's description."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def request(self, api: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
        self.correlation += 1
        head = struct.pack(">hhih", api, version, self.correlation, 6) + b"kaudit" + (b"\0" if flexible else b"")
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size = struct.unpack(">i", self._read(4))[0]
        answer = self._read(size)
        assert struct.unpack(">i", answer[:4])[0] == self.correlation
        return answer[5 if flexible else 4 :]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        """CreateTopics, version 2."""
        settings = b"".join(_string(key) + _string(value) for key, value in config.items())
        body = struct.pack(">i", 1) + _string(name) + struct.pack(">ih", partitions, 1) + struct.pack(">i", 0)
        body += struct.pack(">i", len(config)) + settings + struct.pack(">i?", 30_000, False)
        answer = self.request(19, 2, body)
        at = 8 + 2 + len(name)
        assert struct.unpack(">h", answer[at : at + 2])[0] == 0, answer

    def produce(self, topic: str, partition: int, records: bytes, acks: int) -> tuple[int, int]:
        """Produce, version 8: error code and base offset."""
        body = struct.pack(">hhi", -1, acks, 30_000) + struct.pack(">i", 1) + _string(topic)
        body += struct.pack(">iii", 1, partition, len(records)) + records
        answer = self.request(0, 8, body)
        at = 4 + 2 + len(topic) + 4
        _, error, offset = struct.unpack(">ihq", answer[at : at + 14])
        return error, offset

    def end_offset(self, topic: str, partition: int) -> int:
        """ListOffsets, version 1, latest."""
        body = struct.pack(">i", -1) + struct.pack(">i", 1) + _string(topic) + struct.pack(">iiq", 1, partition, -1)
        deadline = time.monotonic() + _START_SECONDS
        while True:
            answer = self.request(2, 1, body)
            at = 4 + 2 + len(topic) + 4
            _, error, _, offset = struct.unpack(">ihqq", answer[at : at + 22])
            if error == 0:
                return int(offset)
            # leader not known yet: the broker is up before its partitions are
            assert error in (3, 5, 6), error
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def fetch(self, topic: str, partition: int, offset: int) -> bytes:
        """Fetch, version 4, everything committed or not from `offset` on that fits."""
        body = struct.pack(">iiiib", -1, 500, 1, 64 << 20, 0) + struct.pack(">i", 1) + _string(topic)
        body += struct.pack(">iiqi", 1, partition, offset, 64 << 20)
        answer = self.request(1, 4, body)
        at = 4 + 4 + 2 + len(topic) + 4
        _, error, _, _, aborted = struct.unpack(">ihqqi", answer[at : at + 26])
        assert error == 0
        at += 26 + 16 * max(aborted, 0)
        size = struct.unpack(">i", answer[at : at + 4])[0]
        return answer[at + 4 : at + 4 + size]

    def producers(self, topic: str, partition: int) -> list[tuple[int, int, int, int]]:
        """DescribeProducers, version 0: producer id, epoch, last sequence, start of the open transaction."""
        name = topic.encode()
        body = b"\2" + bytes([len(name) + 1]) + name + b"\2" + struct.pack(">i", partition) + b"\0\0"
        answer = self.request(61, 0, body, flexible=True)
        at = 4 + 1 + 1 + len(name) + 1
        _, error = struct.unpack(">ih", answer[at : at + 6])
        assert error == 0
        at += 6 + 1  # no message
        count, at = answer[at] - 1, at + 1
        found = []
        for _ in range(count):
            producer_id, epoch, sequence, _, _, start = struct.unpack(">qiiqiq", answer[at : at + 36])
            found.append((producer_id, epoch, sequence, start))
            at += 37
        return sorted(found)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()


def kafka_jars(cache: Path) -> Path:
    """Kafka's jars, fetched by Maven the first time; fails where there is no java or no Maven."""
    command = dump_log_command(cache)
    assert not isinstance(command, str), command
    jars = Path(command[2]).parent
    # What Kafka logs is part of the proof; the library it logs through comes without a place to log to.
    if not any(jars.glob("slf4j-reload4j-*.jar")):
        assert shutil.which("mvn")
        pom = jars / "logging.xml"
        pom.write_text(_LOGGING_POM)
        fetch = ["mvn", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(fetch, check=True, capture_output=True)
    return jars


_LOGGING_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>logging</artifactId><version>1</version>
<dependencies><dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version>
</dependency></dependencies></project>
"""
