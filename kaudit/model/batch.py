"""Columns of record batches: one row a batch, the same for every magic.

A batch is one RecordBatch (magic 2), or one legacy message or message set wrapper (magic 0, 1), which has no producer.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

BATCH = np.dtype(
    [
        ("position", np.int64),
        ("size", np.int64),
        ("base_offset", np.int64),
        ("last_offset_delta", np.int32),
        ("leader_epoch", np.int32),
        ("magic", np.int8),
        ("crc", np.uint32),
        ("attributes", np.int16),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("producer_epoch", np.int16),
        ("base_sequence", np.int32),
        ("record_count", np.int32),
        ("control_type", np.int8),
        ("coordinator_epoch", np.int32),
    ]
)
"""`position` and `size` are bytes in the segment file; the rest as in DefaultRecordBatch. For magic 0 and 1
`base_offset` is the offset field (a wrapper's last offset), `record_count` -1 for a compressed wrapper."""
_NAMES: tuple[str, ...] = BATCH.names or ()

Selection = slice | NDArray[Any] | Sequence[int]


class Batches:
    """Batches in file order, a contiguous array for each field of BATCH: what reads one field of all touches only it.

    Control batches are rare: `control_type` and `coordinator_epoch` may be left out, then none of these is one.

    Indexed like a structured array: by name for a column (shared, not copied), by position for one batch, by slice,
    mask or index array for some of them.
    """

    __slots__ = ("_columns", "_length")

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = columns
        self._length = len(columns["position"])

    def __len__(self) -> int:
        return self._length

    def tolist(self) -> list[tuple[int, ...]]:
        """All batches as tuples of Python numbers, fields in the order of BATCH."""
        return list(zip(*(self[name].tolist() for name in _NAMES), strict=True))

    def has(self, name: str) -> bool:
        """Tell whether a column is there and not left out."""
        return name in self._columns

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, int]: ...
    @overload
    def __getitem__(self, key: Selection) -> "Batches": ...
    def __getitem__(self, key: str | int | Selection) -> "NDArray[Any] | dict[str, int] | Batches":
        if isinstance(key, str):
            return self._columns[key] if key in self._columns else np.full(self._length, -1, dtype=BATCH[key])
        if isinstance(key, int):
            return {name: int(self[name][key]) for name in _NAMES}
        chosen = key if isinstance(key, slice) else np.asarray(key, dtype=None if len(key) else np.intp)
        if isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)  # once, not once a column
        return Batches({name: column[chosen] for name, column in self._columns.items()})

    def __iter__(self) -> Iterator[dict[str, int]]:
        return (self[index] for index in range(self._length))


def empty_batches() -> Batches:
    """No batches."""
    return Batches({name: np.empty(0, dtype=BATCH[name]) for name in _NAMES})


def concatenate(parts: Sequence[Batches]) -> Batches:
    """All batches of `parts`, one after the other."""
    if not parts:
        return empty_batches()
    if len(parts) == 1:
        return parts[0]
    names = [name for name in _NAMES if any(part.has(name) for part in parts)]
    return Batches({name: np.concatenate([part[name] for part in parts]) for name in names})


def last_offsets(batches: Batches) -> NDArray[np.int64]:
    """Offset of each batch's last record."""
    offsets: NDArray[np.int64] = batches["base_offset"] + batches["last_offset_delta"]
    return offsets


def last_sequences(batches: Batches) -> NDArray[np.int64]:
    """Sequence of each batch's last record, -1 where it has none; follows lastOffsetDelta, which compaction keeps."""
    base = batches["base_sequence"].astype(np.int64)
    wrapped = (base + batches["last_offset_delta"]) & 0x7FFFFFFF
    return np.where(base < 0, base, wrapped)
