"""Record what real clients log of refused requests: python -m tests.client_logs.record [RECORDING ...]. See README.md beside this file."""

import argparse
import json
import lzma
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from tests.client_logs.cases import CASES, TOPIC, Answers
from tests.client_streams.scripted_broker import ScriptedCluster
from tests.live_brokers.jars import CACHE, fetched_jars

FOLDER = Path(__file__).parents[1] / "data" / "client-logs" / "refusals"
PROGRAMS = Path(__file__).with_name("programs")
BROKER = "3.9.2"
"""The release whose requests the scripted broker knows, for every client."""
SECONDS = 300
_QUIET = re.compile(
    r"^SLF4J: |^\s+[\w.]+ = |(?:ProducerConfig values|Kafka (?:version|commitId|startTimeMs)): |kafka\.(?:net|cluster)\b.* INFO |INFO kafka\.(?:net|cluster)\b"
)
"""What clients write of their configuration and connections, which would be most of a recording."""


class Recording(Struct, frozen=True):
    """One client with one layout; `of` names what is recorded: CLIENT-RELEASE. `command` gives the program and its first arguments."""

    of: str
    layout: str
    command: Callable[[str], Sequence[str]]

    @property
    def name(self) -> str:
        """Return the name of its file."""
        return f"{self.of}.{self.layout}"


def _python(program: str, *packages: str) -> Callable[[str], Sequence[str]]:
    def command(layout: str) -> Sequence[str]:
        home = CACHE / "client-logs" / "python"
        if not (home / "bin").exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "-q", *packages], check=True)
        return [str(home / "bin" / "python"), str(PROGRAMS / program), layout]

    return command


def _go(*modules: str) -> Callable[[str], Sequence[str]]:
    def command(layout: str) -> Sequence[str]:
        home = CACHE / "client-logs" / "go"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAMS / "go" / "main.go", home)
        if not (home / "go.mod").exists():
            subprocess.run(["go", "mod", "init", "recorder"], check=True, cwd=home)
        subprocess.run(["go", "get", *modules], check=True, cwd=home)
        subprocess.run(["go", "build", "-o", "recorder", "."], check=True, cwd=home)
        return [str(home / "recorder"), layout]

    return command


def _node(*packages: str) -> Callable[[str], Sequence[str]]:
    def command(layout: str) -> Sequence[str]:
        home = CACHE / "client-logs" / "node"
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--prefix", home, *packages], check=True)
        program = shutil.copy(PROGRAMS / "kafkajs_producer.mjs", home)
        return ["node", "--no-deprecation", str(program), layout]

    return command


_DEBIAN = ("librdkafka-dev", "librdkafka1", "librdkafka++1")


def _node_rdkafka(*packages: str) -> Callable[[str], Sequence[str]]:
    """node-rdkafka on the librdkafka of this Debian, so that only the binding is compiled."""

    def command(layout: str) -> Sequence[str]:
        home = CACHE / "client-logs" / "node-rdkafka"
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", *_DEBIAN], check=True, cwd=home)
        for package in home.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, home], check=True)
        node = subprocess.run(["node", "-p", "process.execPath"], check=True, capture_output=True, text=True).stdout
        headers, libraries = home / "usr" / "include", next(home.glob("usr/lib/*/librdkafka.so")).parent
        environment = {
            "BUILD_LIBRDKAFKA": "0", "npm_config_nodedir": str(Path(node).parents[1]), "LIBRARY_PATH": str(libraries),
            "CPATH": f"{headers}:{headers / 'librdkafka'}", "LDFLAGS": f"-L{libraries} -Wl,-rpath,{libraries}",
        }  # fmt: skip
        install = ["npm", "install", "--silent", "--no-audit", "--prefix", str(home), *packages]
        subprocess.run(install, check=True, env=os.environ | environment)
        program = shutil.copy(PROGRAMS / "node_rdkafka_producer.mjs", home)
        return ["node", "--no-deprecation", str(program), layout]

    return command


_CONFIGURED: Mapping[str, str] = {
    "log4j": "-Dlog4j.configuration=file:{}/log4j.properties",
    "log4j2": "-Dlog4j2.configurationFile={}/{}.xml",
    "logback": "-Dlogback.configurationFile={}/{}.xml",
    "spring": "-Dlogback.configurationFile={}/{}.xml",
}
_SLF4J = ("org.slf4j", "slf4j-api", "2.0.17")
"""Before what brings an older one."""
_LOGBACK = (
    _SLF4J,
    ("ch.qos.logback", "logback-classic", "1.5.18"),
)
_LOG4J2 = (
    _SLF4J,
    ("org.apache.logging.log4j", "log4j-slf4j2-impl", "2.25.3"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.3"),
)
_JARS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "log4j-pattern": (("org.slf4j", "slf4j-reload4j", "1.7.36"),),
    "log4j2-pattern": _LOG4J2,
    "log4j2-json": (*_LOG4J2, ("com.fasterxml.jackson.core", "jackson-databind", "2.17.2")),
    "log4j2-ecs": (*_LOG4J2, ("org.apache.logging.log4j", "log4j-layout-template-json", "2.25.3")),
    "logback-default": _LOGBACK,
    "logback-json": _LOGBACK,
    "logback-logstash": (*_LOGBACK, ("net.logstash.logback", "logstash-logback-encoder", "8.1")),
    "spring": (
        *_LOGBACK, ("org.springframework.boot", "spring-boot", "3.5.6"), ("org.springframework.kafka", "spring-kafka", "3.3.10"),
    ),
    "slf4j-simple": (_SLF4J, ("org.slf4j", "slf4j-simple", "2.0.17")),
    "jul": (_SLF4J, ("org.slf4j", "slf4j-jdk14", "2.0.17")),
}  # fmt: skip


