"""Transaction markers in the form every broker writes them, decoded many at once.

One uncompressed record of 17 bytes: deltas 0, a key of 4 bytes, a value of 6, no headers. Any other form is left to
control.py. Source: Kafka's EndTransactionMarker, DefaultRecord.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import HEADER_SIZE, LOG_OVERHEAD
from kaudit.formats.log.control import KEY, VALUE
from kaudit.model.batch_fields import COMMIT_MARKER

_NUMBERS_BEFORE_KEY: Final = 5
"""Length, attributes, timestamp delta, offset delta and key length of the record: varints of one byte each."""
_HEADER_COUNT_BYTES: Final = 1
_KEY_START: Final = _NUMBERS_BEFORE_KEY
_VALUE_START: Final = _KEY_START + KEY.size + 1
_RECORD_BYTES: Final = _VALUE_START + VALUE.size + _HEADER_COUNT_BYTES

USUAL_MARKER_LENGTH: Final = HEADER_SIZE + _RECORD_BYTES - LOG_OVERHEAD
"""The length field of a batch that holds such a marker."""
USUAL_MARKER: Final = np.dtype(
    {
        "names": ["first_eight", "type", "value_length", "value_version_high", "coordinator_epoch"],
        "formats": [">u8", "u1", "u1", "u1", ">i4"],
        "offsets": [
            0,
            _KEY_START + KEY.end("type") - 1,
            _VALUE_START - 1,
            _VALUE_START,
            _VALUE_START + VALUE.offset("coordinator_epoch"),
        ],
    }
)
"""The record up to its header count; of `type` the low byte, the high one being in `first_eight`."""
USUAL_MARKER_BYTES: Final = np.dtype((np.void, USUAL_MARKER.itemsize))

_EXPECTED: Final = 0x20_00_00_00_08_00_00_00
"""Zigzag of 16 bytes, three zeros, zigzag of 4 bytes, key version, the high byte of the type."""
_MASK: Final = 0xFF_FF_FF_FF_FF_80_00_FF
"""Of the key version only the sign matters: brokers read higher ones as 0."""
_VALUE_LENGTH: Final = VALUE.size << 1


def is_usual_marker(records: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each of `records` (USUAL_MARKER, shape (n,)) whether it ends a transaction and has the usual form."""
    usual: NDArray[np.bool_] = (records["first_eight"] & _MASK == _EXPECTED) & (records["type"] <= COMMIT_MARKER)
    usual &= (records["value_length"] == _VALUE_LENGTH) & (records["value_version_high"] & 0x80 == 0)
    return usual
