"""A Java producer of any release as a child process, which carries out commands line by line."""

import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.live_brokers.jars import CACHE, jars_of, logging_jars_of

SOURCE = Path(__file__).with_name("Produce.java")
ANSWER_SECONDS = 60
_WITH_RELOAD4J = "3.9.2"
_COMPILING = threading.Lock()


def logging_jars() -> str:
    """What a class path needs before a client's jars, which bring nothing to write logs with; it serves every release."""
    jars = logging_jars_of(_WITH_RELOAD4J)
    assert jars is not None
    return f"{jars.resolve()}/*"


class ProducerProgram:
    """A running program that is told line by line what to send, as Produce.java is."""

    def __init__(self, process: "subprocess.Popen[str]", home: Path) -> None:
        self._process = process
        self._home = home
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def open(self, port: int, config: Mapping[str, object]) -> None:
        """Open a producer at a port of this machine, in place of the one before. Raises ValueError if it refuses `config`."""
        settings = {"bootstrap.servers": f"127.0.0.1:{port}", **config}
        path = self._home / "producer.properties"
        path.write_text("".join(f"{name}={_value(value)}\n" for name, value in settings.items()))
        answer = self.ask(f"open {path}")
        if not answer.endswith(": done"):
            raise ValueError(answer)

    def say(self, *lines: str) -> None:
        """`send TOPIC[:PARTITION] KEY SIZE`, `ready`, `flush`, `init`, `begin`, `commit` or `abort`; answered later."""
        assert self._process.stdin is not None
        for line in lines:
            self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """What became of a line: `send KEY: offset 3`, `flush: done`, or an exception."""
        return self._lines.get(timeout=ANSWER_SECONDS)

    def answers(self) -> list[str]:
        """All answers that came since."""
        found = []
        while not self._lines.empty():
            found.append(self._lines.get())
        return found

    def ask(self, line: str) -> str:
        """Say a line and wait for its answer; other answers are passed over."""
        self.say(line)
        words = line.split()
        begins = f"send {words[2]}: " if words[0] == "send" else f"{line}: "
        while not (answer := self.answer()).startswith(begins):
            pass
        return answer

    def kill(self) -> None:
        """End it without closing the producer."""
        self._process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))


def _compiled(jars: Path) -> Path:
    """The folder with the compiled program: one for all releases, of which it uses what 0.11 had."""
    folder = CACHE / "java-producer"
    compiled = folder / SOURCE.name
    with _COMPILING:
        if not compiled.exists() or compiled.read_bytes() != SOURCE.read_bytes():
            subprocess.run(["javac", "-d", folder, "-cp", f"{jars}/*", SOURCE], check=True, timeout=120)
            compiled.write_bytes(SOURCE.read_bytes())
    return folder


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def java_producer(version: str, home: Path, port: int, config: Mapping[str, object]) -> Iterator[ProducerProgram]:
    """A producer of kafka-clients `version` at a port of this machine; its log is `home/client.log`."""
    with java_program(version, home) as producer:
        producer.open(port, config)
        yield producer


@contextmanager
def java_program(version: str, home: Path) -> Iterator[ProducerProgram]:
    """The program with kafka-clients `version`, whose producer is still to be opened; its log is `home/client.log`."""
    jars = jars_of(version).resolve()
    logging = logging_jars()
    home.mkdir(parents=True)
    program = _compiled(jars).resolve()
    (home / "log4j.properties").write_text(
        "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.FileAppender\n"
        f"log4j.appender.out.File={home / 'client.log'}\nlog4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
    )
    with (home / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{home / 'log4j.properties'}",
             "-cp", f"{program}:{logging}:{jars}/*", "Produce"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=home,
        )  # fmt: skip
    try:
        yield ProducerProgram(process, home)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
