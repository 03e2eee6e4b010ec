"""Counts of what was reconstructed and what was not."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct, field

from kaudit.audits.coordinator.transaction_state_reader import TRANSACTION_STATE, CoordinatorReader
from kaudit.audits.log_events.placement import Certainty
from kaudit.broker.attempts import Attempt
from kaudit.broker.broker import Broker
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.coordinator import TransactionStatus
from kaudit.source.layout import PartitionDirectory


class LeftOut(StrEnum):
    """Why no attempt is made of a refusal, as the end of a sentence about several."""

    NO_PRODUCER_ID = "whose lines name no producer id"
    NO_PARTITION = "whose lines name no partition"
    LOST = "at offsets that a later leader does not have"
    CONTRADICTING = "without a cause in the batches that are left"
    OF_CLIENTS = "that client logs mention: the brokers' lines and batches say more"


class Account(Struct):
    """Counts of one run."""

    written: Counter[str] = field(default_factory=Counter)
    """Lines by op and what happened: `produce appended`."""
    placed: Counter[Certainty] = field(default_factory=Counter)
    """Refused attempts by what their place follows from."""
    named: int = 0
    """Refused attempts whose line names no producer id: they are the one's that wrote last with an epoch that fits."""
    found_on_disk: int = 0
    """Batches that the broker's rules do not accept after what is left of the log."""
    left_out: dict[LeftOut, Counter[LogEventKind]] = field(default_factory=dict)
    """Refusals of which no attempt is made."""
    examples: dict[LeftOut, list[str]] = field(default_factory=dict)
    """The places of the first of them."""
    other_partitions: set[str] = field(default_factory=set)
    """Partitions that the logs speak of and that are not read: no input holds them, or they were not asked for."""
    unplaced_restarts: int = 0
    """Restarts and elections whose time cannot be held against the batches'."""
    initialisations: int = 0
    """Records that gave out a producer id or epoch otherwise than the coordinator's rules do after what is left."""
    damages: int = 0
    unreadable: list[str] = field(default_factory=list)
    transactional_ids: int = 0
    """Producer ids whose transactional id is not known."""
    impossible: int = 0
    """Batches with offsets or counts that no attempt can have."""
    control_batches: int = 0
    """Control batches whose record was cleaned away or is not a transaction marker."""

    def leave_out(self, event: LogEvent, why: LeftOut) -> None:
        """Count a refusal of which no attempt is made."""
        self.left_out.setdefault(why, Counter())[event.event] += 1
        places = self.examples.setdefault(why, [])
        if len(places) < _LISTED:
            places.append(f"{event.path}:{event.line}")

    def notes(self) -> Iterator[str]:
        """Yield what was left out, and what was taken for granted, one sentence each."""
        yield from self._refusals()
        for number, one, many, what in (
            (
                self.found_on_disk,
                "batch is",
                "batches are",
                "written as found on disk after a restart: the rules accept no such batch after what is left of the log",
            ),
            (
                self.named,
                "refusal is",
                "refusals are",
                "of a producer id that their lines do not name: the one that wrote last of those whose epoch fits",
            ),
            (
                self.transactional_ids,
                "transactional id is",
                "transactional ids are",
                "made up as producer-ID: neither __transaction_state nor a log names it",
            ),
            (
                self.unplaced_restarts,
                "restart is",
                "restarts are",
                "left out: their place among the batches is unknown",
            ),
            (
                self.initialisations,
                "InitProducerId is",
                "InitProducerId are",
                "left out: the producer id or epoch does not follow from the requests before",
            ),
            (self.impossible, "batch is", "batches are", "left out, with offsets or counts that no attempt can have"),
            (self.control_batches, "control batch is", "control batches are", "left out, without a readable record"),
            (self.damages, "damaged range is", "damaged ranges are", "left out"),
        ):
            if number:
                yield f"{number:,} {one if number == 1 else many} {what}"

    def problems(self) -> Iterator[str]:
        """Yield what could not be read, one line each."""
        for problem in self.unreadable[:_LISTED]:
            yield f"not read: {problem}"
        if len(self.unreadable) > _LISTED:
            yield f"not read: {len(self.unreadable) - _LISTED:,} more"

    def _refusals(self) -> Iterator[str]:
        for why in LeftOut:
            if counts := self.left_out.get(why):
                kinds = ", ".join(f"{number} {kind.value}" for kind, number in sorted(counts.items()))
                places = ", ".join(self.examples[why]) + (", ..." if counts.total() > _LISTED else "")
                yield f"left out: {_count(counts.total())} {why.value} ({kinds}): {places}"
        if self.other_partitions:
            names = sorted(self.other_partitions)
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"left out: refusals in partitions that are not read: {', '.join(names[:_LISTED])}{more}"


