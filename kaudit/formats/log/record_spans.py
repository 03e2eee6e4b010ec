"""Where key, value and headers of records lie, of many batches of magic 2 at once, without a Python object for each record.

Source of the format: Kafka's DefaultRecord; `read_records` (records.py) reads the same records one by one.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.records import DEFAULT_LIMIT, checked_header, uncompressed
from kaudit.model.batch_fields import LOG_APPEND_TIME_FLAG

_Places = NDArray[np.int64]
_PADDING = bytes(16)
"""A varint that begins in the last byte of the records is read beyond them before that is noticed."""
_INT32_BYTES, _INT64_BYTES = 5, 10


class RecordSpans(NamedTuple):
    """Records of several batches, in order; `data` holds their bytes without compression, places are bytes of it, shape (n,).

    A record's key (with its length before it) lies at `keys`..`values`, its value at `values`..`headers`, its headers at
    `headers`..`ends`. `timestamps` in ms; `batches` are the numbers of their batches; `null_keys` and `null_values` tell null from empty.
    """

    data: bytes
    offsets: _Places
    timestamps: _Places
    keys: _Places
    values: _Places
    headers: _Places
    ends: _Places
    null_keys: NDArray[np.bool_]
    null_values: NDArray[np.bool_]
    batches: _Places


def record_spans(batches: Iterable[Buffer], limit: int = DEFAULT_LIMIT) -> tuple[RecordSpans, list[int]]:
    """Return the records of whole batches of magic 2, and the numbers of the batches that cannot be decoded, which have none.

    `limit` bounds the decompressed bytes of each. Neither CRCs nor the inside of headers are checked.
    """
    bodies: list[bytes] = []
    starts: list[int] = []
    ends: list[int] = []
    counts: list[int] = []
    heads: list[tuple[int, int, int]] = []
    bad: list[int] = []
    base = 0
    for number, batch in enumerate(batches):
        found: tuple[list[int], list[int]] = ([], [])
        head = (0, 0, 0)
        try:
            header = checked_header(batch)
            body = uncompressed(batch, header, limit)
            found = _places(body, header.record_count, base)
            appended = bool(header.attributes & LOG_APPEND_TIME_FLAG)
            head = (header.base_offset, header.max_timestamp if appended else header.base_timestamp, not appended)
            bodies.append(body)
            base += len(body)
        except WireError:
            bad.append(number)
        starts += found[0]
        ends += found[1]
        counts.append(len(found[0]))
        heads.append(head)
    spans = _decoded(b"".join(bodies), np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), counts, heads)
    return _without_bad(spans, bad)


def _places(body: bytes, count: int, base: int) -> tuple[list[int], list[int]]:
    """Return where the fields of each record begin, after its length, and where they end; counted from `base`."""
    found: list[int] = []
    ends: list[int] = []
    at, size = 0, len(body)
    try:
        for _ in range(count):
            byte = body[at]
            at += 1
            raw = byte & 0x7F
            shift = 7
            while byte >= 0x80:
                byte = body[at]
                at += 1
                raw |= (byte & 0x7F) << shift
                shift += 7
                if shift > 7 * _INT32_BYTES:
                    raise WireError(at, Reason.VARINT, "a record's length has no end")
            found.append(base + at)
            at += (raw >> 1) ^ -(raw & 1)
            if at <= found[-1] - base or at > size:
                raise WireError(at, Reason.LENGTH, f"a record ends at byte {at} of {size}")
            ends.append(base + at)
    except IndexError:
        raise WireError(size, Reason.TRUNCATED, "the records end inside a record") from None
    if at != size:
        raise WireError(at, Reason.TRAILING, f"{size - at} bytes after the last record")
    return found, ends


def _decoded(
    data: bytes, starts: _Places, ends: _Places, counts: list[int], heads: list[tuple[int, int, int]]
) -> RecordSpans:
    octets = np.frombuffer(data + _PADDING, dtype=np.uint8)
    batches = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    head = np.array(heads, dtype=np.int64).reshape(-1, 3)[batches]
    time, at = _varints(octets, starts + 1, _INT64_BYTES)
    offset, keys = _varints(octets, at, _INT32_BYTES)
    key_size, at = _varints(octets, keys, _INT32_BYTES)
    values = _behind(keys, at, key_size)
    value_size, at = _varints(octets, np.minimum(values, len(data)), _INT32_BYTES)
    headers = _behind(values, at, value_size)
    return RecordSpans(
        data,
        head[:, 0] + offset,
        head[:, 1] + time * head[:, 2],
        keys,
        values,
        headers,
        ends,
        key_size < 0,
        value_size < 0,
        batches,
    )


def _behind(field: _Places, at: _Places, sizes: _Places) -> _Places:
    """Return where fields end whose content begins at `at`; where they begin if their length is none, which no field has."""
    return np.where(sizes < -1, field, at + np.maximum(sizes, 0))


def _varints(octets: NDArray[np.uint8], at: _Places, most: int) -> tuple[_Places, _Places]:
    """Return the zigzag varints that begin at these places, and where each ends; 0 bytes long where one has no end."""
    byte = octets[at]
    raw, ends = (byte & 0x7F).astype(np.uint64), at + 1
    going = np.flatnonzero(byte >= 0x80)
    for group in range(1, most):
        if not len(going):
            break
        byte = octets[np.minimum(at[going] + group, len(octets) - 1)]
        raw[going] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * group)
        ends[going] += 1
        going = going[byte >= 0x80]
    ends[going] = at[going]
    value = (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
    return value, ends


def _without_bad(spans: RecordSpans, bad: list[int]) -> tuple[RecordSpans, list[int]]:
    """Leave out the batches with a record whose fields do not fit into it, or whose offsets do not rise."""
    inside = (spans.keys < spans.values) & (spans.values < spans.headers) & (spans.headers < spans.ends)
    same = spans.batches[1:] == spans.batches[:-1]
    inside[1:] &= ~same | (spans.offsets[1:] > spans.offsets[:-1])
    if inside.all():
        return spans, bad
    broken = np.unique(spans.batches[~inside])
    kept = ~np.isin(spans.batches, broken)
    columns: Iterable[NDArray[Any]] = (column[kept] for column in spans[1:])
    return RecordSpans(spans.data, *columns), sorted([*bad, *broken.tolist()])
