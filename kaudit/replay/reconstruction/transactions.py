"""What __transaction_state says about producers: whose transactional id they had, and when it was given a producer id."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from kaudit.audits.coordinator.transaction_state_reader import TRANSACTION_STATE, CoordinatorReader
from kaudit.broker.attempts import Attempt
from kaudit.broker.broker import Broker
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.coordinator import TransactionRecord, TransactionStatus
from kaudit.replay.reconstruction.account import Account
from kaudit.source.layout import PartitionDirectory


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
        """Take what logs say of transactional ids."""
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
