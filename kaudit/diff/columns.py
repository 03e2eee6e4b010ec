"""The columns of a replica's batches that `diff` compares: shape (n,) each, by name, in offset order."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model import sequence
from kaudit.model.batch_fields import DELETE_HORIZON_FLAG
from kaudit.model.replicas import ReplicaBatch

COLUMNS = (
    "base_offset",
    "last_offset",
    "crc",
    "leader_epoch",
    "magic",
    "attributes",
    "record_count",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "max_timestamp",
    "size",
    "position",
    "segment",
)

Columns = Mapping[str, NDArray[Any]]


def batch_at(rows: Columns, index: int) -> ReplicaBatch:
    """Return one row as a batch."""
    values = {name: int(rows[name][index]) for name in COLUMNS}
    values |= {"offset": values["base_offset"], "timestamp": values["max_timestamp"]}
    first, span = values["base_sequence"], values["last_offset"] - values["base_offset"]
    values["last_sequence"] = first if first < 0 else sequence.add(first, span)
    return ReplicaBatch(**{name: values[name] for name in ReplicaBatch.__struct_fields__})


def no_rows() -> Columns:
    """Return columns of no batches."""
    return {name: np.empty(0, dtype=np.int64) for name in COLUMNS}


def cleaned(rows: Columns, index: NDArray[np.int64] | slice) -> NDArray[np.bool_]:
    """Whether the cleaner has been at these batches: records are missing, or their delete horizon is set (KIP-534)."""
    spans = rows["last_offset"][index] - rows["base_offset"][index] + 1
    current = rows["magic"][index] == CURRENT_MAGIC
    horizon = rows["attributes"][index] & DELETE_HORIZON_FLAG != 0
    found: NDArray[np.bool_] = current & ((rows["record_count"][index] != spans) | horizon)
    return found