def _count(number: int) -> str:
    return f"{number:,} refusal{'' if number == 1 else 's'}"


_LISTED = 3


class Initialisation(Struct, frozen=True, order=True):
    """A transactional id got a producer id or epoch: a record of __transaction_state says it, or a coordinator's line."""

    at: int
    partition: int
    place: int
    """The record's offset, or the number of the line."""
    transactional_id: str
    producer_id: int
    producer_epoch: int
    source: str
    timeout_ms: int | None = None


class KnownTransactions(Struct):
    """Transactional ids by producer id, and how they were given out."""

    ids: dict[int, str] = field(default_factory=dict)
    initialisations: list[Initialisation] = field(default_factory=list)

    def read(self, directories: Iterable[PartitionDirectory], reader: CoordinatorReader) -> None:
        """Take the records of partitions of __transaction_state."""
        for directory in directories:
            for offset, _, record in reader.records(directory):
                value = record.value
                if value is None:
                    continue
                self.ids[value.producer_id] = record.transactional_id
                if value.status is TransactionStatus.EMPTY:
                    found = Initialisation(
                        at=value.last_update_timestamp,
                        partition=directory.partition,
                        place=offset,
                        transactional_id=record.transactional_id,
                        producer_id=value.producer_id,
                        producer_epoch=value.producer_epoch,
                        source=f"{directory.directory}@offset {offset}",
                        timeout_ms=value.timeout_ms,
                    )
                    self.initialisations.append(found)

    def hear(self, events: Iterable[LogEvent], *, coordinators_read: bool) -> None:
        """Take the transactional ids that logs name; how they were given out, unless __transaction_state was read for that."""
        for event in events:
            if event.event is not LogEventKind.PRODUCER_ID_ASSIGNED:
                continue
            name, producer_id, epoch = event.transactional_id, event.producer_id, event.producer_epoch
            if name is None or producer_id is None:
                continue
            self.ids.setdefault(producer_id, name)
            if coordinators_read or event.origin != "server" or epoch is None or event.timestamp_ms is None:
                continue
            found = Initialisation(
                at=event.timestamp_ms,
                partition=event.partition or 0,
                place=event.line,
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                source=f"{event.path}:{event.line}",
            )
            self.initialisations.append(found)

    def lines(self, broker: Broker, account: Account) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield an init_producer_id line for each initialisation that the coordinator's rules repeat, by its time."""
        for one in sorted(self.initialisations):
            line = {
                "op": "init_producer_id",
                "topic": TRANSACTION_STATE,
                "partition": one.partition,
                "at": one.at,
                "transactional_id": one.transactional_id,
                "granted_producer_id": one.producer_id,
            }
            line |= {"assumed": ["timeout_ms"]} if one.timeout_ms is None else {"timeout_ms": one.timeout_ms}
            answer = broker.answer(msgspec.convert(line, Attempt)).fields
            given = (answer.get("producer_id"), answer.get("producer_epoch"))
            if given != (one.producer_id, one.producer_epoch):
                account.initialisations += 1
                continue
            account.written["init_producer_id ok"] += 1
            yield one.at, line | {"recorded": "ok", "source": one.source}
