"""Accidents in which records are lost, or seem to be."""

import shutil
import time

from tests.live_brokers.accidents.stage import JAVA, JAVA_4, RECORD_BYTES, Stage
from tests.live_brokers.log_clocks import shifted

DAY_SECONDS = 86_400
FETCH_WAIT_SECONDS = 0.8
"""A fetch that waits on the leader would take the next batch along to a paused follower."""


def acks1_failover(stage: Stage) -> None:
    """Two followers pause while the leader goes on to acknowledge acks=1; it is killed, a follower is elected cleanly, the old leader comes back and truncates."""
    stage.topic("payments", (1, 2, 3))
    fast = stage.writer("confluent-kafka", "fast", acks="1", linger_ms=5, message_timeout_ms=60000)
    safe = stage.writer(JAVA, "safe", acks="all", linger_ms=5)
    fast.write("payments", "f", range(150))
    safe.write("payments", "s", range(100))
    for node in (2, 3):
        stage.brokers[node].pause()
    time.sleep(FETCH_WAIT_SECONDS)
    fast.write("payments", "f", range(150, 240))
    stage.brokers[1].kill()
    for node in (2, 3):
        stage.brokers[node].resume()
    stage.led("payments", lambda led: led.leader in (2, 3))
    fast.write("payments", "f", range(240, 300))
    safe.write("payments", "s", range(100, 160))
    stage.moment("old-leader-down")
    stage.brokers[1].start()
    stage.led("payments", lambda led: set(led.in_sync) == {1, 2, 3})
    safe.write("payments", "s", range(160, 200))
    stage.moment("recovered")


