"""Plays scenarios against one broker and keeps what was asked and answered.

Scenarios are played topic by topic up to a restart of the broker; then all that wait for a restart of that kind get it
together. Coordinator requests are repeated while the coordinator is busy: the answer is the one a client ends up with.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kaudit.broker.errors import KafkaError
from tests.conformance.recorder.batches import Sent, raw
from tests.conformance.recorder.jvm import Broker
from tests.conformance.recorder.protocol import (
    ADD_PARTITIONS,
    DESCRIBE_PRODUCERS,
    EARLIEST,
    END_TXN,
    INIT_PRODUCER_ID,
    LATEST,
    PRODUCE,
    WRITE_MARKERS,
    Appended,
    Connection,
    ConnectionClosedError,
    produce_body,
    read_produced,
)

Step = dict[str, Any]
BUSY = (14, 15, 16, 51)
NOT_READY = (3, 5, 6, 38)
READY_SECONDS = 20
BUSY_SECONDS = 2.5
MARKERS_SECONDS = 0.3
NO_ANSWER_SECONDS = 0.5
KEPT_HEX_BYTES = 20_000
NAMES = {-1: "UNKNOWN_SERVER_ERROR", 0: "NONE"}
PLAIN_PRODUCE = 8
LONGEST_TIMEOUT_MS = 2**31 - 1
TRANSACTION_TIMEOUT_MS = 600_000
_LAST_ADD_OF_CLIENTS = 3
"""AddPartitionsToTxn from version 4 on is for brokers."""
_FIRST_INIT_WITH_PRODUCER = 3
"""InitProducerId takes the caller's producer id and epoch from here on (KIP-360)."""


def name_of(code: int) -> str:
    """Kafka's name of an error code."""
    try:
        return KafkaError(code).name
    except ValueError:
        return NAMES.get(code, f"ERROR_{code}")


def _clock() -> int:
    return int(time.time() * 1000)


class Topic:
    """One scenario's topic: its lines, the producers it names."""

    def __init__(self, scenario: Step) -> None:
        self.name: str = scenario["name"]
        self.scenario = scenario
        self.lines: list[tuple[Step, Step]] = []
        self.producers: dict[str, tuple[int, int]] = {}
        self._newest = (-1, -1)
        self.done = False
        self.end = 0
        """The log's end."""
        self.answered_end = 0
        """The end of what somebody was told is written."""

    def note(self, attempt: Step, answer: Step) -> None:
        """Keep a line; `at` is the clock when it was answered, unless the attempt says when it was sent."""
        self.lines.append(({"topic": self.name, "partition": 0, "at": _clock(), **attempt}, answer))

    def name_producer(self, name: str, granted: tuple[int, int] | None) -> None:
        """Let later steps name what was granted, or what there was before, where nothing was."""
        self._newest = self._newest if granted is None else granted
        self.producers[name] = self._newest

    def producer(self, step: Step) -> tuple[int, int]:
        """(producer id, epoch) a step names, by name or number."""
        producer_id, epoch = step["pid"], step["epoch"]
        if isinstance(producer_id, str):
            producer_id = self.producers[producer_id][0]
        if isinstance(epoch, str):
            name, _, more = epoch.partition("+")
            epoch = self.producers[name][1] + int(more or 0)
        return producer_id, epoch


