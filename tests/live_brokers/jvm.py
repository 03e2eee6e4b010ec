"""A broker of any release as a child process on loopback, with ZooKeeper beside it where the release needs one."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaudit.broker.releases.version import Version
from tests.live_brokers.protocol import Connection, ConnectionClosedError
from tests.live_brokers.server_logs import Levels, logging_of

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_SECONDS = 90
STOP_SECONDS = 60
SESSION_SECONDS = 6
"""How long ZooKeeper may hold a killed broker for alive; a broker of the same id does not start before."""
QUICK = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": 500,
    "log.retention.check.interval.ms": 1000,
    "log.segment.delete.delay.ms": 500,
    "log.flush.start.offset.checkpoint.interval.ms": 500,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "zookeeper.connection.timeout.ms": 30_000,
    "zookeeper.session.timeout.ms": 3000,
    "group.initial.rebalance.delay.ms": 0,
    "delete.topic.enable": "true",
}
"""What a scenario waits for should happen soon."""
RECORDED = (
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
)
"""What of it decides about answers, and is therefore part of a recording."""
FIRST_WITH_KRAFT = Version.parse("3.3.0")
FEATURES = ("transaction.version", "metadata.version", "share.version")
"""Names in a broker's configuration that its directory is formatted with (KIP-584): `config` names their levels."""


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Listener:
    """A listener beside the plain one, e.g. `SASL_SSL`, with the broker's settings for it."""

    protocol: str
    settings: Mapping[str, object]


class BrokenStartError(Exception):
    """The broker does not start: old releases end while they load a log they do not like."""


