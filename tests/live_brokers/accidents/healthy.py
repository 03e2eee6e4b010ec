"""Accidents that are none: nothing is lost, and what is gone was deleted on request."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka.admin import ConfigResource, ConfigResourceType

from tests.live_brokers.accidents.stage import JAVA, JAVA_4, Stage, Writer
from tests.live_brokers.cluster import CONTROLLER
from tests.live_brokers.jars import jars_of

UPGRADED = "4.1.1"
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


@contextmanager
def writing(writer: Writer, topic: str, prefix: str, count: int, pause: float) -> Iterator[None]:
    """Write in groups of ten while something else happens, and wait for the end."""
    thread = threading.Thread(target=writer.write, args=(topic, prefix, range(count), 10, pause))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def rolling_restart(stage: Stage) -> None:
    """Every broker is stopped cleanly and started again, one after the other, while an idempotent and an acks=all producer write."""
    stage.topic("parcels", (1, 2, 3), min_insync_replicas=2)
    java = stage.writer(JAVA, "parcels-java", acks="all", linger_ms=5)
    python = stage.writer("kafka-python", "parcels-python", acks="all", enable_idempotence="true", linger_ms=5)
    with writing(java, "parcels", "j", 200, 1), writing(python, "parcels", "p", 200, 1):
        for node in (1, 2, 3):
            stage.brokers[node].stop(clean=True)
            stage.led("parcels", lambda led, node=node: led.leader not in (-1, node))  # type: ignore[misc]
            stage.brokers[node].start()
            stage.led("parcels", lambda led: set(led.in_sync) == {1, 2, 3})
    stage.moment("restarted", healthy=True)


def upgrade_in_transaction(stage: Stage) -> None:
    """A rolling upgrade from 3.9.1 to 4.1.1, the controller last, while a transaction of a Java producer is open."""
    stage.topic("bills", (1, 2, 3), min_insync_replicas=2)
    writer = stage.writer(JAVA, "bills", transactional_id="billing-1", linger_ms=5, transaction_timeout_ms=600000)
    _transaction(writer, "bills", "a", 40)
    writer.ask("begin")
    writer.write("bills", "b", range(20))
    for node in (1, 2, 3, CONTROLLER):
        broker = stage.brokers[node]
        broker.stop(clean=True)
        broker.change(UPGRADED, jars_of(UPGRADED).resolve())
        broker.start()
        if node != CONTROLLER:
            stage.led("bills", lambda led: set(led.in_sync) == {1, 2, 3})
        writer.write("bills", f"b{node}-", range(10))
        if node == 2:
            stage.moment("half-way", healthy=True)
    stage.led("bills", lambda led: set(led.in_sync) == {1, 2, 3})
    assert writer.ask("commit") == "done", writer.errors
    _transaction(writer, "bills", "c", 30)
    stage.moment("upgraded", healthy=True)


def _transaction(writer: Writer, topic: str, prefix: str, count: int, end: str = "commit") -> None:
    writer.ask("begin")
    writer.write(topic, prefix, range(count))
    assert writer.ask(end) == "done", writer.errors


def moved_between_disks(stage: Stage) -> None:
    """A replica moves from one disk of its broker to the other; the broker is killed -9 in the middle, and goes on afterwards."""
    stage.topic("photos", (1, 2))
    writer = stage.writer("confluent-kafka", "photos", acks="all", enable_idempotence="true", linger_ms=5)
    writer.write("photos", "a", range(300))
    broker = stage.brokers[1]
    (held,) = broker.logs.glob("d?/photos-0")
    other = held.parent.with_name("d2" if held.parent.name == "d1" else "d1")
    _throttle(stage, 2000)
    _move(stage, other)
    stage.until(
        lambda: [path.stat().st_size for path in other.glob("photos-0.*-future/*.log")], lambda sizes: sum(sizes) > 0
    )
    broker.kill()
    stage.led("photos", lambda led: led.leader == 2)
    writer.write("photos", "b", range(60))
    stage.moment("killed", healthy=True)
    broker.start()
    stage.led("photos", lambda led: set(led.in_sync) == {1, 2})
    _throttle(stage, 10_000_000)
    _move(stage, other)
    stage.until((other / "photos-0").exists, bool)
    writer.write("photos", "c", range(40))
    stage.moment("moved", healthy=True)


def _throttle(stage: Stage, bytes_per_second: int) -> None:
    with stage.admin() as admin:
        resource = ConfigResource(ConfigResourceType.BROKER, "1", {THROTTLE: str(bytes_per_second)})
        admin.alter_configs([resource], raise_on_unknown=False)


def _move(stage: Stage, disk: Path) -> None:
    with stage.admin() as admin:
        admin.alter_replica_log_dirs({("photos", 0, 1): str(disk)})


def moved_between_brokers(stage: Stage) -> None:
    """A partition moves from brokers 1 and 2 to 2 and 3 in the middle of a transaction of aiokafka."""
    stage.topic("trips", (1, 2))
    writer = stage.writer("aiokafka", "trips", transactional_id="trips-1", acks="all")
    _transaction(writer, "trips", "a", 60)
    writer.ask("begin")
    writer.write("trips", "b", range(30))
    with stage.connection() as connection:
        connection.reassign("trips", 0, (3, 2))
    stage.led("trips", lambda led: set(led.in_sync) == {2, 3})
    stage.moment("moving", healthy=True)
    writer.write("trips", "c", range(30))
    assert writer.ask("commit") == "done", writer.errors
    time.sleep(2)
    stage.moment("moved", healthy=True)


def fenced_zombie(stage: Stage) -> None:
    """A second instance starts under the transactional id of one that is in a transaction: the open one is aborted, and the zombie is refused."""
    stage.topic("seats", (1, 2))
    first = stage.writer(JAVA, "first", transactional_id="seats-1", linger_ms=5)
    _transaction(first, "seats", "a", 40)
    first.ask("begin")
    first.write("seats", "b", range(30))
    second = stage.writer(JAVA, "second", transactional_id="seats-1", linger_ms=5)
    first.send("seats", "zombie", range(10))
    assert "done" not in first.ask("commit")
    _transaction(second, "seats", "c", 40)
    _transaction(second, "seats", "d", 10, "abort")
    stage.moment("fenced", healthy=True)


def lagging_follower(stage: Stage) -> None:
    """A follower is paused long enough to leave the in-sync replicas while transactions go on; all directories are copied."""
    stage.topic("sensors", (1, 2), min_insync_replicas=1)
    plain = stage.writer("aiokafka", "plain", acks="all", enable_idempotence="true")
    bank = stage.writer(JAVA, "bank", transactional_id="bank-1", linger_ms=5)
    plain.write("sensors", "a", range(100))
    _transaction(bank, "sensors", "t", 20)
    bank.ask("begin")
    bank.write("sensors", "u", range(20))
    stage.brokers[2].pause()
    time.sleep(1)
    for number in range(3):
        with writing(plain, "sensors", f"b{number}-", 60, 0.1):
            pass
    stage.led("sensors", lambda led: led.in_sync == [1])
    assert bank.ask("commit") == "done", bank.errors
    _transaction(bank, "sensors", "v", 20)
    stage.moment("behind", healthy=True, read=False)
    stage.brokers[2].resume()
    stage.led("sensors", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("caught-up", healthy=True)


def live_copy(stage: Stage) -> None:
    """Directories are copied one after the other while four clients write, one of them in transactions."""
    stage.topic("traffic", (1, 2), segment_bytes=16384)
    clients = ("confluent-kafka", "kafka-python", "aiokafka")
    writers = [stage.writer(client, client, acks="all", enable_idempotence="true") for client in clients]
    bank = stage.writer(JAVA, "bank", transactional_id="bank-1", linger_ms=5)
    writers[0].write("traffic", "first", range(20))
    with ExitStack() as all_writing:
        for writer, prefix in zip(writers, "cka", strict=True):
            all_writing.enter_context(writing(writer, "traffic", prefix, 120, 0.4))
        _transaction(bank, "traffic", "t", 40)
        bank.ask("begin")
        bank.write("traffic", "u", range(20))
        stage.moment("copied", healthy=True, read=False)
        assert bank.ask("commit") == "done", bank.errors
    stage.moment("later", healthy=True)


def deleted_records(stage: Stage) -> None:
    """Somebody deletes records up to an offset with DeleteRecords, and the brokers are restarted."""
    stage.topic("mail", (1, 2), segment_bytes=4096)
    writer = stage.writer("confluent-kafka", "mail", acks="all", enable_idempotence="true", linger_ms=5)
    writer.write("mail", "a", range(200))
    stage.delete_records("mail", 130)
    writer.write("mail", "b", range(40))
    time.sleep(3)
    for node in (1, 2):
        stage.brokers[node].stop(clean=True)
        stage.brokers[node].start()
        stage.led("mail", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("deleted", healthy=True)


def moved_coordinator(stage: Stage) -> None:
    """The coordinator is killed in the middle of two transactions, and another takes over; all is copied as soon as the second is committed."""
    stage.topic("bills", (1, 2), min_insync_replicas=1)
    java = stage.writer(JAVA_4, "bills", transactional_id="billing-1", linger_ms=5)
    other = stage.writer("confluent-kafka", "other", transactional_id="other-1", linger_ms=5)
    for writer, prefix in ((java, "a"), (other, "o")):
        _transaction(writer, "bills", prefix, 40)
        writer.ask("begin")
        writer.write("bills", f"{prefix}2-", range(20))
    killed = stage.led("__transaction_state", lambda led: led.leader != -1).leader
    stage.brokers[killed].kill()
    stage.led("bills", lambda led: led.leader == 3 - killed)
    for writer, prefix in ((java, "a3-"), (other, "o3-")):
        writer.write("bills", prefix, range(20))
        assert writer.ask("commit") == "done", writer.errors
    stage.moment("moved", healthy=True)
    stage.brokers[killed].start()
    stage.led("bills", lambda led: set(led.in_sync) == {1, 2})
    _transaction(java, "bills", "c", 30)
    stage.moment("back", healthy=True)
