"""A range of a segment file to batches, past any damage.

Memory is one window, whatever the file's or a batch's size: a batch larger than the window is checked in pieces.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from kaudit.formats.log import resync
from kaudit.formats.log.batch_header import (
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    base_offset_of,
    batch_size,
    plausible_length,
)
from kaudit.formats.log.candidate_scan import Framing
from kaudit.formats.log.crc_algebra import corrupt_indexes, restore_heads
from kaudit.formats.log.record_batch import (
    Headers,
    Walk,
    batch_crc_holds,
    decode_controls,
    decode_headers,
    gather_headers,
    header_columns,
)
from kaudit.model.batch import Batches, empty_batches
from kaudit.model.coverage import NO_LINES, TextLines
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.model.result import CoverageGap
from kaudit.reading.read_window import Window
from kaudit.reading.valid_batches import Block, HeaderBlock, HeldBatches, ValidBatches
from kaudit.source.bytes import ByteSource, announce
from kaudit.source.kafka.fetched_segment import Aborted

WINDOW_BYTES = 4 << 20
_HELD_BATCHES = 4096
"""Minimum number of headers decoded per call: one window of large batches has too few to be worth the calls."""
_ZEROS_BYTES = 512
"""Number of bytes searched first for the end of zeros, then doubled."""
_ZERO_PROBE = LOG_OVERHEAD
"""An offset and a length of zero: no batch has them."""
_OFFSETS = HEADER.struct("base_offset", "last_offset_delta")
_NO_BATCH = Walk(np.empty(0, dtype=np.int64), 0, valid=False)
_OFFSET_BYTES = LENGTH_OFFSET
"""Fewer zeros at the end of a file may be the beginning of a batch's offset."""


class Piece(Struct):
    """Valid batches in file order, and the damage found among and after them."""

    batches: Batches
    damages: list[LogDamage] = field(default_factory=list)
    read_to: int = 0
    still_growing: bool = False
    coverage_gaps: frozenset[CoverageGap] = frozenset()
    text_lines: TextLines = NO_LINES
    listed_aborts: Aborted = frozenset()
    """The aborted transactions that a broker listed with these batches."""


class ByteRange(NamedTuple):
    """Bytes `start` to `stop` of a file of `end` bytes."""

    start: int
    stop: int
    end: int


def segment_batches(
    source: ByteSource,
    where: ByteRange,
    *,
    expected_offset: int | None,
    verify: bool = True,
    window_bytes: int = WINDOW_BYTES,
) -> Iterator[Piece]:
    """Yield the batches that start in a range of a file.

    `where.start` is a batch boundary. The last piece's `read_to` is where the first batch not yielded starts: `stop` when the
    ranges of a file were cut at boundaries. With `verify` every batch's CRC is checked; without, framing is trusted.
    """
    start, stop, end = where
    announce(source, start, stop)
    window = Window(source, end, min(window_bytes, max(end - start, HEADER_SIZE)))
    reader = _Reader(window, source, verify)
    reader.expected_offset = expected_offset
    at = start
    while at < stop:
        piece = reader.next_piece(at, stop)
        at = piece.read_to
        yield piece


