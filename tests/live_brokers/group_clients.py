"""Consumers of two clients with one face, which the plays of groups tell what to read and commit; they count what they are given."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

Given = Counter[tuple[int, int]]
"""How often each (partition, offset) was given to a group."""


class Member(Protocol):
    """A consumer of one topic. `position`: where it reads on in a partition, None without it."""

    def poll(self, seconds: float) -> None:
        """Take what there is."""

    def position(self, partition: int) -> int | None:
        """Return the next offset that it is given."""

    def assigned(self) -> list[int]:
        """Return the partitions that it has."""

    def seek(self, partition: int, offset: int) -> None:
        """Read on from there."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit these, and wait for the answer."""

    def close(self) -> None:
        """Leave the group."""


Open = Callable[..., Member]
"""servers, group, topic, given; `subscribes=False`: it assigns partition 0 to itself; `protocol`: how partitions are shared out."""


class KafkaPython:
    """kafka-python."""

    def __init__(self, servers: str, group: str, topic: str, given: Given, *, subscribes: bool = True) -> None:
        self._topic, self._given = topic, given
        self._consumer = KafkaConsumer(
            bootstrap_servers=servers, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
            session_timeout_ms=45_000, heartbeat_interval_ms=500, client_id=f"client-{group}", max_poll_records=10,
        )  # fmt: skip
        if subscribes:
            self._consumer.subscribe([topic])
        else:
            self._consumer.assign([TopicPartition(topic, 0)])
        self._failed: list[Mapping[int, int]] = []

    def poll(self, seconds: float) -> None:
        for records in self._consumer.poll(int(seconds * 1000)).values():
            self._given.update((record.partition, record.offset) for record in records)

    def position(self, partition: int) -> int | None:
        where = TopicPartition(self._topic, partition)
        return self._consumer.position(where) if where in self._consumer.assignment() else None

    def assigned(self) -> list[int]:
        return [where.partition for where in self._consumer.assignment()]

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition), offset)

    def commit(self, offsets: Mapping[int, int]) -> None:
        self._consumer.commit(self._as_asked(offsets))

    def _as_asked(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TopicPartition(self._topic, part): OffsetAndMetadata(offset, "", 0) for part, offset in offsets.items()}

    def send(self, offsets: Mapping[int, int]) -> None:
        """Commit these without waiting; what fails is kept for `send_again`."""

        def answered(_: object, answer: object) -> None:
            if isinstance(answer, Exception):
                self._failed.append(offsets)

        self._consumer.commit_async(self._as_asked(offsets), callback=answered)

    def send_again(self) -> int:
        """Commit what has failed, and wait for the answers; return how many commits that were."""
        count = len(self._failed)
        while self._failed:
            self.commit(self._failed.pop(0))
        return count

    def close(self) -> None:
        self._consumer.close()


class Confluent:
    """confluent-kafka, which is librdkafka."""

    def __init__(
        self,
        servers: str,
        group: str,
        topic: str,
        given: Given,
        *,
        subscribes: bool = True,
        protocol: Mapping[str, str] | None = None,
    ) -> None:
        import confluent_kafka  # not a package of this environment: uv run --with confluent-kafka

        self._kafka, self._topic, self._given = confluent_kafka, topic, given
        own = {"session.timeout.ms": 45_000} if protocol is None else protocol
        self._consumer: Any = confluent_kafka.Consumer(
            {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
             "client.id": f"client-{group}", **own}
        )  # fmt: skip
        self._next: dict[int, int] = {}
        if subscribes:
            self._consumer.subscribe([topic])
        else:
            self._consumer.assign([confluent_kafka.TopicPartition(topic, 0)])

    def poll(self, seconds: float) -> None:
        for record in self._consumer.consume(10, seconds):
            assert record.error() is None, record.error()
            self._given[record.partition(), record.offset()] += 1
            self._next[record.partition()] = record.offset() + 1

    def position(self, partition: int) -> int | None:
        return self._next.get(partition)

    def assigned(self) -> list[int]:
        return [where.partition for where in self._consumer.assignment()]

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._kafka.TopicPartition(self._topic, partition, offset))
        self._next[partition] = offset

    def commit(self, offsets: Mapping[int, int]) -> None:
        where = [self._kafka.TopicPartition(self._topic, part, offset) for part, offset in offsets.items()]
        answers = self._consumer.commit(offsets=where, asynchronous=False)
        assert all(answer.error is None for answer in answers), answers

    def close(self) -> None:
        self._consumer.close()


def read(member: Member, offset: int) -> None:
    """Poll until the position in partition 0 is `offset` or beyond."""
    deadline = time.monotonic() + 180
    while (member.position(0) or 0) < offset:
        member.poll(1)
        assert time.monotonic() < deadline


def read_to(member: Member, offset: int) -> None:
    """Poll until the position in partition 0 is `offset` or beyond, and commit exactly that."""
    read(member, offset)
    member.commit({0: offset})
