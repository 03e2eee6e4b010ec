"""Batches without a producer id: a client without idempotence may have sent one twice.

A batch that is sent again has the same records: their CRC follows from the header (formats/log/crc_algebra.py). Some clients
(kafkajs) and brokers (LogAppendTime with recompression) give it new timestamps. Of a chunk only those batches are kept that
have a copy near them, what lies between copies with equal timestamps, and the chunk's first and last DISTANCE: the rest is no
candidate, whatever the neighbouring chunks hold.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.crc_algebra import Crcs, records_crcs
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.chunk_rows import NonIdempotentRows
from kaudit.reading.equal_batches import DISTANCE, NO_RANGES, EqualBatches, Ranges, merged, near_none
from kaudit.reading.record_content import batch_content, with_times
from kaudit.reading.rows import NON_IDEMPOTENT_BATCH, Rows, assemble
from kaudit.reading.run_rows import ChunkBatches


def non_idempotent_rows(chunk: ChunkBatches) -> NonIdempotentRows:
    """Return the batches without a producer id, of which the rows are the candidates in log order.

    Left out are batches without timestamps: equal ones need not be copies.
    """
    batches = chunk.batches
    mine = (batches["producer_id"] < 0) & (batches["magic"] == CURRENT_MAGIC) & (batches["base_timestamp"] >= 0)
    mine &= batches["attributes"] & CONTROL_FLAG == 0
    index = np.flatnonzero(mine)
    if not len(index):
        return NonIdempotentRows()
    own = batches if len(index) == len(batches) else batches[index]
    times = own["base_timestamp"]
    regresses = np.zeros(len(index), dtype=bool)
    np.less(times[1:], times[:-1], out=regresses[1:])
    keep = np.zeros(len(index), dtype=bool)
    keep[:DISTANCE] = True
    keep[-DISTANCE:] = True
    crcs = records_crcs(own)
    recurring = _keep_copies((crcs, own["size"], own["record_count"], times), np.arange(len(index)), keep, NO_RANGES)
    ordinals = np.flatnonzero(keep)
    chosen = index[ordinals]
    columns: dict[str, NDArray[Any] | int] = {
        "ordinal": ordinals,
        "records_crc": crcs[ordinals],
        "last_offset": chunk.last_offsets[chosen],
        "segment": chunk.segments(chosen),
        "regresses": regresses[ordinals],
    }
    columns |= {name: batches[name][chosen] for name in NON_IDEMPOTENT_BATCH.names or () if name not in columns}
    rows = assemble(NON_IDEMPOTENT_BATCH, len(chosen), columns)
    return NonIdempotentRows(rows, len(index), int(np.count_nonzero(regresses)), recurring)


def join_non_idempotent(parts: Sequence[NonIdempotentRows]) -> NonIdempotentRows:
    """Return the rows of ranges that follow one another as those of one: between them fewer are candidates."""
    parts = [part for part in parts if part.batches]
    if len(parts) < 2:
        return parts[0] if parts else NonIdempotentRows()
    before = np.cumsum([0, *(part.batches for part in parts)]).tolist()
    rows = np.concatenate([part.rows for part in parts])
    begins = np.cumsum([0, *(len(part.rows) for part in parts)])[1:-1]
    rows["ordinal"] += np.repeat(before[:-1], [len(part.rows) for part in parts])
    # a range keeps its first and its last batch
    goes_back = rows["base_timestamp"][begins] < rows["base_timestamp"][begins - 1]
    rows["regresses"][begins] = goes_back
    ordinals = rows["ordinal"].copy()
    keep = (ordinals < DISTANCE) | (ordinals >= before[-1] - DISTANCE)
    recurring = np.concatenate([part.recurring + count for part, count in zip(parts, before, strict=False)])
    batches = (rows["records_crc"], rows["size"], rows["record_count"], rows["base_timestamp"])
    recurring = _keep_copies(batches, ordinals, keep, recurring)
    return NonIdempotentRows(
        rows[keep],
        before[-1],
        sum(part.regressions for part in parts) + int(np.count_nonzero(goes_back)),
        recurring,
    )


def _keep_copies(
    batches: tuple[Crcs, Rows, Rows, Rows], ordinals: NDArray[np.int64], keep: NDArray[np.bool_], recurring: Ranges
) -> Ranges:
    """Mark batches with an equal one near them, with equal times all between the two; return where records recur.

    `batches`: their records' CRCs, sizes, record counts and base timestamps, shape (n,) each. `recurring`: ranges known before.
    """
    crcs, *shape, times = batches
    ascending = np.sort(crcs)  # many times faster than sorting indexes, and mostly all there is to do
    several = ascending[1:][ascending[1:] == ascending[:-1]]
    if not len(several):
        return merged(recurring)
    # some by chance: a dozen in a chunk of small batches
    places = np.flatnonzero(np.isin(crcs, several[np.append(True, several[1:] != several[:-1])]))
    times, ordinals = times[places], ordinals[places]
    contents = batch_content(crcs[places], *(column[places] for column in shape))
    first, again = EqualBatches.of(with_times(contents, times), ordinals).copies()
    edges = np.zeros(len(keep) + 1, dtype=np.int64)
    np.add.at(edges, places[first], 1)
    np.subtract.at(edges, places[again] + 1, 1)
    keep |= np.cumsum(edges[:-1]) > 0
    equal = EqualBatches.of(contents, ordinals)
    recurring = merged(np.concatenate((recurring, equal.recurring(times))))
    first, again = equal.restamped(times)
    alone = near_none(ordinals[again], recurring)
    keep[places[first[alone]]] = True
    keep[places[again[alone]]] = True
    return recurring
