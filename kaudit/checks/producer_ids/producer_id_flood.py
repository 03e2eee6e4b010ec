"""Producer id churn: very many producers with few batches each; every id takes memory in every broker."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Tolerated, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.producer_ids import ProducerIdStatistics
from kaudit.model.severity import Severity

MIN_IDS = 500
"""Fewer in a partition are no burden to a broker, however short-lived."""
MAX_BATCHES_PER_ID = 10
MIN_IDS_PER_HOUR = 100
"""At this rate a day's expiry keeps 2,400 ids in memory per partition, seven days' keeps 16,800."""
_HOUR_MS = 3_600_000
_CAUSES = (
    Explanation("an application opens a producer per message, request or error, and closes it again"),
    Explanation("an application restarts in a loop"),
    Explanation("many short jobs write here, one producer each, as intended", innocent=True),
)


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    kind: str
    count: int
    producers_per_hour: float
    batches_per_producer: float
    first_timestamp: int
    last_timestamp: int


@check(
    "KA405",
    severity=Severity.NOTE,
    summary="producer ids by the hundreds an hour, a few batches each",
    needs=(ProducerIdStatistics,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("the number of producer ids sums up the whole partition"),
    caused_by=none_because("the number of producer ids sums up the whole partition, no event of a log"),
    simulated=none_because("it takes more producers than a schedule has"),
    tolerated=Tolerated(
        lambda evidence: evidence.count, "expected_producers", "up to {:,} producer ids are expected here"
    ),
)
def producer_id_flood(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report a partition once; ids of one without timestamps have no rate."""
    for ids in evidence.of(ProducerIdStatistics):
        if ids.producers < MIN_IDS or ids.first_timestamp < 0:
            continue
        per_id = ids.batches / ids.producers
        # what came within an hour came within one hour: a shorter span is no higher rate
        per_hour = ids.producers / max((ids.last_timestamp - ids.first_timestamp) / _HOUR_MS, 1.0)
        if per_id > MAX_BATCHES_PER_ID or per_hour < MIN_IDS_PER_HOUR:
            continue
        yield producer_id_flood.finding(
            context,
            f"{ids.producers:,} producer ids, {per_hour:,.0f} an hour, with {per_id:.1f} batches each",
            anchor="flood",
            evidence=_Evidence(
                rule="each producer id costs memory on every replica until it expires: 7 days, from 3.4 on 1 day",
                kind="flood",
                count=ids.producers,
                producers_per_hour=round(per_hour, 1),
                batches_per_producer=round(per_id, 2),
                first_timestamp=ids.first_timestamp,
                last_timestamp=ids.last_timestamp,
            ),
            explanations=_CAUSES,
            following=(context.producers_command("--summary", "-v"),),
        )