class _Reader:
    """Takes one step at a time: a window of valid batches, or one damaged range."""

    def __init__(self, window: Window, source: ByteSource, verify: bool) -> None:  # noqa: FBT001
        self.window = window
        self.source = source
        self.verify = verify
        self.framing = Framing()
        self._valid = ValidBatches(window)
        self.expected_offset: int | None = None
        self._following: Piece | None = None
        """The piece after the last one, if it was read already."""

    def next_piece(self, at: int, stop: int) -> Piece:
        """Take what lies at `at`: batches of magic 2 and the damage between them, or what needs a piece of its own."""
        piece, self._following = self._following, None
        return self._piece_at(at, stop) if piece is None else piece

    def _piece_at(self, at: int, stop: int) -> Piece:
        held = HeldBatches()
        damages: list[LogDamage] = []
        count = 0
        while at < stop and count < _HELD_BATCHES:
            block, positions = self._valid.chain(at, stop)
            if positions:
                held.add_from(block, positions)
                count += len(positions)
                at = self._behind(block, positions[-1])
                continue
            misled = self._misled_at(at)
            view, walked = self._walk(at, stop) if misled is None else (memoryview(b""), _NO_BATCH)
            if not len(walked.positions):
                obstacle = self._at_obstacle(at, valid=walked.valid) if misled is None else misled
                if len(obstacle.batches) or obstacle.still_growing:
                    if not held and not damages:
                        return obstacle
                    break  # what is before it comes first; its turn is next
                damages += obstacle.damages
                at = obstacle.read_to
                count += 1
                continue
            headers = gather_headers(view, walked.positions)
            current = (headers["magic"] == CURRENT_MAGIC).all()
            controls = decode_controls(view, walked.positions, headers) if current else None
            corrupt = self._corrupt_indexes(view, walked, headers, current=controls is not None) if self.verify else []
            if controls is None or corrupt:
                piece = self._one_by_one(
                    header_columns(headers, walked.positions + at, controls)
                    if controls is not None
                    else decode_headers(view, walked.positions, at),
                    at + walked.stop,
                    corrupt,
                )
                if not len(piece.batches):
                    damages += piece.damages
                    at = piece.read_to
                    count += 1
                    continue
                if not held and not damages:
                    return piece
                self._following = piece  # what is before it comes first
                break
            held.add(HeaderBlock(headers, walked.positions + at, controls))
            count += len(headers)
            at += walked.stop
            self._advance(headers)
        return Piece(held.columns(), damages, at)

    def _misled_at(self, at: int) -> Piece | None:
        """Return the damage at `at` if the batch there fails its CRC, is not as long as it says, and a valid one begins inside it."""
        end = self._valid.invalid_end(at) if self.verify else None
        inner = None if end is None else self._valid.first(at + 1, end)
        if end is None or inner is None:
            return None
        proven = self._valid.end_of(at, end, self.expected_offset)
        if proven == end:
            return None
        return self._lost_framing(at, end, proven, base_offset_of(self.window.load(at, HEADER_SIZE)))

    def _behind(self, block: Block, position: int) -> int:
        """Return where the batch at `position` ends, the last of those taken."""
        inside = position - block.start
        base_offset, last_offset_delta = _OFFSETS.unpack_from(block.content, inside)
        self.expected_offset = base_offset + last_offset_delta + 1
        return position + batch_size(block.content, inside)

    def _walk(self, at: int, stop: int) -> tuple[memoryview, Walk]:
        if self._valid.begins_no_batch(at):
            self.framing.meet_obstacle()
            return memoryview(b""), _NO_BATCH
        # a range that was cut at boundaries ends where a batch does: bytes after it are not read for nothing
        most = max(stop - at, HEADER_SIZE)
        view = self.window.load(at, most)
        walked = self.framing.follow(view, 0, len(view), stop - at)
        # the last one claims bytes after the range
        if walked.valid and walked.stop < stop - at and most < self.window.capacity:
            view = self.window.load(at)
            walked = self.framing.follow(view, 0, len(view), stop - at)
        return view, walked

    def _corrupt_indexes(self, view: memoryview, walked: Walk, headers: Headers, *, current: bool) -> list[int]:
        if not current:
            starts = walked.positions.tolist()
            ends = [*starts[1:], walked.stop]
            pairs = zip(starts, ends, strict=True)
            return [index for index, (start, end) in enumerate(pairs) if not batch_crc_holds(view, start, end - start)]
        corrupt = corrupt_indexes(view, walked.positions, headers["crc"].astype(np.uint32), walked.stop)
        if corrupt:
            restore_heads(view, walked.positions, headers)
        else:
            self.window.spend(self.window.base + walked.stop)
        return corrupt

    def _one_by_one(self, batches: Batches, stop: int, corrupt: list[int]) -> Piece:
        """Take the batches of a window up to `stop` that holds legacy messages or is damaged; those of these indexes are corrupt."""
        damages: list[LogDamage] = []
        cut = self._drop_corrupt(corrupt, batches, damages)
        if cut is not None:
            return cut
        batches = _without(batches, corrupt)
        self._advance(batches)
        return Piece(batches, damages, stop)

    def _advance(self, batches: Batches | Headers) -> None:
        if len(batches):
            last = batches[len(batches) - 1]
            self.expected_offset = int(last["base_offset"]) + int(last["last_offset_delta"]) + 1

    def _drop_corrupt(self, corrupt: list[int], batches: Batches, damages: list[LogDamage]) -> Piece | None:
        """List batches whose CRC fails; return a piece at once if one of them lost the framing."""
        for number, index in enumerate(corrupt):
            start, end = _bounds(batches, index)
            proven = self._valid.end_of(start, end, self.expected_offset)
            if proven == end or (
                proven is None
                and self._valid.first(start + 1, end) is None
                and (index < len(batches) - 1 or self._goes_on_at(end))
            ):
                damages.append(self._wrong_magic(batches, index) or _crc_mismatch(batches, index))
                continue
            # a length that led astray makes batches of what follows: all of them in a row belong to the first
            first, taken = index, number
            while damages and corrupt[taken - 1] == first - 1:
                start, stop = _bounds(batches, first - 1)
                earlier = self._valid.end_of(start, stop, self.expected_offset)
                if earlier == stop:
                    break
                first, proven, taken = first - 1, earlier, taken - 1
                damages.pop()
            before = _without(batches[:first], corrupt[:taken])
            self._advance(before)
            piece = self._lost_framing(int(batches["position"][first]), end, proven, int(batches["base_offset"][first]))
            piece.batches = before
            piece.damages[:0] = damages
            return piece
        return None

    def _wrong_magic(self, batches: Batches, index: int) -> LogDamage | None:
        """A batch whose magic says 0 or 1 but whose header is one of magic 2: no CRC covers the magic."""
        magic, (start, end) = batches.value("magic", index), _bounds(batches, index)
        size = end - start
        if magic == CURRENT_MAGIC or size < HEADER_SIZE:
            return None
        as_current = bytearray(self.window.load(start, size)[:size])
        as_current[MAGIC_OFFSET] = CURRENT_MAGIC
        if not resync.is_plausible_but_for_length(as_current):
            return None
        holds = batch_crc_holds(memoryview(as_current), 0, size)
        detail = f"magic {magic}, though the {'bytes match their CRC as' if holds else 'header is one of'} magic {CURRENT_MAGIC}"
        return LogDamage(DamageKind.UNPARSABLE, start, start + size, True, detail, int(batches["base_offset"][index]))

    def _goes_on_at(self, position: int) -> bool:
        """Return whether a batch can start here, or nothing that could be one follows anywhere."""
        view = self.window.load(position, HEADER_SIZE)
        remaining = self.window.end - position
        if not remaining:
            return True
        if len(view) > MAGIC_OFFSET:
            size = batch_size(view, 0)
            if plausible_length(view[MAGIC_OFFSET], size - LOG_OVERHEAD) and size <= remaining:
                return True
        if not any(view[:_ZERO_PROBE]):
            return False
        return self._resynchronise(position - 1) is None

    def _lost_framing(self, start: int, end: int, proven: int | None, claimed: int) -> Piece:
        """Return the damage from a batch at `start` that does not end at `end`; `proven` is where it does, if that is known."""
        self.framing.meet_obstacle()
        resumed = self._valid.following(start) if proven is None else proven
        nothing_inside = proven is None and (resumed is None or resumed > end)
        probe = bytes(self.window.load(end, _ZERO_PROBE)[:_ZERO_PROBE]) if nothing_inside else b""
        if probe and not any(probe):
            first_zero = self._zeros_before(start, end)
            zeros_end = self._zeros_end(end)
            if zeros_end == self.window.end:
                detail = "the batch breaks off and zeros follow to the end of the file"
                damage = LogDamage(DamageKind.TORN, start, zeros_end, False, detail, claimed)
                return Piece(empty_batches(), [damage], self.window.end)
            stop = self.window.end if resumed is None else resumed
            detail = f"{min(zeros_end, stop) - first_zero} bytes are zero, from inside the batch at byte {start} on"
            kind = _zeros_kind(resumed)
            begin = first_zero if kind is DamageKind.ZEROS else start
            damage = LogDamage(kind, begin, stop, stop < self.window.end, detail, claimed)
            return Piece(empty_batches(), [damage], stop)
        stop = self.window.end if resumed is None else resumed
        head = self.window.load(start, HEADER_SIZE)
        detail = f"the length field says {batch_size(head, 0) - LOG_OVERHEAD}, but no batch starts where it leads"
        damage = LogDamage(DamageKind.UNPARSABLE, start, stop, stop < self.window.end, detail, claimed)
        return Piece(empty_batches(), [damage], stop)

    def _at_obstacle(self, at: int, *, valid: bool) -> Piece:
        """No batch was taken at `at`: it is larger than the window, cut off by the end of the file, or none at all."""
        # a copy: searching on moves the window
        view = memoryview(bytes(self.window.load(at, HEADER_SIZE)[:HEADER_SIZE]))
        remaining = self.window.end - at
        if valid and len(view) > MAGIC_OFFSET:
            size = batch_size(view, 0)
            if size <= remaining:
                return self._large_batch(at, size)
        if len(view) >= _OFFSET_BYTES and not any(view[:_ZERO_PROBE]):
            return self._zeros_at(at)
        proven = self._valid.end_of(at, at + batch_size(view, 0), self.expected_offset)
        resumed = self._valid.following(at) if proven is None else proven
        if resumed is not None:
            goes_on = resumed < self.window.end
            damage = LogDamage(DamageKind.UNPARSABLE, at, resumed, goes_on, _describe(view, remaining))
            return Piece(empty_batches(), [damage], resumed)
        torn = resync.looks_torn(view, remaining, self.expected_offset)
        if torn and self.source.size() > self.window.end:
            return Piece(empty_batches(), [], self.window.end, still_growing=True)
        kind = DamageKind.TORN if torn else DamageKind.UNPARSABLE
        detail = f"the last {remaining} bytes are the start of a batch" if torn else _describe(view, remaining)
        claimed = base_offset_of(view) if torn and len(view) >= _OFFSET_BYTES else None
        return Piece(empty_batches(), [LogDamage(kind, at, self.window.end, False, detail, claimed)], self.window.end)

    def _large_batch(self, at: int, size: int) -> Piece:
        batches = decode_headers(self.window.load(at, HEADER_SIZE)[:HEADER_SIZE], np.zeros(1, dtype=np.int64), at)
        if not self.verify or self.window.crc_holds(at, size):
            self._advance(batches)
            return Piece(batches, [], at + size)
        proven = self._valid.end_of(at, at + size, self.expected_offset)
        resumed = self._valid.following(at) if proven is None else proven
        if proven == at + size or resumed is None or (proven is None and resumed >= at + size):
            return Piece(empty_batches(), [_crc_mismatch(batches, 0)], at + size)
        detail = f"the length field says {size - LOG_OVERHEAD}, but a valid batch starts inside it"
        goes_on = resumed < self.window.end
        damage = LogDamage(DamageKind.UNPARSABLE, at, resumed, goes_on, detail, int(batches["base_offset"][0]))
        return Piece(empty_batches(), [damage], resumed)

    def _zeros_at(self, at: int) -> Piece:
        zeros_end = self._zeros_end(at)
        if zeros_end == self.window.end:
            detail = f"{zeros_end - at} zero bytes to the end of the file"
            return Piece(empty_batches(), [LogDamage(DamageKind.ZEROS, at, zeros_end, False, detail)], zeros_end)
        resumed = self._resynchronise(at)
        stop = self.window.end if resumed is None else resumed
        # the next batch's own offset begins with zeros
        detail = f"{min(zeros_end, stop) - at} zero bytes"
        damage = LogDamage(_zeros_kind(resumed), at, stop, resumed is not None, detail)
        return Piece(empty_batches(), [damage], stop)

    def _zeros_end(self, at: int) -> int:
        step = _ZEROS_BYTES
        while at < self.window.end:
            view = self.window.load(at, step)[:step]
            if not len(view):
                break
            nonzero = np.flatnonzero(np.frombuffer(view, dtype=np.uint8))
            if len(nonzero):
                return at + int(nonzero[0])
            at += len(view)
            step = min(2 * step, self.window.capacity)
        return self.window.end

    def _zeros_before(self, start: int, end: int) -> int:
        batch = np.frombuffer(self.window.load(start, end - start)[: end - start], dtype=np.uint8)
        nonzero = np.flatnonzero(batch)
        return start + int(nonzero[-1]) + 1 if len(nonzero) else start

    def _resynchronise(self, damaged: int) -> int | None:
        """First position after `damaged` where a batch whose CRC holds begins, or None."""
        return self._valid.first(damaged + 1)


