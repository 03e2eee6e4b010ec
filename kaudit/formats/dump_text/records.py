"""Many records of data at once: one search over a block of lines gives the columns of all of them."""

from collections.abc import Iterable
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.dump_text.layout import learn
from kaudit.formats.dump_text.rows import DumpRecord

_RECORD_LINE: Final = b"\n| offset: "
_KEY_BYTES: Final = len(b" key: ")
_PAYLOAD_BYTES: Final = len(b" payload: ")

Records = tuple[list[DumpRecord], bytes, NDArray[np.int64]]


def take_records(text: bytes, first_line: int) -> Records | None:
    """Take the records of data out of whole lines: their rows, the lines that are left, and the numbers of those.

    A record stays among the lines where the next one may go on with its text. None: the text has no such records, or
    some whose printed key is not of the size it should have, and each must be checked.
    """
    at = text.find(_RECORD_LINE)
    layout = learn(text[at + 1 : text.index(b"\n", at + 1)]) if at >= 0 else None
    if layout is None or layout.data_records is None:
        return None
    parts: list[Any] = layout.data_records.split(text)
    stride = layout.data_records.groups + 1
    left: list[bytes] = parts[0::stride]
    count = len(left) - 1
    columns: dict[str, Iterable[Any]] = {
        "timestamp_type": repeat(layout.timestamp_type),
        "fields": repeat(layout.fields),
    }
    for number, ((field, _), read) in enumerate(zip(layout.known, layout.usual_readers, strict=True), start=1):
        if field in columns:
            continue  # a name printed twice, which no tool does: the first counts, as where lines are read one by one
        texts = parts[number::stride]
        columns[field] = (
            list(map(read, texts)) if None not in texts else [None if it is None else read(it) for it in texts]
        )
    header_keys, keys, payloads = (parts[number::stride] for number in range(stride - 3, stride))
    columns["header_keys"] = header_keys
    columns["key"] = keys = [None if key is None else key[_KEY_BYTES:] for key in keys]
    columns["payload"] = [None if payload is None else payload[_PAYLOAD_BYTES:] for payload in payloads]
    if any(key is not None and len(key) != size for key, size in zip(keys, columns["key_size"], strict=True)):
        return None
    # Each record is one line, and begins with the line feed of the line before it.
    ends = np.fromiter((piece.count(b"\n") for piece in left), np.int64, count + 1)
    lines = np.cumsum(ends[:-1]) + np.arange(1, count + 1)
    columns["line"] = (lines + first_line).tolist()
    is_left = np.ones(int(ends.sum()) + count, dtype=np.bool_)
    is_left[lines] = False
    rows = list(
        map(DumpRecord._make, zip(*(columns.get(field, repeat(None)) for field in DumpRecord._fields), strict=False))
    )
    return rows, b"".join(left), np.flatnonzero(is_left) + first_line
