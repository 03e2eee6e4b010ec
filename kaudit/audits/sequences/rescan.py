"""Reading a partition again for a few producer ids: what the rows of the first pass do not keep.

Only producers with anomalies, and ids no block holds, pay for it: one pass over the headers of the partition.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID
from kaudit.model.producer_ids import FirstBatch
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

MAX_CHAIN_BATCHES = 200_000
"""Batches kept of one partition for its chains; interleaved writers show within a few."""
MAX_NEGATIVE_IDS = 1000

_CHAIN = np.dtype(
    [
        ("producer_id", np.int64),
        ("producer_epoch", np.int16),
        ("base_offset", np.int64),
        ("first_sequence", np.int32),
        ("last_sequence", np.int32),
        ("crc", np.uint32),
    ]
)


class Questions(Struct, frozen=True):
    """Questions for a rescan: batches of these (producer id, epoch)s from an offset on, first batches, negative ids."""

    chains: Mapping[tuple[int, int], int] = field(default_factory=dict)
    first_of: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    negative: bool = False

    def __bool__(self) -> bool:
        """Return whether there is anything to read for."""
        return bool(self.chains) or len(self.first_of) > 0 or self.negative


class Seen(Struct):
    """The answers. `first` by producer id, negative ones among them when asked for."""

    first: dict[int, FirstBatch] = field(default_factory=dict)
    _chains: list[NDArray[np.void]] = field(default_factory=list)

    def chain(self, producer_id: int, epoch: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (offset, first sequence, last sequence, crc) of each data batch, in offset order."""
        if not self._chains:
            return
        rows = np.concatenate(self._chains)
        rows = rows[(rows["producer_id"] == producer_id) & (rows["producer_epoch"] == epoch)]
        rows = rows[np.argsort(rows["base_offset"], kind="stable")]
        columns = (rows[name].tolist() for name in ("base_offset", "first_sequence", "last_sequence", "crc"))
        yield from zip(*columns, strict=True)


Rescan = Callable[[Sequence[tuple[PartitionDirectory, Questions]]], Sequence[Seen]]
"""Reads partitions again, and returns the answers in the order of the questions."""


def rescan_here(open_source: OpenSource) -> Rescan:
    """Return what reads one partition after the other in this process."""
    return lambda asked: [rescan(directory, open_source, questions) for directory, questions in asked]


def rescan(directory: PartitionDirectory, open_source: OpenSource, questions: Questions) -> Seen:
    """Read a partition again; files that vanished or cannot be read meanwhile are left out: whoever opens them notes that."""
    seen = Seen()
    if not questions:
        return seen
    chained = np.array(sorted({producer_id for producer_id, _ in questions.chains}), dtype=np.int64)
    room = MAX_CHAIN_BATCHES if len(chained) else 0
    for number, segment in enumerate(directory.segments):
        with suppress(OSError), closing(open_source(segment)) as source:
            for piece in stream_batches(source, ByteRange(0, segment.size, segment.size), expected_offset=None):
                batches = piece.batches[piece.batches["magic"] >= 2]
                _take_first(seen, batches, questions, number)
                if room:
                    kept = _chain_rows(batches, chained, questions)[:room]
                    room -= len(kept)
                    seen._chains.append(kept)  # noqa: SLF001 - its own module
    return seen


def _take_first(seen: Seen, batches: Batches, questions: Questions, segment: int) -> None:
    ids = batches["producer_id"]
    wanted = np.isin(ids, questions.first_of)
    if questions.negative and len(seen.first) < MAX_NEGATIVE_IDS:
        wanted |= ids < NO_PRODUCER_ID
    for index in np.flatnonzero(wanted).tolist():
        row = batches[index]
        if int(row["producer_id"]) not in seen.first:
            base = int(row["base_offset"])
            seen.first[int(row["producer_id"])] = FirstBatch(
                base,
                base + int(row["last_offset_delta"]),
                int(row["max_timestamp"]),
                int(row["producer_epoch"]),
                int(row["position"]),
                segment,
                bool(int(row["attributes"]) & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG)),
            )


def _chain_rows(batches: Batches, chained: NDArray[np.int64], questions: Questions) -> NDArray[np.void]:
    data = batches["attributes"] & CONTROL_FLAG == 0
    own = batches[data & np.isin(batches["producer_id"], chained) & (batches["base_sequence"] >= 0)]
    last_offsets_of_all = last_offsets(own)
    keep = np.zeros(len(own), dtype=bool)
    for (producer_id, epoch), start in questions.chains.items():
        mine = (own["producer_id"] == producer_id) & (own["producer_epoch"] == epoch)
        keep |= mine & (last_offsets_of_all >= start)
    own = own[keep]
    rows = np.empty(len(own), dtype=_CHAIN)
    for name in ("producer_id", "producer_epoch", "base_offset", "crc"):
        rows[name] = own[name]
    rows["first_sequence"] = own["base_sequence"]
    rows["last_sequence"] = last_sequences(own)
    return rows
