"""A partition on the wire in the place of a segment file: batches by offset, a fetch at a time."""

import errno
import time
from collections.abc import Callable

from kaudit.formats.log.batch_header import LOG_OVERHEAD, PREFIX_SIZE, base_offset_of, batch_size
from kaudit.source.layout import FetchedRange

Aborted = frozenset[tuple[int, int]]
"""Aborted transactions by producer id and first offset."""
NO_ABORTS: Aborted = frozenset()
Fetch = Callable[[int, int], tuple[bytes, Aborted]]
"""From an offset and a number of bytes to the record set that begins with the batch that holds the offset, of about so many
bytes and at least a batch; empty where there is none below the end. With it the aborted transactions that overlap it."""
FETCH_BYTES = 4 << 20
"""Of one fetch: larger ones are no faster on loopback, and each is held twice briefly."""
_LEAST_FETCH_BYTES = 64 << 10
_PAUSE_SECONDS = 0.02


class BrokerError(OSError):
    """A broker cannot be asked, or its answer cannot be used. `strerror` says why, `filename` is its host and port."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(errno.EIO, reason, place)


class RemovedByRetentionError(OSError):
    """An offset is below `log_start` by now: retention, or DeleteRecords, overtook the reader."""

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
        """Those that the last record set overlaps."""

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

        Only the bytes of that batch belong to positions: those after it are the next batches'.
        """
        offset = self.place.offset(position)
        at = self._index.get(offset)
        if at is None or at + len(buffer) > len(self._held):
            # whoever reads on in order will want what follows, others this batch alone
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
    """Lets so many bytes pass a second on average, in bursts of a second at most."""

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._free_at = time.monotonic()

    def spend(self, count: int) -> None:
        """Take note of bytes that came, and wait until more may."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - 1) + count / self._rate
        while (ahead := self._free_at - time.monotonic()) > _PAUSE_SECONDS:
            time.sleep(min(ahead, 1))
