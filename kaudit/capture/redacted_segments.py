"""A segment whose records are hashes: batches are valid again, damage stays damage, and bytes that are not understood are not copied."""

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kaudit.capture.redacted_contents import RedactedContents
from kaudit.formats.errors import WireError
from kaudit.formats.log import resync
from kaudit.formats.log.batch_header import (
    CURRENT_MAGIC,
    FLAGS_OFFSET,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MESSAGE_V0,
    PREFIX_SIZE,
    batch_size,
    plausible_length,
)
from kaudit.formats.log.legacy import rewritten_legacy
from kaudit.formats.log.record_batch import batch_crc_holds
from kaudit.formats.log.records import resealed, rewritten
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.read_window import Window
from kaudit.reading.valid_batches import ValidBatches
from kaudit.source.bytes import ByteSource, read_bytes

_WINDOW_BYTES: Final = 4 << 20
_PIECE_BYTES: Final = 1 << 20
_LEGACY_BYTES: Final = MESSAGE_V0.end("attributes")
_FILLING: Final = bytes([0, *[0x5A] * 255])
"""In the place of damaged bytes: zeros stay zeros, all others are Z."""


class Counts(Struct):
    """What was written: `changed` batches; `opaque` ones are valid and their records cannot be read; `damaged` ranges of bytes."""

    segments: int = 0
    batches: int = 0
    opaque: int = 0
    damaged: int = 0
    damaged_bytes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class Moves:
    """Where bytes of a segment lie in its redacted copy, if batches before them have another size there."""

    def __init__(self) -> None:
        self._from = [0]
        self._by = [0]

    def add(self, position: int, written: int) -> None:
        """Note that what lay at `position` lies at `written`; positions ascend."""
        if written - position != self._by[-1]:
            self._from.append(position)
            self._by.append(written - position)

    def __call__(self, position: int) -> int:
        """Return where the byte lies now."""
        return position + self._by[bisect_right(self._from, position) - 1]

    def __bool__(self) -> bool:
        return len(self._from) > 1


class RedactedSegment:
    """Yields the pieces of one segment of `topic`; `moves` is whole when all of them were yielded."""

    def __init__(self, source: ByteSource, topic: str, contents: RedactedContents, counts: Counts) -> None:
        self.moves = Moves()
        self._source = source
        self._end = source.size()
        self._window = Window(source, self._end, min(_WINDOW_BYTES, max(self._end, HEADER_SIZE)))
        self._valid = ValidBatches(self._window)
        self._contents = contents
        self._change = contents.change_of(topic)
        self._counts = counts

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the copy."""
        at = written = 0
        while at < self._end:
            self.moves.add(at, written)
            size = self._size_at(at)
            if size and self._window.is_batch(at, size):
                made: Iterator[bytes] = iter([self._batch(self._read(at, size))])
                stop = at + size
            else:
                made, stop = self._damage(at, size)
            for piece in made:
                written += len(piece)
                self._counts.bytes_written += len(piece)
                yield piece
            self._counts.bytes_read += stop - at
            at = stop
        self._counts.segments += 1

    def _size_at(self, at: int) -> int:
        """Return the size that a batch at this position claims, 0 if there can be none."""
        head = self._window.load(at, HEADER_SIZE)
        if len(head) < PREFIX_SIZE or not plausible_length(head[MAGIC_OFFSET], batch_size(head) - LOG_OVERHEAD):
            return 0
        size = batch_size(head)
        return size if at + size <= self._end else 0

    def _read(self, at: int, size: int) -> bytes:
        return read_bytes(self._source, at, size)

    def _batch(self, data: bytes) -> bytes:
        """Return a valid batch with hashes in its records; one whose records cannot be read with as many bytes that say nothing."""
        self._counts.batches += 1
        try:
            if data[MAGIC_OFFSET] != CURRENT_MAGIC:
                return rewritten_legacy(
                    data, lambda content: None if content is None else self._contents.content(content)
                )
            return rewritten(data, self._contents.control if data[FLAGS_OFFSET] & CONTROL_FLAG else self._change)
        except WireError:
            self._counts.opaque += 1
            if data[MAGIC_OFFSET] == CURRENT_MAGIC:
                return resealed(data, data[HEADER_SIZE:].translate(_FILLING))
            covered = data[MAGIC_OFFSET:_LEGACY_BYTES] + data[_LEGACY_BYTES:].translate(_FILLING)
            return data[:LOG_OVERHEAD] + zlib.crc32(covered).to_bytes(4, "big") + covered

    def _damage(self, at: int, size: int) -> tuple[Iterator[bytes], int]:
        """Return what stands for damaged bytes, and where they end. Only the headers of batches are kept of them."""
        self._counts.damaged += 1
        whole = self._of_wrong_length(at, at + size)
        if whole is not None:
            return whole
        stop = self._valid.following(at) or self._end
        self._counts.damaged_bytes += stop - at
        return self._filled(at, stop), stop

    def _of_wrong_length(self, at: int, claimed: int) -> tuple[Iterator[bytes], int] | None:
        """Return the batch of which nothing but the length is damaged, and its end, None if there is none: the CRC covers all but that."""
        end = self._valid.end_of(at, claimed, None)
        if end is None or end - at < HEADER_SIZE:
            return None
        data = self._read(at, end - at)
        length = (end - at - LOG_OVERHEAD).to_bytes(4, "big")
        mended = data[:LENGTH_OFFSET] + length + data[LOG_OVERHEAD:]
        if mended[MAGIC_OFFSET] != CURRENT_MAGIC or not batch_crc_holds(memoryview(mended), 0, len(mended)):
            return None
        made = self._batch(mended)
        return iter([made[:LENGTH_OFFSET] + data[LENGTH_OFFSET:LOG_OVERHEAD] + made[LOG_OVERHEAD:]]), end

    def _filled(self, at: int, stop: int) -> Iterator[bytes]:
        """Yield as many bytes as there are up to `stop`: headers of damaged batches as they are, and Z for all that could be a record."""
        while at < stop:
            head = self._header(at, stop)
            yield head
            size = self._size_at(at) if head else 0
            end = min(at + size, stop) if size else stop
            at += len(head)
            while at < end:
                data = self._read(at, min(end - at, _PIECE_BYTES))
                yield data.translate(_FILLING)
                at += len(data)

    def _header(self, at: int, stop: int) -> bytes:
        """Return the header of what was a batch here, or is the beginning of one that the file's end cuts off; nothing if it was none."""
        head = self._read(at, min(HEADER_SIZE, stop - at))
        if resync.is_plausible_but_for_length(head) or (
            stop == self._end and len(head) == stop - at and resync.looks_torn(memoryview(head), stop - at, None)
        ):
            return head
        if len(head) >= _LEGACY_BYTES and not head[0] and head[MAGIC_OFFSET] < CURRENT_MAGIC and self._size_at(at):
            return head[:_LEGACY_BYTES]
        return b""
