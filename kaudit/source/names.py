"""Names of partitions, segments and leftovers (LogDir, UnifiedLog and LogFileUtils of Apache Kafka)."""

import re

from msgspec import Struct

LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".swap")
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})")
# the broker names these with a 32-digit UUID; -stray has had none in some releases
_MOVED = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})(\.[0-9a-f]{32})?-(?P<kind>future|delete|stray)"
)
_SEGMENT = re.compile(r"[0-9]{20}\.log")
_KNOWN_FILE = re.compile(
    r"[0-9]{20}(-[0-9]{10})?\.(log|index|timeindex|txnindex|snapshot|checkpoint)"
    r"|leader-epoch-checkpoint(\.tmp)?|partition\.metadata(\.tmp)?|quorum-state(\.tmp)?|\.kafka_cleanshutdown"
    r"|[0-9]{20}\.(index|timeindex|txnindex|snapshot)(\.tmp)?|remote_log_snapshot|.*\.checkpoint(\.part|\.deleted)?"
)


class PartitionName(Struct, frozen=True):
    """Topic and partition of a directory name; `moved` is `future`, `delete` or `stray` for one a broker put aside."""

    topic: str
    partition: int
    moved: str | None = None


def parse_partition_name(name: str) -> PartitionName | None:
    """Read a partition directory's name; topics may hold dashes and dots. None if it is no such name."""
    moved = _MOVED.fullmatch(name)
    if moved:
        return PartitionName(moved["topic"], int(moved["partition"]), moved["kind"])
    plain = _PARTITION.fullmatch(name)
    if plain and plain["topic"] not in (".", ".."):
        return PartitionName(plain["topic"], int(plain["partition"]))
    return None


def segment_base_offset(name: str) -> int | None:
    """Base offset of a segment's file name, None if it is no segment."""
    return int(name[:20]) if _SEGMENT.fullmatch(name) else None


def leftover_kind(name: str) -> str | None:
    """`deleted`, `cleaned` or `swap` for a file a broker left behind, else None."""
    for suffix in LEFTOVER_SUFFIXES:
        if name.endswith(suffix):
            return suffix[1:]
    return None


def is_known_file(name: str) -> bool:
    """Return whether a broker keeps a file of this name in a partition directory."""
    return _KNOWN_FILE.fullmatch(name) is not None
