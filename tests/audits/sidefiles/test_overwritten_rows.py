"""Rows of a truncated part of the log that new ones have not overwritten yet (AbstractIndex.truncateToEntries)."""

import struct
from dataclasses import replace

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


@pytest.mark.parametrize(
    ("rows", "epochs", "room", "expected"),
    [
        # a log that was truncated to 12, and written anew with fewer bytes than a row is written for
        ([(26, 7 * SIZE + 40)], [(3, 0), (7, 1)], 80, []),
        ([(8, 2 * SIZE), (17, 5 * SIZE), (23, 7 * SIZE + 40)], [(3, 0), (7, 1)], 80, []),
        # no new leader began in this segment; the row is of before that; the index was closed
        ([(26, 7 * SIZE + 40)], [(10, 0)], 80, [("KA503", "warning")]),
        ([(5, SIZE + 40), (17, 5 * SIZE)], [(3, 0), (7, 1)], 80, [("KA503", "warning")]),
        ([(26, 7 * SIZE + 40)], [(3, 0), (7, 1)], 0, [("KA503", "warning")]),
        # rows lie closer to one another: there are new bytes enough to have overwritten it
        ([(2, 0), (5, SIZE), (14, 4 * SIZE + 40)], [(3, 0), (7, 1)], 80, [("KA503", "warning")]),
    ],
)
def test_rows_that_no_new_one_has_overwritten_yet(tmp_path, rows, epochs, room, expected):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    leaders = [epoch for count, epoch in epochs for _ in range(count)]
    batches = [replace(batch, leader_epoch=epoch) for batch, epoch in zip(BATCHES, leaders, strict=True)]
    (partition / f"{0:020d}.log").write_bytes(b"".join(batch.encode() for batch in batches))
    (partition / f"{0:020d}.index").write_bytes(b"".join(struct.pack(">ii", *each) for each in rows) + bytes(room))
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    assert [(each.code, each.severity.value) for each in result.findings if each.code in ("KA503", "KA014")] == expected
