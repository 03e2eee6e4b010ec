"""Writes samples/malformed: batches whose CRC holds and that cannot be read all the same. Run: python -m tests.malformed_sample."""

import shutil
import struct
from pathlib import Path

import crc32c
import zstandard

from tests.logs import Log, data

TARGET = Path(__file__).parents[1] / "samples" / "malformed"
ZSTD = 4
BOMB_BYTES = 160 << 20


def sealed(batch: bytes) -> bytes:
    """The batch with the CRC of what it now holds, and its length."""
    batch = batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:]
    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]


def counts(log: Log) -> bytes:
    """A client counts one record more than it sends offsets."""
    content = b""
    for number in range(6):
        batch = log.append(data(1, 0, 2 * number, 2, payload=b"order %d" % number)).encode()
        content += sealed(batch[:57] + struct.pack(">i", 3) + batch[61:]) if number == 3 else batch
    return content


def cut_record(log: Log) -> bytes:
    """A record says it is longer than the batch that holds it: only --depth records sees it."""
    content = b""
    for number in range(4):
        batch = log.append(data(2, 0, number, payload=b"invoice %d" % number)).encode()
        content += sealed(batch[:61] + bytes([batch[61] + 40]) + batch[62:]) if number == 2 else batch
    return content


def bomb(log: Log) -> bytes:
    """A few kilobytes that become 160 MiB of zeros."""
    content = b""
    for number in range(3):
        batch = log.append(data(3, 0, number, payload=b"photo %d" % number)).encode()
        if number == 1:
            packed = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(BOMB_BYTES))
            batch = sealed(batch[:21] + struct.pack(">h", ZSTD) + batch[23:61] + packed)
        content += batch
    return content


def write(target: Path = TARGET) -> None:
    """Write all partitions; the README stays."""
    for name, make in (("counts", counts), ("cut-record", cut_record), ("bomb", bomb)):
        directory = target / f"{name}-0"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(make(Log()))


if __name__ == "__main__":
    write()
