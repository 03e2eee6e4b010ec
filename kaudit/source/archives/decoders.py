"""Decompression from front to back, so many bytes at a time as are asked for, whatever they expand to."""

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, Protocol, Self, cast

import lz4.frame
import zstandard

from kaudit.source.archives.forms import Form
from kaudit.source.bytes import ByteSource, read_bytes

_INPUT_BYTES: Final = 64 << 10
_WINDOW_BYTES: Final = 128 << 20
"""What a decoder may hold of what it has decoded: `xz -9` has 64 MiB, `zstd --ultra -22` 128 MiB."""
_CUT_OFF: Final = "it ends in the middle"
GZIP_WINDOW: Final = 31
DEFLATE_WINDOW: Final = -15
"""zlib's wbits for gzip members, and for the members of a zip, which have no header."""


class Decoder(Protocol):
    """Decodes a file from front to back. `problem` says why it ends early, None where it does not."""

    problem: str | None

    def read(self, wanted: int) -> bytes:
        """Return the next bytes, fewer than `wanted` only where the content ends or cannot be decoded further."""


class _Compressed:
    """Compressed bytes, taken from a source piece by piece; those in `_held` come before the others."""

    def __init__(self, source: ByteSource) -> None:
        self.problem: str | None = None
        self._source = source
        self._at = 0
        self._held = b""

    def _more(self) -> bytes:
        found = read_bytes(self._source, self._at, _INPUT_BYTES)
        self._at += len(found)
        return found


class Inflater(_Compressed):
    """Decodes deflate, and gzip of any number of members. A copy of it costs about 40 KB and continues by itself."""

    def __init__(self, source: ByteSource, window: int = GZIP_WINDOW) -> None:
        super().__init__(source)
        self._window = window
        self._stream = zlib.decompressobj(window)

    def copy(self) -> Self:
        """Return a decoder that continues where this one is."""
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        same._stream = self._stream.copy()
        return same

    def read(self, wanted: int) -> bytes:
        """Return the next bytes, as Decoder says."""
        parts: list[bytes] = []
        while wanted and self.problem is None:
            if self._stream.eof and not self._next_member():
                break
            given = self._held or self._more()
            try:
                part = self._stream.decompress(given, wanted)
            except zlib.error as error:
                self.problem = f"it is damaged ({_detail(error)})"
                break
            self._held = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if part:
                parts.append(part)
                wanted -= len(part)
            elif not given and not self._stream.eof:
                self.problem = _CUT_OFF
        return b"".join(parts)

    @property
    def consumed(self) -> int:
        """Return how many compressed bytes were decoded."""
        return self._at - len(self._held)

    def _next_member(self) -> bool:
        """Begin with the gzip member that follows; return False where there is none, as gzip ignores what else follows."""
        if self._window != GZIP_WINDOW:
            return False
        while len(self._held) < 3 and (more := self._more()):
            self._held += more
        if not self._held.startswith(b"\x1f\x8b\x08"):
            return False
        self._stream = zlib.decompressobj(self._window)
        return True


class _Stream(Protocol):
    eof: bool
    needs_input: bool
    unused_data: bytes | None

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


_STREAMS: Final[Mapping[Form, Callable[[], Any]]] = {
    Form.BZIP2: bz2.BZ2Decompressor,
    Form.XZ: lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2 * _WINDOW_BYTES),
    Form.LZ4: lz4.frame.LZ4FrameDecompressor,
}


class StreamDecoder(_Compressed):
    """Decodes bzip2, xz and lz4, of any number of streams in one file."""

    def __init__(self, source: ByteSource, form: Form) -> None:
        super().__init__(source)
        self._begin = _STREAMS[form]
        self._stream: _Stream = self._begin()

    def read(self, wanted: int) -> bytes:
        """Return the next bytes, as Decoder says."""
        parts: list[bytes] = []
        while wanted and self.problem is None:
            if self._stream.eof and not self._next_stream():
                break
            given = b""
            if self._stream.needs_input:
                given = self._held or self._more()
                self._held = b""
                if not given:
                    self.problem = _CUT_OFF
                    break
            try:
                part = self._stream.decompress(given, wanted)
            except (OSError, ValueError, RuntimeError, EOFError, lzma.LZMAError) as error:
                self.problem = f"it is damaged ({_detail(error)})"
                break
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)

    def _next_stream(self) -> bool:
        """Begin with the stream that follows, after zeros: xz may have some between streams."""
        held = (self._stream.unused_data or b"").lstrip(b"\x00")
        while not held and (more := self._more()):
            held = more.lstrip(b"\x00")
        if not held:
            return False
        self._held = held
        self._stream = self._begin()
        return True


_LONGEST_FRAME_HEADER: Final = 18
_SKIPPABLE: Final = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18").match
_REPEATED_BYTE: Final = 1
"""Type of a block of zstd (RFC 8878, 3.1.1.2) that holds one byte, however large what it stands for."""


def after_zstd_frame(source: ByteSource, at: int) -> int | None:
    """Return where the frame that begins here ends by its blocks, None if that cannot be known."""
    head = read_bytes(source, at, _LONGEST_FRAME_HEADER)
    try:
        checksum = 4 if zstandard.get_frame_parameters(head).has_checksum else 0
        at += zstandard.frame_header_size(head)
    except zstandard.ZstdError:
        return None
    is_last = False
    while not is_last:
        head = read_bytes(source, at, 3)
        if len(head) < 3:
            return None
        block = int.from_bytes(head, "little")
        is_last = bool(block & 1)
        at += 3 + (1 if block >> 1 & 3 == _REPEATED_BYTE else block >> 3)
    return at + checksum


def frame_end(after: Callable[[ByteSource, int], int | None], source: ByteSource, at: int) -> int | None:
    """Return where a frame ends, by `after` where it holds content; those that are skipped are alike in zstd and lz4."""
    head = read_bytes(source, at, 8)
    return at + 8 + int.from_bytes(head[4:], "little") if _SKIPPABLE(head) else after(source, at)


class ZstdDecoder:
    """Decodes zstd of any number of frames."""

    def __init__(self, source: ByteSource) -> None:
        self.problem: str | None = None
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
        self._source = source
        self._reader = decompressor.stream_reader(
            cast("BinaryIO", SourceReader(source)), read_size=_INPUT_BYTES, read_across_frames=True
        )

    def read(self, wanted: int) -> bytes:
        """Return the next bytes, as Decoder says."""
        parts: list[bytes] = []
        while wanted and self.problem is None:
            try:
                part = self._reader.read(wanted)
            except zstandard.ZstdError as error:
                self.problem = f"it is damaged ({_detail(error)})"
                break
            if not part:
                self.problem = None if self._ends_whole() else _CUT_OFF
                break
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)

    def _ends_whole(self) -> bool:
        """Follow the frames: the reader does not say whether the last one was whole."""
        at: int | None = 0
        size = self._source.size()
        while at is not None and at < size:
            at = frame_end(after_zstd_frame, self._source, at)
        return at == size


def _detail(error: Exception) -> str:
    return str(error).strip() or type(error).__name__


class SourceReader(io.RawIOBase):
    """A source as a file that Python's own modules read."""

    def __init__(self, source: ByteSource) -> None:
        super().__init__()
        self._source = source
        self._size = source.size()
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position; raises ValueError for one before the first byte."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if self._at < 0:
            raise ValueError(f"position {self._at} is before the first byte")
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever gives a memoryview
        """Fill a buffer; return how many bytes were there."""
        count = self._source.read_into(self._at, memoryview(buffer).cast("B"))
        self._at += count
        return count
