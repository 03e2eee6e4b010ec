"""A Java producer of any release as a child process, which does what it is told line by line."""

import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.live_brokers.jars import jars_of, logging_jars_of

SOURCE = Path(__file__).with_name("Produce.java")
ANSWER_SECONDS = 60
_WITH_RELOAD4J = "3.9.2"


def logging_jars() -> str:
    """What a class path needs before a client's jars, which bring nothing to write logs with; it serves every release."""
    jars = logging_jars_of(_WITH_RELOAD4J)
    assert jars is not None
    return f"{jars.resolve()}/*"


class JavaProducer:
    """A running producer."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def say(self, *lines: str) -> None:
        """`send TOPIC KEY SIZE`, `flush`, `init`, `begin`, `commit` or `abort`; answered later."""
        assert self._process.stdin is not None
        for line in lines:
            self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """What became of a line: `send KEY: offset 3`, `flush: done`, or an exception."""
        return self._lines.get(timeout=ANSWER_SECONDS)

    def ask(self, line: str) -> str:
        """Say a line and wait for its answer; other answers are passed over."""
        self.say(line)
        words = line.split()
        begins = f"send {words[2]}: " if words[0] == "send" else f"{line}: "
        while not (answer := self.answer()).startswith(begins):
            pass
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))


@contextmanager
def java_producer(version: str, home: Path, port: int, config: Mapping[str, object]) -> Iterator[JavaProducer]:
    """A producer of kafka-clients `version` at a port of this machine; its log is `home/client.log`."""
    jars = jars_of(version).resolve()
    logging = logging_jars()
    home.mkdir(parents=True)
    subprocess.run(["javac", "-d", home, "-cp", f"{jars}/*", SOURCE], check=True, timeout=120)
    settings = {"bootstrap.servers": f"127.0.0.1:{port}", **config}
    (home / "producer.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (home / "log4j.properties").write_text(
        "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.FileAppender\n"
        f"log4j.appender.out.File={home / 'client.log'}\nlog4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
    )
    with (home / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{home / 'log4j.properties'}",
             "-cp", f"{home}:{logging}:{jars}/*", "Produce", str(home / "producer.properties")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=home,
        )  # fmt: skip
    try:
        yield JavaProducer(process)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
