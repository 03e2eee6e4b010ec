"""Times as kaudit writes them: RFC 3339, UTC, milliseconds."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(milliseconds: int) -> str | None:
    """Return the time as `2026-11-21T03:04:05.678Z`, or None where no calendar reaches it."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
