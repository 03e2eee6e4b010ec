"""The CRC of records alone, held against crc32c of their bytes: in real segments, and in batches of extreme sizes."""

import struct
from contextlib import closing

import pytest
from crc32c import crc32c

from kaudit.formats.log.crc_algebra import records_crcs
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import LocalFile
from tests.logs import Batch

HEADER_SIZE = 61


def compared(segment) -> int:
    """Check every batch of a segment; return how many there were."""
    data, checked = segment.read_bytes(), 0
    with closing(LocalFile(segment)) as source:
        for piece in stream_batches(source, ByteRange(0, len(data), len(data)), expected_offset=None):
            batches = piece.batches[piece.batches["magic"] == 2]
            places = zip(*(batches[name].tolist() for name in ("position", "size")), strict=True)
            expected = [crc32c(data[position + HEADER_SIZE : position + size]) for position, size in places]
            assert records_crcs(batches).tolist() == expected
            checked += len(batches)
    return checked


@pytest.mark.parametrize("capture", ["clients-mix", "txn-mix-2.8.2", "retry-dup"])
def test_real_segments(evidence, capture):
    segments = [path for path in (evidence.capture(capture) / "logdirs").rglob("*.log") if path.stat().st_size]
    assert sum(map(compared, segments)) > 300


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 70_000, (1 << 22) - 1, (1 << 22) + 5])
def test_sizes_up_to_the_third_digit(tmp_path, size):
    body = bytes(number * 7 & 0xFF for number in range(251)) * (size // 251 + 1)
    body = body[:size]
    tail = struct.pack(">hiqqqhii", 0x1234, 2**31 - 1, -(2**63), 2**63 - 1, 2**40 + 1, -7, 2**31 - 2, 1)
    head = struct.pack(">qiibI", 5, 9 + len(tail) + size, 3, 2, crc32c(tail + body))
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(head + tail + body + Batch(base_offset=2**31 + 5).encode())
    assert compared(segment) == 2
