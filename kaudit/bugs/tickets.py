"""Tickets as people write them, and the programs they are about."""

import enum
import re

PROJECTS = ("kafka", "librdkafka", "franz-go", "kafkajs", "sarama", "redpanda")


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
    """Return whether a text has the form of a ticket of one of these projects: `KAFKA-12671`, `librdkafka#3575`."""
    project, _, number = ticket_key(typed).rpartition("-")
    return project in PROJECTS and number.isdecimal()


def ticket_key(ticket: str) -> str:
    """Return the ticket in one form, `kafka-12671`: without its owner, in lower case, with a hyphen."""
    name = ticket.strip().lower().rpartition("/")[2]
    return re.sub(r"[ _#-]+(?=\d+$)", "-", name)
