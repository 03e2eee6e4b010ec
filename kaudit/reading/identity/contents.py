"""What the records of a range say, apart from their place, as numbers that can be compared by the million.

Control batches have none: no consumer is given them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from kaudit.model.columns import Columns, joined, no_rows
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.reading.content_rows import CONTENT, read_batch
from kaudit.reading.identity.columns import IdentityColumns, IdentityReader
from kaudit.reading.identity.grammar import Identity
from kaudit.reading.record_content import mixed
from kaudit.source.bytes import ByteSource

NO_IDENTITY = 0
_AT_ONCE = 4 << 20
"""Bytes of batches that are decoded together."""


def record_contents(batches: Batches, segment: int, source: ByteSource, identity: Identity) -> tuple[Columns, int]:
    """Return a row of CONTENT for each record of the batches of data, and how many batches cannot be decoded."""
    reader, rows = IdentityReader(identity), []
    batches = batches[batches["attributes"] & CONTROL_FLAG == 0]
    left = len(batches)
    for numbers, data in _read(batches, source):
        columns, faulty = reader.columns(data)
        left -= len(data) - len(faulty)
        rows.append(_rows(batches[np.array(numbers)[columns.batches]], columns, segment))
    return (joined(rows) if rows else no_rows(CONTENT)), left


def _read(batches: Batches, source: ByteSource) -> Iterator[tuple[list[int], list[memoryview]]]:
    """Yield the numbers and the bytes of batches, some at once; those that cannot be read are left out."""
    numbers: list[int] = []
    data: list[memoryview] = []
    room = _AT_ONCE
    for number, (position, size) in enumerate(zip(batches["position"].tolist(), batches["size"].tolist(), strict=True)):
        try:
            data.append(read_batch(source, position, size))
        except ValueError:
            continue
        numbers.append(number)
        room -= size
        if room <= 0:
            yield numbers, data
            numbers, data, room = [], [], _AT_ONCE
    if numbers:
        yield numbers, data


def _rows(batches: Batches, columns: IdentityColumns, segment: int) -> Columns:
    """Return the rows of records; `batches` has the batch of each, shape (n,)."""
    first, producers = batches["base_sequence"].astype(np.int64), (batches["producer_id"], batches["producer_epoch"])
    sequences = np.where(first < 0, -1, (first + columns.offsets - batches["base_offset"]) & MAX_SEQUENCE)
    fields: dict[str, NDArray[Any] | int] = {
        "offset": columns.offsets,
        "content": columns.identities.astype(np.uint64)[:, 0].view(np.int64),
        "identity": _identity(*producers, sequences),
        "key": columns.keys.view(np.int64),
        "transaction_of": np.where(batches["attributes"] & TRANSACTIONAL_FLAG != 0, producers[0], NO_PRODUCER_ID),
        "records": 1,
        "position": batches["position"],
        "size": batches["size"],
        "segment": segment,
    }
    return Columns(CONTENT, len(batches), fields)


def _identity(producer_ids: NDArray[Any], epochs: NDArray[Any], sequences: NDArray[Any]) -> NDArray[np.int64]:
    """64 bits of what a broker deduplicates by, NO_IDENTITY where it cannot."""
    identity = mixed(producer_ids, epochs, sequences)
    identity[(producer_ids < 0) | (sequences < 0)] = NO_IDENTITY
    return identity.view(np.int64)
