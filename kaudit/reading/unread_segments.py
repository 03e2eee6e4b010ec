"""Segments that were listed and could not be read to their end, apart from those that retention removed meanwhile."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.source.bytes import ByteSource
from kaudit.source.layout import SegmentFile, Unreadable
from kaudit.source.schemes import SegmentRemovedError


class Failure(Struct, frozen=True):
    """A file, or a range of it, that could not be read, and why. `log_start`: retention removed it, the log begins there now.

    `vanished`: the file, or bytes of it, are gone since it was listed. `offsets`: of a log that brokers send, the first and
    the last of those that could not be read.
    """

    path: str
    reason: str
    vanished: bool = False
    log_start: int | None = None
    offsets: tuple[int, int] | None = None


class ShrunkError(OSError):
    """A file has fewer bytes than when it was listed: truncated, or replaced by the log cleaner's."""


def failure(path: str, error: OSError) -> Failure:
    """Describe why the file at `path` could not be read."""
    vanished = isinstance(error, FileNotFoundError | ShrunkError)
    log_start = error.log_start if isinstance(error, SegmentRemovedError) else None
    return Failure(path, error.strerror or type(error).__name__, vanished, log_start)


def require_whole(segment: SegmentFile, source: ByteSource) -> None:
    """Check that a segment that was read still has the bytes it had when it was listed.

    Raises:
        ShrunkError: it has fewer: what was read of them is not the file's.

    """
    gone = segment.size - source.size()
    if gone > 0:
        raise ShrunkError(5, f"{gone} of its {segment.size} bytes are gone since it was listed", segment.path)


class UnreadSegments:
    """Collects the failures of one partition replica. A path is listed once, with the first reason."""

    def __init__(self, planned: Sequence[SegmentFile]) -> None:
        self._begin_here = {segment.base_offset for segment in planned if segment.size}
        self._unreadable: dict[str, Unreadable] = {}
        self._removed: dict[str, Unreadable] = {}
        self._ranges: list[Failure] = []

    def add(self, failed: Failure) -> None:
        """Take a failure. Retention explains it only if the log now begins with a segment that is read as well."""
        if failed.offsets is not None:
            self._add_offsets(failed, *failed.offsets)
            return
        removed = failed.log_start in self._begin_here
        listed = self._removed if removed else self._unreadable
        listed.setdefault(failed.path, Unreadable(failed.path, failed.reason, failed.vanished))

    def _add_offsets(self, failed: Failure, first: int, last: int) -> None:
        """Take a range of offsets, as one with the range that it goes on from."""
        before = self._ranges[-1].offsets if self._ranges else None
        if before is not None and before[1] + 1 >= first:
            failed = replace(failed, offsets=(before[0], last))
            self._ranges.pop()
        self._ranges.append(failed)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._unreadable or self._removed or self._ranges)

    @property
    def unreadable(self) -> list[Unreadable]:
        """Files and ranges whose absence leaves the audit incomplete."""
        ranges = (
            Unreadable(f"{failed.path} offsets {failed.offsets[0]}..{failed.offsets[1]}", failed.reason)
            for failed in self._ranges
            if failed.offsets is not None
        )
        return [*self._unreadable.values(), *ranges]

    @property
    def removed(self) -> list[Unreadable]:
        """Segments that retention removed from the head of the log while it was read; part of one may have been read before."""
        return [entry for path, entry in self._removed.items() if path not in self._unreadable]