class Recorder:
    """Plays scenarios against `broker`."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._connection = Connection(broker.port)
        self._versions: dict[int, tuple[int, int]] = {}
        self._steps: dict[str, Callable[[Topic, Step], None]] = {
            "produce": self._produce,
            "produce_raw": self._produce_raw,
            "pipeline": self._pipeline,
            "init_pid": self._init_producer_id,
            "add_partitions": self._add_partitions,
            "end_txn": self._end_txn,
            "write_marker": self._write_marker,
            "delete_records": self._delete_records,
            "sleep": self._sleep,
            "check_txn": self._describe,
            "list_offsets": self._nothing,
            "wait_cleaned": self._wait_cleaned,
            "wait_head": self._wait_head,
        }

    def record(self, scenarios: list[Step]) -> Iterator[tuple[Step, Step]]:
        """Play all scenarios; yield attempts and answers, scenario by scenario."""
        self.broker.start()
        self._versions = self._connection.api_versions()
        topics = [Topic(scenario) for scenario in scenarios if self._supported(scenario)]
        waiting = {topic.name: list(topic.scenario["steps"]) for topic in topics}
        self._await_coordinator()
        for topic in topics:
            self._create(topic)
        early = [topic for topic in topics if _first_restart(waiting[topic.name]) != "kill9"]
        for begun in (early, topics):
            for topic in begun:
                self._play(topic, waiting[topic.name])
            while any(waiting[topic.name] for topic in begun):
                kinds = {_restart_due(waiting[topic.name]) for topic in begun}
                kind = "clean" if "clean" in kinds else "kill9"
                held = [topic for topic in begun if _restart_due(waiting[topic.name]) == kind]
                if begun is early and kind == "kill9":
                    break
                self._restart(kind, [(topic, waiting[topic.name].pop(0)) for topic in held])
                for topic in held:
                    self._play(topic, waiting[topic.name])
        for topic in topics:
            yield from topic.lines

    def _supported(self, scenario: Step) -> bool:
        needed = (scenario.get("min_api") or {}).items()
        return all(self._versions.get(int(api), (0, -1))[1] >= version for api, version in needed)

    def _await_coordinator(self) -> None:
        self._until(lambda: self._connection.find_coordinator("warm"), lambda error: error == 0)
        self._until(
            lambda: self._connection.init_producer_id(0, "warm-up", TRANSACTION_TIMEOUT_MS, (-1, -1))[0],
            lambda error: error == 0,
        )

    def _create(self, topic: Topic) -> None:
        config = topic.scenario.get("topic_config") or {}
        error = self._until(
            lambda: self._connection.create_topic(topic.name, config), lambda code: code not in NOT_READY
        )
        assert error == 0, (topic.name, error)
        self._ready(topic)
        if config:
            topic.note({"op": "topic", "config": config}, {"outcome": "ok"})

    def _ready(self, topic: Topic) -> None:
        self._until(lambda: self._connection.offset(topic.name, LATEST)[0], lambda code: code == 0)

    @staticmethod
    def _until(ask: Callable[[], Any], done: Callable[[Any], bool], seconds: float = READY_SECONDS) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            answer = ask()
            if done(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def _play(self, topic: Topic, steps: list[Step]) -> None:
        while steps and steps[0]["op"] != "barrier":
            step = steps.pop(0)
            try:
                self._steps[step["op"]](topic, step)
            except ConnectionClosedError:
                sys.stderr.write(f"{topic.name}: no answer to {step}, left out\n")
        if not steps and not topic.done:
            self._describe(topic, {})
            topic.done = True

    # -- steps -------------------------------------------------------------------------------------------------------
    def _version(self, api: int, wanted: int) -> int:
        low, high = self._versions[api]
        return min(max(wanted, low), high)

    def _described(self, topic: Topic, step: Step) -> tuple[Step, bytes]:
        """Return the attempt of a produce step and its bytes."""
        producer_id, epoch = topic.producer(step)
        now = _clock()
        timestamp = now - step.get("ts_ago", 0)
        data = Sent(producer_id, epoch, step["seq"], step["count"], timestamp, step).encode()
        attempt = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "base_sequence": step["seq"],
            "record_count": step["count"],
            "is_transactional": bool(step.get("txn")),
            "transactional_id": step.get("txn_id"),
            "acks": step.get("acks", -1),
            "api_version": self._version(PRODUCE, step.get("version", PLAIN_PRODUCE)),
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
        self._ask_produce(topic, attempt, data)

    def _produce_raw(self, topic: Topic, step: Step) -> None:
        sent = Sent(step.get("pid", -1), step.get("epoch", -1), step.get("seq", -1), 2, _clock(), {})
        data = raw(step["kind"], sent)
        version = self._version(PRODUCE, PLAIN_PRODUCE)
        self._ask_produce(topic, {"acks": -1, "api_version": version, "records_hex": data.hex()}, data)

    def _ask_produce(self, topic: Topic, attempt: Step, data: bytes) -> None:
        version, acks = attempt["api_version"], attempt["acks"]
        body = produce_body(version, attempt.get("transactional_id"), acks, topic.name, data)
        note = {"op": "produce", **attempt}
        try:
            self._connection.send(PRODUCE, version, body)
            if acks == 0:
                self._connection.hung_up(NO_ANSWER_SECONDS)
                topic.note(note, {"outcome": "no-response"})
                _, topic.end = self._connection.offset(topic.name, LATEST)
                return
            produced = read_produced(version, self._connection.receive(PRODUCE, version))
            if produced.error in BUSY:
                produced = self._until(
                    lambda: read_produced(version, self._connection.ask(PRODUCE, version, body)),
                    lambda answer: answer.error not in BUSY,
                    BUSY_SECONDS,
                )
        except ConnectionClosedError:
            topic.note(note, {"outcome": "connection-closed"})
            return
        topic.note(note, self._appended(topic, produced))

    def _appended(self, topic: Topic, produced: Appended) -> Step:
        """Word an answer without an error: written anew if the log has grown, or if nobody was told of it before."""
        if produced.error:
            return {"outcome": "rejected", "error": name_of(produced.error), "error_code": produced.error}
        _, end = self._connection.offset(topic.name, LATEST)
        is_new = end > topic.end or produced.base_offset == topic.answered_end
        topic.end = end
        if is_new:
            topic.answered_end = end
        outcome = "appended" if is_new else "duplicate"
        return {"outcome": outcome, "error": "NONE", "error_code": 0, "base_offset": produced.base_offset}

    def _pipeline(self, topic: Topic, step: Step) -> None:
        """Send all items before the first answer is read; what is new shows in offsets that ascend."""
        sent = [self._described(topic, item) for item in step["items"]]
        for attempt, data in sent:
            version = attempt["api_version"]
            body = produce_body(version, attempt["transactional_id"], attempt["acks"], topic.name, data)
            self._connection.send(PRODUCE, version, body)
        end = topic.answered_end
        for attempt, _ in sent:
            version = attempt["api_version"]
            produced = read_produced(version, self._connection.receive(PRODUCE, version))
            answer: Step = {"outcome": "rejected", "error": name_of(produced.error), "error_code": produced.error}
            if not produced.error:
                answer["outcome"] = "duplicate" if produced.base_offset < end else "appended"
                answer["base_offset"] = produced.base_offset
                end = max(end, produced.base_offset + attempt["record_count"])
            topic.note({"op": "produce", **attempt}, answer)
        topic.end = topic.answered_end = end

    def _init_producer_id(self, topic: Topic, step: Step) -> None:
        version = self._version(INIT_PRODUCER_ID, step.get("version", 0))
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
        error, producer_id, epoch = self._when_free(
            lambda: self._connection.init_producer_id(version, transactional_id, timeout_ms, held)
        )
        if not error:
            attempt["granted_producer_id"] = producer_id
        topic.name_producer(step["as"], None if error else (producer_id, epoch))
        topic.note(attempt, {**_done(error), "producer_id": producer_id, "producer_epoch": epoch})

    def _add_partitions(self, topic: Topic, step: Step) -> None:
        producer = topic.producer(step)
        transactional_id = step["txn_id"]
        version = self._version(ADD_PARTITIONS, min(step.get("version", 0), _LAST_ADD_OF_CLIENTS))
        (error,) = self._when_free(
            lambda: (self._connection.add_partitions(version, transactional_id, producer, topic.name),)
        )
        attempt = {"op": "add_partitions", **_owner(transactional_id, producer), "api_version": version}
        topic.note(attempt, _done(error))

    def _end_txn(self, topic: Topic, step: Step) -> None:
        version = self._version(END_TXN, step.get("version", 0))
        producer, commit = topic.producer(step), step["commit"]
        transactional_id = step["txn_id"]
        error, producer_id, epoch = self._when_free(
            lambda: self._connection.end_txn(version, transactional_id, producer, commit=commit)
        )
        answer = _done(error)
        if not error and producer_id >= 0:
            answer |= {"producer_id": producer_id, "producer_epoch": epoch}
        if "as" in step:
            topic.name_producer(step["as"], None if producer_id < 0 else (producer_id, epoch))
        attempt = {"op": "end_txn", **_owner(transactional_id, producer), "commit": commit, "api_version": version}
        if producer_id not in (-1, producer[0]):
            attempt["granted_producer_id"] = producer_id
        topic.note(attempt, answer)
        time.sleep(MARKERS_SECONDS)
        self._take_end(topic)

    def _write_marker(self, topic: Topic, step: Step) -> None:
        version = self._version(WRITE_MARKERS, step.get("version", 1))
        producer, commit, coordinator_epoch = topic.producer(step), step["commit"], step["coord_epoch"]
        error = self._connection.write_marker(
            version, producer, topic.name, commit=commit, coordinator_epoch=coordinator_epoch
        )
        attempt = {
            "op": "write_marker",
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "commit": commit,
            "coordinator_epoch": coordinator_epoch,
            "api_version": version,
        }
        topic.note(attempt, _done(error))
        self._take_end(topic)

    def _delete_records(self, topic: Topic, step: Step) -> None:
        before = topic.end if step["offset"] < 0 else step["offset"]
        error = self._connection.delete_records(topic.name, before)
        topic.note({"op": "delete_records", "before_offset": before}, _done(error))

    def _sleep(self, topic: Topic, step: Step) -> None:
        time.sleep(step["ms"] / 1000)
        topic.note({"op": "wait", "ms": step["ms"]}, {"outcome": "ok"})
        self._take_end(topic)

    def _describe(self, topic: Topic, _: Step) -> None:
        start = self._connection.offset(topic.name, EARLIEST)[1]
        fetched = self._connection.fetch(topic.name, start)
        answer = {
            "outcome": "ok",
            "high_watermark": fetched.high_watermark,
            "log_start_offset": start,
            "last_stable_offset": fetched.last_stable_offset,
            "aborted": fetched.aborted,
        }
        if DESCRIBE_PRODUCERS in self._versions:
            answer["producers"] = self._connection.describe_producers(topic.name)
        topic.note({"op": "describe"}, answer)

    def _nothing(self, topic: Topic, step: Step) -> None:
        """A step that asks what no attempt tells of."""

    def _wait_cleaned(self, topic: Topic, step: Step) -> None:
        """Wait until the cleaner has rewritten the first segment, or until it does not."""
        before = [path.stat().st_size for path in self.broker.segments(topic.name)[:1]]
        self._until(
            lambda: [path.stat().st_size for path in self.broker.segments(topic.name)[:1]],
            lambda sizes: sizes != before,
            step["max_ms"] / 1000,
        )

    def _wait_head(self, topic: Topic, step: Step) -> None:
        """Wait until the first segment is deleted."""
        self._until(
            lambda: self.broker.segments(topic.name)[0].stem,
            lambda stem: int(stem) > 0,
            step["max_ms"] / 1000,
        )

    def _take_end(self, topic: Topic) -> None:
        _, topic.end = self._connection.offset(topic.name, LATEST)
        topic.answered_end = topic.end

    def _when_free(self, ask: Callable[[], tuple[int, ...]]) -> tuple[int, ...]:
        answer: tuple[int, ...] = self._until(ask, lambda answer: answer[0] not in BUSY, BUSY_SECONDS)
        return answer

    # -- restarts ----------------------------------------------------------------------------------------------------
    def _restart(self, kind: str, held: list[tuple[Topic, Step]]) -> None:
        """Stop the broker, do to the topics' files what their steps say, start it again."""
        self._connection.close()
        stopped_at = _clock()
        self.broker.stop(clean=kind == "clean")
        attempts = [{"at": stopped_at, **self._tamper(topic, step)} for topic, step in held]
        self.broker.start()
        self._await_coordinator()
        for (topic, _), attempt in zip(held, attempts, strict=True):
            self._ready(topic)
            answer: Step = {"outcome": "ok"}
            if DESCRIBE_PRODUCERS in self._versions:
                answer["producers"] = self._connection.describe_producers(topic.name)
            topic.note({"op": "restart", "clean": kind == "clean", **attempt}, answer)
            self._take_end(topic)

    def _tamper(self, topic: Topic, step: Step) -> Step:
        """Do to the files what the step says; return how an attempt tells of it."""
        tamper = step.get("tamper", {})
        segment = self.broker.segments(topic.name)[-1]
        snapshots = self.broker.snapshots(topic.name)
        if "inject" in step:
            return {"found_on_disk": [self._inject(topic, segment, part) for part in step["inject"]]}
        if "truncate_batches" in tamper:
            positions = _positions(segment)
            position, offset = positions[-tamper["truncate_batches"]]
            with segment.open("r+b") as log:
                log.truncate(position)
            return {"tamper": {"truncated_to_offset": offset}}
        if tamper.get("corrupt_last"):
            position, offset = _positions(segment)[-1]
            data = bytearray(segment.read_bytes())
            data[position + 70] ^= 1
            segment.write_bytes(data)
            return {"tamper": {"corrupted_batch_offset": offset}}
        if tamper.get("delete_snapshots"):
            for path in snapshots:
                path.unlink()
            return {"tamper": {"deleted": [path.name for path in snapshots]}}
        if tamper.get("corrupt_snapshots"):
            for path in snapshots:
                data = bytearray(path.read_bytes())
                data[-1] ^= 0xFF
                path.write_bytes(data)
            return {"tamper": {"corrupted": [path.name for path in snapshots]}}
        return {}

    def _inject(self, topic: Topic, segment: Path, step: Step) -> Step:
        """Put a batch behind the log's end, as if it had come from elsewhere."""
        now = _clock()
        producer_id, epoch = topic.producer(step)
        more = {**step, "base_offset": topic.end, "ple": 0}
        data = Sent(producer_id, epoch, step["seq"], step["count"], now, more).encode()
        end = _end_of(segment)
        with segment.open("r+b") as log:
            log.truncate(end)
            log.seek(end)
            log.write(data)
        found = {
            "base_offset": topic.end,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "base_sequence": step["seq"],
            "record_count": step["count"],
            **({"is_transactional": True} if step.get("txn") else {}),
        }
        topic.end += step["count"]
        return found


