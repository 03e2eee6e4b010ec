"""A producer of kafka-python, confluent-kafka or aiokafka that does what the lines of its input say, as Produce.java does.

`python send.py CLIENT`; after `open PATH`, a file of properties, `send TOPIC[:PARTITION] KEY SIZE [TIMESTAMP]`, `flush`,
`init`, `begin`, `commit` or `abort`. What became of each is printed: `send KEY: offset 3`, `flush: done`, or the error.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PRINTING = threading.Lock()


def say(what: str, result: object) -> None:
    """Print what became of a line."""
    with _PRINTING:
        sys.stdout.write(f"{what}: {' '.join(str(result).split())}\n")
        sys.stdout.flush()


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


class KafkaPython:
    """kafka-python."""

    def __init__(self, config: dict[str, str]) -> None:
        from kafka import KafkaProducer  # one client per process

        self._producer = KafkaProducer(**{name.replace(".", "_"): _value(value) for name, value in config.items()})
        own = {
            "init": "init_transactions",
            "begin": "begin_transaction",
            "commit": "commit_transaction",
            "abort": "abort_transaction",
        }
        self.steps: dict[str, Callable[[], object]] = {
            name: getattr(self._producer, call) for name, call in own.items()
        }
        self.steps["flush"] = self._producer.flush

    def send(self, topic: str, partition: int, key: str, value: bytes, timestamp: int | None) -> None:
        """Send one record."""
        named = None if key.startswith("~") else key.encode()
        sent = self._producer.send(topic, value, named, partition=partition, timestamp_ms=timestamp)
        sent.add_callback(lambda metadata: say(f"send {key}", f"offset {metadata.offset}"))
        sent.add_errback(lambda error: say(f"send {key}", repr(error)))


class Confluent:
    """librdkafka below confluent-kafka."""

    def __init__(self, config: dict[str, str]) -> None:
        from confluent_kafka import Producer  # one client per process

        self._producer = Producer(config)
        self.steps: dict[str, Callable[[], object]] = {
            "flush": self._producer.flush,
            "init": self._producer.init_transactions,
            "begin": self._producer.begin_transaction,
            "commit": self._producer.commit_transaction,
            "abort": self._producer.abort_transaction,
        }
        threading.Thread(target=self._poll, daemon=True).start()

    def _poll(self) -> None:
        while True:
            self._producer.poll(0.1)

    def send(self, topic: str, partition: int, key: str, value: bytes, timestamp: int | None) -> None:
        """Send one record."""
        more = {} if timestamp is None else {"timestamp": timestamp}
        self._producer.produce(
            topic, value, key, partition,
            on_delivery=lambda error, record: say(f"send {key}", error or f"offset {record.offset()}"), **more,
        )  # fmt: skip


class Aiokafka:
    """aiokafka, in a thread of its own."""

    def __init__(self, config: dict[str, str]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._producer = self._run(
            self._opened({name.replace(".", "_"): _value(value) for name, value in config.items()})
        )
        self.steps: dict[str, Callable[[], object]] = {
            "init": lambda: None,  # its start does that
            "begin": lambda: self._run(self._producer.begin_transaction()),
            "commit": lambda: self._run(self._producer.commit_transaction()),
            "abort": lambda: self._run(self._producer.abort_transaction()),
            "flush": lambda: self._run(self._producer.flush()),
        }

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _opened(self, config: dict[str, Any]) -> Any:
        from aiokafka import AIOKafkaProducer  # one client per process

        producer = AIOKafkaProducer(**config)
        await producer.start()
        return producer

    def send(self, topic: str, partition: int, key: str, value: bytes, timestamp: int | None) -> None:
        """Send one record."""

        def answered(sent: Any) -> None:
            error = sent.exception()
            say(f"send {key}", f"offset {sent.result().offset}" if error is None else repr(error))

        sending = self._producer.send(topic, value, key.encode(), partition=partition, timestamp_ms=timestamp)
        self._run(sending).add_done_callback(answered)


CLIENTS = {"kafka-python": KafkaPython, "confluent-kafka": Confluent, "aiokafka": Aiokafka}


def main() -> None:
    """Carry out the lines of standard input."""
    client: Any = None
    for line in sys.stdin:
        words = line.split()
        what = f"send {words[2]}" if words[0] == "send" else line.strip()
        try:
            if words[0] == "open":
                settings = Path(words[1]).read_text().splitlines()
                client = CLIENTS[sys.argv[1]](dict(setting.split("=", 1) for setting in settings))
            elif words[0] == "send":
                topic, _, partition = words[1].partition(":")
                value = words[2].ljust(int(words[3])).encode()
                client.send(topic, int(partition or 0), words[2], value, int(words[4]) if words[4:] else None)
                continue
            elif words[0] != "ready":
                client.steps[words[0]]()
        except Exception as error:  # noqa: BLE001 - whatever a client raises is its answer
            say(what, repr(error))
        else:
            say(what, "done")


if __name__ == "__main__":
    main()
