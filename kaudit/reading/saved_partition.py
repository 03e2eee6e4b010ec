"""The saved ranges of a partition as plans and tasks carry them: no rows, a few numbers for each segment."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.model.result import StateUse


class DamagedStateError(ValueError):
    """A file of a state does not hold what an audit wrote there."""


class OtherFormatStateError(DamagedStateError):
    """A file of a state has another format."""


class SavedRows(Struct, frozen=True):
    """Place of the saved rows of a partition's ranges: its directory in the state, and the digest of its index.

    One object for all ranges of a partition.
    """

    directory: str
    digest: str


class SavedPiece(Struct, frozen=True):
    """Bytes `start` to `stop` of a segment (its index in the partition), all of whose rows are saved.

    `joined`: number of following segments that are among the rows. `expected_offset`: the offset after the batches before `start`,
    `next_offset` that after those before `stop`.
    """

    segment: int
    start: int
    stop: int
    expected_offset: int
    next_offset: int
    joined: int = 0


class FileIdentity(Struct, frozen=True, array_like=True):
    """Identity of a segment's file before it was read, from its file system: it changes when the file does."""

    inode: int = 0
    changed_ns: int = 0


class Settings(Struct, frozen=True):
    """Settings that must be equal for saved rows to be used: how deep the log was read, and whether for digests too."""

    depth: str
    digests: bool = False


class SavedPartition(Struct, frozen=True):
    """The saved rows of a partition that hold for its files today; new rows are saved in `directory`.

    `rows` is None where nothing holds. `files`: of each segment, as it was before anything was read; `snapshots`: of each
    snapshot, by offset. What the first `resumed` pieces come to is saved too: they need not be put together again.
    """

    directory: str
    settings: Settings
    files: Sequence[FileIdentity]
    use: StateUse
    rows: SavedRows | None = None
    pieces: Sequence[SavedPiece] = ()
    resumed: int = 0
    snapshots: Sequence[FileIdentity] = ()
