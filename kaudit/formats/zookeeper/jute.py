"""Jute, the serialisation of Hadoop and ZooKeeper: big-endian integers, length-prefixed strings, buffers and vectors.

Source: ZooKeeper's zookeeper.jute and BinaryInputArchive. A length of -1 stands for null.
"""

import struct

from msgspec import Struct

from kaudit.formats.errors import Reason, WireError

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_NULL_LENGTH = -1


class JuteReader(Struct):
    """A cursor over `data`. Lengths are checked against what is left before anything is copied.

    `position` is the next byte in `data`, `end` the byte after the last one that may be read; every read raises
    WireError when it would pass `end`. Positions in errors are those of `data`.
    """

    data: memoryview
    position: int
    end: int

    def remaining(self) -> int:
        """Bytes between the cursor and `end`, >= 0."""
        return self.end - self.position

    def _advance(self, size: int, what: str) -> int:
        start = self.position
        if size > self.end - start:
            raise WireError(start, Reason.TRUNCATED, f"{what} of {size} bytes where {self.end - start} are left")
        self.position = start + size
        return start

    def int32(self) -> int:
        """Read a signed 32-bit integer."""
        return int(_INT32.unpack_from(self.data, self._advance(4, "int"))[0])

    def int64(self) -> int:
        """Read a signed 64-bit integer."""
        return int(_INT64.unpack_from(self.data, self._advance(8, "long"))[0])

    def boolean(self) -> bool:
        """Read a boolean, one byte."""
        return self.data[self._advance(1, "boolean")] != 0

    def buffer(self) -> bytes | None:
        """Read a byte array, or None for null."""
        length = self._length("buffer")
        if length is None:
            return None
        start = self._advance(length, "buffer")
        return bytes(self.data[start : self.position])

    def skip_buffer(self) -> None:
        """Pass a buffer or string without copying it."""
        self._advance(self._length("buffer") or 0, "buffer")

    def skip(self, size: int, what: str) -> None:
        """Pass `size` (>= 0) bytes of fixed layout; `what` names them in the error."""
        self._advance(size, what)

    def string(self) -> str | None:
        """Read a UTF-8 string, or None for null."""
        start = self.position
        raw = self.buffer()
        if raw is None:
            return None
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WireError(start, Reason.TEXT, "string is not UTF-8") from error

    def count(self, smallest: int) -> int:
        """Read a vector's element count, 0 for null, whose elements take `smallest` (> 0) bytes or more each."""
        start = self.position
        length = self._length("vector") or 0
        if length > self.remaining() // smallest:
            raise WireError(start, Reason.COUNT, f"vector of {length} elements where {self.remaining()} bytes are left")
        return length

    def _length(self, what: str) -> int | None:
        start = self.position
        length = self.int32()
        if length == _NULL_LENGTH:
            return None
        if length < 0:
            raise WireError(start, Reason.LENGTH, f"{what} of negative length {length}")
        return length