def _positions(segment: Path) -> list[tuple[int, int]]:
    """(position, base offset) of every batch of a segment."""
    data = segment.read_bytes()
    at, found = 0, []
    while at + 12 <= len(data):
        offset, size = int.from_bytes(data[at : at + 8], "big"), int.from_bytes(data[at + 8 : at + 12], "big")
        if size == 0:
            break
        found.append((at, offset))
        at += 12 + size
    return found


def _end_of(segment: Path) -> int:
    positions = _positions(segment)
    if not positions:
        return 0
    at, _ = positions[-1]
    return at + 12 + int.from_bytes(segment.read_bytes()[at + 8 : at + 12], "big")


def _owner(transactional_id: str, producer: tuple[int, int]) -> Step:
    return {"transactional_id": transactional_id, "producer_id": producer[0], "producer_epoch": producer[1]}


def _done(error: int) -> Step:
    return {"outcome": "rejected" if error else "ok", "error": name_of(error), "error_code": error}


def _restart_due(steps: list[Step]) -> str | None:
    return steps[0]["kind"] if steps and steps[0]["op"] == "barrier" else None


def _first_restart(steps: list[Step]) -> str | None:
    return next((step["kind"] for step in steps if step["op"] == "barrier"), None)


def write(lines: list[tuple[Step, Step]], broker: Step, directory: Path, name: str) -> None:
    """Write `NAME.attempts.jsonl` and `NAME.answers.jsonl`, numbered from the broker's line on."""
    numbered = [({"op": "broker", **broker}, {"op": "broker"}), *lines]
    for place, kind in ((0, "attempts"), (1, "answers")):
        with (directory / f"{name}.{kind}.jsonl").open("w") as out:
            for index, pair in enumerate(numbered):
                out.write(json.dumps({"index": index, **pair[place]}, separators=(",", ":")) + "\n")
