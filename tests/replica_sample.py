"""samples/replicas, samples/retries and samples/mirror: the logs that brokers, careless producers and a mirror leave, made by hand.

Run: python -m tests.replica_sample.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from tests.logs import Batch, Log, data

SAMPLES = Path(__file__).parents[1] / "samples"
REPLICAS, RETRIES = SAMPLES / "replicas", SAMPLES / "retries"


def replicas() -> dict[str, dict[str, tuple[Log, str]]]:
    """Logs and leader epochs by broker and partition: broker 1 led all of them and died at offset 6."""
    orders = Log()
    for number in range(3):
        orders.append(Batch(count=2, payload=b"order %d" % number))
    old, new = _copy(orders), _copy(orders)
    for number in range(2):
        old.append(Batch(count=2, payload=b"acknowledged by one %d" % number))
    new.clock += 1500
    for number in range(3):
        new.append(Batch(count=2, leader_epoch=1, payload=b"written to the new leader %d" % number))
    short = _copy(new)
    short.batches.pop()
    payments = Log()
    for number in range(5):
        payments.append(Batch(count=1, payload=b"payment %d" % number))
    behind = _copy(payments)
    del behind.batches[3:]
    return {
        "b1": {"orders-0": (old, "0 0\n"), "payments-0": (payments, "0 0\n")},
        "b2": {"orders-0": (new, "0 0\n1 6\n"), "payments-0": (behind, "0 0\n")},
        "b3": {"orders-0": (short, "0 0\n1 6\n"), "payments-0": (_copy(behind), "0 0\n")},
    }


HIGH_WATERMARKS = {"b1": {"orders": 6, "payments": 5}, "b2": {"orders": 10, "payments": 3}, "b3": {"orders": 8}}


def _copy(log: Log) -> Log:
    return replace(log, batches=list(log.batches))


def retried() -> Log:
    """Five in flight without idempotence: the answers to two requests are lost, their retries come in reverse."""
    log = Log()
    sent = [log.append(Batch(count=1, payload=b"event %d" % number)) for number in range(5)]
    log.append(sent[3], keep_time=True)
    log.append(sent[2], keep_time=True)
    log.append(Batch(count=1, payload=b"event 5"))
    return log


def restarted() -> Log:
    """An application is killed and sends its last four messages again, under a new producer id."""
    log = Log()
    messages = [b"invoice %d" % number for number in range(10)]
    for sequence, message in enumerate(messages[:7]):
        log.append(data(4000, 0, sequence, payload=message))
    log.clock += 20_000
    for sequence, message in enumerate(messages[3:]):
        log.append(data(4001, 0, sequence, payload=message))
    return log


def bumped() -> Log:
    """The answers to the last three requests are lost; the client raises its epoch and sends them again from sequence 0."""
    log = Log()
    sent = [log.append(data(4002, 0, sequence, payload=b"shipment %d" % sequence)) for sequence in range(6)]
    for sequence, batch in enumerate(sent[3:]):
        log.append(replace(batch, epoch=1, sequence=sequence), keep_time=True)
    log.clock += 500
    log.append(data(4002, 1, 3, payload=b"shipment 6"))
    return log


def mirrored() -> tuple[Log, Log]:
    """Orders, and what a mirror made of them that was killed: one is missing, four are there again, one overtook another."""
    source, mirror = Log(), Log()
    orders = [
        source.append(Batch(payload=b"order %d" % number, key=b"customer %d" % (number % 3))) for number in range(30)
    ]
    copied = [*orders[:11], *orders[12:20], *orders[16:24], orders[27], *orders[24:27], *orders[28:]]
    for order in copied:
        mirror.append(order, keep_time=True)
    mirror.append(Batch(payload=b"order 7b", key=b"customer 1"))
    for order in (source.append(Batch(payload=b"order %d" % number, key=b"customer 0")) for number in range(30, 34)):
        if order.payload != b"order 33":  # not copied yet
            mirror.append(order, keep_time=True)
    return source, mirror


def write(target: Path) -> None:
    """Write the samples below `target`."""
    for side, topic, log in zip(("source", "target"), ("orders-0", "primary.orders-0"), mirrored(), strict=True):
        shutil.rmtree(target / "mirror" / side, ignore_errors=True)
        log.write(target / "mirror" / side / topic)
    for broker, partitions in replicas().items():
        directory = target / "replicas" / broker
        shutil.rmtree(directory, ignore_errors=True)
        for name, (log, epochs) in partitions.items():
            log.write(directory / name)
            (directory / name / "leader-epoch-checkpoint").write_text(f"0\n{epochs.count(chr(10))}\n{epochs}")
        marks = HIGH_WATERMARKS[broker]
        rows = "".join(f"{topic} 0 {offset}\n" for topic, offset in marks.items())
        (directory / "replication-offset-checkpoint").write_text(f"0\n{len(marks)}\n{rows}")
    for name, log in (("events-0", retried()), ("invoices-0", restarted()), ("shipments-0", bumped())):
        shutil.rmtree(target / "retries" / name, ignore_errors=True)
        log.write(target / "retries" / name)


if __name__ == "__main__":
    write(SAMPLES)
