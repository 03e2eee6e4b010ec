"""Where batches begin and end in the record set of a fetch, or in a segment: headers only, of any magic."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, LOG_OVERHEAD, PREFIX_SIZE, plausible_length

NO_LEADER_EPOCH: Final = -1
_PREFIX: Final = HEADER.struct("base_offset", "batch_length", "leader_epoch", "magic")
_DELTA: Final = HEADER.struct("last_offset_delta")
_DELTA_OFFSET: Final = HEADER.offset("last_offset_delta")


class Frame(NamedTuple):
    """One whole batch: its bytes from `start` to `end` (exclusive), its offsets, its leader epoch (-1 before magic 2)."""

    start: int
    end: int
    base_offset: int
    last_offset: int
    leader_epoch: int


class NotABatchError(ValueError):
    """What lies at byte `position`, behind the last whole batch, cannot be a batch."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


def frames(data: bytes | memoryview) -> Iterator[Frame]:
    """Yield the batches that `data` holds whole; the last one may be cut off, as in the answer to a fetch.

    Raises:
        NotABatchError: a length, a magic or an offset that no batch has.

    """
    at = 0
    while len(data) - at >= PREFIX_SIZE:
        base, length, epoch, magic = _PREFIX.unpack_from(data, at)
        if not plausible_length(magic, length):
            raise NotABatchError(at, f"magic {magic} and a length of {length} bytes")
        end = at + LOG_OVERHEAD + length
        if end > len(data):
            return
        last = base
        if magic == CURRENT_MAGIC:
            last += _DELTA.unpack_from(data, at + _DELTA_OFFSET)[0]
        else:
            epoch = NO_LEADER_EPOCH
        if not 0 <= base <= last < 1 << 63:
            raise NotABatchError(at, f"offsets {base} to {last}")
        yield Frame(at, end, base, last, epoch)
        at = end
