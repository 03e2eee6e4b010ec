"""A partition on the wire in place of a segment file: batches by offset, one fetch at a time."""

import errno
import time
from collections.abc import Callable

from kaudit.formats.log.batch_header import LOG_OVERHEAD, PREFIX_SIZE, base_offset_of, batch_size
from kaudit.source.layout import FetchedRange

Aborted = frozenset[tuple[int, int]]
"""Aborted transactions by producer id and first offset."""
NO_ABORTS: Aborted = frozenset()
Fetch = Callable[[int, int], tuple[bytes, Aborted]]
"""Takes an offset and a number of bytes; returns about that many bytes of batches, at least one batch, from the one that holds the
offset on (empty at the end), and the aborted transactions that overlap them."""
FETCH_BYTES = 4 << 20
"""Bytes of one fetch: larger fetches are not faster on loopback, and each is briefly in memory twice."""
_LEAST_FETCH_BYTES = 64 << 10
_PAUSE_SECONDS = 0.02


class BrokerError(OSError):
    """A broker cannot be asked, or its answer cannot be used. `strerror` says why, `filename` is its host and port."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(errno.EIO, reason, place)


class RemovedByRetentionError(OSError):
    """Retention or DeleteRecords removed an offset before it was read; the log begins at `log_start` now."""

    def __init__(self, place: str, log_start: int) -> None:
        super().__init__(errno.ENODATA, f"the log begins at offset {log_start} by now", place)
        self.log_start = log_start


class FetchedSegment:
    """The offsets of a range as the positions of a file (`FetchedRange`). Batches are asked for by offset."""

    def __init__(self, place: FetchedRange, fetch: Fetch) -> None:
        self.place = place
        self._fetch = fetch
        self._held, self._index = b"", dict[int, int]()
        self._following = -1
        self.aborted: Aborted = frozenset()
        """Aborted transactions that overlap the batches fetched last."""

    def over(self, changed: Callable[[Fetch], Fetch]) -> "FetchedSegment":
        """Return the same offsets as `changed` fetches them."""
        return FetchedSegment(self.place, changed(self._fetch))

    def size(self) -> int:
        """Return how many positions there are."""
        return self.place.size

    def records(self, offset: int, room: int = FETCH_BYTES) -> bytes:
        """Return batches from the one that holds `offset` on, the last one perhaps cut off; empty at the end.

        About `room` bytes are asked for, within what a fetch should have.

        Raises:
            OSError: the broker cannot be asked, or has no such offset any more.

        """
        asked = max(offset, self.place.readable_from)
        size = min(max(room, _LEAST_FETCH_BYTES), FETCH_BYTES)
        if asked >= self.place.end_offset:
            return b""
        data, self.aborted = self._fetch(asked, size)
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` with the bytes from the batch at `position` on; return how many there were.

        Positions are valid within that batch only: the bytes after it belong to the next batches.
        """
        offset = self.place.offset(position)
        at = self._index.get(offset)
        if at is None or at + len(buffer) > len(self._held):
            # a sequential reader will want the next batches, others only this one
            self._hold(offset, FETCH_BYTES if offset == self._following else len(buffer))
            at = self._index.get(offset, 0)
        data = self._held[at : at + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def _hold(self, offset: int, room: int) -> None:
        """Fetch from an offset on, and note where batches begin."""
        self._held = self.records(offset, room)
        self._index, at = {}, 0
        while at + PREFIX_SIZE <= len(self._held):
            head = memoryview(self._held)[at : at + PREFIX_SIZE]
            size = batch_size(head)
            if size <= LOG_OVERHEAD:
                return
            self._following = base_offset_of(head)
            self._index[self._following] = at
            at += size

    def close(self) -> None:
        """Forget what was fetched; the connection is kept for the next one."""
        self._held, self._index = b"", {}


class Throttle:
    """Limits the average number of bytes per second; a burst lasts one second at most."""

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._free_at = time.monotonic()

    def spend(self, count: int) -> None:
        """Count bytes received, and wait until more are allowed."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - 1) + count / self._rate
        while (ahead := self._free_at - time.monotonic()) > _PAUSE_SECONDS:
            time.sleep(min(ahead, 1))
