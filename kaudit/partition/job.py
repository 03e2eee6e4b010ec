"""One partition replica's work: what to read of it and what its audit is wanted for."""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from kaudit.partition.audit import Needs
from kaudit.reading.chunk_plan import ChunkSpec, cut, with_saved
from kaudit.reading.chunk_reader import CHUNK_BYTES
from kaudit.reading.saved_partition import SavedPartition
from kaudit.reading.small_segments import join_small
from kaudit.source.layout import PartitionDirectory, list_snapshots

LONGEST_TEXT_BYTES = 64 << 20
"""Longest text of a segment that is read as one range: its batches take up to a third of that in memory."""


class Job(Struct, frozen=True):
    """One partition replica's work: its directory, one spec a segment, whole, and what is wanted of it.

    `compacted`: the user says so.
    """

    directory: PartitionDirectory
    plan: Sequence[ChunkSpec]
    chunk_bytes: int = CHUNK_BYTES
    compacted: bool = False
    needs: Needs = field(default_factory=Needs)
    saved: SavedPartition | None = None
    """Rows that an earlier audit saved, and where this one saves its own."""

    @property
    def bytes(self) -> int:
        """Bytes to read: what is saved is not read again."""
        saved = () if self.saved is None else self.saved.pieces
        return sum(spec.stop - spec.start for spec in self.plan) - sum(piece.stop - piece.start for piece in saved)

    @property
    def in_pieces(self) -> Sequence[ChunkSpec]:
        """Specs that can be cut into ranges: none where a text is too long for one range, as a text cannot be cut."""
        longest = max((spec.stop - spec.start for spec in self.plan if spec.file.text is not None), default=0)
        return self.plan if longest <= LONGEST_TEXT_BYTES else ()

    @property
    def joined(self) -> Iterator[ChunkSpec]:
        """Specs that can be cut into ranges, with small segments read together."""
        plan = self.in_pieces if self.saved is None else with_saved(self.in_pieces, self.saved)
        return join_small(plan, self.chunk_bytes, [file.base_offset for file in list_snapshots(self.directory)])

    def ranges(self) -> list[ChunkSpec]:
        """Return what to read in pieces, in order."""
        return [part for spec in self.joined for part in cut(spec, self.chunk_bytes)]
