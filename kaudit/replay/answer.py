"""What a broker says to one attempt."""

from typing import Any, NamedTuple

from kaudit.replay.errors import KafkaError
from kaudit.replay.state import ProducerState
from kaudit.replay.verdict import Verdict

TopicPartition = tuple[str, int]


class Ruling(NamedTuple):
    """A verdict of the state machine, and where: worded only when somebody asks."""

    verdict: Verdict
    offset: int
    partition: TopicPartition


class Answer(NamedTuple):
    """What a broker says to the attempt of index `attempt`.

    `fields` are those of CONTRACT.md section 4 without `index` and `why`; `producer` is who was spoken to, with what
    was remembered of it before and after, None where no producer is concerned.
    """

    attempt: int
    fields: dict[str, Any]
    reason: str | Ruling
    producer: tuple[int, ProducerState, ProducerState] | None = None

    @property
    def why(self) -> str:
        """One sentence with the remembered and the incoming values and the rule."""
        if isinstance(self.reason, str):
            return self.reason
        verdict, offset, (topic, partition) = self.reason
        return verdict.why(offset, f"{topic}-{partition}")


def ok_fields() -> dict[str, Any]:
    """Return the fields of a request that was done."""
    return {"outcome": "ok", "error": "NONE", "error_code": 0}


def rejected_fields(error: KafkaError) -> dict[str, Any]:
    """Return the fields of a refusal."""
    return {"outcome": "rejected", "error": error.name, "error_code": int(error)}
