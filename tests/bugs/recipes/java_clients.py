"""Bugs of the Java producer, played against a broker of one release."""

import threading
import time
from pathlib import Path

from tests.bugs.proxy import Frame, Proxy, with_produce_error
from tests.bugs.recipe import COORDINATOR, Outcome, outcome_of
from tests.bugs.recipes.cleaner import SMALL_INDEXES
from tests.cluster import brokers
from tests.live_brokers.java_producer import java_producer
from tests.live_brokers.protocol import END_TXN, LATEST, PRODUCE, Connection
from tests.live_brokers.server_logs import FOLDER

BROKER = brokers.WITH_EITHER
BEFORE_2_4 = "2.1.1"
"""A broker that forgets producers whose records are deleted."""
QUEUED_SECONDS, APART_SECONDS = 3, 0.4
SHORT_SECONDS = 3
"""Longest time of a transaction where it should be over soon."""
LOG_START_NOT_WRITTEN = {**SMALL_INDEXES, "log.flush.start.offset.checkpoint.interval.ms": 600_000}
"""A broker that is killed soon leaves no word of records that were deleted; below the log start nothing is audited."""
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
MARKER_SECONDS = 0.5
"""EndTxn is answered before the markers are written."""
_EACH_RECORD_A_BATCH = {"batch.size": 0, "linger.ms": 0}


