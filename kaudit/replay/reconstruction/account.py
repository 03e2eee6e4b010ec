"""Counts of what was reconstructed and what was not."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from kaudit.audits.coordinator.transaction_state_reader import TRANSACTION_STATE, CoordinatorReader
from kaudit.audits.log_events.placement import Certainty
from kaudit.broker.attempts import Attempt
from kaudit.broker.broker import Broker
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.coordinator import TransactionRecord, TransactionStatus
from kaudit.source.layout import PartitionDirectory


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
    without_producer_id: Counter[LogEventKind] = field(default_factory=Counter)
    """Refusals whose line names no producer id or no partition: no attempt can be made of them."""
    contradicting: Counter[LogEventKind] = field(default_factory=Counter)
    """Refusals that do not follow from the log by the broker's rules."""
    lost: Counter[LogEventKind] = field(default_factory=Counter)
    """Refusals among offsets that a later leader does not have."""
    of_clients: int = 0
    """Refusals that only clients' logs report, without a sequence."""
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

    def notes(self) -> Iterator[str]:
        """Yield what could not be reconstructed, and what was taken for granted, one sentence each."""
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
        for problem in self.unreadable[:_LISTED]:
            yield f"not read: {problem}"
        if len(self.unreadable) > _LISTED:
            yield f"not read: {len(self.unreadable) - _LISTED:,} more"

    def _refusals(self) -> Iterator[str]:
        for counts, why in (
            (self.without_producer_id, "whose lines name no producer id"),
            (self.lost, "at offsets that a later leader does not have"),
            (self.contradicting, "without a cause in the batches that are left"),
        ):
            if counts:
                kinds = ", ".join(f"{number} {kind.value}" for kind, number in sorted(counts.items()))
                yield f"left out: {_count(counts.total())} {why} ({kinds})"
        if self.of_clients:
            yield f"left out: {_count(self.of_clients)} that client logs mention: they state no sequences"
        if self.other_partitions:
            names = sorted(self.other_partitions)
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"left out: refusals in partitions that are not read: {', '.join(names[:_LISTED])}{more}"


def _count(number: int) -> str:
    return f"{number:,} refusal{'' if number == 1 else 's'}"


_LISTED = 3


class Initialisation(Struct, frozen=True):
    """A record of __transaction_state with which a transactional id got a producer id or epoch."""

    partition: int
    offset: int
    path: str
    record: TransactionRecord


class KnownTransactions(Struct):
    """Transactional ids by producer id, and the records that gave them out, by transactional id."""

    ids: dict[int, str] = field(default_factory=dict)
    initialisations: list[Initialisation] = field(default_factory=list)

    def read(self, directories: Iterable[PartitionDirectory], reader: CoordinatorReader) -> None:
        """Take the records of partitions of __transaction_state."""
        for directory in directories:
            for offset, _, record in reader.records(directory):
                if record.value is None:
                    continue
                self.ids[record.value.producer_id] = record.transactional_id
                if record.value.status is TransactionStatus.EMPTY:
                    found = Initialisation(directory.partition, offset, directory.directory, record)
                    self.initialisations.append(found)

    def hear(self, events: Iterable[LogEvent]) -> None:
        """Take the transactional ids that logs name."""
        for event in events:
            known = event.transactional_id is not None and event.producer_id is not None
            if known and event.event is LogEventKind.PRODUCER_ID_ASSIGNED:
                assert event.transactional_id is not None
                assert event.producer_id is not None
                self.ids.setdefault(event.producer_id, event.transactional_id)

    @property
    def by_transactional_id(self) -> Mapping[str, Sequence[TransactionRecord]]:
        """The records that gave out producer ids."""
        found: dict[str, list[TransactionRecord]] = {}
        for one in self.initialisations:
            found.setdefault(one.record.transactional_id, []).append(one.record)
        return found

    def lines(self, broker: Broker, account: Account) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield an init_producer_id line for each record that the coordinator's rules repeat, by its time."""
        for one in sorted(self.initialisations, key=_when):
            value = one.record.value
            assert value is not None
            line = {
                "op": "init_producer_id",
                "topic": TRANSACTION_STATE,
                "partition": one.partition,
                "at": value.last_update_timestamp,
                "transactional_id": one.record.transactional_id,
                "timeout_ms": value.timeout_ms,
                "granted_producer_id": value.producer_id,
            }
            answer = broker.answer(msgspec.convert(line, Attempt)).fields
            given = (answer.get("producer_id"), answer.get("producer_epoch"))
            if given != (value.producer_id, value.producer_epoch):
                account.initialisations += 1
                continue
            account.written["init_producer_id ok"] += 1
            yield value.last_update_timestamp, line | {"recorded": "ok", "source": f"{one.path}@offset {one.offset}"}


def _when(one: Initialisation) -> tuple[int, int, int]:
    assert one.record.value is not None
    return one.record.value.last_update_timestamp, one.partition, one.offset
