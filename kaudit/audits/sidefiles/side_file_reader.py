"""Reading side files whole."""

from contextlib import closing

from msgspec import Struct, field

from kaudit.model.limits import SIDE_FILE_BYTES
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import SegmentFile, Unreadable

MAX_SIDE_FILE = SIDE_FILE_BYTES
"""Larger side files are not read: no broker's default makes one of a tenth of that."""


class SideFileReader(Struct):
    """Reads side files; what cannot be read is listed."""

    open_source: OpenSource
    unreadable: list[Unreadable] = field(default_factory=list)

    def read(self, file: SegmentFile) -> bytes | None:
        """Return the file's bytes, None where it is gone or unreadable (then it is listed)."""
        try:
            with closing(self.open_source(file)) as source:
                size = source.size()
                if size > MAX_SIDE_FILE:
                    self.unreadable.append(Unreadable(file.path, f"side file of {size} bytes, more than is read"))
                    return None
                buffer = bytearray(size)
                return bytes(buffer[: source.read_into(0, memoryview(buffer))])
        except FileNotFoundError:
            return None  # brokers delete and replace side files while we read
        except OSError as error:
            self.unreadable.append(Unreadable(file.path, error.strerror or type(error).__name__))
            return None
