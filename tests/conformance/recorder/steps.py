"""What each step of a scenario asks of a broker, and how the attempt and its answer are kept."""

import time
from collections.abc import Callable
from typing import Any

from tests.conformance.recorder.batches import Sent, messages, raw
from tests.conformance.recorder.disk import topic_id
from tests.conformance.recorder.topic import Step, Topic, clock, name_of
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import (
    ADD_PARTITIONS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    EARLIEST,
    END_TXN,
    FIRST_PRODUCE_WITH_TOPIC_IDS,
    INIT_PRODUCER_ID,
    LATEST,
    OF_GROUP,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    WRITE_MARKERS,
    Appended,
    Connection,
    ConnectionClosedError,
    produce_body,
    read_produced,
)

NOT_ENOUGH_REPLICAS = 19
BUSY = (14, 15, 16, NOT_ENOUGH_REPLICAS, 51)
"""The coordinator is loading or busy; in a produce answer 19 says that it could not be asked (KAFKA-15459)."""
MIN_IN_SYNC = "min.insync.replicas"
READY_SECONDS = 20
BUSY_SECONDS = 4
KEPT_HEX_BYTES = 20_000
PLAIN_PRODUCE = 8
LONGEST_TIMEOUT_MS = 2**31 - 1
TRANSACTION_TIMEOUT_MS = 600_000
OFFSETS_TOPIC = "__consumer_offsets"
ENDING = ("PrepareCommit", "PrepareAbort")
_LAST_ADD_OF_CLIENTS = 3
"""AddPartitionsToTxn from version 4 on is for brokers."""
_FIRST_INIT_WITH_PRODUCER = 3
"""InitProducerId takes the caller's producer id and epoch from here on (KIP-360)."""


