"""Record what Flink's Kafka sink logs of refused requests: python -m tests.client_logs.flink. See README.md beside this file. It takes two minutes."""

import lzma
import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.client_logs.cases import CASES, TOPIC, Answers
from tests.client_logs.record import BROKER, PROGRAMS, SECONDS
from tests.client_streams.scripted_broker import ScriptedCluster
from tests.live_brokers.jars import fetched_jars

RELEASE, CONNECTOR, CLIENT = "2.2.1", "5.0.0-2.2", "4.2.0"
TARGET = Path(__file__).parents[1] / "data" / "client-logs" / f"flink-{RELEASE}-{CLIENT}.log.xz"
_ARTIFACTS = (  # CLIENT comes with the connector
    ("org.slf4j", "slf4j-api", "1.7.36"),
    ("org.apache.flink", "flink-streaming-java", RELEASE),
    ("org.apache.flink", "flink-clients", RELEASE),
    ("org.apache.flink", "flink-connector-base", RELEASE),
    ("org.apache.flink", "flink-connector-kafka", CONNECTOR),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.3"),
)
_ENTRY = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +(\S+)").match
_CHOSEN = re.compile(
    r"org\.apache\.kafka\.clients\.producer\.(?!ProducerConfig)|org\.apache\.flink\.connector\.kafka\.|.*\.taskmanager\.Task$"
).match
"""Loggers whose entries are recorded: the cluster says much more of its start, its end and its checkpoints."""


def recorded() -> str:
    """Play the cases, each as a job; returns what the sink, its producers and its task wrote."""
    jars = f"{fetched_jars(f'flink-{RELEASE}', _ARTIFACTS)}/*"
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run(["javac", "-cp", jars, "-d", home, PROGRAMS / "FlinkJob.java"], check=True)
        command = [
            "java", "-Xmx500m", f"-Dlog4j2.configurationFile={PROGRAMS / 'java' / 'flink.xml'}", "--add-opens=java.base/java.util=ALL-UNNAMED",
            "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", f"{home}:{jars}", "FlinkJob", TOPIC,
        ]  # fmt: skip
        for case in CASES:
            cluster = ScriptedCluster(Answers(case), BROKER)
            stack.callback(cluster.close)
            command += [case.name, str(min(cluster.ports.values())), str(case.transactional).lower()]
        done = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            env=os.environ | {"TZ": "UTC"},
        )
    chosen, lines = False, []
    for line in done.stdout.decode().splitlines(keepends=True):
        begun = _ENTRY(line)
        chosen = line.startswith("=== ") or (_CHOSEN(begun[1]) is not None if begun else chosen)
        if chosen:
            lines.append(line)
    return "".join(lines)


if __name__ == "__main__":
    text = recorded()
    TARGET.write_bytes(lzma.compress(text.encode(), preset=9))
    sys.stderr.write(f"{TARGET.name}: {len(text.splitlines())} lines\n")