def resent_under_the_next_epoch(version: str, home: Path) -> Outcome:
    """Two batches are written, but must be sent again; the one behind them is refused for good."""
    asked, answered = threading.Semaphore(0), iter(range(1, 100))

    def note(frame: Frame) -> bytes:
        if frame.api == PRODUCE:
            asked.release()
        return frame.data

    def answer(frame: Frame) -> bytes:
        """Say of the first two that a follower fell out of sync meanwhile, when all three are under way."""
        if frame.api != PRODUCE or (number := next(answered)) > 2:
            return frame.data
        if number == 1:
            for _ in range(3):
                asked.acquire(timeout=20)
        return with_produce_error(frame, NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    with brokers.live(BROKER, home / "broker") as live:
        live.play({"name": "orders", "topic_config": {"max.message.bytes": "2000"}, "steps": []})
        proxy = Proxy(live.broker.port, note, answer)
        config = {**_EACH_RECORD_A_BATCH, "enable.idempotence": "true", "acks": "all"}
        with java_producer(version, home / "client", proxy.port, config) as producer:
            producer.say("send orders first 10", "send orders second 10", "send orders large 5000")
            answers = dict(producer.answer().split(": ", 1) for _ in range(3))
            producer.say("send orders last 10")
            answers |= dict([producer.answer().split(": ", 1)])
        proxy.close()
        live.broker.stop(clean=True)
        twice = answers["send first"] == "offset 2"
        return outcome_of(
            f"first and second were written at offsets 0 and 1 and answered with NOT_ENOUGH_REPLICAS_AFTER_APPEND, then "
            f"a record too large was refused; the producer was answered {answers['send first']} of first and "
            f"{answers['send second']} of second",
            {"code": "KA704", "topic": "orders", "partition": 0, "offset": 2, "last_offset": 3},
            happened=twice, logs=live.broker.logs, partitions=("orders-0",),
            client_logs={"client.log": home / "client" / "client.log"},
        )  # fmt: skip


def delayed_end_of_a_transaction(version: str, home: Path) -> Outcome:
    """A request to commit is held up in the network, repeated, and arrives in the middle of the next transaction."""
    held: list[Frame] = []

    def hold(frame: Frame) -> bytes | None:
        if frame.api != END_TXN or held:
            return frame.data
        held.append(frame)
        return None

    with brokers.live(version, home / "broker") as live:
        live.play({"name": "orders", "steps": []})
        proxy = Proxy(live.broker.port, hold)
        with java_producer(version, home / "client", proxy.port, {"transactional.id": "payments"}) as producer:
            for step in ("init", "begin", "send orders first 10", "commit", "begin"):
                producer.ask(step)
            second = producer.ask("send orders second 10")
            late = Connection(live.broker.port)
            late.pass_on(held[0].data)
            time.sleep(MARKER_SECONDS)
            _, end = late.offset("orders", LATEST, 0)
            late.close()
            third = producer.ask("send orders third 10")
            aborted = producer.ask("abort")
        proxy.close()
        live.broker.stop(clean=True)
        offset = _offset(third)
        hanging = {"topic": "orders", "partition": 0, "producer_epoch": 0, "offset": offset}
        return outcome_of(
            "a commit was held up, repeated by the producer, and arrived again when its next transaction had written a "
            f"record ({second}); the log end was {end} then. The next record: {third}; then {aborted}",
            *({"code": code, **hanging} for code in ("KA301", "KA304")),
            happened=_offset(second) == 2 and end == 4 and offset == 4,
            logs=live.broker.logs, partitions=("orders-0", COORDINATOR),
            client_logs={"client.log": home / "client" / "client.log"},
        )  # fmt: skip


def _offset(answer: str) -> int | None:
    """The offset of `send KEY: offset 3`, None where it was refused."""
    _, _, result = answer.partition(": ")
    return int(result.removeprefix("offset ")) if result.startswith("offset ") else None


def reordered_after_unknown_producer(version: str, home: Path) -> Outcome:
    """Five batches are under way; the first is written and its record deleted, so that the broker forgets the producer."""
    with brokers.live(BEFORE_2_4, home / "broker", LOG_START_NOT_WRITTEN) as live:
        live.play({"name": "orders", "steps": []})
        seen, written = iter(range(1, 100)), threading.Event()

        def forget(frame: Frame) -> bytes:
            """Let the others queue up behind the first, and delete its record before they reach the broker."""
            if frame.api == PRODUCE:
                number = next(seen)
                if number == 1:
                    time.sleep(QUEUED_SECONDS)
                elif number == 2:
                    written.wait(QUEUED_SECONDS)
                    live.connection.delete_records("orders", 0, 1)
            return frame.data

        def note(frame: Frame) -> bytes:
            if frame.api == PRODUCE:
                written.set()
            return frame.data

        proxy = Proxy(live.broker.port, forget, note)
        config = {**_EACH_RECORD_A_BATCH, "enable.idempotence": "true", "acks": "all"}
        keys = ["b0", "b1", "b2", "b3", "b4"]
        with java_producer(version, home / "client", proxy.port, config) as producer:
            producer.ask("flush")
            for key in keys:
                producer.say(f"send orders {key} 10")
                time.sleep(APART_SECONDS)
            answers = dict(producer.answer().split(": ", 1) for _ in keys)
        proxy.close()
        live.broker.stop(clean=False)
        order = sorted(keys, key=lambda key: _offset(f": {answers[f'send {key}']}") or 0)
        return outcome_of(
            f"five batches were under way when the broker forgot the producer; they were written in the order {order}",
            {"code": "KA105", "topic": "orders", "partition": 0, "offset": 1, "producer_epoch": 0},
            happened=order != keys, logs=live.broker.logs, partitions=("orders-0",),
            client_logs={"client.log": home / "client" / "client.log"},
        )  # fmt: skip


def commit_after_the_timeout(version: str, home: Path) -> Outcome:
    """A producer commits when its coordinator has aborted the transaction: it was open for too long."""
    with brokers.live(version, home / "broker", server_logs="stock") as live:
        live.play({"name": "orders", "steps": []})
        config = {"transactional.id": "payments", "transaction.timeout.ms": SHORT_SECONDS * 1000}
        with java_producer(version, home / "client", live.broker.port, config) as producer:
            for step in ("init", "begin"):
                producer.ask(step)
            written = producer.ask("send orders first 10")
            time.sleep(2 * SHORT_SECONDS)
            end = producer.ask("commit")
        live.broker.stop(clean=True)
        return outcome_of(
            f"a record of a transaction was written ({written}); {2 * SHORT_SECONDS} s later, after the timeout of "
            f"{SHORT_SECONDS} s, its commit was answered: {end}",
            {"code": "KA813", "severity": "error"},
            happened="InvalidTxnStateException" in end, logs=live.broker.logs, partitions=("orders-0", COORDINATOR),
            server_logs={"server.log": live.broker.home / FOLDER / "server.log"},
            client_logs={"client.log": home / "client" / "client.log"},
        )  # fmt: skip
