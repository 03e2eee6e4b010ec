"""An incident: findings with one cause, and its extent."""

from collections.abc import Mapping, Sequence

from kaudit.model.finding import Confidence, Severity
from kaudit.model.impact import Impact
from kaudit.model.json_record import JsonRecord


class AffectedPartition(JsonRecord, frozen=True):
    """A partition with findings of an incident; the offsets are of its first and last one, None where they have none."""

    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None


class Incident(JsonRecord, frozen=True):
    """Summary of the findings of one cause. Severity and confidence are those of the most severe.

    `cause` and `title` are None for a finding that stands alone; `findings` counts each once, whatever the number of
    replicas that have it; `checks` counts them by code; `transactional_ids` are those that are known. Times are of the
    batches in question, ms since the epoch.
    """

    id: str | None
    cause: str | None
    title: str | None
    severity: Severity
    confidence: Confidence
    findings: int
    checks: Mapping[str, int]
    partitions: Sequence[AffectedPartition]
    replicas: Sequence[str]
    producer_ids: Sequence[int]
    transactional_ids: Sequence[str]
    first_timestamp: int | None
    last_timestamp: int | None
    impact: Impact
