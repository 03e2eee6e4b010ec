"""What the checks of blocks of producer ids share."""

from collections.abc import Mapping
from typing import TypedDict

from kaudit.model.producer_ids import BlockEntry

_ABSENT = dict.fromkeys(
    ("topic", "partition", "replica", "log_dir", "segment", "offset", "last_offset"),
    "about the blocks of producer ids, not about a partition",
)


class AboutEntry(TypedDict):
    """Arguments of `Check.finding`."""

    file: str
    position: int | None
    absent: Mapping[str, str]


def about_entry(entry: BlockEntry) -> AboutEntry:
    """Where a finding about one entry of the history sits: in the file it was read from."""
    return {"file": entry.source, "position": entry.position, "absent": _ABSENT}


def block_text(entry: BlockEntry) -> str:
    """Return `3000..3999 of broker 0`."""
    block = f"{entry.start}..{entry.end}"
    return block if entry.broker is None else f"{block} of broker {entry.broker}"


def block_evidence(entry: BlockEntry) -> Mapping[str, object]:
    """One grant."""
    return {
        "start": entry.start,
        "end": entry.end,
        "broker": entry.broker,
        "version": entry.version,
        "zxid": entry.zxid,
        "offset": entry.offset,
        "timestamp": entry.at_ms,
        "source": entry.source,
        "position": entry.position,
    }


def entry_anchor(entry: BlockEntry) -> str:
    """What stays the same about an entry wherever its files lie."""
    for name in ("zxid", "offset", "version"):
        value = getattr(entry, name)
        if value is not None:
            return f"{name}{value}"
    return f"{entry.start}-{entry.end}"
