"""Writes samples/crafted: anomalies no broker of ours left on disk, made by hand. Run: python -m tests.crafted_sample."""

import shutil
from pathlib import Path

from tests.logs import Log, data, marker

TARGET = Path(__file__).parents[1] / "samples" / "crafted"


def old_duplicate() -> Log:
    """A batch from behind the window of five is sent again."""
    log = Log()
    sent = [log.append(data(1, 0, sequence, payload=b"order %d" % sequence)) for sequence in range(8)]
    log.append(sent[1], keep_time=True)
    log.append(data(1, 0, 8, payload=b"order 8"))
    return log


def overlap() -> Log:
    """A client regroups records it had sent before."""
    log = Log()
    log.append(data(2, 0, 0, 4, payload=b"a"))
    log.append(data(2, 0, 2, 4, payload=b"b"))
    log.append(data(2, 0, 6, 1, payload=b"c"))
    return log


def step_mismatch() -> Log:
    """A client adds one too many to its sequence after each batch (tulios/kafkajs#598)."""
    log = Log()
    for number in range(6):
        log.append(data(3, 0, number * 3, 2, payload=b"message %d" % number))
    return log


def coordinator_regression() -> Log:
    """A marker of an old coordinator comes after one of its successor."""
    log = Log()
    log.append(data(4, 0, 0, 2, transactional=True))
    log.append(marker(4, 0, coordinator_epoch=7))
    log.append(data(4, 0, 2, 2, transactional=True))
    log.append(marker(4, 0, coordinator_epoch=5))
    return log


def outside_transaction() -> Log:
    """A producer writes outside its own open transaction."""
    log = Log()
    log.append(data(5, 0, 0, 2, transactional=True))
    log.append(data(5, 0, 2, 1))
    log.append(marker(5, 0, coordinator_epoch=0))
    return log


PARTITIONS = {
    "old-duplicate-0": old_duplicate,
    "overlap-0": overlap,
    "step-mismatch-0": step_mismatch,
    "coordinator-regression-0": coordinator_regression,
    "outside-transaction-0": outside_transaction,
}


def write(target: Path) -> None:
    """Write every partition below `target`."""
    for name, build in PARTITIONS.items():
        shutil.rmtree(target / name, ignore_errors=True)
        build().write(target / name)


if __name__ == "__main__":
    write(TARGET)
