"""Batches without a producer id, of which a client without idempotence may have sent one twice.

A re-sent batch has the CRC and the size of the first copy: the CRC covers everything but base offset and leader epoch.
So copies can be recognised by their headers. Of a chunk only those batches are kept that have a copy near them, what lies
between the two, and its first and last DISTANCE: the rest is no candidate, whatever the neighbouring chunks hold.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.scan.chunk_rows import NonIdempotentRows
from kaudit.analysis.scan.rows import NON_IDEMPOTENT_BATCH, assemble
from kaudit.analysis.scan.run_rows import ChunkBatches
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG

DISTANCE = 1024
"""A copy is searched for among so many batches without a producer id before it."""
_SPREAD = 0x9E3779B1
"""Keeps sizes and times, which both are small steps apart, from adding up to the same."""


def non_idempotent_rows(chunk: ChunkBatches) -> NonIdempotentRows:
    """Return the batches without a producer id, of which the rows are the candidates in log order.

    Left out are batches a broker has stamped with its own time, which changes the CRC, and those without timestamps: equal
    ones need not be copies.
    """
    batches = chunk.batches
    mine = (batches["producer_id"] < 0) & (batches["magic"] == CURRENT_MAGIC) & (batches["base_timestamp"] >= 0)
    mine &= batches["attributes"] & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG) == 0
    index = np.flatnonzero(mine)
    if not len(index):
        return NonIdempotentRows()
    all_of_them = len(index) == len(batches)
    times = batches["base_timestamp"] if all_of_them else batches["base_timestamp"][index]
    regresses = np.zeros(len(index), dtype=bool)
    np.less(times[1:], times[:-1], out=regresses[1:])
    keep = np.zeros(len(index), dtype=bool)
    keep[:DISTANCE] = True
    keep[-DISTANCE:] = True
    _keep_copies(batches, index, keep)
    ordinals = np.flatnonzero(keep)
    chosen = index[ordinals]
    columns: dict[str, NDArray[Any] | int] = {
        "ordinal": ordinals,
        "last_offset": chunk.last_offsets[chosen],
        "segment": chunk.segment,
        "regresses": regresses[ordinals],
    }
    columns |= {name: batches[name][chosen] for name in NON_IDEMPOTENT_BATCH.names or () if name not in columns}
    rows = assemble(NON_IDEMPOTENT_BATCH, len(chosen), columns)
    return NonIdempotentRows(rows, len(index), int(np.count_nonzero(regresses)))


def _keep_copies(batches: Batches, index: NDArray[np.intp], keep: NDArray[np.bool_]) -> None:
    """Mark batches with an equal one near them, and all between the two."""
    # the CRC alone is equal by chance a dozen times in a chunk of small batches: size and time make it 64 bits
    rest = batches["size"][index] * _SPREAD + batches["base_timestamp"][index] & 0xFFFFFFFF
    keys = batches["crc"][index].astype(np.uint64) << np.uint64(32) | rest.astype(np.uint64)
    ascending = np.sort(keys)  # several times faster than sorting indexes, and mostly all there is to do
    if not (ascending[1:] == ascending[:-1]).any():
        return
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    first, again = order[:-1][same], order[1:][same]
    near = again - first <= DISTANCE
    edges = np.zeros(len(index) + 1, dtype=np.int64)
    np.add.at(edges, first[near], 1)
    np.subtract.at(edges, again[near] + 1, 1)
    keep |= np.cumsum(edges[:-1]) > 0
