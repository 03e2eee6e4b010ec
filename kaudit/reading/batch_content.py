"""Batches whose CRC holds but whose content contradicts itself: by their headers, or by decoding their records."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.errors import LimitExceededError, WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER_SIZE
from kaudit.formats.log.codecs import Codec
from kaudit.formats.log.control import read_control_records
from kaudit.formats.log.legacy import parse_message, read_legacy_records
from kaudit.formats.log.records import DEFAULT_LIMIT, read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG, UNDECODED_CONTROL
from kaudit.model.damage import MalformedBatch
from kaudit.model.limits import BATCH_BYTES
from kaudit.source.bytes import ByteSource

MAX_LISTED = 1000
"""Malformed batches kept of one chunk."""
MAX_BATCH_BYTES = BATCH_BYTES
"""Largest batch read whole to decode it."""


_AT_ONCE = 1 << 16
"""Batches that lie side by side come in one read of up to so many bytes: most of an internal topic's have a few hundred."""


def whole_batches(positions: NDArray[Any], sizes: NDArray[Any], source: ByteSource) -> Iterator[memoryview]:
    """Yield the bytes of each batch at these places of one file; fewer where the file has become shorter.

    Raises:
        OSError: the file cannot be read.

    """
    for starts, own, data in blocks(positions, sizes, source):
        yield from (data[start : start + size] for start, size in zip(starts.tolist(), own.tolist(), strict=True))


def blocks(
    positions: NDArray[Any], sizes: NDArray[Any], source: ByteSource
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], memoryview]]:
    """Yield where batches that follow one another begin in the bytes that hold them, how long they are, and these bytes.

    Of what brokers send only the bytes of a batch, and those that follow it at once, are at its position.
    """
    ends, first = positions + sizes, 0
    apart = np.append(np.flatnonzero(ends[:-1] != positions[1:]) + 1, len(positions))
    while first < len(positions):
        start = int(positions[first])
        stop = min(
            int(np.searchsorted(ends, start + _AT_ONCE, side="right")), apart[np.searchsorted(apart, first, "right")]
        )
        stop = max(stop, first + 1)
        data = memoryview(bytearray(int(ends[stop - 1]) - start))
        yield positions[first:stop] - start, sizes[first:stop], data[: source.read_into(start, data)]
        first = stop


def data_of(batches: Batches, limit: int) -> Batches:
    """Return the batches of data, magic 2 and at most `limit` bytes long."""
    wanted: NDArray[np.bool_] = (batches["attributes"] & CONTROL_FLAG == 0) & (batches["magic"] >= CURRENT_MAGIC)
    return batches[wanted & (batches["size"] <= limit)]


def batches_with(api_key: int, version: int, batches: Batches, source: ByteSource) -> Iterator[tuple[int, memoryview]]:
    """Yield position and bytes of those of the batches that may hold a framed record of this kind; raises as `whole_batches`.

    Both numbers are varints of one group of bits at least: of a batch without compression the records have both bytes in a row.
    """
    places, packed = batches["position"], batches["attributes"] & CODEC_MASK != 0
    for starts, sizes, data in blocks(places, batches["size"], source):
        octets = np.frombuffer(data, dtype=np.uint8) & 0x7F
        found = np.flatnonzero((octets[:-1] == api_key) & (octets[1:] == version))
        holders = np.searchsorted(starts, found, side="right") - 1
        may_hold = packed[: len(starts)].copy()
        may_hold[holders[found - starts[holders] >= HEADER_SIZE]] = True
        for index in np.flatnonzero(may_hold).tolist():
            yield int(places[index]), data[int(starts[index]) :][: int(sizes[index])]
        places, packed = places[len(starts) :], packed[len(starts) :]


_Faulty = NDArray[np.bool_]


def malformed_batches(batches: Batches, segment: int, source: ByteSource | None) -> tuple[list[MalformedBatch], int]:
    """Return at most MAX_LISTED malformed batches by position, and how many more there are.

    With a `source` every record is decoded too, of the batches whose header has no fault.
    """
    by_header, faulty = _header_faults(batches, segment)
    count = int(faulty.sum())
    by_record: list[MalformedBatch] = []
    if source is not None:
        for row in batches[~faulty]:
            fault = _decode(row, segment, source)
            if fault is not None:
                count += 1
                by_record += [fault] if len(by_record) < MAX_LISTED else []
    found = sorted([*by_header, *by_record], key=lambda fault: fault.position)[:MAX_LISTED]
    return found, count - len(found)


def _header_faults(batches: Batches, segment: int) -> tuple[list[MalformedBatch], _Faulty]:
    """Batches whose header contradicts itself. Fewer records than offsets are none: compaction does that."""
    found: list[MalformedBatch] = []
    known: _Faulty = np.zeros(len(batches), dtype=np.bool_)
    for faulty, describe in _RULES:
        rows = faulty(batches)
        if not rows.any():
            continue
        rows = rows & (batches["magic"] == CURRENT_MAGIC) & ~known
        known |= rows
        found += [_malformed(row, segment, describe(row)) for row in batches[rows][: MAX_LISTED - len(found)]]
    return found, known


_RULES: tuple[tuple[Callable[[Batches], _Faulty], Callable[[Mapping[str, int]], str]], ...] = (
    (
        lambda batches: batches["last_offset_delta"] < 0,
        lambda row: f"its last offset delta is {row['last_offset_delta']}",
    ),
    (lambda batches: batches["record_count"] < 0, lambda row: f"its record count is {row['record_count']}"),
    (
        lambda batches: batches["record_count"] > batches["last_offset_delta"].astype(np.int64) + 1,
        lambda row: f"it counts {row['record_count']} records in {int(row['last_offset_delta']) + 1} offsets",
    ),
    (
        lambda batches: batches["attributes"] & CODEC_MASK > max(Codec),
        lambda row: f"its compression codec is {int(row['attributes']) & CODEC_MASK}, none has that number",
    ),
    (
        lambda batches: batches["control_type"] == UNDECODED_CONTROL,
        lambda _: "it is a control batch whose record cannot be decoded",
    ),
)


def _decode(row: Mapping[str, int], segment: int, source: ByteSource) -> MalformedBatch | None:
    size = int(row["size"])
    if size > MAX_BATCH_BYTES:
        detail = f"it has {size} bytes, more than is read into memory"
        return _malformed(row, segment, detail, limit=MAX_BATCH_BYTES)
    data = memoryview(bytearray(size))
    if source.read_into(int(row["position"]), data) < size:
        return None  # truncated during the scan: the next one reports it
    try:
        if row["magic"] < CURRENT_MAGIC:
            records: Iterator[object] = read_legacy_records(parse_message(data), DEFAULT_LIMIT)
        elif int(row["attributes"]) & CONTROL_FLAG:
            records = read_control_records(data, DEFAULT_LIMIT)
        else:
            records = read_records(data, DEFAULT_LIMIT)
        for _ in records:
            pass
    except LimitExceededError as error:
        return _malformed(row, segment, error.detail, limit=error.limit)
    except WireError as error:
        return _malformed(row, segment, f"{error.detail} ({error.reason.value})")
    return None


def _malformed(row: Mapping[str, int], segment: int, detail: str, limit: int | None = None) -> MalformedBatch:
    base = int(row["base_offset"])
    return MalformedBatch(
        segment,
        int(row["position"]),
        int(row["size"]),
        base,
        base + max(int(row["last_offset_delta"]), 0),
        int(row["record_count"]),
        int(row["producer_id"]),
        int(row["producer_epoch"]),
        detail,
        limited=limit is not None,
        limit=limit,
    )
