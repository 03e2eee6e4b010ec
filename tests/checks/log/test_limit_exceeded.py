"""KA010: batches that unpack to more than anybody can hold."""

import gzip

import pytest

from kaudit.scanning.options import Depth
from tests.checks.log.batches import edited, found, written


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_bomb_is_not_unpacked(tmp_path, codec):
    import zstandard

    def bomb(raw):
        body = bytes(300 << 20)
        packed = gzip.compress(body, 6) if codec == "gzip" else zstandard.compress(body)
        return edited(raw[:61] + packed, 21, ">h", 1 if codec == "gzip" else 4)

    directory, position = written(tmp_path, bomb)
    assert found(directory) == []
    assert found(directory, Depth.RECORDS) == [("KA010", position, 3, 5)]
