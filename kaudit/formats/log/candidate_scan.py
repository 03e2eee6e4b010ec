"""Finds where small batches start, for a whole buffer at once.

Following length fields one by one costs the same for a batch of 100 bytes as for one of 16 KiB. For small ones it is
cheaper to test every byte: those equal to 2 may be the magic of a header that starts 16 bytes before; of these
candidates, each whose length field leads exactly to the next one is a link of a chain.

Equal to `walk`: the chain starts where the walk starts, and each of its links is what the walk would do there (magic 2,
a plausible length, the batch inside the buffer), so by induction its positions are the walk's first ones. Whatever comes
after a broken link is left to `walk` itself. Candidates that no link leads to - magic-like bytes in payloads - are
dropped first; dropping them can only break the chain, never bend it.
"""

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH_V2,
)
from kaudit.formats.log.record_batch import Walk, length_fields, walk

SCAN_BELOW_BYTES = 600
"""Mean batch size below which testing every byte is cheaper than following lengths (measured: 500-700)."""
_SAMPLE_BYTES = 16 << 10
_BLOCK_BYTES = 256 << 10
"""Bytes searched in one go: they and the marks made of them stay in the processor's second level cache."""
_CAUTIOUS_BYTES = 1 << 10
_MAX_BROKEN_LINKS = 1000
"""Broken links mended in one buffer; more are a payload full of headers, for which the walk is cheaper."""


class Framing:
    """Follows the batches of one file: by length fields or by candidates, as the mean batch size of the last buffer says."""

    def __init__(self) -> None:
        self.mean_size: float | None = None
        self._scan_pays = True
        self._cautious: int | None = None
        """After an obstacle: how many bytes are followed next, as another may be near."""

    def follow(self, buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
        """Return what `walk` returns; soon after an obstacle only the first batches of it."""
        if self._cautious is not None:
            return self._follow_cautiously(buffer, start, end, last_start)
        short = last_start <= start + _SAMPLE_BYTES
        if self.mean_size is None and not short:
            self._learn(walk(buffer, start, end, start + _SAMPLE_BYTES), start)
        if short or self.mean_size is None or self.mean_size >= SCAN_BELOW_BYTES or not self._scan_pays:
            walked = walk(buffer, start, end, last_start)
        else:
            walked = self._scan(buffer, start, end, last_start)
        self._learn(walked, start)
        self._cautious = None if walked.valid else _CAUTIOUS_BYTES
        return walked

    def meet_obstacle(self) -> None:
        """Follow only a little next: where no batch begins, or one's length leads astray, another such place may be near."""
        self._cautious = _CAUTIOUS_BYTES

    def _follow_cautiously(self, buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
        assert self._cautious is not None
        walked = walk(buffer, start, end, min(last_start, start + self._cautious))
        self._cautious = 2 * self._cautious if walked.valid else _CAUTIOUS_BYTES
        if self._cautious > _BLOCK_BYTES:
            self._cautious = None
        return walked

    def _learn(self, walked: Walk, start: int) -> None:
        if len(walked.positions):
            self.mean_size = (walked.stop - start) / len(walked.positions)

    def _scan(self, buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
        chain, stop = linked_positions(buffer, start, end, last_start)
        rest = walk(buffer, stop, end, last_start)
        # with legacy messages, or payloads full of headers, the walk does nearly all of it anyway
        self._scan_pays = len(chain) >= len(rest.positions)
        positions = np.concatenate((chain, rest.positions)) if len(rest.positions) else chain
        return Walk(positions, rest.stop, rest.valid)


def linked_positions(buffer: memoryview, start: int, end: int, last_start: int) -> tuple[NDArray[np.int64], int]:
    """Return where the first batches from `start` on lie, as far as candidates link up, and where the next one starts.

    Positions are bytes of `buffer`: int64, shape (n,), ascending.
    """
    nothing = np.empty(0, dtype=np.int64), start
    raw: NDArray[np.uint8] = np.frombuffer(buffer, dtype=np.uint8)
    found = _candidates(raw, start, min(last_start, end - HEADER_SIZE + 1))
    if not len(found) or found[0] != start:
        return nothing
    length = length_fields(buffer)[found]
    following = found + length
    following += LOG_OVERHEAD
    broken = np.append(np.flatnonzero(following[:-1] != found[1:]), len(found) - 1)
    # candidates that break the chain and lead to no batch are dropped first: few remain to examine
    last = end - MAGIC_OFFSET - 1
    magic = raw[np.minimum(following[broken], last) + MAGIC_OFFSET]
    leads = (magic == CURRENT_MAGIC) | (following[broken] > last)
    kept = np.ones(len(found), dtype=bool)
    kept[broken[(length[broken] < MIN_LENGTH_V2) | (following[broken] > end) | ~leads]] = False
    found, following = found[kept], following[kept]
    kept = _without_false_headers(found, following)
    found, following = found[kept], following[kept]
    if not len(found) or found[0] != start:
        return nothing
    broken = np.flatnonzero(following[:-1] != found[1:])
    count = int(broken[0]) + 1 if len(broken) else len(found)
    fit = (following[:count] <= end) & (following[:count] - found[:count] >= HEADER_SIZE)
    count = count if fit.all() else int(np.argmin(fit))
    return (found[:count], int(following[count - 1])) if count else nothing


def _candidates(raw: NDArray[np.uint8], start: int, limit: int) -> NDArray[np.int64]:
    """Positions in `start`..`limit` with magic 2, a length below 16 MiB and no attribute beyond the first eight."""
    parts = [np.empty(0, dtype=np.int64)]
    odd = np.empty(_BLOCK_BYTES, dtype=np.uint8)
    marks = np.empty(_BLOCK_BYTES, dtype=np.bool_)
    for first in range(start, limit, _BLOCK_BYTES):
        size = min(_BLOCK_BYTES, limit - first)
        at, out = odd[:size], marks[:size]
        np.bitwise_xor(raw[first + MAGIC_OFFSET :][:size], CURRENT_MAGIC, out=at)
        at |= raw[first + LENGTH_OFFSET :][:size]
        at |= raw[first + ATTRIBUTES_OFFSET :][:size]
        np.equal(at, 0, out=out)
        parts.append(out.nonzero()[0] + first)
    return np.concatenate(parts)


def _without_false_headers(found: NDArray[np.int64], following: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the candidates to keep: not those between a broken link and the candidate it leads to."""
    kept = np.ones(len(found), dtype=bool)
    broken = np.flatnonzero(following[:-1] != found[1:])[:_MAX_BROKEN_LINKS]
    targets = np.searchsorted(found, following[broken])
    leads = (found[np.minimum(targets, len(found) - 1)] == following[broken]).tolist()
    reached = 0
    for index, target, leads_on in zip(broken.tolist(), targets.tolist(), leads, strict=True):
        if index < reached:
            continue  # a false header itself
        if not leads_on:
            break  # the chain ends here, whatever follows
        kept[index + 1 : target] = False
        reached = target
    return kept
