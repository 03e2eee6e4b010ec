"""What reading ranges gave, as bytes: in a saved state, in Spark's rows, in the column `chunk` of a table of runs.

A table may be stored and come back from anywhere, so decoding checks all that it takes for granted. What boundary batches
say of a run is not stored again.
"""

import copy
import os
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.model.columns import Column, Columns
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.digest_leaves import BATCH, LEAF
from kaudit.reading.rows import BOUNDARY_BATCH, GAP, LEADER_EPOCH_START, MARKER, NON_IDEMPOTENT_BATCH, RUN, TAIL_BATCH
from kaudit.reading.run_rows import columns_of_boundaries
from kaudit.reading.struct_codec import DamagedBytesError, OtherFormatError, StructCodec
from kaudit.reading.unread_segments import Failure

_OF_RUN = ("producer_id", "producer_epoch", "is_transactional", "batches", "records", "bytes", "partial_batches")
_STORED_RUN = np.dtype([*((name, RUN[name]) for name in _OF_RUN), ("earlier", np.int64), ("later", np.int64)])
"""A run without what its boundary batches say: `earlier` and `later` than their times are its least and greatest, in ms."""
TABLES = {
    "ChunkRows.runs": _STORED_RUN,
    "ChunkRows.boundary_batches": BOUNDARY_BATCH,
    "ChunkRows.markers": MARKER,
    "ChunkRows.gaps": GAP,
    "ChunkRows.leader_epochs": LEADER_EPOCH_START,
    "ChunkRows.batch_starts": BATCH_START,
    "ChunkRows.tails": TAIL_BATCH,
    "NonIdempotentRows.rows": NON_IDEMPOTENT_BATCH,
    "NonIdempotentRows.recurring": np.dtype((np.int64, (2,))),
    "RangeLeaves.first": BATCH,
    "RangeLeaves.leaves": LEAF,
    "RangeLeaves.last": BATCH,
}


class _Stored(Struct, array_like=True):
    """One outcome: rows, or a failure and its path, which need not be text."""

    rows: ChunkRows | None = None
    failure: Failure | None = None
    path: bytes = b""


_CODEC: StructCodec[list[_Stored]] = StructCodec(list[_Stored], TABLES)


def pack_chunk(outcomes: Sequence[Outcome]) -> bytes:
    """Encode what reading a range gave."""
    return _CODEC.encode([_stored(outcome) for outcome in outcomes])


def unpack_chunk(data: bytes) -> list[Outcome]:
    """Return what was encoded.

    Raises:
        UsageError: a kaudit with another format encoded it, or it is something else.

    """
    try:
        return [_outcome(stored) for stored in _CODEC.decode(data)]
    except OtherFormatError as error:
        raise UsageError(f"the column chunk was made by another kaudit ({error}): call runs() again") from None
    except ValueError as error:
        raise UsageError(f"the column chunk is not what kaudit made: {error}") from None


def _stored(outcome: Outcome) -> _Stored:
    if isinstance(outcome, Failure):
        return _Stored(failure=replace(outcome, path=""), path=os.fsencode(outcome.path))
    rows = copy.copy(outcome)
    runs, boundary = rows.runs, rows.boundary_batches
    known = columns_of_boundaries(boundary, runs["batches"])
    columns: dict[str, Column] = {name: runs[name] for name in _OF_RUN}
    columns["earlier"] = boundary["max_timestamp"].take(known["boundary_start"]) - runs["min_timestamp"]
    columns["later"] = runs["max_timestamp"] - known["last_max_timestamp"]
    rows.runs = Columns(_STORED_RUN, len(runs), columns)
    return _Stored(rows)


def _outcome(stored: _Stored) -> Outcome:
    if stored.failure is not None:
        return replace(stored.failure, path=os.fsdecode(stored.path))
    rows = stored.rows
    if rows is None:
        raise DamagedBytesError("neither rows nor a failure")
    if len(rows.damages) != len(rows.expected_offsets):
        raise DamagedBytesError("damages without the offsets expected there")
    sent, boundary = rows.runs, rows.boundary_batches
    lengths = sent["batches"]
    if not (lengths > 0).all() or int(np.minimum(lengths, 2 * NUM_BATCHES_TO_RETAIN).sum()) != len(boundary):
        raise DamagedBytesError("runs with the boundary batches of others")
    known = columns_of_boundaries(boundary, lengths)
    columns: dict[str, Column] = {name: sent[name] for name in _OF_RUN}
    columns["min_timestamp"] = boundary["max_timestamp"].take(known["boundary_start"]) - sent["earlier"]
    columns["max_timestamp"] = known["last_max_timestamp"] + sent["later"]
    rows.runs = Columns(RUN, len(sent), columns | known)
    return rows