@dataclass
class Jvm:
    """One Java process with its output in a file."""

    command: list[str]
    output: Path
    process: subprocess.Popen[bytes] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to that of this process."""

    def start(self) -> None:
        """Start it."""
        with self.output.open("ab") as out:
            self.process = subprocess.Popen(
                self.command, stdout=out, stderr=out, cwd=self.output.parent, env={**os.environ, **self.environment}
            )

    def stop(self, number: int) -> None:
        """Send a signal and wait for the end; kill what does not end."""
        if self.process is not None:
            self.process.send_signal(number)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(STOP_SECONDS)
            self.process = None

    @property
    def ended(self) -> bool:
        """Whether it was started and has ended by itself."""
        return self.process is not None and self.process.poll() is not None


@dataclass
class Broker:
    """One broker of `version`, whose jars and theirs lie in `jars`; everything it writes is below `home`.

    `config` is added to the broker's configuration.
    """

    version: str
    jars: Path
    home: Path
    config: dict[str, object] = field(default_factory=dict)
    java: str = "java"
    node: int = 1
    beside: "Broker | None" = None
    """The broker whose controller or ZooKeeper this one uses; else it has its own."""
    heap: str = "384m"
    listeners: tuple[Listener, ...] = ()
    scram: Mapping[str, str] = field(default_factory=dict)
    """Password by user of SCRAM-SHA-512; KRaft from 3.5 on takes them when its directory is formatted (KIP-900)."""
    server_logs: Levels | None = None
    """Whether it writes server logs as its release does, and with which levels; else warnings go to its output."""

    zookeeper: bool = False
    """With ZooKeeper, also where the release is started without as a rule."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of the broker's process, e.g. its time zone."""
    cluster_id: str = CLUSTER_ID
    """What KRaft directories are formatted with."""

    def __post_init__(self) -> None:
        self.kraft = not self.zookeeper and Version.parse(self.version) >= FIRST_WITH_KRAFT
        self.port = free_port()
        self.ports = {listener.protocol: free_port() for listener in self.listeners}
        self.control: tuple[int, int] = (self.node, free_port()) if self.beside is None else self.beside.control
        """(node, port) of the KRaft controller; the port is ZooKeeper's before."""
        self.home.mkdir(parents=True)
        self.logs = self.home / "data"
        self._zookeeper: Jvm | None = None
        self._broker = self._prepare()

    def _java(self, *arguments: str, heap: str | None = None) -> list[str]:
        """A command that logs its warnings to standard output."""
        logging = self.home / "log4j.properties"
        logging.write_text(
            "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )
        return [
            self.java, f"-Xmx{heap or self.heap}", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{logging}",
            "-cp", f"{self.jars}/*", *arguments,
        ]  # fmt: skip

    def _prepare(self) -> Jvm:
        own_settings = {name: value for name, value in self.config.items() if name not in FEATURES}
        settings: dict[str, object] = {**QUICK, "log.dirs": self.logs, **own_settings}
        for secured in self.listeners:
            settings |= secured.settings
        ports = {"PLAINTEXT": self.port, **self.ports}
        listener = ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items())
        controller, port = self.control
        if self.kraft:
            own = self.beside is None
            settings |= {
                "process.roles": "broker,controller" if own else "broker",
                "node.id": self.node,
                "controller.quorum.voters": f"{controller}@127.0.0.1:{port}",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"{listener},CONTROLLER://127.0.0.1:{port}" if own else listener,
                "advertised.listeners": listener,
                "listener.security.protocol.map": ",".join(
                    ["CONTROLLER:PLAINTEXT", *(f"{protocol}:{protocol}" for protocol in ports)]
                ),
            }
        else:
            settings |= {"broker.id": self.node, "listeners": listener, "zookeeper.connect": f"127.0.0.1:{port}"}
        if not self.kraft and self.beside is None:
            keeper = self.home / "zookeeper.properties"
            keeper.write_text(
                f"dataDir={self.home / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
                "maxClientCnxns=0\nadmin.enableServer=false\ntickTime=500\n"
            )
            self._zookeeper = Jvm(
                self._java("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(keeper), heap="128m"),
                self.home / "zookeeper.out",
            )
            self._zookeeper.start()
            _wait_for(port)
        properties = self.home / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.format()
        return self._command()

    def format(self) -> None:
        """Write meta.properties into its empty directories, which brokers with KRaft do not do by themselves."""
        if self.kraft:
            properties = self.home / "server.properties"
            users = (f"SCRAM-SHA-512=[name={name},password={secret}]" for name, secret in self.scram.items())
            scram = (argument for user in users for argument in ("--add-scram", user))
            levels = [
                argument
                for name in FEATURES
                if name in self.config
                for argument in _format_with(name, str(self.config[name]))
            ]
            format_ = ("format", "-t", self.cluster_id, "-c", str(properties))
            tool = self._java("kafka.tools.StorageTool", *format_, *scram, *levels)
            with (self.home / "format.out").open("wb") as out:
                subprocess.run(tool, check=True, stdout=out, stderr=out, cwd=self.home)

    def _command(self) -> Jvm:
        command = self._java("kafka.Kafka", str(self.home / "server.properties"))
        if self.server_logs is not None:
            logging = logging_of(self.version, self.home, self.server_logs)
            path = command.index("-cp") + 1
            command[path] = logging.class_path + command[path]
            command[path - 1 : path - 1] = logging.arguments  # the last one of a system property counts
        return Jvm(command, self.home / "broker.out", environment=self.environment)

    @property
    def recorded_config(self) -> dict[str, object]:
        """What a recording states of the broker's configuration."""
        mode = {"process.roles": "broker,controller"} if self.kraft else {"zookeeper.connect": "127.0.0.1"}
        return {**mode, **{name: QUICK[name] for name in RECORDED}, **self.config}

    def start(self) -> None:
        """Start the broker and wait until it answers. Raises BrokenStartError where it does not."""
        self._broker.start()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and not self._broker.ended:
            connection = Connection(self.port)
            try:
                connection.api_versions()
            except (ConnectionClosedError, OSError):
                time.sleep(0.2)
            else:
                return
            finally:
                connection.close()
        said = (self.home / "broker.out").read_text(errors="replace").splitlines()
        causes = [line for line in said if "Exception" in line] or ["it says nothing"]
        raise BrokenStartError(f"{self.version} does not start: {causes[-1].strip()}")

    def kill(self) -> None:
        """Kill -9, without waiting until ZooKeeper has noticed."""
        self._broker.stop(signal.SIGKILL)

    def pause(self) -> None:
        """Stop all of its threads until `resume`: they do not stop by themselves as soon as the signal is sent."""
        if self._broker.process is not None:
            self._broker.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self._broker.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let it go on, if it was paused."""
        if self._broker.process is not None:
            self._broker.process.send_signal(signal.SIGCONT)

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped since."""
        return self._broker.process is not None

    def stop(self, *, clean: bool) -> None:
        """Stop the broker: as an operator does, or by kill -9."""
        self._broker.stop(signal.SIGTERM if clean else signal.SIGKILL)
        if not clean and not self.kraft:
            time.sleep(SESSION_SECONDS)

    def change(
        self, version: str | None = None, jars: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """Have the stopped broker start as another release or in another environment, with what it has on its disks."""
        self.version, self.jars = version or self.version, jars or self.jars
        self.environment = self.environment if environment is None else environment
        self._broker = self._command()

    def end(self) -> None:
        """Stop everything."""
        self.stop(clean=True)
        if self._zookeeper is not None:
            self._zookeeper.stop(signal.SIGKILL)

    def segments(self, topic: str, partition: int) -> list[Path]:
        """The segments of a partition, oldest first."""
        return sorted((self.logs / f"{topic}-{partition}").glob("*.log"))

    def snapshots(self, topic: str, partition: int) -> list[Path]:
        """Its producer snapshots, oldest first."""
        return [
            path
            for path in sorted((self.logs / f"{topic}-{partition}").glob("*.snapshot"))
            if re.fullmatch(r"\d{20}\.snapshot", path.name)
        ]


def _format_with(feature: str, level: str) -> tuple[str, str]:
    """The tool's option for a level; it takes no `--feature` for metadata.version before 3.9."""
    return ("--release-version", level) if feature == "metadata.version" else ("--feature", f"{feature}={level}")


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nobody listens on {port}")