class Steps:
    """The steps scenarios are made of, for a broker whose topics are ready."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._versions: dict[int, tuple[int, int]] = {}
        self.steps: dict[str, Callable[[Topic, Step], None]] = {
            "produce": self._produce,
            "produce_raw": self._produce_raw,
            "pipeline": self._pipeline,
            "init_pid": self._init_producer_id,
            "add_partitions": self._add_partitions,
            "add_offsets": self._add_offsets,
            "commit_offsets": self._commit_offsets,
            "check_offsets": self._describe_offsets,
            "end_txn": self._end_txn,
            "write_marker": self._write_marker,
            "delete_records": self._delete_records,
            "sleep": self._sleep,
            "check_txn": self._describe,
            "list_offsets": self._nothing,
            "wait_cleaned": self._wait_cleaned,
            "wait_head": self._wait_head,
        }

    def _version(self, api: int, wanted: int, *, exact: bool = False) -> int:
        """The version that comes nearest to the one wanted, or, with `exact`, that one, though no release may have it."""
        low, high = self._versions[api]
        return wanted if exact else min(max(wanted, low), high)

    def _described(self, topic: Topic, step: Step) -> tuple[Step, bytes]:
        """Return the attempt of a produce step and its bytes."""
        producer = topic.producer(step)
        sequence, count = topic.batch(step.get("partition", 0), producer, step)
        now = clock()
        timestamp = now - step.get("ts_ago", 0)
        data = Sent(*producer, sequence, count, timestamp, step).encode()
        attempt = {
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "base_sequence": sequence,
            "record_count": count,
            "is_transactional": bool(step.get("txn")),
            "transactional_id": step.get("txn_id"),
            "acks": step.get("acks", -1),
            "api_version": self._version(PRODUCE, step.get("version", PLAIN_PRODUCE), exact=step.get("exact", False)),
            "timestamp": timestamp,
            "at": now,
        }
        if len(data) <= KEPT_HEX_BYTES:
            attempt["records_hex"] = data.hex()
        return attempt, data

    def _produce(self, topic: Topic, step: Step) -> None:
        if "batches" in step:
            parts = [self._described(topic, part) for part in step["batches"]]
            first = parts[0][0]
            attempt = {
                "batches": [part for part, _ in parts],
                "acks": first["acks"],
                "api_version": first["api_version"],
                "transactional_id": None,
                "at": first["at"],
            }
            data = b"".join(data for _, data in parts)
        else:
            attempt, data = self._described(topic, step)
        others = {}
        for other in step.get("also", ()):
            partition = other["partition"]
            described, others[partition] = self._described(topic, other)
            attempt.setdefault("other_partitions", []).append({"partition": partition, **described})
        self._ask_produce(topic, attempt, {step.get("partition", 0): data, **others})

    def _produce_raw(self, topic: Topic, step: Step) -> None:
        partition, acks, now = step.get("partition", 0), step.get("acks", -1), clock()
        version = self._version(PRODUCE, step.get("version", PLAIN_PRODUCE), exact=step.get("exact", False))
        attempt: Step = {"acks": acks, "api_version": version, "at": now}
        if step["kind"] == "messages":
            data = messages(step["magic"], step["keys"], now, compressed=bool(step["codec"]))
            attempt["record_count"] = len(step["keys"])
        else:
            sent = Sent(step.get("pid", -1), step.get("epoch", -1), step.get("seq", -1), 2, now, {})
            data = raw(step["kind"], sent)
        self._ask_produce(topic, {**attempt, "records_hex": data.hex()}, {partition: data})

    def _ask_produce(self, topic: Topic, attempt: Step, sent: dict[int, bytes]) -> None:
        """Ask; `sent` is a record set per partition, the attempt's own first."""
        version, acks = attempt["api_version"], attempt["acks"]
        own = next(iter(sent))
        others = attempt.get("other_partitions", [])
        parts = [(own, attempt), *((other["partition"], other) for other in others)]
        body = produce_body(version, attempt.get("transactional_id"), acks, self._named(topic, version), sent)
        note = {"op": "produce", **attempt}
        connection = topic.connection
        try:
            connection.send(PRODUCE, version, body)
            if acks == 0:
                connection.api_versions()  # requests are answered in order; a refused produce closes the connection
                answer: Step = {"outcome": "no-response"}
                for partition, part in parts:
                    self._grown(topic, partition, part)
            else:
                produced = read_produced(version, connection.receive(PRODUCE, version))
                busy = (
                    BUSY
                    if MIN_IN_SYNC not in topic.config
                    else tuple(code for code in BUSY if code != NOT_ENOUGH_REPLICAS)
                )
                if _all_in(busy, produced):
                    produced = self._until(
                        lambda: read_produced(version, connection.ask(PRODUCE, version, body)),
                        lambda answers: not _all_in(busy, answers),
                        BUSY_SECONDS,
                    )
                answers = [self._appended(topic, partition, part, produced[partition]) for partition, part in parts]
                answer = answers[0]
                if others:
                    where = [{"topic": topic.name, "partition": other["partition"]} for other in others]
                    rest = zip(where, answers[1:], strict=True)
                    answer["other_partitions"] = [{**place, **each} for place, each in rest]
        except ConnectionClosedError:
            answer = {"outcome": "connection-closed"}
            if others:  # one that was refused hides that others were written
                for partition, part in parts:
                    self._grown(topic, partition, part)
        topic.note(own, note, answer)

    def _named(self, topic: Topic, version: int) -> str | bytes:
        """What a produce request calls a topic: its id from version 13 on."""
        return topic.name if version < FIRST_PRODUCE_WITH_TOPIC_IDS else topic_id(self.broker.logs, topic.name)

    def _grown(self, topic: Topic, partition: int, attempt: Step, base_offset: int = -1) -> bool:
        """Return whether a batch was written: the log has grown, or it begins where the log ended.

        0.11 may briefly report an old end.
        """
        known = topic.ends[partition]
        _, end = topic.connection.offset(topic.name, LATEST, partition)
        if base_offset == known:
            end = max(end, known + attempt.get("record_count", 1))
        if end <= known:
            return False
        topic.ends[partition] = end
        if "base_sequence" in attempt:
            producer = attempt["producer_id"], attempt["producer_epoch"]
            topic.wrote(partition, producer, attempt["base_sequence"], attempt["record_count"])
        return True

    def _appended(self, topic: Topic, partition: int, attempt: Step, produced: Appended) -> Step:
        if produced.error:
            return {"outcome": "rejected", "error": name_of(produced.error), "error_code": produced.error}
        outcome = "appended" if self._grown(topic, partition, attempt, produced.base_offset) else "duplicate"
        return {"outcome": outcome, "error": "NONE", "error_code": 0, "base_offset": produced.base_offset}

    def _pipeline(self, topic: Topic, step: Step) -> None:
        """Send all items before the first answer is read; what is new shows in offsets that ascend."""
        sent = [self._described(topic, item) for item in step["items"]]
        for attempt, data in sent:
            version = attempt["api_version"]
            named = self._named(topic, version)
            body = produce_body(version, attempt["transactional_id"], attempt["acks"], named, {0: data})
            topic.connection.send(PRODUCE, version, body)
        end = topic.ends[0]
        for attempt, _ in sent:
            version = attempt["api_version"]
            produced = read_produced(version, topic.connection.receive(PRODUCE, version))[0]
            answer: Step = {"outcome": "rejected", "error": name_of(produced.error), "error_code": produced.error}
            if not produced.error:
                answer["outcome"] = "duplicate" if produced.base_offset < end else "appended"
                answer["base_offset"] = produced.base_offset
                end = max(end, produced.base_offset + attempt["record_count"])
            topic.note(0, {"op": "produce", **attempt}, answer)
        topic.ends[0] = end

    def _init_producer_id(self, topic: Topic, step: Step) -> None:
        version = self._version(INIT_PRODUCER_ID, step.get("version", 0), exact=step.get("exact", False))
        transactional_id = step.get("txn_id")
        default = LONGEST_TIMEOUT_MS if transactional_id is None else TRANSACTION_TIMEOUT_MS
        timeout_ms = step.get("timeout_ms", default)
        held = (-1, -1)
        attempt = {
            "op": "init_producer_id",
            "transactional_id": transactional_id,
            "api_version": version,
            "timeout_ms": timeout_ms,
        }
        if "with_pid" in step and version >= _FIRST_INIT_WITH_PRODUCER:
            held = topic.producer({"pid": step["with_pid"], "epoch": step["with_epoch"]})
            attempt |= {"producer_id": held[0], "producer_epoch": held[1]}
        answered = self._answered(
            topic, 0, attempt, lambda: topic.coordinator.init_producer_id(version, transactional_id, timeout_ms, held)
        )
        if answered is None:
            return
        error, producer_id, epoch = answered
        if not error:
            attempt["granted_producer_id"] = producer_id
        topic.name_producer(step["as"], None if error else (producer_id, epoch))
        topic.note(0, attempt, {**_done(error), "producer_id": producer_id, "producer_epoch": epoch})
        self._take_ends(topic)

    def _add_partitions(self, topic: Topic, step: Step) -> None:
        producer = topic.producer(step)
        transactional_id, partition = step["txn_id"], step.get("partition", 0)
        exact = step.get("exact", False)
        wanted = step.get("version", 0) if exact else min(step.get("version", 0), _LAST_ADD_OF_CLIENTS)
        version = self._version(ADD_PARTITIONS, wanted, exact=exact)
        attempt = {"op": "add_partitions", **_owner(transactional_id, producer), "api_version": version}
        answered = self._answered(
            topic,
            partition,
            attempt,
            lambda: (topic.coordinator.add_partitions(version, transactional_id, producer, topic.name, partition),),
        )
        if answered is not None:
            topic.note(partition, attempt, _done(answered[0]))

    def _add_offsets(self, topic: Topic, step: Step) -> None:
        """Add the partition that holds the group, of which there is one only."""
        producer, transactional_id = topic.producer(step), step["txn_id"]
        self._until(lambda: topic.coordinator.find_coordinator(topic.name, OF_GROUP), lambda error: error == 0)
        (error,) = self._when_free(lambda: (topic.coordinator.add_offsets(transactional_id, producer, topic.name),))
        attempt = {"op": "add_partitions", **_owner(transactional_id, producer), "api_version": 0}
        topic.note(0, {**_in_offsets(topic), **attempt}, _done(error))

    def _commit_offsets(self, topic: Topic, step: Step) -> None:
        """Commit an offset for every partition of the scenario's topic."""
        producer, transactional_id = topic.producer(step), step["txn_id"]
        version = self._version(TXN_OFFSET_COMMIT, step.get("version", 0))
        owner = (transactional_id, *producer)
        self._until(lambda: topic.coordinator.find_coordinator(topic.name, OF_GROUP), lambda error: error == 0)
        (error,) = self._when_free(
            lambda: (topic.coordinator.commit_offsets(version, owner, topic.name, topic.name, topic.partitions),)
        )
        attempt = {
            "op": "txn_offset_commit",
            **_owner(transactional_id, producer),
            "record_count": len(topic.partitions),
            "api_version": version,
        }
        topic.note(0, {**_in_offsets(topic), **attempt}, _done(error))

    def _end_txn(self, topic: Topic, step: Step) -> None:
        version = self._version(END_TXN, step.get("version", 0), exact=step.get("exact", False))
        producer, commit = topic.producer(step), step["commit"]
        transactional_id = step["txn_id"]

        def ask() -> tuple[int, int, int]:
            return topic.coordinator.end_txn(version, transactional_id, producer, commit=commit)

        attempt = {"op": "end_txn", **_owner(transactional_id, producer), "commit": commit, "api_version": version}
        answered = self._answered(topic, 0, attempt, ask)
        if answered is None:
            return
        error, producer_id, epoch = answered
        answer = _done(error)
        if not error and producer_id >= 0:
            answer |= {"producer_id": producer_id, "producer_epoch": epoch}
        if "as" in step:
            topic.name_producer(step["as"], None if producer_id < 0 else (producer_id, epoch))
        if producer_id not in (-1, producer[0]):
            attempt["granted_producer_id"] = producer_id
        topic.note(0, attempt, answer)
        if not error:
            self._await_markers(topic, transactional_id, ask)
        self._take_ends(topic)

    def _await_markers(self, topic: Topic, transactional_id: str, end: Callable[[], tuple[int, ...]]) -> None:
        """Wait until a transaction is complete: by its state, else by EndTxn again, answered 51 until then."""
        if DESCRIBE_TRANSACTIONS in self._versions:
            self._until(
                lambda: topic.coordinator.transaction_state(transactional_id),
                lambda state: state not in ENDING,
                BUSY_SECONDS,
            )
        else:
            self._when_free(end)

    def _write_marker(self, topic: Topic, step: Step) -> None:
        version = self._version(WRITE_MARKERS, step.get("version", 1))
        producer, commit, coordinator_epoch = topic.producer(step), step["commit"], step["coord_epoch"]
        partition = step.get("partition", 0)
        error = topic.connection.write_marker(
            version, producer, (topic.name, partition), commit=commit, coordinator_epoch=coordinator_epoch
        )
        attempt = {
            "op": "write_marker",
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "commit": commit,
            "coordinator_epoch": coordinator_epoch,
            "api_version": version,
        }
        topic.note(partition, attempt, _done(error))
        self._take_ends(topic)

    def _delete_records(self, topic: Topic, step: Step) -> None:
        partition = step.get("partition", 0)
        offset, end = step["offset"], topic.ends[partition]
        before = end if offset == -1 else int(end * offset) if isinstance(offset, float) else offset
        error = topic.connection.delete_records(topic.name, partition, before)
        topic.note(partition, {"op": "delete_records", "before_offset": before}, _done(error))

    def _sleep(self, topic: Topic, step: Step) -> None:
        time.sleep(step["ms"] / 1000)
        topic.note(0, {"op": "wait", "ms": step["ms"]}, {"outcome": "ok"})
        self._take_ends(topic)

    def _describe(self, topic: Topic, step: Step) -> None:
        partition = step.get("partition", 0)
        topic.note(partition, {"op": "describe"}, self._described_log(topic.connection, topic.name, partition))

    def _describe_offsets(self, topic: Topic, step: Step) -> None:
        answer = self._described_log(topic.connection, OFFSETS_TOPIC, 0)
        topic.note(0, {**_in_offsets(topic), "op": "describe"}, answer)

    def _described_log(self, connection: Connection, name: str, partition: int) -> Step:
        start = connection.offset(name, EARLIEST, partition)[1]
        fetched = connection.fetch(name, partition, start)
        answer: Step = {
            "outcome": "ok",
            "high_watermark": fetched.high_watermark,
            "log_start_offset": start,
            "last_stable_offset": fetched.last_stable_offset,
        }
        if len(self.broker.segments(name, partition)) == 1:  # a fetch lists what the segments it reads know
            answer["aborted"] = fetched.aborted
        if DESCRIBE_PRODUCERS in self._versions:
            answer["producers"] = connection.describe_producers(name, partition)
        return answer

    def _nothing(self, topic: Topic, step: Step) -> None:
        """A step that asks what no attempt states."""

    def _wait_cleaned(self, topic: Topic, step: Step) -> None:
        """Wait until the cleaner has rewritten the first segment, or until it does not."""
        before = [path.stat().st_size for path in self.broker.segments(topic.name, 0)[:1]]
        self._until(
            lambda: [path.stat().st_size for path in self.broker.segments(topic.name, 0)[:1]],
            lambda sizes: sizes != before,
            step["max_ms"] / 1000,
        )

    def _wait_head(self, topic: Topic, step: Step) -> None:
        """Wait until the first segment is deleted."""
        self._until(
            lambda: self.broker.segments(topic.name, 0)[0].stem,
            lambda stem: int(stem) > 0,
            step["max_ms"] / 1000,
        )

    def _take_ends(self, topic: Topic) -> None:
        for partition in topic.partitions:
            _, topic.ends[partition] = topic.connection.offset(topic.name, LATEST, partition)

    def _answered(
        self, topic: Topic, partition: int, attempt: Step, ask: Callable[[], tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        """What a coordinator says in the end; None, and the line is noted, where it hangs up."""
        try:
            return self._when_free(ask)
        except ConnectionClosedError:
            topic.note(partition, attempt, {"outcome": "connection-closed"})
            return None

    def _when_free(self, ask: Callable[[], tuple[int, ...]]) -> tuple[int, ...]:
        answer: tuple[int, ...] = self._until(ask, lambda answer: answer[0] not in BUSY, BUSY_SECONDS)
        return answer

    @staticmethod
    def _until(ask: Callable[[], Any], done: Callable[[Any], bool], seconds: float = READY_SECONDS) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            answer = ask()
            if done(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)


def _owner(transactional_id: str, producer: tuple[int, int]) -> Step:
    return {"transactional_id": transactional_id, "producer_id": producer[0], "producer_epoch": producer[1]}


def _in_offsets(topic: Topic) -> Step:
    """Where a line of a scenario belongs that is not about its own topic."""
    return {"topic": OFFSETS_TOPIC, "scenario": topic.name}


def _all_in(errors: tuple[int, ...], produced: dict[int, Appended]) -> bool:
    return all(answer.error in errors for answer in produced.values())


def _done(error: int) -> Step:
    return {"outcome": "rejected" if error else "ok", "error": name_of(error), "error_code": error}