def _zeros_kind(resumed: int | None) -> DamageKind:
    """Zeros with other bytes after them: where these are no batch either, the file was not merely preallocated."""
    return DamageKind.UNPARSABLE if resumed is None else DamageKind.ZEROS


def _bounds(batches: Batches, index: int) -> tuple[int, int]:
    """Return where a batch begins and ends in the file."""
    start: int = batches.value("position", index)
    return start, start + batches.value("size", index)


def _without(batches: Batches, corrupt: list[int]) -> Batches:
    return batches[np.delete(np.arange(len(batches)), corrupt)] if corrupt else batches


def _crc_mismatch(batches: Batches, index: int) -> LogDamage:
    row = batches[index]
    base_offset, (start, end) = row["base_offset"], _bounds(batches, index)
    # the last offset may be what is damaged: a batch has an offset for each of its records at least
    records = row["record_count"] if row["record_count"] <= end - start else 0
    return LogDamage(
        DamageKind.CRC_MISMATCH,
        start,
        end,
        True,
        f"the stored CRC is {row['crc']:#010x}, the bytes give another",
        base_offset,
        base_offset + max(row["last_offset_delta"], records - 1, 0),
        row["producer_id"],
    )


def _describe(view: memoryview, remaining: int) -> str:
    if len(view) <= MAGIC_OFFSET:
        return f"{remaining} bytes, too few for a batch"
    magic, length = view[MAGIC_OFFSET], batch_size(view, 0) - LOG_OVERHEAD
    if magic > CURRENT_MAGIC:
        return f"unknown magic {magic}"
    if not plausible_length(magic, length):
        return f"the length field says {length}, too short for a batch of magic {magic}"
    return f"the length field says {length}, beyond the end of the file"
