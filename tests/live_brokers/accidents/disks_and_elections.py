"""Accidents of disks, elections and topic settings that leave little: what was lost is known by the clients alone, or by a broker's logs."""

import shutil
import time

from kafka.admin import ConfigResource, ConfigResourceType

from tests.live_brokers.accidents.healthy import writing
from tests.live_brokers.accidents.losses import FETCH_WAIT_SECONDS
from tests.live_brokers.accidents.stage import JAVA, RECORD_BYTES, Stage, Writer
from tests.live_brokers.cluster import CONTROLLER


def unclean_twice(stage: Stage) -> None:
    """With min.insync.replicas 1 two brokers lead by turns without what the other acknowledged alone: two unclean elections."""
    stage.topic("gauge", (1, 2), unclean_leader_election_enable="true", min_insync_replicas=1)
    java = stage.writer(JAVA, "java", acks="all", linger_ms=5)
    plain = stage.writer("confluent-kafka", "plain", acks="all", linger_ms=5, message_timeout_ms=60000)
    java.write("gauge", "a", range(120))
    _led_alone(stage, "gauge", 1, java, "b", 60)
    java.write("gauge", "c", range(80))
    stage.brokers[1].start()
    stage.led("gauge", lambda led: set(led.in_sync) == {1, 2})
    plain.write("gauge", "d", range(40))
    _led_alone(stage, "gauge", 2, plain, "e", 50)
    java.write("gauge", "f", range(40))
    stage.moment("second-leader-down")
    stage.brokers[2].start()
    stage.led("gauge", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def _led_alone(stage: Stage, topic: str, leader: int, writer: Writer, prefix: str, count: int) -> None:
    """Have one of two brokers acknowledge records that the other does not get, and the other elected."""
    other = 3 - leader
    stage.brokers[other].pause()
    stage.led(topic, lambda led: led.in_sync == [leader])
    writer.write(topic, prefix, range(count))
    time.sleep(1)  # until the high watermark is in its checkpoint
    stage.brokers[leader].kill()
    stage.brokers[other].resume()
    stage.led(topic, lambda led: led.leader == other)


def emptied_disk(stage: Stage) -> None:
    """The disk of the only replica in sync is replaced, and the broker starts under its id with an empty one; the other is elected uncleanly without what it lacks."""
    stage.topic("rents", (1, 2), unclean_leader_election_enable="true", min_insync_replicas=1)
    writer = stage.writer(JAVA, "rents", acks="all", linger_ms=5)
    writer.write("rents", "a", range(150))
    stage.brokers[2].stop(clean=True)
    stage.led("rents", lambda led: led.in_sync == [1])
    writer.write("rents", "b", range(70))
    stage.brokers[1].stop(clean=False)
    writer.kill()
    shutil.rmtree(stage.brokers[1].logs)
    stage.brokers[2].start()
    stage.led("rents", lambda led: led.leader == 2)
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("rents", "c", range(40))
    stage.moment("other-leads", nodes=(2, 4))
    stage.brokers[1].format()
    stage.brokers[1].start()
    stage.led("rents", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def failed_disk(stage: Stage) -> None:
    """One of a broker's two disks fills up while it leads with acks=1: that log directory alone goes offline (KIP-112), another broker leads, and with space it comes back."""
    stage.topic("calls", (1, 2))
    (held,) = stage.until(lambda: list(stage.brokers[1].logs.glob("d?/calls-0")), bool)
    folder = held.parent
    stage.brokers[1].stop(clean=True)
    stage.small_disk(folder, "1m")
    stage.brokers[1].start()
    stage.led("calls", lambda led: set(led.in_sync) == {1, 2})
    with stage.connection() as connection:
        connection.elect_preferred(1, "calls", 0)
    stage.led("calls", lambda led: led.leader == 1)
    writer = stage.writer("confluent-kafka", "calls", acks="1", linger_ms=5, message_timeout_ms=60000)
    writer.write("calls", "a", range(200))
    filler = folder / "other-program"
    filler.write_bytes(bytes(shutil.disk_usage(folder).free - 2 * RECORD_BYTES * 20))
    writer.write("calls", "b", range(120))
    stage.led("calls", lambda led: led.leader == 2)
    writer.write("calls", "c", range(40))
    stage.moment("offline")
    filler.unlink()
    stage.brokers[1].stop(clean=True)
    stage.brokers[1].start()
    stage.led("calls", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def leader_storm(stage: Stage) -> None:
    """Somebody moves the leader to and fro, twelve times, while a producer with acks=1 and one with acks=all write."""
    stage.topic("trades", (1, 2))
    fast = stage.writer("confluent-kafka", "fast", acks="1", linger_ms=1, message_timeout_ms=60000)
    safe = stage.writer(JAVA, "safe", acks="all", linger_ms=1)
    with writing(fast, "trades", "f", 600, 0.05), writing(safe, "trades", "s", 600, 0.05):
        for number in range(12):
            order = (2, 1) if number % 2 == 0 else (1, 2)
            with stage.connection() as connection:
                connection.reassign("trades", 0, order)
                time.sleep(0.3)
                connection.elect_preferred(1, "trades", 0)
            stage.led("trades", lambda led, order=order: led.leader == order[0])  # type: ignore[misc]
    stage.led("trades", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("over")


def deleted_while_written(stage: Stage) -> None:
    """A topic is deleted while its producer writes; the producer never stops, and its requests for metadata have the brokers create the topic again."""
    stage.topic("alarms", (1, 2))
    writer = stage.writer(JAVA, "alarms", acks="all", linger_ms=5, metadata_max_age_ms=500, retry_backoff_ms=50)
    writer.write("alarms", "a", range(140))
    with writing(writer, "alarms", "b", 200, 0.1):
        time.sleep(0.5)
        stage.delete_topic("alarms")
    stage.deleted_meanwhile("alarms")
    stage.led("alarms", lambda led: led.leader in (1, 2, 4))
    time.sleep(2)
    stage.moment("created-again")


def compacted_without_keys(stage: Stage) -> None:
    """A topic whose records have no keys is set to `cleanup.policy=compact`: the cleaner removes them, and what is sent is refused from then on."""
    stage.topic("metrics", (1, 2), segment_ms=500)
    writer = stage.writer("kafka-python", "metrics", acks="all", linger_ms=5, retries=0)
    writer.write("metrics", "~", range(240), each=10, pause=0.2)
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "500"}
    with stage.admin() as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "metrics", settings)])
    stage.until(lambda: len(stage.read("metrics", "read_uncommitted")), lambda there: there < 100)
    writer.write("metrics", "~late", range(20))
    time.sleep(2)
    stage.moment("cleaned")


