"""KA405: producers opened and dropped in masses, each with its own id in every broker's memory."""

from msgspec import Struct

from kaudit.checks.context import Context, quote
from kaudit.model.finding import Explanation, Finding

MIN_IDS = 500
"""Fewer in a partition are no burden to a broker, however short-lived."""
MAX_BATCHES_PER_ID = 10
MIN_IDS_PER_HOUR = 100
"""At this rate a day's expiry keeps 2,400 ids in memory per partition, seven days' keeps 16,800."""
_HOUR_MS = 3_600_000


class Population(Struct, frozen=True):
    """The producer ids of one partition replica: how many, their batches, and the time they cover (ms since 1970)."""

    producers: int
    batches: int
    first_timestamp: int
    last_timestamp: int


def report_flood(context: Context, population: Population) -> list[Finding]:
    """Report one note if the partition's ids come in a flood; ids of a partition without timestamps have no rate."""
    if population.producers < MIN_IDS or population.first_timestamp < 0:
        return []
    per_id = population.batches / population.producers
    # what came within an hour came within one hour: a shorter span is no higher rate
    hours = max((population.last_timestamp - population.first_timestamp) / _HOUR_MS, 1.0)
    per_hour = population.producers / hours
    if per_id > MAX_BATCHES_PER_ID or per_hour < MIN_IDS_PER_HOUR:
        return []
    return [
        context.finding(
            "KA405",
            f"{population.producers:,} producer ids, {per_hour:,.0f} an hour, with {per_id:.1f} batches each",
            anchor="flood",
            evidence={
                "rule": "each producer id costs memory on every replica until it expires: 7 days, from 3.4 on 1 day",
                "class": "flood",
                "count": population.producers,
                "producers_per_hour": round(per_hour, 1),
                "batches_per_producer": round(per_id, 2),
                "first_timestamp": population.first_timestamp,
                "last_timestamp": population.last_timestamp,
            },
            explanations=(
                Explanation("an application opens a producer per message, request or error, and closes it again"),
                Explanation("an application restarts in a loop"),
                Explanation("many short jobs write here, one producer each, as intended", innocent=True),
            ),
            following=(f"kaudit producers --summary {quote(context.directory)}",),
        )
    ]
