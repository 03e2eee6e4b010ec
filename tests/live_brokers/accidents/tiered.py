"""Topics whose segments are copied to remote storage and deleted here: all well, and with holes that were made."""

import base64
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.live_brokers.accidents.stage import JAVA, Stage, Writer
from tests.live_brokers.cluster import CONTROLLER

TOPIC = "orders"
SEGMENT_MS = 1000
"""A segment is rolled by the first append that is so much later than its first."""


def copied_and_deleted(stage: Stage) -> None:
    """Transactions and an idempotent producer write while segments roll, are copied and deleted here; the leader is killed, comes back, and is restarted."""
    _topic(stage)
    bills = stage.writer(JAVA, "bills", transactional_id="billing-1", linger_ms=5, transaction_timeout_ms=600000)
    plain = stage.writer(JAVA, "plain", acks="all", enable_idempotence="true", linger_ms=5)
    for number in range(5):
        _transaction(bills, f"t{number}-", "abort" if number == 2 else "commit", plain, f"p{number}-")
    # a transaction whose records are copied and deleted here, while its marker stays
    bills.ask("begin")
    bills.write(TOPIC, "long-", range(10))
    _rolled(plain, [f"q{number}-" for number in range(2)])
    assert bills.ask("commit") == "done", bills.errors
    _deleted_here(stage, 40)
    stage.moment("tiered", healthy=True)
    other = stage.brokers[1]
    other.kill()
    stage.led(TOPIC, lambda led: led.leader == CONTROLLER)
    for number in range(3):
        _transaction(bills, f"u{number}-", "commit", plain, f"v{number}-")
    other.start()
    stage.led(TOPIC, lambda led: set(led.in_sync) == {1, CONTROLLER})
    other.stop(clean=True)
    other.start()
    stage.led(TOPIC, lambda led: set(led.in_sync) == {1, CONTROLLER})
    _rolled(plain, ["w0-", "w1-"])
    _deleted_here(stage, 120)
    stage.moment("failed-over", healthy=True)


def holes(stage: Stage) -> None:
    """Copies fail for a while; then a segment is deleted remotely that is still needed; then segments are deleted here that were not copied yet."""
    _topic(stage)
    plain = stage.writer(JAVA, "plain", acks="all", enable_idempotence="true", linger_ms=5)
    _rolled(plain, [f"a{number}-" for number in range(6)])
    _deleted_here(stage, 20)
    with _remote_unwritable(stage):
        _rolled(plain, ["b0-", "b1-", "b2-"])
    _rolled(plain, ["b3-"])
    _deleted_here(stage, 40)
    stage.moment("copies-failed")
    _delete_remotely(stage, 10)
    stage.moment("deleted-remotely")
    with _remote_unwritable(stage):
        _rolled(plain, ["c0-", "c1-", "c2-", "c3-"])
        for node in (1, CONTROLLER):
            stage.brokers[node].stop(clean=True)
        for broker in stage.brokers.values():
            # from what is not copied on, but for the active segment
            for path in broker.logs.glob(f"{TOPIC}-0/*"):
                if path.stem.isdigit() and int(path.stem) < 65 and path.suffix != ".snapshot":
                    path.unlink()
        stage.moment("deleted-here", read=False)
        for node in (CONTROLLER, 1):
            stage.brokers[node].start()
        stage.led(TOPIC, lambda led: set(led.in_sync) == {1, CONTROLLER})
    _rolled(plain, ["d0-", "d1-"])
    _deleted_here(stage, 70)
    stage.moment("copied-on")


