"""Answers of a broker to attempts."""

from typing import Any

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.append_result import AppendResult, Outcome
from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry

TopicPartition = tuple[str, int]

ProducerBeforeAfter = tuple[int, ProducerStateEntry, ProducerStateEntry]
"""A producer id, its state before and its state after the attempt."""


class Response(Struct, frozen=True, gc=False):
    """The answer to the attempt of index `attempt`.

    `fields` are those of an answer's JSON object without `index` and `why`; `why` is one sentence with the remembered and
    the incoming values and the rule; `producer` is None where no producer is concerned.
    """

    attempt: int
    fields: dict[str, Any]
    why: str
    producer: ProducerBeforeAfter | None = None


class Ruling(Struct, frozen=True, gc=False):
    """The same for a batch that the producer state decided about: fields and `why` are made when they are read.

    `offset` is the log's end before it, `after` the producer's state after it.
    """

    attempt: int
    result: AppendResult
    offset: int
    partition: TopicPartition
    after: ProducerStateEntry

    @property
    def fields(self) -> dict[str, Any]:
        """The answer's fields."""
        result = self.result
        if result.outcome is Outcome.REJECTED:
            return rejected_fields(result.error)
        return {
            "outcome": result.outcome.value,
            "error": "NONE",
            "error_code": 0,
            "base_offset": self.offset if result.outcome is Outcome.APPENDED else result.base_offset,
        }

    @property
    def why(self) -> str:
        """The result in one sentence."""
        topic, number = self.partition
        return self.result.why(self.offset, f"{topic}-{number}")

    @property
    def producer(self) -> ProducerBeforeAfter:
        """The batch's producer."""
        return self.result.batch.producer_id, self.result.state, self.after


Answer = Response | Ruling


def ok_fields() -> dict[str, Any]:
    """Return the fields of a request that was done."""
    return {"outcome": "ok", "error": "NONE", "error_code": 0}


def rejected_fields(error: KafkaError) -> dict[str, Any]:
    """Return the fields of a refusal."""
    return {"outcome": "rejected", "error": error.name, "error_code": int(error)}


def appended_fields(base_offset: int) -> dict[str, Any]:
    """Return the fields of a batch written at `base_offset`."""
    return {"outcome": "appended", "error": "NONE", "error_code": 0, "base_offset": base_offset}
