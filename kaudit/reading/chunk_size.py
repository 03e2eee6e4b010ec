"""How much of a partition to read at a time: much where rows come out few, little where every batch stays a row.

A longer range makes longer runs, and less to do for each: worth it while a producer id's batches of one range still join.
Where they do not - ids that never come again, a marker after every batch - a longer range only holds more rows in memory.
Nothing that is reported depends on it.
"""

from msgspec import Struct, field

from kaudit.reading.chunk_rows import ChunkRows

LEAST_BYTES = 4 << 20
MOST_BYTES = 512 << 20
_UNSEEN_BYTES = 16 << 20
"""The first range of a partition is no longer than this: its batches may be the smallest there are."""
_GROWTH = 16
_FINAL_SHARE = 3
"""Towards the end ranges become shorter, but not below this part of their length: each costs something by itself."""
_FINAL_BYTES = 64 << 20
"""Nor need they be longer than this."""
_MANY_BATCHES = 1 << 18
"""Batches a range should not have more of: their columns are what takes memory (some 100 bytes each)."""
_FEW_BATCHES = 1 << 14
"""So few may each stay a row: two MiB or three."""
_MANY_RUNS = 100_000
"""Nor more runs (200 bytes each with their edges)."""


class RecentSizes(Struct):
    """The chunk size that suited the partitions read so far, for partitions that are not read yet."""

    bytes: int = LEAST_BYTES


class ChunkSize(Struct):
    """The size of the next range of one partition, in bytes."""

    bytes: int = LEAST_BYTES
    most: int = MOST_BYTES
    sharers: int = 1
    """Processes that share what is left to read."""
    recent: RecentSizes = field(default_factory=RecentSizes)
    _known_ids: int = 0
    _updated: bool = False

    def next_bytes(self, left: int) -> int:
        """Return the size of the next range when `left` bytes of this partition and all others remain to be read.

        Towards the end ranges become short, so that processes end at about the same time.
        """
        if not self._updated:
            self.bytes = max(self.bytes, min(self.recent.bytes, _UNSEEN_BYTES, self.most))
        if self.sharers == 1:
            return self.bytes
        least = max(min(self.bytes // _FINAL_SHARE, _FINAL_BYTES), LEAST_BYTES)
        return min(self.bytes, max(left // (2 * self.sharers), least))

    def update(self, rows: ChunkRows, producer_ids: int) -> None:
        """Adapt to a range's rows, and of how many producer ids of the partition are known now."""
        fresh, self._known_ids = producer_ids - self._known_ids, producer_ids
        read, batches = rows.read_to - rows.start, rows.counts.batches
        if not batches or (read < self.bytes // 2 and batches < _MANY_BATCHES):
            return  # the end of a segment says nothing
        room = min(_MANY_BATCHES * read // batches, _MANY_RUNS * read // max(len(rows.runs), 1))
        wanted = min(self.bytes * _GROWTH, room, self.most)
        if wanted < self.bytes or _joins(rows, fresh):
            self.bytes = min(max(wanted, LEAST_BYTES), self.most)
        else:
            self.bytes = max(self.bytes, min(wanted, _FEW_BATCHES * read // batches))
        self._updated, self.recent.bytes = True, self.bytes


def _joins(rows: ChunkRows, fresh: int) -> bool:
    """Return whether runs would go on if the range did."""
    runs = len(rows.runs)
    if runs * 4 <= rows.counts.batches:
        return True  # few rows as it is
    ids = rows.runs["producer_id"]
    producers = 1 + int((ids[1:] != ids[:-1]).sum())
    return runs < 2 * producers and fresh * 4 < runs * 3


def fixed_size(size: int) -> ChunkSize:
    """Return a chunk size that never changes."""
    return ChunkSize(size, size)
