"""Where small batches start, found for a whole buffer at once.

Following length fields one by one costs the same for a batch of 100 bytes as for one of 16 KiB. For small ones it is
cheaper to look at every byte: those equal to 2 may be the magic of a header that starts 16 bytes before; of these
candidates, each whose length field leads exactly to the next one is a link of a chain.

Equal to `walk`: the chain starts where the walk starts, and each of its links is what the walk would do there (magic 2,
a plausible length, the batch inside the buffer), so by induction its positions are the walk's first ones. Whatever comes
behind a broken link is left to `walk` itself. Candidates that nobody leads to - magic-like bytes in payloads - are
dropped first; dropping them can only break the chain, never bend it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.wire.record_batch import (
    CURRENT_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH_V2,
    Walk,
    walk,
)

SCAN_BELOW_BYTES = 600
"""Mean batch size below which looking at every byte is cheaper than following lengths (measured: 500-700)."""
_SAMPLE_BYTES = 16 << 10
_PRUNINGS = 3


class Framing:
    """Follows the batches of one file, choosing the way by the mean batch size of the last buffer."""

    def __init__(self) -> None:
        self.mean_size: float | None = None
        self._scan_pays = True

    def follow(self, buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
        """Return what `walk` returns."""
        if self.mean_size is None:
            self._learn(walk(buffer, start, end, min(last_start, start + _SAMPLE_BYTES)), start)
        if self.mean_size is None or self.mean_size >= SCAN_BELOW_BYTES or not self._scan_pays:
            walked = walk(buffer, start, end, last_start)
        else:
            walked = self._scan(buffer, start, end, last_start)
        self._learn(walked, start)
        return walked

    def _learn(self, walked: Walk, start: int) -> None:
        if len(walked.positions):
            self.mean_size = (walked.stop - start) / len(walked.positions)

    def _scan(self, buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
        chain, stop = linked_positions(buffer, start, end, last_start)
        rest = walk(buffer, stop, end, last_start)
        # legacy messages, or payloads full of headers: the walk has to do it all anyway
        self._scan_pays = len(chain) >= len(rest.positions)
        positions = np.concatenate((chain, rest.positions)) if len(rest.positions) else chain
        return Walk(positions, rest.stop, rest.sound)


def linked_positions(buffer: memoryview, start: int, end: int, last_start: int) -> tuple[NDArray[np.int64], int]:
    """Return the first batches from `start` on, as far as candidates link up, and where the one after them starts."""
    nothing = np.empty(0, dtype=np.int64), start
    limit = min(last_start, end - MAGIC_OFFSET)
    if start >= limit:
        return nothing
    raw: NDArray[np.uint8] = np.frombuffer(buffer, dtype=np.uint8)
    found = np.flatnonzero(raw[start + MAGIC_OFFSET : limit + MAGIC_OFFSET] == CURRENT_MAGIC) + start
    lengths: NDArray[Any] = np.ndarray((len(raw) - LOG_OVERHEAD + 1,), np.dtype(">i4"), buffer, 8, (1,))
    length = lengths[found].astype(np.int64)
    following = found + length + LOG_OVERHEAD
    plausible = np.flatnonzero((length >= MIN_LENGTH_V2) & (following <= end))
    found, following = found[plausible], following[plausible]
    linked = following[:-1] == found[1:]
    for _ in range(_PRUNINGS):
        if linked.all():
            break
        reached = np.zeros(end + 1, dtype=bool)
        reached[following] = True
        reached[start] = True
        kept = np.flatnonzero(reached[found])
        found, following = found[kept], following[kept]
        linked = following[:-1] == found[1:]
    if not len(found) or found[0] != start:
        return nothing
    broken = np.flatnonzero(~linked)
    count = int(broken[0]) + 1 if len(broken) else len(found)
    return found[:count], int(following[count - 1])
