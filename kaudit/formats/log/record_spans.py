"""Where key, value and headers of records lie, of many batches of magic 2 at once, without a Python object for each record.

Source of the format: Kafka's DefaultRecord; `read_records` (records.py) reads the same records one by one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER_SIZE, LOG_OVERHEAD
from kaudit.formats.log.record_batch import HEADER_BYTES, HEADER_DTYPE, Headers, at_every_byte
from kaudit.formats.log.records import DEFAULT_LIMIT, checked_header, uncompressed
from kaudit.model.batch_fields import CODEC_MASK, LOG_APPEND_TIME_FLAG

_Places = NDArray[np.int64]
PADDING = bytes(HEADER_SIZE)
"""Follows bytes of batches: of one that is cut off, and of a varint in the last byte, what is missing is read before that is noticed."""
_INT32_BYTES, _INT64_BYTES = 5, 10
_OF_RECORDS = ("attributes", "base_offset", "last_offset_delta", "base_timestamp", "max_timestamp")


class BatchBytes(Struct, frozen=True):
    """The bytes of batches, which lie in `data` at `starts`, `sizes` bytes each, shape (n,); PADDING follows the last one."""

    data: bytes
    starts: _Places
    sizes: _Places

    @classmethod
    def of(cls, batches: Sequence[Buffer]) -> "BatchBytes":
        """Return batches that lie apart from one another as one."""
        sizes = np.array([len(batch) for batch in batches], dtype=np.int64)
        return cls(b"".join([*batches, PADDING]), np.cumsum(sizes) - sizes, sizes)

    def __getitem__(self, number: int) -> memoryview:
        return memoryview(self.data)[int(self.starts[number]) :][: int(self.sizes[number])]


class RecordSpans(NamedTuple):
    """Records of several batches, in order; `data` holds their bytes without compression, places are bytes of it, shape (n,).

    A record's key (with its length before it) lies at `keys`..`values`, its value at `values`..`headers`, its headers at
    `headers`..`ends`; their content begins at `key_starts` and `value_starts`. `timestamps` in ms; `batches` are the numbers of
    their batches; `null_keys` and `null_values` tell null from empty.
    """

    data: bytes
    offsets: _Places
    timestamps: _Places
    keys: _Places
    values: _Places
    headers: _Places
    ends: _Places
    key_starts: _Places
    value_starts: _Places
    null_keys: NDArray[np.bool_]
    null_values: NDArray[np.bool_]
    batches: _Places


def record_spans(batches: BatchBytes, limit: int = DEFAULT_LIMIT) -> tuple[RecordSpans, list[int]]:
    """Return the records of whole batches of magic 2, and the numbers of the batches that cannot be decoded, which have none.

    `limit` bounds the decompressed bytes of each. Neither CRCs nor the inside of headers are checked.
    """
    data, sizes = batches.data, batches.sizes
    starts, stops = batches.starts + HEADER_SIZE, batches.starts + sizes
    headers: Headers = at_every_byte(memoryview(data), HEADER_BYTES)[batches.starts].view(HEADER_DTYPE)
    counts = np.where(_are_whole(headers, sizes), headers["record_count"], -1).astype(np.int64)
    compressed = np.flatnonzero((counts >= 0) & (headers["attributes"] & CODEC_MASK != 0)).tolist()
    parts, base = [data], len(data)
    for number in compressed:
        batch = batches[number]
        try:
            parts.append(uncompressed(batch, checked_header(batch), limit))
        except WireError:
            counts[number] = -1
            continue
        starts[number], base = base, base + len(parts[-1])
        stops[number] = base
    data = b"".join([*parts, PADDING]) if compressed else data
    return _without_bad(_decoded(data, *_bounds(data, starts, stops, counts), headers), counts < 0)


def with_headers(spans: RecordSpans) -> NDArray[np.bool_]:
    """Mark the records that have headers, or whose headers cannot be decoded."""
    has: NDArray[np.bool_] = (spans.ends != spans.headers + 1) | (_octets(spans.data)[spans.headers] != 0)
    return has


def _are_whole(headers: Headers, sizes: _Places) -> NDArray[np.bool_]:
    """Mark the batches whose headers `checked_header` does not refuse."""
    delta = headers["last_offset_delta"].astype(np.int64)
    count = headers["record_count"]
    whole: NDArray[np.bool_] = (sizes >= HEADER_SIZE) & (headers["magic"] == CURRENT_MAGIC) & (delta >= 0)
    whole &= headers["batch_length"].astype(np.int64) + LOG_OVERHEAD == sizes
    whole &= headers["base_offset"] <= np.iinfo(np.int64).max - delta
    whole &= (count >= 0) & (count <= delta + 1)
    return whole


def _bounds(data: bytes, starts: _Places, stops: _Places, counts: _Places) -> tuple[_Places, _Places, _Places]:
    """Return where each record's fields begin, after its length, where they end, and its batch; bad batches get the count -1."""
    found = (counts == 1).astype(np.int64)
    several = np.flatnonzero((counts != 1) & (counts >= 0))
    listed: list[int] = []
    for number, at, stop in zip(several.tolist(), starts[several].tolist(), stops[several].tolist(), strict=True):
        before = len(listed)
        listed += _ends(data, at, stop)
        found[number] = len(listed) - before
    batches = np.repeat(np.arange(len(counts)), found)
    ends = stops[batches]
    ends[(counts != 1)[batches]] = listed
    begins = np.append(0, ends[:-1])[: len(ends)]
    firsts = np.cumsum(found) - found
    begins[firsts[found > 0]] = starts[found > 0]
    length, fields = _varints(_octets(data), begins, _INT32_BYTES)
    unfit = (fields == begins) | (length < 0) | (fields + length != ends) | (ends > stops[batches])
    counts[batches[unfit]] = -1
    counts[(found != counts)] = -1
    good = counts[batches] >= 0
    return fields[good], ends[good], batches[good]


