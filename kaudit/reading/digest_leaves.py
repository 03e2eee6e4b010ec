"""The batches of a log as leaves of its tree: made of ranges that are read side by side, a leaf cut between two of them included."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.reading.digest_tree import LEAF_BITS, Leaf
from kaudit.reading.rows import Rows, assemble

BATCH = np.dtype([("base_offset", ">i8"), ("last_offset", ">i8"), ("leader_epoch", ">i4"), ("crc", ">u4")])
"""The bytes of a batch in a leaf, as SHA-256 takes them."""
LEAF = np.dtype([("number", "<i8"), ("digest", "V32")])


class RangeLeaves(Struct, frozen=True):
    """Digest leaves of a range's batches, in offset order.

    `first` and `last` are the batches of its first and its last leaf (`last` has none if that is the first): what lies beside the
    range may begin there too. `leaves` are the leaves between them, `batches` counts those of all.
    """

    first: Rows
    leaves: Rows
    last: Rows
    batches: int

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return int(self.first.nbytes + self.leaves.nbytes + self.last.nbytes)


def range_leaves(
    base_offsets: NDArray[np.int64],
    last_offsets: NDArray[np.int64],
    leader_epochs: NDArray[Any],
    crcs: NDArray[Any],
) -> RangeLeaves:
    """Return the leaves of batches in offset order, shape (n,) each; those with a negative base offset are left out."""
    columns = {
        "base_offset": base_offsets,
        "last_offset": last_offsets,
        "leader_epoch": leader_epochs,
        "crc": crcs.astype(np.int64) & 0xFFFF_FFFF,
    }
    if len(base_offsets) and int(base_offsets.min()) < 0:
        columns = {name: column[base_offsets >= 0] for name, column in columns.items()}
    batches = assemble(BATCH, len(columns["base_offset"]), columns)
    numbers = columns["base_offset"] >> LEAF_BITS
    begins = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    if not len(begins):
        return RangeLeaves(batches, np.empty(0, dtype=LEAF), batches[:0], len(batches))
    leaves = _closed(batches, numbers, begins)
    # copies: the rows between them are let go
    return RangeLeaves(batches[: begins[0]].copy(), leaves, batches[begins[-1] :].copy(), len(batches))


def _closed(batches: Rows, numbers: NDArray[np.int64], begins: NDArray[np.intp]) -> Rows:
    content, size = memoryview(batches.tobytes()), BATCH.itemsize
    bounds = (begins * size).tolist()
    sha256 = hashlib.sha256
    digests = b"".join([
        sha256(content[begin:end]).digest() for begin, end in pairwise(bounds)
    ])  # fmt: skip
    leaves = np.empty(len(begins) - 1, dtype=LEAF)
    leaves["number"] = numbers[begins[:-1]]
    leaves["digest"] = np.frombuffer(digests, dtype="V32")
    return leaves


def join_leaves(parts: Sequence[RangeLeaves]) -> RangeLeaves:
    """Return the leaves of ranges that follow one another as those of one range."""
    first: list[Rows] = []
    leaves: list[Rows] = []
    last: list[Rows] = []
    for part in parts:
        if not len(part.first):
            continue
        if not last and (not first or _number(part.first) == _number(first[0])):
            first.append(part.first)
        elif last and _number(part.first) == _number(last[0]):
            last.append(part.first)
        else:
            leaves += [_leaf(last)] if last else []
            last = [part.first]
        if len(part.last):
            leaves += [_leaf(last)] if last else []
            leaves.append(part.leaves)
            last = [part.last]
    batches = sum(part.batches for part in parts)
    return RangeLeaves(_rows(first, BATCH), _rows(leaves, LEAF), _rows(last, BATCH), batches)


class Leaves(Struct):
    """The leaves of a log whose ranges come in order; `begun` are the batches of the last leaf so far."""

    begun: list[Rows] = field(default_factory=list)

    def feed(self, part: RangeLeaves) -> Iterator[Leaf]:
        """Yield the leaves that end before the last batch of a range."""
        if not len(part.first):
            return
        if self.begun and _number(self.begun[0]) != _number(part.first):
            yield from self.rest()
            self.begun = []
        self.begun.append(part.first)
        if len(part.last):
            yield from self.rest()
            yield from part.leaves.tolist()
            self.begun = [part.last]

    def rest(self) -> Iterator[Leaf]:
        """Yield the last leaf as it is if the log ends here, none of an empty log."""
        if self.begun:
            ((number, digest),) = _leaf(self.begun).tolist()
            yield number, digest


def _leaf(batches: Sequence[Rows]) -> Rows:
    digest = hashlib.sha256(b"".join(rows.tobytes() for rows in batches)).digest()
    return np.array([(_number(batches[0]), digest)], dtype=LEAF)


def _number(batches: Rows) -> int:
    return int(batches["base_offset"][0]) >> LEAF_BITS


def _rows(parts: Sequence[Rows], dtype: np.dtype[Any]) -> Rows:
    # without the dtype the result has the byte order of this machine
    return np.concatenate(parts, dtype=dtype) if parts else np.empty(0, dtype=dtype)