def two_tails(stage: Stage) -> None:
    """Of three replicas the leader acknowledges alone (acks=1) and is killed, the second does likewise; they come back in the other order and truncate."""
    stage.topic("fares", (1, 2, 3))
    fast = stage.writer("confluent-kafka", "fast", acks="1", linger_ms=5, message_timeout_ms=60000)
    safe = stage.writer(JAVA, "safe", acks="all", linger_ms=5)
    fast.write("fares", "f", range(120))
    safe.write("fares", "s", range(60))
    _acknowledge_alone(stage, fast, "g", 70, leader=1, others=(2, 3))
    second = stage.led("fares", lambda led: led.leader in (2, 3)).leader
    third = 5 - second
    stage.led("fares", lambda led: set(led.in_sync) == {2, 3})
    safe.write("fares", "s", range(60, 90))
    fast.write("fares", "i", range(20))
    _acknowledge_alone(stage, fast, "h", 45, leader=second, others=(third,))
    stage.led("fares", lambda led: led.leader == third)
    safe.write("fares", "s", range(90, 120))
    stage.moment("third-leads")
    stage.brokers[second].start()
    stage.led("fares", lambda led: set(led.in_sync) == {2, 3})
    safe.write("fares", "s", range(120, 130))
    stage.moment("second-back")
    stage.brokers[1].start()
    stage.led("fares", lambda led: set(led.in_sync) == {1, 2, 3})
    stage.moment("all-back")


def _acknowledge_alone(
    stage: Stage, writer: Writer, prefix: str, count: int, *, leader: int, others: tuple[int, ...]
) -> None:
    for node in others:
        stage.brokers[node].pause()
    time.sleep(FETCH_WAIT_SECONDS)
    writer.write("fares", prefix, range(count))
    stage.brokers[leader].kill()
    for node in others:
        stage.brokers[node].resume()


