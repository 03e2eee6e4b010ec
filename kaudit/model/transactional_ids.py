"""Whose a transactional id is, as far as its form shows: how programs and libraries name their transactions."""

import re
from functools import lru_cache

from msgspec import Struct

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DIGITS = re.compile(r"\d+")
_HEXADECIMAL = re.compile(UUID, re.IGNORECASE)
_LEFT_OUT = "#"

FLINK = "Flink KafkaSink"
OLD_FLINK = "Flink FlinkKafkaProducer"
FAUST = "Faust"
CONNECT_TASK = "Kafka Connect task"
CONNECT_LEADER = "Kafka Connect leader"
NUMBERED = "numbered producer, such as Spring's or a Connect task"


class NameFormat(Struct, frozen=True):
    """One way of naming transactions, as the classes of `source` do it.

    Groups of `pattern`: `application`, `member` and, where a member numbers its own ids, `number`. `role` names a member for people.
    """

    program: str
    pattern: str
    role: str
    source: str

    def match(self, name: str) -> re.Match[str] | None:
        """Return the parts of a name of this form; compiled when the first is asked for."""
        return re.fullmatch(self.pattern, name, re.DOTALL)


FORMATS = (
    NameFormat(
        "ksqlDB query",
        rf"(?P<application>_confluent-ksql-.+)-(?P<member>{UUID}-\d+|\d+_\d+)",
        "thread or task",
        "QueryApplicationId, ActiveTaskCreator",
    ),
    NameFormat(
        "ksqlDB command topic",
        r"(?P<application>.+)-(?P<member>migration-producer)",
        "producer",
        "CommandTopicMigrationUtil",
    ),
    NameFormat(
        "Iceberg Kafka Connect sink",
        rf"(?P<application>.*(?:coordinator|worker))-txn-(?P<member>{UUID}-\d+)",
        "task",
        "IcebergSinkConnector, Channel",
    ),
    NameFormat(
        "Kafka Streams, exactly_once_v2",
        rf"(?P<application>.+)-(?P<member>{UUID}-\d+)",
        "thread",
        "ActiveTaskCreator, KIP-447",
    ),
    NameFormat(
        "Kafka Streams, exactly_once",
        r"(?P<application>.+?)-(?P<member>(?:[\w.]+__)?\d+_\d+)",
        "task",
        "StreamsProducer, TaskId, up to 3.x",
    ),
    NameFormat(
        CONNECT_LEADER, r"(?P<member>connect-cluster)-(?P<application>.+)", "leader", "DistributedConfig, KIP-618"
    ),
    NameFormat("Beam KafkaIO", r"(?P<member>producer_\d+)_for_(?P<application>.+)", "shard", "KafkaExactlyOnceSink"),
    NameFormat(
        OLD_FLINK,
        r"(?P<application>.+-[0-9a-f]{32})-(?P<member>\d+)",
        "producer",
        "TransactionalIdsGenerator, up to Flink 1.14",
    ),
    NameFormat(
        FLINK,
        r"(?P<application>.+)-(?P<member>\d+)-(?P<number>\d+)",
        "subtask",
        "TransactionalIdFactory, TransactionNamingStrategy",
    ),
    NameFormat(
        "Spring listener",
        r"(?P<application>[^.]+)\.(?P<member>.+\.\d+)",
        "topic and partition",
        "KafkaMessageListenerContainer.zombieFenceTxIdSuffix, up to 2.x",
    ),
    NameFormat(
        NUMBERED,
        r"(?P<application>.*\D)(?P<member>\d+)",
        "number",
        "DefaultKafkaProducerFactory, Worker.taskTransactionalId",
    ),
)
"""The formats, those that fit least first: the first that matches an id is its format."""


class Name(Struct, frozen=True):
    """A transactional id taken apart: `ids` are those of the same member, with * where they are numbered."""

    format: NameFormat
    application: str
    member: str
    ids: str
    number: int | None = None


@lru_cache(maxsize=4096)
def parse_name(transactional_id: str) -> Name | None:
    """Return the parts of a transactional id; None where no known format has its form."""
    for known in FORMATS:
        match = known.match(transactional_id)
        if match is not None:
            parts = match.groupdict()
            number = parts.get("number")
            ids = transactional_id if number is None else transactional_id[: -len(number)] + "*"
            application = parts["application"].rstrip("-_.") or parts["application"]
            return Name(known, application, parts["member"], ids, None if number is None else int(number))
    return None


def name_pattern(transactional_id: str) -> str:
    """Return the id with counters and random parts replaced: `payments-12-7` and `payments-3-1` are `payments-#-#`."""
    return _DIGITS.sub(_LEFT_OUT, _HEXADECIMAL.sub(_LEFT_OUT, transactional_id))


def application_of(transactional_id: str) -> str | None:
    """Return the common part of the ids of an application's producers; None where the id names one producer."""
    pattern = name_pattern(transactional_id)
    return pattern if pattern not in (transactional_id, _LEFT_OUT) else None
