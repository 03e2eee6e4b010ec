"""Rows of a truncated part of the log that new ones have not overwritten yet (AbstractIndex.truncateToEntries)."""

import struct

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import data

BATCHES = [data(1, 0, sequence, 3).at(sequence) for sequence in range(0, 30, 3)]
SIZE = len(BATCHES[0].encode())


def row(offset):
    """The row of the batch whose last offset this is."""
    return struct.pack(">ii", offset, offset // 3 * SIZE)


@pytest.mark.parametrize(
    ("offsets", "room", "expected"),
    [
        ([8, 17, 26], 80, []),
        # rows 2 and 3 are of a log that went to 35 before it was truncated to 18
        ([8, 17, 26, 23, 32], 80, []),
        ([8, 17, 26, 14, 20], 80, []),
        # not at the end of the log; not one series of rows; an index that was closed
        ([8, 5, 26], 80, [("KA503", "warning")]),
        ([8, 17, 26, 23, 20], 80, [("KA503", "warning")]),
        ([8, 17, 26, 23], 0, [("KA503", "warning")]),
    ],
)
def test_rows_after_the_newest_one(tmp_path, offsets, room, expected):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(b"".join(batch.encode() for batch in BATCHES))
    (partition / f"{0:020d}.index").write_bytes(b"".join(map(row, offsets)) + bytes(room))
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    assert [(each.code, each.severity.value) for each in result.findings if each.code in ("KA503", "KA014")] == expected
