"""An attempts file made of what a broker left: segments, __transaction_state and server logs."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kaudit.audits.coordinator.transaction_state_reader import CoordinatorReader
from kaudit.audits.log_events.broker_clocks import BrokerClock, broker_clocks
from kaudit.audits.log_events.placement import in_order
from kaudit.broker.attempts import ConfigureTopic, StartBroker
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from kaudit.broker.response import TopicPartition
from kaudit.model.application_logs import LogEvent
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.reading.chunk_plan import OpenSource
from kaudit.replay.reconstruction.account import Account, KnownTransactions, LeftOut
from kaudit.replay.reconstruction.broker_logs import BrokerLog, BrokerSettings, broker_logs
from kaudit.replay.reconstruction.log_rows import LogRows
from kaudit.replay.reconstruction.partition_lines import Around, PartitionLines, placed
from kaudit.replay.reconstruction.refusals import ERRORS, REFUSALS
from kaudit.replay.reconstruction.stated_attempts import StatedLines, followed_from
from kaudit.source.layout import PartitionDirectory

Line = dict[str, Any]
_VERIFIES = "transaction.partition.verification.enable"


class Evidence(Struct):
    """What attempts are made of: one replica of each partition, `coordinator` those of __transaction_state; events of logs.

    `internal` are replicas of internal topics, by which the logs' clocks are compared; `stated` the refusals in partitions of which
    no bytes are given.
    """

    partitions: Sequence[PartitionDirectory]
    coordinator: Sequence[PartitionDirectory]
    events: Sequence[LogEvent]
    settings: BrokerSettings
    version: str
    internal: Sequence[PartitionDirectory] = ()
    stated: Mapping[TopicPartition, Sequence[LogEvent]] = {}


class Reconstruction:
    """Makes the lines; `account` and `logs`, with the clocks, are complete once they have been read."""

    def __init__(self, evidence: Evidence, open_source: OpenSource) -> None:
        self._evidence = evidence
        self._open = open_source
        self.account = Account()
        self.logs: list[BrokerLog] = broker_logs(event for event in evidence.events if event.origin == "server")
        self._transactions = KnownTransactions()
        self._clocks: Mapping[str, BrokerClock] = {}
        self._epochs: dict[TopicPartition, dict[int, set[int]]] = {}

    def lines(self) -> Iterator[Line]:
        """Yield the lines in order of time; those of a partition are in its order. Raises UnknownVersionError."""
        evidence, account = self._evidence, self.account
        reader = CoordinatorReader(self._open)
        self._transactions.read(evidence.coordinator, reader)
        account.unreadable += [*reader.unreadable, *(f"{entry.path}: {entry.reason}" for entry in reader.failed)]
        self._transactions.hear(evidence.events, coordinators_read=bool(evidence.coordinator))
        self._estimate_clocks()
        self._find_epochs()
        self._count_events()
        start = self._start()
        yield {"op": "broker", **start}
        topics = [topic for topic in self._topics() if self._is_read(start, topic)]
        yield from ({"op": "topic", **topic} for topic in topics)

        def begin() -> Broker:
            broker = Broker()
            broker.answer(msgspec.convert(start, StartBroker))
            for topic in topics:
                broker.answer(msgspec.convert(topic, ConfigureTopic))
            return broker

        for _, line in heapq.merge(*self._streams(begin), key=lambda timed: timed[0]):
            yield line

    def _streams(self, begin: Callable[[], Broker]) -> Iterator[Iterator[tuple[int, Line]]]:
        yield self._transactions.lines(begin(), self.account)
        for directory in self._evidence.partitions:
            yield self._partition(directory, begin())
        around = Around(self.logs, {}, self._transactions.ids, self.account)
        for key, events in self._evidence.stated.items():
            yield iter(StatedLines(key, followed_from(in_order(events), self._time_of), begin(), around))

    def _time_of(self, event: LogEvent) -> int | None:
        clock = self._clocks.get(event.path)
        return event.timestamp_ms if clock is None else clock.batch_time(event)

    def _partition(self, directory: PartitionDirectory, broker: Broker) -> Iterator[tuple[int, Line]]:
        rows = LogRows(directory, self._open)
        key = (directory.topic, directory.partition)
        around = Around(self.logs, self._epochs.get(key, {}), self._transactions.ids, self.account)
        yield from PartitionLines(key, placed(key, rows, self.logs), broker, around)
        self.account.damages += rows.damages
        self.account.unreadable += rows.unreadable

    def _start(self) -> Line:
        evidence = self._evidence
        config = dict(evidence.settings.config)
        assumed = []
        if profile_for(evidence.version).verifies_transactions and config.get(_VERIFIES) != "false":
            # transactions end with their markers here, so no coordinator could be asked
            config[_VERIFIES] = "false"
            assumed.append(f"config.{_VERIFIES}")
        line: Line = {"broker_version": evidence.version, "config": config}
        try:
            Broker().answer(msgspec.convert(line, StartBroker))
        except ValueError as error:
            self.account.unreadable.append(f"the broker's configuration in the server logs: expected {error}")
            line["config"] = {name: "false" for name in config if name == _VERIFIES}
        return line | ({"assumed": assumed} if assumed else {})

    def _is_read(self, start: Line, topic: Line) -> bool:
        """Whether a topic's configuration has the values that brokers take; what a log says need not."""
        broker = Broker()
        broker.answer(msgspec.convert(start, StartBroker))
        try:
            broker.answer(msgspec.convert(topic, ConfigureTopic))
        except ValueError as error:
            self.account.unreadable.append(
                f"configuration of topic {topic['topic']} in the server logs: expected {error}"
            )
            return False
        return True

    def _topics(self) -> Iterator[Line]:
        names = {directory.topic for directory in self._evidence.partitions}
        for topic, config in sorted(self._evidence.settings.topics.items()):
            if topic in names and config:
                yield {"topic": topic, "partition": 0, "config": config}

    def _estimate_clocks(self) -> None:
        """Compare the logs' clocks with the brokers' times in the bytes."""
        evidence = self._evidence
        replicas = [*evidence.partitions, *evidence.coordinator, *evidence.internal]
        clocks = broker_clocks(evidence.events, replicas, self._open)
        self._clocks = {path: clock for clock in clocks for path in clock.paths}
        for log in self.logs:
            log.clock = next((self._clocks[path] for path in log.paths if path in self._clocks), None)

    def _find_epochs(self) -> None:
        """Read the partitions that logs speak of once, for the epochs of their producers."""
        named: dict[tuple[str | None, int | None], list[LogEvent]] = {}
        for log in self.logs:
            for event in log.events:
                named.setdefault((event.topic, event.partition), []).append(event)
        for directory in self._evidence.partitions:
            events = named.get((directory.topic, directory.partition), [])
            epochs = {event.producer_id: set[int]() for event in events if event.producer_id is not None}
            if any(event.event in ERRORS and event.producer_id is None for event in events):
                for row in LogRows(directory, self._open):
                    if row.producer_id != NO_PRODUCER_ID:
                        epochs.setdefault(row.producer_id, set()).add(row.producer_epoch)
            self._epochs[directory.topic, directory.partition] = epochs

    def _count_events(self) -> None:
        there = {(directory.topic, directory.partition) for directory in self._evidence.partitions}
        for event in self._evidence.events:
            if event.event not in REFUSALS or (event.topic, event.partition) in self._evidence.stated:
                continue
            if event.topic is None or event.partition is None:
                self.account.leave_out(event, LeftOut.NO_PARTITION)
            elif (event.topic, event.partition) not in there:
                self.account.other_partitions.add(f"{event.topic}-{event.partition}")
            elif event.origin == "client":
                self.account.leave_out(event, LeftOut.OF_CLIENTS)
