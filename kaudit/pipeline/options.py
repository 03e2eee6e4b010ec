"""What to audit and how, as every engine takes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Depth(Enum):
    """How deep to read: `headers` trusts framing, `crc` verifies every batch, `records` decodes them too."""

    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Options of a scan. Times are ms since the epoch; None means unset; empty sequences mean no filter."""

    paths: Sequence[str]
    broker_version: str = "auto"
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    producer_ids: Sequence[int] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    now_ms: int | None = None
    log_start_offset: int | None = None
    compacted: bool = False
    jobs: int | None = None
    depth: Depth = Depth.CRC
    layout: str | None = None
    """Pattern of --layout: where topic, partition and replica stand in a path."""
    chunk_bytes: int | None = None
    """Size of the ranges a segment is cut into; None: what was measured best. Changes nothing that is found."""


class Progress(Protocol):
    """Told how far a scan is; the library itself never prints."""

    def start(self, total_bytes: int) -> None:
        """Take the plan: so many bytes will be read."""

    def advance(self, read_bytes: int) -> None:
        """Take note that so many more bytes were read."""


class SilentProgress:
    """Tells nobody."""

    def start(self, total_bytes: int) -> None:
        """Ignore the plan."""

    def advance(self, read_bytes: int) -> None:
        """Ignore the step."""


class NothingToAuditError(Exception):
    """No segment was found under the given paths: exit code 3. The text says what was looked at."""


class UsageError(Exception):
    """An option or a path is wrong: exit code 2. The text says what and what to try."""
