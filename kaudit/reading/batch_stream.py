"""The batches of a segment, whatever its bytes come from: a file, a fetch, or the text of a dump."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kaudit.model.batch import Batches, concatenate, empty_batches, last_offsets
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.reading.segment import WINDOW_BYTES, ByteRange, Piece, segment_batches
from kaudit.source.bytes import ByteSource, HeldBytes
from kaudit.source.kafka.fetched_segment import BrokerError, FetchedSegment
from kaudit.source.layout import FetchedRange
from kaudit.source.text import SegmentText


def fetched_batches(source: FetchedSegment, start: int, stop: int, *, verify: bool) -> Iterator[Piece]:
    """Yield the batches whose base offsets stand for positions `start` to `stop`, a fetch at a time.

    A batch that begins before the range comes with its first fetch, and is the range before's. The last piece's
    `read_to` is `stop`.

    Raises:
        RemovedByRetentionError: an offset is not in the log any more.
        OSError: the broker cannot be asked, or sends nothing that is a batch.

    """
    place = source.place
    offset, end, read_to = place.offset(start), place.offset(stop), start
    while offset < end:
        # by positions, which are estimates: a little more than what is left, so that few ranges take one fetch more
        left = place.position(end) - place.position(offset)
        data = source.records(offset, left + left // 8)
        if not data and place.whole:
            reason = f"the broker sends nothing from offset {offset} on, and its log goes on to {place.end_offset - 1}"
            raise BrokerError(f"{place.topic}-{place.partition}", reason)
        if not data:
            break  # compaction may have removed what was there up to the end
        piece = _decode(data, verify=verify)
        following = _next_offset(piece.batches, piece.damages)
        if following <= offset:
            reason = f"no valid batch in the {len(data)} bytes that the broker sends for offset {offset}"
            raise BrokerError(f"{place.topic}-{place.partition}", reason)
        read_to = min(place.position(following), stop)
        placed = _placed(piece, place, offset, end, read_to)
        placed.listed_aborts = source.aborted
        yield placed
        offset = following
    if read_to < stop:
        yield Piece(empty_batches(), [], stop)


def _decode(data: bytes, *, verify: bool) -> Piece:
    """Return the batches of a record set by their bytes in it, and its damage; the last batch may be cut off."""
    pieces = list(
        segment_batches(
            HeldBytes(memoryview(data)), ByteRange(0, len(data), len(data)), expected_offset=None, verify=verify
        )
    )
    damages = [damage for piece in pieces for damage in piece.damages]
    if damages and damages[-1].end == len(data) and not damages[-1].resynchronised:
        # a broker cuts a record set where the fetch ends, not where a batch does
        damages.pop()
    return Piece(concatenate([piece.batches for piece in pieces]), damages)


def _next_offset(batches: Batches, damages: Sequence[LogDamage]) -> int:
    """Return the offset to ask for next: the one after the last batch, or after those that a batch whose CRC fails claims to hold."""
    ends = [int(last_offsets(batches[-1:])[0]) + 1] if len(batches) else []
    after = int(batches["position"][-1]) if len(batches) else -1
    ends += [
        damage.last_offset + 1
        for damage in damages
        if damage.kind is DamageKind.CRC_MISMATCH and damage.last_offset is not None and damage.position > after
    ]
    return max(ends, default=-1)


def _placed(piece: Piece, place: FetchedRange, offset: int, end: int, read_to: int) -> Piece:
    """Give a record set positions that stand for offsets; keep what begins from `offset` to before `end`."""
    batches, bases = piece.batches, piece.batches["base_offset"]
    damages = [_placed_damage(damage, batches, place, offset) for damage in piece.damages]
    own = (bases >= offset) & (bases < end)
    kept = batches if own.all() else batches[own]
    kept = kept.replaced("position", (kept["base_offset"] - place.first_offset) * place.bytes_per_offset)
    low, high = place.position(offset), place.position(end)
    return Piece(kept, [damage for damage in damages if low <= damage.position < high], read_to)


def _placed_damage(damage: LogDamage, batches: Batches, place: FetchedRange, offset: int) -> LogDamage:
    """Give damage positions that stand for offsets: those between the batches around it."""
    starts, bases = batches["position"], batches["base_offset"]
    before = int(np.searchsorted(starts, damage.position))
    after = int(np.searchsorted(starts, damage.end))
    low = int(bases[before - 1]) + 1 if before else offset
    high = int(bases[after]) if after < len(bases) else None
    claimed = damage.base_offset if damage.kind is DamageKind.CRC_MISMATCH else None
    first = claimed if claimed is not None and low <= claimed and (high is None or claimed < high) else low
    last = high if high is not None else max(first, damage.last_offset or first) + 1
    return replace(damage, position=place.position(first), end=max(place.position(last), place.position(first) + 1))


def stream_batches(
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
    A text in place of a segment is one range, from a byte of the segment to its end.
    """
    start, stop, _ = where
    if isinstance(source, SegmentText):
        from kaudit.reading.dump_text import dump_text_batches  # noqa: PLC0415 - few logs are texts: 5 ms for the others

        for batches, damages, gaps, lines in dump_text_batches(source, start):
            yield Piece(batches, damages, stop, coverage_gaps=gaps, text_lines=lines)
        return
    if isinstance(source, FetchedSegment):
        yield from fetched_batches(source, start, stop, verify=verify)
        return
    yield from segment_batches(source, where, expected_offset=expected_offset, verify=verify, window_bytes=window_bytes)