def _ends(data: bytes, at: int, stop: int) -> list[int]:
    """Return where each of the records between these bytes ends by its length, which is not checked; lengths have one or two bytes mostly."""
    ends: list[int] = []
    while at < stop:
        byte = data[at]
        if byte < 0x80:
            at += (byte >> 1) + 1
        elif data[at + 1] < 0x80:
            at += (data[at + 1] << 6 | (byte & 0x7F) >> 1) + 2
        else:
            raw, shift = byte & 0x7F, 7
            while byte >= 0x80 and shift < 7 * _INT32_BYTES:
                at += 1
                byte = data[at]
                raw |= (byte & 0x7F) << shift
                shift += 7
            at += (raw >> 1) + 1
        ends.append(at)
    return ends


def _octets(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def _decoded(data: bytes, starts: _Places, ends: _Places, batches: _Places, headers: Headers) -> RecordSpans:
    """Return the records between these places."""
    octets = _octets(data)
    own = {name: headers[name].astype(np.int64)[batches] for name in _OF_RECORDS}
    appended = own["attributes"] & LOG_APPEND_TIME_FLAG != 0
    time, at = _varints(octets, starts + 1, _INT64_BYTES)
    offset, keys = _varints(octets, at, _INT32_BYTES)
    key_size, key_starts = _varints(octets, keys, _INT32_BYTES)
    values = _behind(keys, key_starts, key_size)
    value_size, value_starts = _varints(octets, np.minimum(values, len(data)), _INT32_BYTES)
    timestamps = np.where(appended, own["max_timestamp"], own["base_timestamp"] + time)
    # where a varint has no end, what follows it is taken from the wrong place
    sound = (at > starts + 1) & (keys > at) & (key_starts > keys) & (value_starts > values)
    sound &= (offset >= 0) & (offset <= own["last_offset_delta"])
    sound &= appended | ((timestamps >= own["base_timestamp"]) == (time >= 0))
    return RecordSpans(
        data,
        own["base_offset"] + offset,
        timestamps.astype(np.int64),
        keys,
        values,
        np.where(sound, _behind(values, value_starts, value_size), ends),
        ends,
        key_starts,
        value_starts,
        key_size < 0,
        value_size < 0,
        batches,
    )


def _behind(field: _Places, at: _Places, sizes: _Places) -> _Places:
    """Return where fields end whose content begins at `at`; where they begin if their length is none, which no field has."""
    return np.where(sizes < -1, field, at + np.maximum(sizes, 0))


def _varints(octets: NDArray[np.uint8], at: _Places, most: int) -> tuple[_Places, _Places]:
    """Return the zigzag varints that begin at these places, and where each ends; 0 bytes long where one has no end or too many bits."""
    byte = octets[np.minimum(at, len(octets) - 1)]
    raw, ends = (byte & 0x7F).astype(np.uint64), at + 1
    going = np.flatnonzero(byte >= 0x80)
    for group in range(1, most):
        if not len(going):
            break
        byte = octets[np.minimum(at[going] + group, len(octets) - 1)]
        raw[going] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * group)
        ends[going] += 1
        going = going[byte >= (0x80 if group < most - 1 else 0x10 if most == _INT32_BYTES else 2)]
    ends[going] = at[going]
    value = (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
    return value, ends


def _without_bad(spans: RecordSpans, bad: NDArray[np.bool_]) -> tuple[RecordSpans, list[int]]:
    """Leave out the batches with a record whose fields do not fit into it, or whose offsets do not rise."""
    inside = (spans.keys < spans.values) & (spans.values < spans.headers) & (spans.headers < spans.ends)
    same = spans.batches[1:] == spans.batches[:-1]
    inside[1:] &= ~same | (spans.offsets[1:] > spans.offsets[:-1])
    if not inside.all():
        bad[spans.batches[~inside]] = True
        kept = ~bad[spans.batches]
        columns: list[NDArray[Any]] = [column[kept] for column in spans[1:]]
        spans = RecordSpans(spans.data, *columns)
    return spans, np.flatnonzero(bad).tolist()