def unclean_election(stage: Stage) -> None:
    """A follower falls out of the in-sync replicas, the leader goes on with acks=all and is killed, the follower is elected all the same, the old leader comes back."""
    stage.topic("meter", (1, 2), unclean_leader_election_enable="true", min_insync_replicas=1)
    writer = stage.writer("aiokafka", "meter", acks="all", enable_idempotence="true")
    writer.write("meter", "m", range(120))
    stage.brokers[2].pause()
    stage.led("meter", lambda led: led.in_sync == [1])
    writer.write("meter", "m", range(120, 200))
    stage.brokers[1].kill()
    stage.brokers[2].resume()
    stage.led("meter", lambda led: led.leader == 2)
    writer.kill()
    later = stage.writer("aiokafka", "later", acks="all", enable_idempotence="true")
    later.write("meter", "n", range(60))
    stage.moment("old-leader-down")
    stage.brokers[1].start()
    stage.led("meter", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def restored_backup(stage: Stage) -> None:
    """One of two replicas, the last in sync, is put back to a copy of an hour ago and leads; the other, which has everything, truncates to it."""
    stage.topic("stock", (1, 2), min_insync_replicas=1)
    writer = stage.writer(JAVA, "stock", acks="all", linger_ms=5)
    writer.write("stock", "a", range(120))
    backup = stage.brokers[1].home / "backup"
    stage.brokers[1].stop(clean=True)
    shutil.copytree(stage.brokers[1].logs, backup)
    stage.brokers[1].start()
    stage.led("stock", lambda led: set(led.in_sync) == {1, 2})
    writer.write("stock", "b", range(140))
    stage.brokers[2].stop(clean=True)
    stage.led("stock", lambda led: led.in_sync == [1])
    writer.write("stock", "c", range(20))
    stage.brokers[1].stop(clean=True)
    shutil.rmtree(stage.brokers[1].logs)
    shutil.copytree(backup, stage.brokers[1].logs)
    stage.brokers[1].start()
    stage.led("stock", lambda led: led.leader == 1)
    writer.kill()
    later = stage.writer(JAVA, "later", acks="all", linger_ms=5)
    later.write("stock", "d", range(40))
    stage.moment("restored")
    stage.brokers[2].start()
    stage.led("stock", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def lost_log_directory(stage: Stage) -> None:
    """What the last replica in sync has of a partition is deleted while it is down, with the checkpoints: it makes the log anew and leads, and its follower truncates to nothing."""
    stage.topic("ledger", (1, 2), min_insync_replicas=1)
    writer = stage.writer("kafka-python", "ledger", acks="all")
    writer.write("ledger", "a", range(100))
    stage.brokers[2].stop(clean=True)
    stage.led("ledger", lambda led: led.in_sync == [1])
    writer.write("ledger", "b", range(60))
    stage.moment("before")
    stage.brokers[1].stop(clean=True)
    for path in stage.brokers[1].logs.iterdir():
        if path.name.startswith("ledger-") or path.name.endswith("-checkpoint") or path.name == ".kafka_cleanshutdown":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    stage.brokers[1].start()
    stage.led("ledger", lambda led: led.leader == 1)
    stage.moment("emptied")
    stage.brokers[2].start()
    stage.led("ledger", lambda led: set(led.in_sync) == {1, 2})
    writer.kill()
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("ledger", "c", range(30))
    stage.moment("recovered")


def full_disk(stage: Stage) -> None:
    """The only data disk of a broker fills up: the log directory fails in the middle of a write, and the broker ends; with more space it recovers."""
    stage.topic("audit", (1,))
    disk = stage.brokers[1].logs / "d1"
    stage.brokers[1].stop(clean=True)
    stage.small_disk(disk, "1m")
    stage.brokers[1].start()
    stage.led("audit", lambda led: led.leader == 1)
    writer = stage.writer(JAVA, "audit", acks="all", linger_ms=5, delivery_timeout_ms=12000, request_timeout_ms=5000)
    writer.write("audit", "a", range(200))
    filler = disk / "other-program"
    free = shutil.disk_usage(disk).free
    filler.write_bytes(bytes(free - 2 * RECORD_BYTES * 20))
    writer.write("audit", "b", range(120))
    stage.brokers[1].kill()
    filler.unlink()
    stage.moment("full", read=False)
    stage.brokers[1].start()
    stage.led("audit", lambda led: led.leader == 1)
    later = stage.writer(JAVA, "later", acks="all", linger_ms=5)
    later.write("audit", "c", range(40))
    stage.moment("recovered")


def torn_tail(stage: Stage) -> None:
    """A host without flushes loses power: the process is killed -9, and what the page cache held of the newest segment is gone, in the middle of a batch; then the broker recovers."""
    stage.topic("clicks", (1,))
    writer = stage.writer(JAVA, "clicks", acks="all", linger_ms=5)
    writer.write("clicks", "a", range(240))
    stage.brokers[1].kill()
    writer.kill()
    (segment,) = stage.brokers[1].segments("clicks", 0)
    with segment.open("r+b") as log:
        log.truncate(segment.stat().st_size * 2 // 3)
    stage.moment("torn", read=False)
    stage.brokers[1].start()
    stage.led("clicks", lambda led: led.leader == 1)
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("clicks", "b", range(60))
    stage.moment("recovered")


def recreated_topic(stage: Stage) -> None:
    """A topic is deleted and created again while one of its brokers is down, and its producer goes on."""
    stage.topic("carts", (1, 2))
    writer = stage.writer(JAVA, "carts", acks="all", linger_ms=5, metadata_max_age_ms=1000)
    writer.write("carts", "a", range(150))
    stage.brokers[2].stop(clean=True)
    stage.led("carts", lambda led: led.in_sync == [1])
    stage.delete_topic("carts")
    time.sleep(3)
    with stage.connection() as connection:
        stage.until(lambda: connection.create_topic("carts", 1, {}, (1,)), (0).__eq__)
    stage.led("carts", lambda led: led.leader == 1)
    writer.write("carts", "b", range(50))
    stage.moment("replica-down")
    stage.brokers[2].start()
    time.sleep(5)
    stage.moment("recovered")


def clock_ahead(stage: Stage) -> None:
    """A broker starts with a clock 30 days ahead: retention of seven days deletes what is minutes old; then its clock is right again."""
    stage.topic("visits", (1,), retention_ms=7 * DAY_SECONDS * 1000, segment_bytes=4096)
    writer = stage.writer("kafka-python", "visits", acks="all", linger_ms=5)
    writer.write("visits", "a", range(220), each=10)
    stage.brokers[1].stop(clean=True)
    stage.brokers[1].change(environment=shifted(30 * DAY_SECONDS))
    stage.brokers[1].start()
    with stage.connection(1) as connection:
        stage.until(lambda: connection.offset("visits", -2, 0)[1], lambda start: start > 0)
    time.sleep(2)
    stage.moment("ahead")
    stage.brokers[1].stop(clean=True)
    stage.brokers[1].change(environment={})
    stage.brokers[1].start()
    stage.led("visits", lambda led: led.leader == 1)
    writer.write("visits", "b", range(40))
    stage.moment("right-again")


def timestamps_in_seconds(stage: Stage) -> None:
    """A producer dates its records in seconds where milliseconds are due, which is January 1970: retention deletes them at once; another dates its own a year ahead."""
    stage.topic("orders", (1, 2), segment_bytes=4096, retention_ms=DAY_SECONDS * 1000)
    stage.topic("future", (1, 2), segment_bytes=4096, retention_ms=DAY_SECONDS * 1000)
    now = int(time.time())
    wrong = stage.writer("kafka-python", "wrong", acks="all", linger_ms=5)
    for at in range(0, 200, 10):
        wrong.send("orders", "w", range(at, at + 10), now)
        wrong.ask("flush")
        wrong.send("future", "y", range(at, at + 10), (now + 365 * DAY_SECONDS) * 1000)
        wrong.ask("flush")
    with stage.connection(1) as connection:
        stage.until(lambda: connection.offset("orders", -2, 0)[1], lambda start: start > 0)
    right = stage.writer(JAVA, "right", acks="all", linger_ms=5)
    right.write("orders", "r", range(60))
    right.write("future", "z", range(60))
    time.sleep(3)
    stage.moment("expired")


def stalled_broker(stage: Stage) -> None:
    """A broker stands still three times for longer than two producers without idempotence wait for an answer: they send again what it then writes twice."""
    stage.topic("steps", (1,))
    impatient = {"request_timeout_ms": 2000, "retries": 20, "enable_idempotence": "false", "linger_ms": 5}
    writers = {
        "k": stage.writer("kafka-python", "steps-python", acks="1", **impatient),
        "j": stage.writer(JAVA, "steps-java", acks="all", delivery_timeout_ms=60000, **impatient),
    }
    for number in range(3):
        for prefix, writer in writers.items():
            writer.write("steps", prefix, range(number * 60, number * 60 + 40))
        stage.brokers[1].pause()
        for prefix, writer in writers.items():
            writer.send("steps", prefix, range(number * 60 + 40, number * 60 + 60))
        time.sleep(5)
        stage.brokers[1].resume()
        for writer in writers.values():
            writer.ask("flush")
    stage.moment("over")


def lost_coordinator(stage: Stage) -> None:
    """The only replica of __transaction_state is lost while a transaction is open: a new instance under the same transactional id gets another producer id, and what it commits stays hidden."""
    stage.topic("invoices", (1, 2))
    first = stage.writer(JAVA, "first", transactional_id="invoicing-1", linger_ms=5, transaction_timeout_ms=600000)
    first.ask("begin")
    first.write("invoices", "a", range(40))
    assert first.ask("commit") == "done", first.errors
    first.ask("begin")
    first.write("invoices", "b", range(20))
    first.kill()
    (holder,) = (broker for broker in stage.brokers.values() if (broker.logs / "__transaction_state-0").exists())
    holder.stop(clean=False)
    shutil.rmtree(holder.logs / "__transaction_state-0")
    holder.start()
    stage.led("invoices", lambda led: set(led.in_sync) == {1, 2})
    second = stage.writer(JAVA, "second", transactional_id="invoicing-1", linger_ms=5)
    for prefix in "cd":
        second.ask("begin")
        second.write("invoices", prefix, range(30))
        assert second.ask("commit") == "done", second.errors
    stage.moment("hanging")


def distressed_producer(stage: Stage) -> None:
    """A broker stands still four times for longer than an idempotent producer tries: sends fail, some of them are written all the same, and the epoch rises each time."""
    stage.topic("readings", (1,))
    writer = stage.writer(
        JAVA, "readings", acks="all", linger_ms=5, request_timeout_ms=2000, delivery_timeout_ms=4000,
        retry_backoff_ms=200,
    )  # fmt: skip
    for number in range(4):
        writer.write("readings", "r", range(number * 100, number * 100 + 60))
        stage.brokers[1].pause()
        for at in range(number * 100 + 60, number * 100 + 100, 20):
            writer.send("readings", "r", range(at, at + 20))
            time.sleep(0.5)
        time.sleep(6)
        stage.brokers[1].resume()
        writer.ask("flush")
    stage.moment("over")


def restart_loop(stage: Stage) -> None:
    """An application under one transactional id commits once; then it is killed in the middle of a transaction again and again, and started each time."""
    stage.topic("claims", (1,))
    writer = stage.writer(JAVA_4, "claims-first", transactional_id="claims-1", linger_ms=5)
    writer.ask("begin")
    writer.write("claims", "a", range(30))
    assert writer.ask("commit") == "done", writer.errors
    for number in range(7):
        writer.ask("begin")
        writer.write("claims", f"b{number}-", range(10))
        writer.kill()
        writer = stage.writer(JAVA_4, f"claims-{number}", transactional_id="claims-1", linger_ms=5)
    writer.ask("begin")
    writer.write("claims", "c", range(30))
    assert writer.ask("commit") == "done", writer.errors
    stage.moment("started-again")


def two_instances(stage: Stage) -> None:
    """Two instances run under one transactional id: each initialises it in the middle of the other's transaction, whose commit is refused."""
    stage.topic("shifts", (1,))
    running = stage.writer(JAVA_4, "shifts-first", transactional_id="shifts-1", linger_ms=5)
    running.ask("begin")
    running.write("shifts", "a", range(30))
    assert running.ask("commit") == "done", running.errors
    for number in range(7):
        running.ask("begin")
        running.write("shifts", f"b{number}-", range(10))
        other = stage.writer(JAVA_4, f"shifts-{number}", transactional_id="shifts-1", linger_ms=5)
        running.send("shifts", f"zombie{number}-", range(5))
        assert running.ask("commit") != "done"
        running = other
    running.ask("begin")
    running.write("shifts", "c", range(30))
    assert running.ask("commit") == "done", running.errors
    time.sleep(1)
    stage.moment("fenced-in-turn")


def torn_leader(stage: Stage) -> None:
    """Both brokers of a partition lose power, the leader what its page cache held; it starts first and leads, and its follower, which has everything, truncates."""
    stage.topic("parts", (1, 2), min_insync_replicas=1)
    writer = stage.writer("confluent-kafka", "parts", acks="all", enable_idempotence="true", linger_ms=5)
    writer.write("parts", "a", range(200))
    stage.brokers[2].kill()
    stage.led("parts", lambda led: led.in_sync == [1])
    stage.brokers[1].kill()
    writer.kill()
    (segment,) = stage.brokers[1].segments("parts", 0)
    with segment.open("r+b") as log:
        log.truncate(segment.stat().st_size * 3 // 5)
    stage.brokers[1].start()
    stage.led("parts", lambda led: led.leader == 1)
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("parts", "b", range(40))
    stage.moment("follower-down")
    stage.brokers[2].start()
    stage.led("parts", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def clock_behind(stage: Stage) -> None:
    """A broker with a clock 30 days behind stamps records itself (LogAppendTime); once its clock is right, retention of seven days deletes them."""
    stage.brokers[1].stop(clean=True)
    stage.brokers[1].change(environment=shifted(-30 * DAY_SECONDS))
    stage.brokers[1].start()
    week = 7 * DAY_SECONDS * 1000
    stage.topic("doors", (1,), retention_ms=week, segment_bytes=4096, message_timestamp_type="LogAppendTime")
    writer = stage.writer(JAVA, "doors", acks="all", linger_ms=5)
    writer.write("doors", "a", range(180), each=10)
    stage.moment("behind")
    stage.brokers[1].stop(clean=True)
    stage.brokers[1].change(environment={})
    stage.brokers[1].start()
    with stage.connection(1) as connection:
        stage.until(lambda: connection.offset("doors", -2, 0)[1], lambda start: start > 0)
    writer.write("doors", "b", range(40))
    time.sleep(2)
    stage.moment("right-again")


def deleted_topic(stage: Stage) -> None:
    """A topic is deleted while one of its brokers is down; when that one comes back it sets its log aside."""
    stage.topic("drafts", (1, 2))
    stage.topic("letters", (1, 2))
    writer = stage.writer(JAVA, "drafts", acks="all", linger_ms=5)
    writer.write("drafts", "a", range(90))
    writer.write("letters", "l", range(60))
    stage.brokers[2].stop(clean=True)
    stage.led("drafts", lambda led: led.in_sync == [1])
    writer.write("drafts", "b", range(20))
    stage.delete_topic("drafts")
    time.sleep(3)
    stage.moment("replica-down")
    stage.brokers[2].start()
    stage.led("letters", lambda led: set(led.in_sync) == {1, 2})
    time.sleep(3)
    stage.moment("back")
