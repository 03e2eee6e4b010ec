"""Numbers and lists in the sentences of findings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaudit.model.json_record import rfc3339

if TYPE_CHECKING:
    from kaudit.model.producer_ids import BlockEntry
    from kaudit.model.producer_listing import GrantedBlock


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return `1 record` or `1,234 records`. `plural`: where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """Return `b1`, `b1 and b2` or `b1, b2 and b3`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def first_of(names: Sequence[str]) -> str:
    """Return `b1`, `b1 and 1 more` or `b1 and 1,234 more`."""
    return names[0] + (f" and {len(names) - 1:,} more" if names[1:] else "")


def duration(milliseconds: int) -> str:
    """Name a duration in the largest unit of which there are two or more: `3 h`."""
    seconds = milliseconds / 1000
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def time_text(timestamp_ms: int) -> str:
    """Return `2026-11-26 18:50:48 UTC`."""
    text = rfc3339(timestamp_ms - timestamp_ms % 1000) or f"{timestamp_ms} ms"
    return text.replace("T", " ").removesuffix("Z").removesuffix(".000") + " UTC"


def block_text(block: "BlockEntry | GrantedBlock") -> str:
    """Return `3000..3999 of broker 0`."""
    place = f"{block.start}..{block.end}"
    return place if block.broker is None else f"{place} of broker {block.broker}"