def failed_over(stage: Stage) -> None:
    """A topic is deleted; the leader is killed while its copies fail, and the other one copies these segments; then records are deleted."""
    _topic(stage)
    _topic(stage, "gone")
    bills = stage.writer(JAVA, "bills", transactional_id="billing-1", linger_ms=5, transaction_timeout_ms=600000)
    plain = stage.writer(JAVA, "plain", acks="all", enable_idempotence="true", linger_ms=5)
    _rolled(plain, ["a0-", "a1-", "a2-"])
    _rolled(plain, ["x0-", "x1-", "x2-"], "gone")
    _deleted_here(stage, 10)
    _deleted_here(stage, 10, "gone")
    stage.delete_topic("gone")
    segments = stage.remote.glob  # type: ignore[union-attr]
    stage.until(lambda: len([*segments("**/gone-0-*/*.log")]), (0).__eq__)
    with _remote_unwritable(stage):
        for number in range(3):
            _transaction(bills, f"t{number}-", "abort" if number == 1 else "commit", plain, f"p{number}-")
        stage.brokers[1].kill()
    stage.led(TOPIC, lambda led: led.leader == CONTROLLER)
    # begun before the segment rolls in which it ends: a snapshot knows it as open
    bills.ask("begin")
    bills.write(TOPIC, "long-", range(10))
    _rolled(plain, ["b0-"])
    assert bills.ask("commit") == "done", bills.errors
    _rolled(plain, ["b1-"])
    stage.brokers[1].start()
    stage.led(TOPIC, lambda led: set(led.in_sync) == {1, CONTROLLER})
    _deleted_here(stage, 79)
    stage.moment("copied-by-another", healthy=True)
    stage.brokers[CONTROLLER].stop(clean=True)
    stage.brokers[CONTROLLER].start()
    stage.led(TOPIC, lambda led: set(led.in_sync) == {1, CONTROLLER})
    stage.delete_records(TOPIC, 22)
    stage.until(lambda: len([*segments(f"**/{TOPIC}-0-*/{0:020d}-*.log")]), (0).__eq__)
    _rolled(plain, ["d0-", "d1-"])
    time.sleep(2)
    stage.moment("deleted", healthy=True)


@contextmanager
def _remote_unwritable(stage: Stage) -> Iterator[None]:
    """Have every copy fail: a file lies where the topic's directory was. Root may write whatever the permissions are."""
    (directory,) = (stage.remote / "kafka-tiered-storage").glob(f"{TOPIC}-0-*")  # type: ignore[operator]
    aside = directory.rename(directory.parent.parent / "aside")
    directory.write_bytes(b"")
    try:
        yield
        time.sleep(2)
    finally:
        directory.unlink()
        aside.rename(directory)


def _delete_remotely(stage: Stage, offset: int) -> None:
    """Write to __remote_log_metadata that the segment which begins at an offset is deleted, and delete its objects, as a broker does."""
    (log,) = (stage.remote / "kafka-tiered-storage").glob(f"{TOPIC}-0-*/{offset:020d}-*.log")  # type: ignore[operator]
    segment_id = base64.urlsafe_b64decode(log.stem[21:] + "==")
    metadata = TopicPartition("__remote_log_metadata", 0)
    consumer = KafkaConsumer(bootstrap_servers=f"127.0.0.1:{stage.cluster.port}", auto_offset_reset="earliest")
    consumer.assign([metadata])
    finished: bytes | None = None
    while finished is None:
        for record in consumer.poll(500).get(metadata, ()):
            # the update that its copy has finished: its last bytes are the state and no tagged fields
            if record.value[:2] == b"\1\1" and segment_id in record.value:
                finished = record.value
    consumer.close()
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{stage.cluster.port}")
    for state in (2, 3):
        producer.send(metadata.topic, finished[:-2] + bytes([state, 0]), partition=0).get(30)
    producer.close()
    for path in log.parent.glob(f"{log.stem}.*"):
        path.unlink()
    time.sleep(2)


def _topic(stage: Stage, name: str = TOPIC) -> None:
    stage.topic(
        name,
        (1, CONTROLLER),
        remote_storage_enable="true",
        segment_ms=SEGMENT_MS,
        local_retention_ms=1,
        file_delete_delay_ms=100,
    )


def _transaction(writer: Writer, prefix: str, end: str, plain: Writer, others: str) -> None:
    """Write a transaction with records of another producer among its own, so late that it begins a segment."""
    time.sleep(1.2 * SEGMENT_MS / 1000)
    writer.ask("begin")
    writer.write(TOPIC, prefix, range(5))
    plain.write(TOPIC, others, range(5))
    writer.write(TOPIC, prefix, range(5, 10))
    assert writer.ask(end) == "done", writer.errors


def _rolled(plain: Writer, prefixes: Iterable[str], topic: str = TOPIC) -> None:
    """Begin a segment for each of the prefixes."""
    for prefix in prefixes:
        time.sleep(1.2 * SEGMENT_MS / 1000)
        plain.write(topic, prefix, range(5))


def _deleted_here(stage: Stage, offset: int, topic: str = TOPIC) -> None:
    """Wait until no replica has a segment that begins below an offset."""
    for broker in stage.brokers.values():
        stage.until(
            lambda broker=broker: sorted(int(path.stem) for path in broker.logs.glob(f"{topic}-0/*.log")),  # type: ignore[misc]
            lambda bases: bool(bases) and bases[0] >= offset,
        )
