"""Transactional ids, which clients make up: the part by which the producers of one application differ."""

import re

_DIGITS = re.compile(r"\d+")
_HEXADECIMAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LEFT_OUT = "#"


def name_pattern(transactional_id: str) -> str:
    """Return the id with what counts up or is random left out: `payments-12-7` and `payments-3-1` are `payments-#-#`."""
    return _DIGITS.sub(_LEFT_OUT, _HEXADECIMAL.sub(_LEFT_OUT, transactional_id))


def application_of(transactional_id: str) -> str | None:
    """Return what the producers of an application have in common in their ids; None where the id names one producer.

    Flink numbers subtasks and checkpoints (`prefix-0-17`), Kafka Streams processes and threads (`application-UUID-1`).
    """
    pattern = name_pattern(transactional_id)
    return pattern if pattern not in (transactional_id, _LEFT_OUT) else None
