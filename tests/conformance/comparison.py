"""Recorded answers of real brokers against kaudit's own."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kaudit.broker.broker import Broker
from kaudit.broker.partition.record_set import split
from kaudit.broker.response import Answer
from kaudit.replay.session import Session
from tests.conformance.exclusions import BROKER_CLOCK_TOLERANCE_MS, EXCLUSIONS

Json = dict[str, Any]
SentTimes = dict[tuple[str | None, int | None], set[Any]]
"""Times by topic and producer id."""
FieldDifference = tuple[str, Any, Any]
"""(field, kaudit's value, the recorded value)."""


class Difference(NamedTuple):
    """An attempt that kaudit answers otherwise than the broker did."""

    attempt: Json
    fields: list[FieldDifference]
    why: str
    """kaudit's reason for its answer."""


def replayed(attempts: Iterable[Json]) -> Iterator[Answer]:
    """Kaudit's answers, one per attempt."""
    lines = (json.dumps(attempt).encode() for attempt in attempts)
    return (answer for _, answer in Session(lines, Broker()).answered())


def compare(attempts: list[Json], recorded: list[Json], answers: Iterable[Answer]) -> list[Difference]:
    """Every attempt whose answer differs from the recorded one in a field that is not excluded."""
    sent = sent_timestamps(attempts)
    compared = []
    for attempt, truth, answer in zip(attempts, recorded, answers, strict=True):
        found = list(differences(attempt, answer.fields, truth, sent))
        if found:
            compared.append(Difference(attempt, found, answer.why))
    return compared


def sent_timestamps(attempts: Iterable[Json]) -> SentTimes:
    """Times the clients put into batches; under LogAppendTime none of them is kept."""
    attempts = list(attempts)
    sent: SentTimes = {}
    stamped = {
        attempt["topic"]
        for attempt in attempts
        if attempt["op"] == "topic" and attempt["config"].get("message.timestamp.type") == "LogAppendTime"
    }
    for attempt in attempts:
        if attempt.get("topic") in stamped:
            continue
        topic = attempt.get("topic")
        sent.setdefault((topic, attempt.get("producer_id")), set()).add(attempt.get("timestamp"))
        if "records_hex" in attempt:
            for batch in split(bytes.fromhex(attempt["records_hex"])).batches:
                sent.setdefault((topic, batch.producer_id), set()).add(batch.max_timestamp)
    return sent


def differences(attempt: Json, answer: Json, recorded: Json, sent: SentTimes) -> Iterator[FieldDifference]:
    """Yield (field, ours, recorded) for every recorded field that differs and is not excluded."""
    topic, op = attempt.get("topic", ""), attempt["op"]
    for field, value in recorded.items():
        ours = answer.get(field, "absent")
        if field == "index" or any(exclusion.covers(topic, op, field, (ours, value)) for exclusion in EXCLUSIONS):
            continue
        if field == "producers" and ours != "absent":
            yield from _producer_differences(
                ours, value, {pid: times for (of, pid), times in sent.items() if of == topic}
            )
        elif ours != value:
            yield field, ours, value


def _producer_differences(
    ours: list[Json], recorded: list[Json], sent: dict[int | None, set[Any]]
) -> Iterator[FieldDifference]:
    known = {producer["producer_id"]: producer for producer in ours}
    if sorted(known) != sorted(producer["producer_id"] for producer in recorded):
        yield "producers", sorted(known), recorded
        return
    for producer in recorded:
        times = sent.get(producer["producer_id"], set())
        for field, value in producer.items():
            mine = known[producer["producer_id"]][field]
            on_brokers_clock = field == "last_timestamp" and value >= 0 and not {value, mine} <= times
            if on_brokers_clock and abs(mine - value) <= BROKER_CLOCK_TOLERANCE_MS:
                continue
            if mine != value:
                yield f"{producer['producer_id']}.{field}", mine, value
