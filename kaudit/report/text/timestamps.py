"""Times of findings, and times in tables for people."""

from collections.abc import Mapping

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.finding import Finding
from kaudit.model.json_record import rfc3339


def clock_time(milliseconds: int) -> str:
    """Return the time of day to the second, UTC."""
    return date_and_clock(milliseconds)[1].partition(".")[0]


def date_and_clock(milliseconds: object) -> tuple[str, str]:
    """Return (date, time of day) for a table; a value no calendar reaches stays a number of ms."""
    if not isinstance(milliseconds, int) or milliseconds == NO_TIMESTAMP:
        return "", "-"
    text = rfc3339(milliseconds)
    if text is None:
        return "", f"{milliseconds} ms"
    date, clock = text.removesuffix("Z").split("T")
    return date, clock


def timestamp_of(finding: Finding) -> int | None:
    """Return when the batch in question was written, in ms since the epoch; None where the evidence has no such time."""
    for holder in (finding.evidence.get("offending"), finding.evidence):
        for name in ("timestamp", "first_timestamp", "last_timestamp"):
            value = holder.get(name) if isinstance(holder, Mapping) else None
            if isinstance(value, int) and value >= 0:
                return value
    return None
