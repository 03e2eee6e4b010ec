"""Tickets as people write them, and the programs they are about."""

import enum
import re

PROJECTS = (
    "kafka", "librdkafka", "franz-go", "kafkajs", "sarama", "redpanda", "aiokafka", "flink", "iceberg", "dbz", "debezium",
    "strimzi",
)  # fmt: skip
_PULL_REQUEST = re.compile(r"\bkafka(?:#|/pull/)(\d+)$", re.IGNORECASE)
_ADDRESS = re.compile(r"/(?:pull|issues)/(?=\d+$)")


class Program(enum.Enum):
    """The program that has the bug. Brokers and the Java client have the versions of Apache Kafka."""

    BROKER = "broker"
    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    FRANZ_GO = "franz-go"
    KAFKAJS = "kafkajs"
    SARAMA = "sarama"
    REDPANDA = "redpanda"


def looks_like_ticket(typed: str) -> bool:
    """Return whether a text has the form of a ticket: `KAFKA-12671` of one of these projects, `anything#3575`, an address."""
    project, _, number = ticket_key(typed).rpartition("-")
    return number.isdecimal() and (project in PROJECTS or re.fullmatch(r"\S+[#/]\d+", typed.strip()) is not None)


def ticket_key(ticket: str) -> str:
    """Return the ticket in one form, `kafka-12671`: without its owner or address, in lower case, with a hyphen."""
    name = _ADDRESS.sub("#", ticket.strip().lower()).rpartition("/")[2]
    return re.sub(r"[ _#-]+(?=\d+$)", "-", name)


def pull_request_key(ticket: str) -> str | None:
    """Return `kafka#23204` for a pull request of Apache Kafka, whose tickets have numbers of their own; None for anything else."""
    found = _PULL_REQUEST.search(ticket.strip())
    return f"kafka#{found[1]}" if found else None


def reference_key(ticket: str) -> str:
    """Return a ticket or pull request in one form that tells the two apart."""
    return pull_request_key(ticket) or ticket_key(ticket)
