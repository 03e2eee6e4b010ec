"""The rows that commands beside `scan` keep of each partition."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from kaudit.engines.rows import Rows, sink_itself
from kaudit.errors import UsageError
from kaudit.listings.producer_histories import HistoryRows, PartitionHistory
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.replay import KeptRows
from kaudit.reading.shuffle_codec import pack, unpack


class HistoryFiles:
    """Keeps the histories of each partition in a temporary file: no process holds more than one partition's.

    Raises UsageError where there is no directory for them.
    """

    def __init__(self, stack: ExitStack) -> None:
        try:
            tempfile.gettempdir()
        except FileNotFoundError as error:
            raise UsageError(f"{error.strerror}: TMPDIR names another") from error
        self._directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kaudit-")))
        self._files: list[Path] = []

    def take(self, partition: PartitionAudit, kept: HistoryRows) -> None:
        """Write the histories, without the evidence of findings: the audit goes on with that."""
        bare = replace(partition, observations=(), suspects=(), shared=(), damages=())
        self._files.append(self._directory / str(len(self._files)))
        self._files[-1].write_bytes(pack(PartitionHistory.of(bare, kept)))

    def __iter__(self) -> Iterator[PartitionHistory]:
        """Read the histories."""
        return (unpack(file.read_bytes(), PartitionHistory) for file in self._files)


def _activity() -> HistoryRows:
    return HistoryRows(KeptRows(frozenset()))


ACTIVITY = Rows(_activity, PartitionHistory, PartitionHistory.of, every_id=True, small=True)
"""For a list of producer ids: what each of them did in each partition."""
HISTORIES = Rows(HistoryRows, PartitionHistory, PartitionHistory.of, HistoryFiles)
"""For tables: runs, markers and activity of all producer ids."""


def runs_of(producer_ids: Sequence[int]) -> Rows:
    """Keep runs and markers for timelines of these producer ids, of all if there are none."""
    return Rows(partial(KeptRows, frozenset(producer_ids) or None), KeptRows, sink_itself)