def _java(version: str) -> Callable[[str], Sequence[str]]:
    def command(layout: str) -> Sequence[str]:
        client = ("org.apache.kafka", "kafka-clients", version)
        path = f"{fetched_jars(f'client-logs-{version}-{layout}', (*_JARS[layout], client))}/*"
        home = CACHE / "client-logs" / "java" / version
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-cp", path, "-d", home, PROGRAMS / "Refused.java"], check=True)
        shutil.copy(PROGRAMS / "java" / "simple.properties", home / "simplelogger.properties")
        configured = _CONFIGURED.get(layout.partition("-")[0], "-Dnone").format(PROGRAMS / "java", layout)
        return ["java", configured, "-cp", f"{home}:{path}", "Refused"]

    return command


_FRANZ = (
    "github.com/twmb/franz-go@v1.22.3", "github.com/twmb/franz-go/plugin/kzap@v1.1.2", "github.com/twmb/franz-go/plugin/kslog@v1.0.0",
    "github.com/IBM/sarama@v1.61.1", "github.com/confluentinc/confluent-kafka-go/v2@v2.11.1", "github.com/rs/zerolog@v1.35.1",
    "github.com/sirupsen/logrus@v1.10.2", "go.uber.org/zap@v1.28.0",
)  # fmt: skip
_PYTHON_LAYOUTS = ("basic", "asctime", "dashes", "json")
_GO_LAYOUTS = (
    "kgo", "zap-json", "zap-console", "slog-text", "slog-json", "logrus-text", "logrus-json", "zerolog-json", "zerolog-console",
)  # fmt: skip
_JSON = "python-json-logger==4.2.0"


def _recordings() -> list[Recording]:
    confluent = _python("confluent_python.py", "confluent-kafka==2.16.1", _JSON)
    pure = _python("kafka_python.py", "kafka-python==3.0.12", _JSON)
    aio = _python("aiokafka_producer.py", "aiokafka==0.14.0", _JSON)
    node = _node("kafkajs@2.2.4", "pino@9", "winston@3")
    node_rdkafka = _node_rdkafka("node-rdkafka@3.6.1", "pino@9")
    java = [("4.3.1", layout) for layout in _JARS if layout != "log4j-pattern"]
    java += [(version, "log4j-pattern") for version in ("0.11.0.3", "2.0.1", "2.8.2", "3.9.2")]
    return [
        *(Recording("librdkafka-2.16.1", layout, confluent) for layout in ("stderr", *_PYTHON_LAYOUTS)),
        Recording("librdkafka-2.11.1", "confluent", _go(*_FRANZ)),
        *(Recording("librdkafka-2.0.2", layout, node_rdkafka) for layout in ("node", "node-pino")),
        *(Recording("kafka-python-3.0.12", layout, pure) for layout in _PYTHON_LAYOUTS),
        *(Recording("aiokafka-0.14.0", layout, aio) for layout in _PYTHON_LAYOUTS),
        *(Recording("kafkajs-2.2.4", layout, node) for layout in ("default", "pino", "winston")),
        *(Recording("franz-go-1.22.3", layout, _go(*_FRANZ)) for layout in _GO_LAYOUTS),
        Recording("sarama-1.61.1", "sarama", _go(*_FRANZ)),
        *(Recording(f"java-{version}", layout, _java(version)) for version, layout in java),
    ]


def recorded(recording: Recording) -> str:
    """Play all cases; returns what the client wrote, each case below a line `=== NAME`.

    Raises RuntimeError, subprocess.CalledProcessError or TimeoutExpired where the program or its installation fails.
    """
    with ExitStack() as stack:
        clusters = [ScriptedCluster(Answers(case), BROKER) for case in CASES]
        for cluster in clusters:
            stack.callback(cluster.close)
        ports = [min(cluster.ports.values()) for cluster in clusters]
        command = list(recording.command(recording.layout))
        if recording.of.startswith("java"):
            command.append(TOPIC)
            for case, port in zip(CASES, ports, strict=True):
                command += [case.name, str(port), str(case.transactional).lower()]
        else:
            cases = [
                {"name": case.name, "port": port, "transactional": case.transactional}
                for case, port in zip(CASES, ports, strict=True)
            ]
            command += ["INFO", TOPIC, json.dumps(cases)]
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            env=os.environ | {"TZ": "UTC"},
        )
        failures = [cluster.failure for cluster in clusters if cluster.failure is not None]
        if failures:
            raise failures[0]
    text = done.stdout.decode("utf-8", "replace")
    for path, shown in (
        (PROGRAMS, "/app"),
        (CACHE, "/opt"),
        (Path.home(), "/home/orders"),
        (Path(sys.base_prefix), "/usr"),
    ):
        text = text.replace(str(path), shown)
    text = text.replace(f'"hostname":"{socket.gethostname()}"', '"hostname":"pod-1"')
    if done.returncode:
        raise RuntimeError(f"{recording.name}: exit code {done.returncode}\n{text[-5000:]}")
    return "".join(line for line in text.splitlines(keepends=True) if _QUIET.search(line) is None)


def main(arguments: list[str] | None = None) -> None:
    """Write the recordings whose names contain a given text, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.client_logs.record", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="RECORDING", help="texts that a recording's name contains, e.g. java-4.3.1"
    )
    chosen = parser.parse_args(arguments).names
    FOLDER.mkdir(parents=True, exist_ok=True)
    for recording in _recordings():
        if not chosen or any(text in recording.name for text in chosen):
            text = recorded(recording)
            (FOLDER / f"{recording.name}.log.xz").write_bytes(lzma.compress(text.encode(), preset=9))
            sys.stderr.write(f"{recording.name}: {len(text.splitlines())} lines\n")


if __name__ == "__main__":
    main()
