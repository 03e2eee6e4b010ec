"""Where in a segment a range may begin: all who cut it there agree on the place."""

from kaudit.analysis.scan.read_window import Window
from kaudit.formats.log import resync
from kaudit.formats.log.batch_header import HEADER_SIZE, batch_size
from kaudit.source.bytes import ByteSource

_PROBE_BYTES = 64 << 10


def boundary_from(source: ByteSource, position: int, end: int) -> int:
    """Return the first position at or after `position` where a batch begins whose CRC holds; `end` if none does."""
    window = Window(source, end, _PROBE_BYTES)
    while position < end:
        view = window.load(position)
        if not len(view):
            return end
        after = end - (position + len(view))
        for at in resync.candidates(view, 0, after).tolist():
            if window.is_batch(position + at, batch_size(view, at)):
                return int(position + at)
        position += max(len(view) - HEADER_SIZE + 1, 1)
    return end
