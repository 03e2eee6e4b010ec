"""Facts of a partition's log that side files are compared with, and reading side files whole."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np
from msgspec import Struct, field

from kaudit.model.damage import DamageKind, MissingCause, MissingOffsets, PlacedDamage
from kaudit.model.limits import SIDE_FILE_BYTES
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.rows import Rows
from kaudit.source.bytes import read_bytes
from kaudit.source.kafka.fetched_segment import Aborted
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.listing import failure

MAX_BATCH_OFFSETS = 2**31
"""A header that claims more offsets than a batch can have (DefaultRecordBatch.lastOffsetDelta) is not believed."""


def broken_off_at(directory: PartitionDirectory, damages: Sequence[PlacedDamage]) -> int | None:
    """Return the byte at which the last segment breaks off, if that is inside a batch and no append ends there; else None."""
    last = len(directory.segments) - 1
    if last < 0 or directory.segments[last].text is not None or directory.segments[last].fetched is not None:
        return None
    cut = [each.damage.end for each in damages if each.segment == last and each.damage.ends_inside_append]
    return cut[-1] if cut else None


class LogFacts(Struct, frozen=True):
    """A partition as it was read. Offsets named `end` are exclusive.

    `ended` are its markers (analysis.transactions.transaction_spans.ENDED), None if not all could be kept; `only_records`: nothing shows
    that an offset of it may be a marker, or was compacted away; `epoch_steps`
    the first batch of every run of one leader epoch, in offset order; `unread`: a segment could not be read; `listed_aborts`: what brokers
    list as aborted, where they sent the log. `batch_starts`: of those positions that is_kept keeps, segment by segment in the
    order of the log; `read_to`: the segment of the last valid batch, and the position after it.
    """

    directory: PartitionDirectory
    damages: Sequence[PlacedDamage]
    missing: Sequence[MissingOffsets]
    compacted: bool
    first_offset: int | None
    log_end_offset: int | None
    has_legacy: bool
    epoch_regressions: bool
    epoch_steps: Rows
    ended: Rows | None
    unread: bool
    only_records: bool = False
    listed_aborts: Aborted = frozenset()
    batch_starts: Rows = field(default_factory=lambda: np.empty(0, dtype=BATCH_START))
    read_to: tuple[int, int] = (0, 0)

    @property
    def end_offset(self) -> int:
        """The log's end, as far as its last batch and the name of its last segment say (UnifiedLog.roll)."""
        return max([self.log_end_offset or 0, *(segment.base_offset for segment in self.directory.segments[-1:])])

    @property
    def after_last_batch(self) -> list[PlacedDamage]:
        """Damage that no valid batch follows, in the last segment."""
        last = len(self.directory.segments) - 1
        found = [each for each in self.damages if (each.segment, each.damage.position) >= self.read_to]
        return [each for each in found if each.segment == last]

    @property
    def claimed_end(self) -> int | None:
        """The log's end with the batches after it whose header is whole and whose content is not; None where a text leaves it out."""
        after = [each.damage for each in self.after_last_batch]
        if any(damage.kind is DamageKind.LEFT_OUT for damage in after):
            return None
        claims = [damage.last_offset for damage in after if damage.kind is DamageKind.CRC_MISMATCH]
        end = self.end_offset
        return 1 + max(
            [end - 1, *(last for last in claims if last is not None and end <= last < end + MAX_BATCH_OFFSETS)]
        )

    @property
    def is_whole(self) -> bool:
        """Whether nothing but what retention deleted is missing."""
        return not (self.damages or self.compacted or self.unread) and all(
            gap.cause is MissingCause.LOG_START for gap in self.missing
        )


MAX_SIDE_FILE = SIDE_FILE_BYTES
"""Larger side files are not read: no broker's default makes one of a tenth of that."""


class SideFileReader(Struct):
    """Reads side files; what cannot be read is listed."""

    open_source: OpenSource
    unreadable: list[Unreadable] = field(default_factory=list)

    def size_now(self, segment: SegmentFile) -> int:
        """Return a segment's size in bytes: a live log grows after it was listed. As listed where it cannot be opened."""
        try:
            with closing(self.open_source(segment)) as source:
                return max(source.size(), segment.size)
        except OSError as error:
            self.note(segment, error)
            return segment.size

    def note(self, file: SegmentFile, error: OSError) -> None:
        """List a file that cannot be read."""
        self.unreadable.append(Unreadable(file.path, failure(error)))

    def read(self, file: SegmentFile) -> bytes | None:
        """Return the file's bytes, None where it is gone or unreadable (then it is listed)."""
        try:
            with closing(self.open_source(file)) as source:
                size = source.size()
                if size > MAX_SIDE_FILE:
                    self.unreadable.append(Unreadable(file.path, f"side file of {size} bytes, more than is read"))
                    return None
                return read_bytes(source, 0, size)
        except FileNotFoundError:
            return None  # brokers delete and replace side files while we read
        except OSError as error:
            self.note(file, error)
            return None
