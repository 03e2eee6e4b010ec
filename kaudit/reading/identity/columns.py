"""Identities of many records at once: 128 bits each.

Two records with different identities are taken for one with a probability of n^2 / 2^129 among n records: 6e-23 for 200
million. xxh3 is no cryptographic hash: whoever chooses the records can make two collide.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET
from kaudit.formats.log.record_spans import BatchBytes, RecordSpans, record_spans
from kaudit.formats.log.records import DEFAULT_LIMIT
from kaudit.reading.content_rows import NO_KEY, records_of
from kaudit.reading.identity.grammar import WHOLE, Identity, Of, Part
from kaudit.reading.identity.parts import (
    AnyRecord,
    Decoder,
    PartReader,
    content_of,
    decode_payload,
    encoded_key,
    timestamp_of,
)
from kaudit.reading.record_content import hashes, mixed

_PARTS_SEED = 1
"""What is made of parts never equals what is made of whole records."""
_Column = NDArray[Any]


class IdentityColumns(NamedTuple):
    """Records in order, shape (n,) each: their offsets, `identities` as two uint64 (n, 2), timestamps in ms.

    `keys` are 64 bits of the record's key (NO_KEY where it is null), `null_values` mark tombstones, `whole` the records that are
    compared whole because parts of them are missing or cannot be read, `batches` number the batches they are of.
    """

    offsets: _Column
    identities: _Column
    timestamps: _Column
    keys: _Column
    null_values: _Column
    whole: _Column
    batches: _Column


class IdentityReader(Struct, frozen=True):
    """Makes the identities of records; `decode_key` and `decode_value` read what paths lead into."""

    identity: Identity = WHOLE
    decode_key: Decoder = decode_payload
    decode_value: Decoder = decode_payload

    def columns(self, batches: BatchBytes, limit: int = DEFAULT_LIMIT) -> tuple[IdentityColumns, list[int]]:
        """Return the records of whole batches of data in order, and the numbers of the batches that cannot be decoded."""
        magics = np.frombuffer(batches.data, dtype=np.uint8)[batches.starts + MAGIC_OFFSET]
        if self.identity.is_whole and (magics == CURRENT_MAGIC).all():
            spans, undecoded = record_spans(batches, limit)
            return _of_spans(spans, self.identity.choices[0]), undecoded
        parts = None if self.identity.is_whole else PartReader(self.identity, self.decode_key, self.decode_value)
        found: list[IdentityColumns] = []
        undecoded = []
        for number in range(len(batches.sizes)):
            try:
                found.append(_one_by_one(batches[number], number, parts, self.identity))
            except WireError:
                undecoded.append(number)
        return _joined(found or [_of_spans(record_spans(BatchBytes.of([]))[0], ())]), undecoded


def _of_spans(spans: RecordSpans, parts: tuple[Part, ...]) -> IdentityColumns:
    digest = hashes().xxh3_128_digest
    ranges = list(_bounds(spans, parts))
    data = spans.data
    if len(ranges) == 1:
        texts: Iterable[bytes] = (data[first:end] for first, end in zip(*ranges[0], strict=True))
    else:
        texts = (
            b"".join(data[first:end] for first, end in pairs)
            for pairs in zip(*(zip(*bounds, strict=True) for bounds in ranges), strict=True)
        )
        texts = texts if ranges else (b"" for _ in spans.offsets)
    found = np.frombuffer(b"".join(map(digest, texts)), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return IdentityColumns(
        spans.offsets,
        _timed(found, spans.timestamps) if Part(Of.TIMESTAMP) in parts else found,
        spans.timestamps,
        _keys(spans),
        spans.null_values,
        np.zeros(len(found), dtype=np.bool_),
        spans.batches,
    )


def _bounds(spans: RecordSpans, parts: tuple[Part, ...]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield where the parts lie, those next to each other as one: where each begins and where it ends, of every record."""
    places = [spans.keys, spans.values, spans.headers, spans.ends]
    wanted = [Part(of) in parts for of in (Of.KEY, Of.VALUE, Of.HEADERS)]
    edges = [index for index, (before, now) in enumerate(pairwise([False, *wanted, False])) if before != now]
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        yield places[first].tolist(), places[end].tolist()


def _keys(spans: RecordSpans) -> _Column:
    digest, data = hashes().xxh3_64_digest, spans.data
    keys = np.full(len(spans.offsets), NO_KEY, dtype=np.uint64)
    own = ~spans.null_keys
    bounds = zip(spans.keys[own].tolist(), spans.values[own].tolist(), strict=True)
    found = b"".join([digest(data[first:end]) for first, end in bounds])
    keys[own] = np.maximum(np.frombuffer(found, dtype=">u8"), 1)
    return keys


def _timed(identities: _Column, timestamps: _Column) -> _Column:
    """Mix timestamps into identities; none of the 128 bits is lost: each half is permuted."""
    return np.stack([mixed(timestamps, half) for half in identities.T], axis=1)


def _one_by_one(batch: memoryview, number: int, parts: PartReader | None, identity: Identity) -> IdentityColumns:
    """Read records one by one: those of magic 0 and 1, and those of which parts count."""
    digest = hashes().xxh3_128_digest
    texts: list[bytes] = []
    rows: list[tuple[int, int, int, bool]] = []
    whole: list[bool] = []
    plain = identity if parts is None else WHOLE
    for record in records_of(batch):
        text = None if parts is None else parts.read(record)
        whole.append(text is None)
        texts.append(digest(content_of(record, plain.choices[0])) if text is None else digest(text, seed=_PARTS_SEED))
        rows.append((record.offset, timestamp_of(record), _key(record), record.value is None))
    found = np.frombuffer(b"".join(texts), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    compared_whole = np.array(whole, dtype=np.bool_)
    timestamps = np.array([row[1] for row in rows], dtype=np.int64)
    if plain.has_timestamp:
        found[compared_whole] = _timed(found, timestamps)[compared_whole]
    return IdentityColumns(
        np.array([row[0] for row in rows], dtype=np.int64),
        found,
        timestamps,
        np.array([row[2] for row in rows], dtype=np.uint64),
        np.array([row[3] for row in rows], dtype=np.bool_),
        compared_whole & (parts is not None),
        np.full(len(rows), number, dtype=np.int64),
    )


def _key(record: AnyRecord) -> int:
    if record.key is None:
        return NO_KEY
    return hashes().xxh3_64_intdigest(encoded_key(record)) or 1


def _joined(found: Sequence[IdentityColumns]) -> IdentityColumns:
    return IdentityColumns(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