def power_everywhere(stage: Stage) -> None:
    """Both brokers of a partition lose power, each what its page cache held; the one that lost more is the last in sync, starts first and leads."""
    stage.topic("votes", (1, 2), min_insync_replicas=1)
    writer = stage.writer("aiokafka", "votes", acks="all", enable_idempotence="true")
    writer.write("votes", "a", range(240))
    for node in (1, 2):
        stage.brokers[node].kill()
    writer.kill()
    (last,) = stage.led("votes", lambda led: led.leader == -1 and len(led.in_sync) == 1).in_sync
    for node, parts in ((last, 2), (3 - last, 3)):
        (segment,) = stage.brokers[node].segments("votes", 0)
        with segment.open("r+b") as log:
            log.truncate(segment.stat().st_size * parts // 4)
        stage.brokers[node].start()
        stage.led("votes", lambda led: led.leader == last)
    stage.led("votes", lambda led: set(led.in_sync) == {1, 2})
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("votes", "b", range(40))
    stage.moment("recovered")


def snapshots_restored(stage: Stage) -> None:
    """All disks are put back to snapshots of different times, taken while a producer wrote; the producer, which is idempotent, goes on."""
    stage.topic("beds", (1, 2), min_insync_replicas=1)
    writer = stage.writer(JAVA, "beds", acks="all", linger_ms=5, delivery_timeout_ms=20000, request_timeout_ms=3000)
    writer.write("beds", "a", range(120))
    for node in (1, 2):
        broker = stage.brokers[node]
        broker.pause()
        shutil.copytree(broker.logs, broker.home / "snapshot")
        broker.resume()
        stage.led("beds", lambda led: set(led.in_sync) == {1, 2})
        writer.write("beds", f"b{node}-", range(60 if node == 1 else 100))
    for node in (1, 2):
        broker = stage.brokers[node]
        broker.kill()
        shutil.rmtree(broker.logs)
        (broker.home / "snapshot").rename(broker.logs)
    for node in (2, 1):
        stage.brokers[node].start()
    stage.led("beds", lambda led: set(led.in_sync) == {1, 2})
    writer.write("beds", "d", range(60))
    writer.kill()
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("beds", "e", range(30))
    stage.moment("restored")


def unclean_with_zookeeper(stage: Stage) -> None:
    """In a cluster with ZooKeeper a follower is stopped, the leader goes on with acks=all and is killed, the follower is elected uncleanly, the old leader comes back."""
    stage.topic("rides", (1, 2), unclean_leader_election_enable="true", min_insync_replicas=1)
    writer = stage.writer(JAVA, "rides", acks="all", linger_ms=5)
    writer.write("rides", "a", range(150))
    stage.brokers[2].stop(clean=True)
    stage.led("rides", lambda led: led.in_sync == [1])
    writer.write("rides", "b", range(90))
    stage.brokers[1].stop(clean=False)
    stage.brokers[2].start()
    stage.led("rides", lambda led: led.leader == 2)
    writer.kill()
    later = stage.writer("kafka-python", "later", acks="all")
    later.write("rides", "c", range(40))
    stage.moment("old-leader-down")
    stage.brokers[1].start()
    stage.led("rides", lambda led: set(led.in_sync) == {1, 2})
    stage.moment("recovered")


def metadata_restored(stage: Stage) -> None:
    """The metadata of the only controller is put back to an older copy: it does not have a topic that was created since, whose logs brokers set aside."""
    stage.topic("first", (1, 2))
    writer = stage.writer(JAVA, "first", acks="all", linger_ms=5)
    writer.write("first", "a", range(60))
    controller = stage.brokers[CONTROLLER]
    controller.stop(clean=True)
    shutil.copytree(controller.logs, controller.home / "backup")
    controller.start()
    stage.until(stage.registered, set(stage.brokers).__eq__)
    stage.topic("second", (1, 2))
    writer.write("first", "b", range(30))
    writer.write("second", "s", range(80))
    for broker in stage.brokers.values():
        broker.stop(clean=True)
        shutil.rmtree(broker.logs / "__cluster_metadata-0")
    shutil.rmtree(controller.logs)
    (controller.home / "backup").rename(controller.logs)
    for broker in (controller, stage.brokers[1], stage.brokers[2]):
        broker.start()
    stage.led("first", lambda led: set(led.in_sync) == {1, 2})
    writer.kill()
    later = stage.writer(JAVA, "later", acks="all", linger_ms=5)
    later.write("first", "c", range(30))
    time.sleep(3)
    stage.moment("restored")
