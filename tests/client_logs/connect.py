"""Record what Kafka Connect logs of refused requests: python -m tests.client_logs.connect. See README.md beside this file.

One worker, and a source connector of its own for each case: its producer is answered as the case has it.
"""

import json
import lzma
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

from tests.client_logs.cases import CASES, TOPIC, Answers
from tests.client_logs.record import BROKER
from tests.client_streams.scripted_broker import ScriptedCluster
from tests.live_brokers.jars import fetched_jars

RELEASE = "4.1.1"
TARGET = Path(__file__).parents[1] / "data" / "client-logs" / f"connect-{RELEASE}.log.xz"
CONFIGURATION = Path(__file__).with_name("programs") / "java" / "connect.xml"
_ARTIFACTS = (
    ("org.slf4j", "slf4j-api", "1.7.36"),
    ("org.apache.kafka", "connect-runtime", RELEASE),
    ("org.apache.kafka", "connect-file", RELEASE),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.3"),
)
_OF_TASKS = re.compile(
    r"^\[[^\]]+\] \w+ (?:\[[\w-]+\|task-0\] )?(?:\[Producer |WorkerSourceTask|AbstractWorkerSourceTask)"
)
"""Entries of a task and of its producer: the worker says much more of its plugins and configuration."""
_START_SECONDS, _CASE_SECONDS = 120, 10
_OVERRIDES = {
    "enable.idempotence": "true", "delivery.timeout.ms": "4000", "request.timeout.ms": "1500", "retry.backoff.ms": "100", "batch.size": "0",
}  # fmt: skip

_TRANSFORMS = "org.apache.kafka.connect.transforms."
_KEYED = {
    "transforms": "hoist,key,extract", "transforms.hoist.type": f"{_TRANSFORMS}HoistField$Value", "transforms.hoist.field": "line",
    "transforms.key.type": f"{_TRANSFORMS}ValueToKey", "transforms.key.fields": "line",
    "transforms.extract.type": f"{_TRANSFORMS}ExtractField$Key", "transforms.extract.field": "line",
}  # fmt: skip
"""The line as the record's key: the scripted broker knows records by their keys."""


def recorded() -> str:
    """Play the cases that have no transaction; returns what the tasks and their producers wrote."""
    cases = [case for case in CASES if not case.transactional]
    jars = fetched_jars(f"connect-{RELEASE}", _ARTIFACTS)
    found: list[str] = []
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        clusters = [ScriptedCluster(Answers(case), BROKER) for case in (cases[0], *cases)]
        for cluster in clusters:
            stack.callback(cluster.close)
        ports = [min(cluster.ports.values()) for cluster in clusters]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            rest = free.getsockname()[1]
        (home / "plugins").mkdir()
        properties = {
            "bootstrap.servers": f"127.0.0.1:{ports[0]}", "offset.storage.file.filename": home / "offsets", "plugin.path": home / "plugins",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter", "topic.creation.enable": "false",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter", "plugin.discovery": "service_load",
            "listeners": f"http://127.0.0.1:{rest}", "connector.client.config.override.policy": "All",
        }  # fmt: skip
        (home / "worker").write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        worker = subprocess.Popen(
            ["java", "-Xmx300m", f"-Dlog4j2.configurationFile={CONFIGURATION}", "-Duser.timezone=UTC", "-cp", f"{jars}/*",
             "org.apache.kafka.connect.cli.ConnectStandalone", home / "worker"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        stack.callback(worker.wait)
        stack.callback(worker.kill)
        assert worker.stdout is not None
        Thread(target=found.extend, args=(worker.stdout,), daemon=True).start()
        end = time.monotonic() + _START_SECONDS
        while _asked(rest, "") is None and time.monotonic() < end:
            time.sleep(0.5)
        for case, port in zip(cases, ports[1:], strict=True):
            found.append(f"=== {case.name}\n")
            given = home / case.name
            given.write_text("0\n")
            overrides = {f"producer.override.{name}": value for name, value in _OVERRIDES.items()}
            configuration = {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": str(given),
                "tasks.max": "1", "topic": TOPIC, "batch.size": "1", **_KEYED,
                "producer.override.bootstrap.servers": f"127.0.0.1:{port}", **overrides,
            }  # fmt: skip
            _asked(rest, f"/{case.name}/config", configuration)
            end = time.monotonic() + _CASE_SECONDS
            for number in range(1, 1000):
                if time.monotonic() > end or b'"FAILED"' in (_asked(rest, f"/{case.name}/status") or b""):
                    break
                time.sleep(0.5)
                with given.open("a") as file:  # the connector reads on when there is more
                    file.write(f"{number}\n")
            _asked(rest, f"/{case.name}/stop", {})
            time.sleep(1)
    return _of_tasks("".join(found))


def _asked(port: int, path: str, given: dict[str, str] | None = None) -> bytes | None:
    """Ask the worker; None where it does not answer, or refuses."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors{path}",
        data=None if given is None else json.dumps(given).encode(),
        headers={"Content-Type": "application/json"},
        method="GET" if given is None else "PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())
    except OSError:
        return None


def _of_tasks(text: str) -> str:
    """The entries of tasks and producers, with their stack traces, and the marks between cases."""
    chosen, lines = False, []
    for line in text.splitlines(keepends=True):
        if line.startswith("=== "):
            chosen = False
            lines.append(line)
        elif line.startswith("["):
            chosen = _OF_TASKS.search(line) is not None
        if chosen:
            lines.append(line)
    return "".join(lines)


if __name__ == "__main__":
    text = recorded()
    TARGET.write_bytes(lzma.compress(text.encode(), preset=9))
    sys.stderr.write(f"{TARGET.name}: {len(text.splitlines())} lines\n")
