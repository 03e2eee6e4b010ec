"""Logs with known faults, for any engine: what was done to them is what must be found."""

import os
from pathlib import Path

from tests.crafted_sample import snapshot
from tests.logs import BASE_TIMESTAMP, WRAP, Log, data, marker

HOUR_MS = 3_600_000


def healthy(directory: Path, producers: int = 5, batches: int = 40) -> Path:
    """Producers in turn, sequences wrapping, transactions of both outcomes, an epoch bump; nothing to report."""
    log = Log()
    sequences = [0] * producers
    for number in range(batches):
        for index in range(producers):
            count = 1 + (number + index) % 3
            log.append(data(100 + index, 0, sequences[index], count, payload=f"{number}".encode()))
            sequences[index] += count
        log.append(data(500, 0, number, transactional=True))
        if number % 4 == 3:
            log.append(marker(500, 0, commit=number % 8 == 3))
    starts = tuple(batch.base_offset for batch in log.batches[:: len(log.batches) // 3][1:])
    return log.write(directory, segment_starts=starts)


def wrapping(directory: Path) -> Path:
    """Sequences run past 2^31 - 1; the head of the log is gone, which explains the first ones; nothing."""
    log = Log(next_offset=2**33)
    for number in range(30):
        log.append(data(100, 0, (WRAP - 12 + number) % WRAP))
    return log.write(directory)


def gap(directory: Path) -> Path:
    """Producer 101 skips three sequences between batches 20 and 21, offsets going on: KA104."""
    log = Log()
    for number in range(40):
        log.append(data(100, 0, number))
        log.append(data(101, 0, number if number <= 20 else number + 3))
    return log.write(directory)


def duplicates(directory: Path) -> Path:
    """Batches 17..19 appended again right after, within the window: three KA101."""
    log = Log()
    sent = []
    for number in range(40):
        sent.append(log.append(data(100, 0, number, payload=f"{number}".encode())))
        if number == 19:
            for batch in sent[-3:]:
                log.append(batch, keep_time=True)
    return log.write(directory)


def zombie(directory: Path) -> Path:
    """Epoch 1 takes over, then epoch 0 writes once more: KA201, and the note of the fencing KA203."""
    log = Log()
    for number in range(12):
        log.append(data(100, 0, number))
    for number in range(6):
        log.append(data(100, 1, number))
    log.append(data(100, 0, 12))
    for number in range(6, 12):
        log.append(data(100, 1, number))
    return log.write(directory)


def hanging(directory: Path) -> Path:
    """A transaction nobody ends, while others go on for hours: KA301."""
    log = Log()
    log.append(data(100, 0, 0, transactional=True))
    for number in range(30):
        log.clock += HOUR_MS // 6
        log.append(data(101, 0, number, transactional=True))
        log.append(marker(101, 0))
    return log.write(directory)


def hanging_below_log_start(directory: Path) -> Path:
    """A transaction nobody ends, of which only a producer snapshot is left, while others go on for hours: KA301."""
    log = Log(next_offset=50)
    for number in range(30):
        log.clock += HOUR_MS // 6
        log.append(data(101, 0, number, transactional=True))
        log.append(marker(101, 0))
    log.write(directory)
    file = directory / f"{50:020d}.snapshot"
    file.write_bytes(snapshot([(100, 0, 0, 40, 0, BASE_TIMESTAMP, -1, 40)]))
    os.utime(file, (BASE_TIMESTAMP / 1000, BASE_TIMESTAMP / 1000))  # a broker wrote it before the markers
    return directory


def corrupt(directory: Path) -> Path:
    """One flipped bit in the middle: KA001."""
    gap_free = Log()
    for number in range(60):
        gap_free.append(data(100, 0, number))
    gap_free.write(directory)
    file = next(directory.glob("*.log"))
    content = bytearray(file.read_bytes())
    size = len(gap_free.batches[0].encode())
    content[30 * size + size - 1] ^= 1
    file.write_bytes(content)
    return directory


def disordered(directory: Path) -> Path:
    """Two batches change places, once at a segment's start too: KA006."""
    log = Log()
    for number in range(40):
        log.append(data(100, 0, number))
    log.batches[20], log.batches[21] = log.batches[21], log.batches[20]
    return log.write(directory, segment_starts=(30,))


def missing_segment(directory: Path) -> Path:
    """The second of three segments is gone: KA008."""
    log = Log()
    for number in range(45):
        log.append(data(100, 0, number))
    log.write(directory, segment_starts=(15, 30))
    (directory / f"{15:020d}.log").unlink()
    return directory


FAULTS = {
    healthy: [],
    wrapping: [],
    gap: ["KA104"],
    duplicates: ["KA101", "KA101", "KA101"],
    zombie: ["KA201", "KA203"],
    hanging: ["KA301"],
    hanging_below_log_start: ["KA301"],
    corrupt: ["KA001"],
    disordered: ["KA006"],
    missing_segment: ["KA008"],
}
"""Each log with the codes that must be found in it, in order of code."""
