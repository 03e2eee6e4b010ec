"""Writes samples/distress: producers whose sends fail again and again, and the logs beside them, made by hand.

Run: python -m tests.distress_sample.
"""

import shutil
from pathlib import Path

from tests.logs import Log, data, marker

SAMPLES = Path(__file__).parents[1] / "samples"
_SECOND = 1_000


def deliveries(rises: int = 6, pause_ms: int = 4 * _SECOND, *, skipped: int = 1) -> Log:
    """A client gives up what is in flight, and goes on in a higher epoch; each `skipped` epoch leaves nothing."""
    log = Log()
    epoch = 0
    for number in range(rises + 1):
        for sequence in range(0, 6, 2):
            log.append(data(7, epoch, sequence, 2, payload=b"order %d.%d" % (number, sequence)))
        epoch += 1 + (skipped and number % 3 == 1)
        log.clock += pause_ms
    return log


def client_lines(rises: int = 6) -> str:
    """What the client of `deliveries` writes: of each epoch it left, 4 sequences were acknowledged and 8 given out."""
    lines, epoch = [], 0
    for number in range(rises + 1):
        lines.append(_client(number, f"ProducerId set to 7 with epoch {epoch}"))
        if number < rises:
            gave_up = "No inflight batches remaining for orders-0, last ack'd sequence for partition is 3, next sequence is 8. "
            lines.append(_client(number, f"{gave_up}Going to bump epoch and reset sequence numbers."))
        epoch += 1
        if number % 3 == 1:
            lines.append(_client(number, f"ProducerId set to 7 with epoch {epoch}"))
            epoch += 1
    return "".join(f"{line}\n" for line in lines)


def _client(number: int, text: str) -> str:
    source = "org.apache.kafka.clients.producer.internals.TransactionManager"
    return f"[2023-11-14 22:13:{20 + number * 4:02},500] INFO [Producer clientId=shop-1] {text} ({source})"


def instances(producer_id: int, rises: int = 6, pause_ms: int = 3 * _SECOND, *, commit: bool = False) -> Log:
    """Each instance of a transactional id writes two records, and the next one cuts its transaction short."""
    log = Log()
    epoch = 0
    for number in range(rises + 1):
        log.append(data(producer_id, epoch, 0, 2, transactional=True, payload=b"bill %d" % number))
        log.append(marker(producer_id, epoch if commit else epoch + 1, commit=commit))
        epoch += 1 if commit else 2
        log.clock += pause_ms
    return log


def sessions(starts: int = 6, pause_ms: int = 3 * _SECOND) -> Log:
    """An application is killed after its third record, and each time sends them again under a new producer id."""
    log = Log()
    for number in range(starts + 1):
        for sequence in range(3):
            log.append(data(4000 + number, 0, sequence, payload=b"event %d" % sequence))
        log.clock += pause_ms
    return log


def broker_lines(epochs: tuple[int, ...] = (0, 2, 4)) -> str:
    """The lines of a broker of 3.9 that refuses instances of producer 9 which are still at work."""
    error = "org.apache.kafka.common.errors.InvalidProducerEpochException"
    return "".join(
        f"[2023-11-14 22:13:{24 + epoch * 2:02},000] ERROR [ReplicaManager broker=1] Error processing append operation on partition "
        f"billing-0 (kafka.server.ReplicaManager)\n{error}: Epoch of producer 9 at offset {3 * epoch + 3} in billing-0 is {epoch}, "
        f"which is smaller than the last seen epoch {epoch + 2}\n"
        for epoch in epochs
    )


def write(samples: Path) -> None:
    """Write the sample below `samples`, without its page."""
    target = samples / "distress"
    logs = {"orders-0": deliveries(), "payments-0": instances(8), "billing-0": instances(9), "events-0": sessions()}
    for name, log in logs.items():
        shutil.rmtree(target / name, ignore_errors=True)
        log.write(target / name)
    (target / "shop-1.log").write_text(client_lines())
    (target / "server.log").write_text(broker_lines())


if __name__ == "__main__":
    write(SAMPLES)
