"""The programs that kaudit is compared with, one process each: `python benchmarks/peers.py NAME SEGMENT...`."""

import struct
import sys
from pathlib import Path

WINDOW_BYTES = 1 << 20
MAGIC = 2


def crc(path: Path) -> int:
    """One CRC-32C over all bytes, read in windows: the least that verifying them can cost."""
    import crc32c  # noqa: PLC0415 - only the one measured is loaded

    window = memoryview(bytearray(WINDOW_BYTES))
    value = 0
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(window):
            value = crc32c.crc32c(window[:count], value)
    return value


def numpy_pass(path: Path) -> int:
    """Some of each kind of work that a scan does: read, CRC-32C, compare every byte, sort the places of those that are equal.

    How fast the CRC is beside the rest differs by 1.7 between machines, so a scan is compared with all of them.
    """
    import crc32c  # noqa: PLC0415 - only the one measured is loaded
    import numpy as np  # noqa: PLC0415 - only the one measured is loaded

    window = memoryview(bytearray(WINDOW_BYTES))
    value, found = 0, []
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(window):
            value = crc32c.crc32c(window[:count], value)
            found.append(np.flatnonzero(np.frombuffer(window[:count], np.uint8) == MAGIC))
    places = np.concatenate(found).astype(np.int64)
    return int(np.argsort(places * 31 % 2003, kind="stable")[0]) + value


def naive(path: Path) -> int:
    """The loop that one writes first: a header at a time, its CRC, and whether the producer's sequence follows the last one."""
    import crc32c  # noqa: PLC0415 - only the one measured is loaded

    content, header = path.read_bytes(), struct.Struct(">qiibIhiqqqhii")
    view, at, wrong = memoryview(content), 0, 0
    expected: dict[tuple[int, int], int] = {}
    while at + header.size <= len(content):
        _, length, _, _, crc, _, delta, _, _, producer_id, epoch, sequence, _ = header.unpack_from(content, at)
        wrong += crc32c.crc32c(view[at + 21 : at + 12 + length]) != crc
        wrong += expected.get((producer_id, epoch), sequence) != sequence
        expected[producer_id, epoch] = sequence + delta + 1
        at += 12 + length
    return wrong


def kafka_python(path: Path) -> int:
    from kafka.record import MemoryRecords  # noqa: PLC0415 - only the one measured is loaded

    return _batches(MemoryRecords(path.read_bytes()))


def aiokafka(path: Path) -> int:
    from aiokafka.record.memory_records import MemoryRecords  # noqa: PLC0415 - only the one measured is loaded

    return _batches(MemoryRecords(path.read_bytes()))


def _batches(records) -> int:
    count = 0
    while records.has_next():
        batch = records.next_batch()
        count += 1
        if not batch.validate_crc():
            continue
        # as much as an audit needs to know of a batch
        _ = (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence)
    return count


if __name__ == "__main__":
    run = {"crc": crc, "numpy": numpy_pass, "naive": naive, "kafka-python": kafka_python, "aiokafka": aiokafka}[
        sys.argv[1]
    ]
    print([run(Path(path)) for path in sys.argv[2:]])
