"""Times as reports show them: RFC 3339, UTC, milliseconds."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_TIMESTAMP = -1


def rfc3339(milliseconds: int) -> str | None:
    """Return the time as `2026-11-21T03:04:05.678Z`, or None where no calendar reaches it."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date_and_clock(milliseconds: object) -> tuple[str, str]:
    """Return (date, time of day) for a table; a value no calendar reaches stays a number of ms."""
    if not isinstance(milliseconds, int) or milliseconds == NO_TIMESTAMP:
        return "", "-"
    text = rfc3339(milliseconds)
    if text is None:
        return "", f"{milliseconds} ms"
    date, clock = text.removesuffix("Z").split("T")
    return date, clock
