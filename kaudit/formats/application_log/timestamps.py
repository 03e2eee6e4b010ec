"""Times as logging frameworks write them."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

from msgspec import Struct

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"), start=1
    )
}
_CLOCK: Final = rb"\d\d:\d\d:\d\d"
_FRACTION: Final = rb"(?:[.,]\d{1,9})?"
_ZONE: Final = rb"(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d(?!\d)))?"
DATED: Final = rb"\d{4}[-/.]\d\d[-/.]\d\d[T ]" + _CLOCK + _FRACTION + _ZONE
"""A day of a year and a time of day, in ISO 8601's order; log4j's ISO8601 and the defaults of most frameworks."""
DAY_FIRST: Final = rb"\d\d (?:\w{3}) \d{4} " + _CLOCK + _FRACTION + _ZONE
"""log4j's DATE: `06 Nov 2024 14:34:02,781`."""
SYSLOG: Final = rb"[A-Z][a-z]{2} [ \d]\d " + _CLOCK + _FRACTION
"""RFC 3164 and journalctl: without a year."""
TWELVE_HOURS: Final = rb"[A-Z][a-z]{2} \d{1,2}, \d{4},? \d{1,2}:\d\d:\d\d(?: |\xe2\x80\xaf)[AP]M"
"""java.util.logging's, in English."""
TIME_OF_DAY: Final = _CLOCK + rb"[.,]\d{1,9}"
EPOCH_SECONDS: Final = rb"\d{10}\.\d{3}"
"""librdkafka's own."""

_PARTS: Final = re.compile(
    rb"(?:(?P<year>\d{4})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[T ]"
    rb"|(?P<first_day>\d\d) (?P<first_month>\w{3}) (?P<first_year>\d{4}) "
    rb"|(?P<name>[A-Z][a-z]{2}) (?P<name_day>[ \d]\d) )"
    rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    rb" ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?"
)
_TWELVE_HOURS: Final = re.compile(
    rb"(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4}),? (?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)\D{1,3}(?P<half>[AP])M"
)
_SECONDS: Final = re.compile(rb"(\d{10})\.(\d{3})")


class LogTime(Struct, frozen=True):
    """Milliseconds since the epoch; `zone_known` is false where the time was read as if it were UTC."""

    timestamp_ms: int
    zone_known: bool


def parse_time(text: bytes, year_before_ms: int | None = None) -> LogTime | None:
    """Read a time that begins `text`; None for what no calendar has, and for a time of day alone.

    Where the year is missing it is the latest that leaves the time at most a day after `year_before_ms`, None without that.
    """
    if seconds := _SECONDS.match(text):
        return LogTime(int(seconds[1]) * 1000 + int(seconds[2]), True)
    try:
        if parts := _TWELVE_HOURS.match(text):
            hour = int(parts["hour"]) % 12 + 12 * (parts["half"] == b"P")
            return _local(_day(parts["year"], parts["month"], parts["day"]), (hour, parts["minute"], parts["second"]))
        if parts := _PARTS.match(text):
            return _from_parts(parts, year_before_ms)
    except (ValueError, KeyError, OverflowError):
        return None  # 30 February
    return None


def _from_parts(parts: re.Match[bytes], year_before_ms: int | None) -> LogTime | None:
    clock = (parts["hour"], parts["minute"], parts["second"])
    milliseconds = int((parts["fraction"] or b"0")[:3].ljust(3, b"0"))
    zone = _zone(parts["zone"])
    if parts["year"]:
        day = date(int(parts["year"]), int(parts["month"]), int(parts["day"]))
    elif parts["first_year"]:
        day = _day(parts["first_year"], parts["first_month"], parts["first_day"])
    elif year_before_ms is not None:
        latest = (_EPOCH + timedelta(milliseconds=year_before_ms, days=1)).date()
        month = _MONTHS[parts["name"].lower()]
        later = (month, int(parts["name_day"])) > (latest.month, latest.day)
        day = date(latest.year - later, month, int(parts["name_day"]))
    else:
        return None
    return _local(day, clock, zone, milliseconds)


def _day(year: bytes, month: bytes, day: bytes) -> date:
    return date(int(year), _MONTHS[month.lower()], int(day))


def _local(
    day: date, clock: tuple[bytes | int, bytes | int, bytes | int], zone: timezone | None = None, milliseconds: int = 0
) -> LogTime:
    hour, minute, second = map(int, clock)
    time = datetime(day.year, day.month, day.day, hour, minute, min(second, 59), tzinfo=zone or UTC)
    return LogTime((time - _EPOCH) // timedelta(milliseconds=1) + milliseconds, zone is not None)


def _zone(text: bytes | None) -> timezone | None:
    if text is None:
        return None
    if text[:1] in b"ZUG":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[:1] == b"-" else minutes)) if minutes < 24 * 60 else None
