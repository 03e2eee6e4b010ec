"""Reading __transaction_state: the newest state of the transactional ids that matter."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from heapq import nsmallest
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.deferred import Deferred
from kaudit.errors import UnreadableInputError
from kaudit.formats.errors import MissingContentError, WireError
from kaudit.formats.log.records import read_records
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.coordinator import (
    CoordinatorEntry,
    CoordinatorView,
    ExpiredTransactionalId,
    TransactionRecord,
    TransactionStatus,
    TransactionValue,
)
from kaudit.model.limits import PRODUCERS
from kaudit.model.transactions import IllegalTransition
from kaudit.reading.batch_content import data_of, whole_batches
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.listing import failure
from kaudit.source.text import SegmentText

if TYPE_CHECKING:
    from kaudit.audits.coordinator import applications
    from kaudit.broker.coordinator import transaction_metadata
    from kaudit.formats.internal_topics import transaction_state
else:
    applications = Deferred("kaudit.audits.coordinator.applications")
    transaction_metadata = Deferred("kaudit.broker.coordinator.transaction_metadata")
    transaction_state = Deferred("kaudit.formats.internal_topics.transaction_state")

TRANSACTION_STATE = "__transaction_state"
_MAX_BATCH = 64 << 20


class CoordinatorReader:
    """Reads the partitions of __transaction_state once, keeping the entries of chosen producer ids only."""

    def __init__(self, open_source: OpenSource) -> None:
        self._open = open_source
        self.has_flexible_value = False
        self.unreadable: list[str] = []
        """What cannot be decoded, and where."""
        self.failed: list[Unreadable] = []
        """Files that cannot be read."""
        self.history = DecisionHistory()
        self.expired = ExpiredIds()

    def view(self, directories: Sequence[PartitionDirectory], producer_ids: Iterable[int]) -> CoordinatorView:
        """Return what the coordinator says of `producer_ids`, from all replicas of its partitions given."""
        wanted = frozenset(producer_ids)
        partitions = {directory.partition for directory in directories}
        count = len(partitions)
        complete = bool(partitions) and partitions == set(range(count))
        entries: dict[int, CoordinatorEntry] = {}
        current: dict[str, CoordinatorEntry | None] = {}
        asked = applications.AskedProducers(wanted)
        tables = applications.Applications()
        newest = NO_TIMESTAMP
        for directory in directories:
            self.history.enter(directory)
            self.expired.enter(directory.partition)
            tables.enter(directory.partition)
            for offset, timestamp, record in self.records(directory):
                newest = max(newest, timestamp)
                asked.take(directory.partition, offset, timestamp, record)
                tables.take(record)
                self.history.take(offset, record)
                self.expired.take(offset, timestamp, record)
                if record.value is not None and record.value.version > 0:
                    self.has_flexible_value = True
                # with the wrong number of partitions ids would lie elsewhere than where their hash says
                complete = (
                    complete
                    and transaction_state.coordinator_partition(record.transactional_id, count) == directory.partition
                )
                self._take(current, record, offset, wanted, directory.log_dir)
        self.history.leave()
        self.expired.leave()
        for entry in current.values():
            if entry is not None:
                known = entries.get(entry.value.producer_id)
                if known is None or entry.value.last_update_timestamp >= known.value.last_update_timestamp:
                    entries[entry.value.producer_id] = entry
        complete = complete and not (self.unreadable or self.failed)
        return CoordinatorView(
            entries,
            present=bool(directories),
            complete=complete,
            newest_ms=newest,
            names=asked.names,
            applications=tables.of(asked.names.values()),
            connect_groups=tables.connect_groups,
            commits=asked.commits,
            begun=asked.begun,
        )

    def names(self, directories: Sequence[PartitionDirectory], wanted: Callable[[int], bool]) -> dict[int, str]:
        """Return the transactional id of each wanted producer id, also of those it has moved on from."""
        found: dict[int, str] = {}
        for directory in directories:
            for _, _, record in self.records(directory):
                if record.value is not None and wanted(record.value.producer_id):
                    found[record.value.producer_id] = record.transactional_id
        return found

    @staticmethod
    def _take(
        current: dict[str, CoordinatorEntry | None],
        record: TransactionRecord,
        offset: int,
        wanted: frozenset[int],
        log_dir: str,
    ) -> None:
        name = record.transactional_id
        if record.value is not None and record.value.producer_id in wanted:
            before = current.get(name)
            if before is None or record.value.last_update_timestamp >= before.value.last_update_timestamp:
                others = before.log_dirs if before is not None and before.value == record.value else frozenset()
                current[name] = CoordinatorEntry(name, record.value, offset, others | {log_dir})
        elif name in current:
            current[name] = None  # the id has moved to another producer id, or was removed

    def records(self, directory: PartitionDirectory) -> Iterator[tuple[int, int, TransactionRecord]]:
        """Yield a partition's records with their offsets and times (ms, -1 for none), in order; what cannot be read is listed."""
        for segment in directory.segments:
            try:
                yield from self._segment_records(directory, segment)
            except OSError as error:
                self.failed.append(Unreadable(segment.path, failure(error)))
                self.history.lose()

    def _segment_records(
        self, directory: PartitionDirectory, segment: SegmentFile
    ) -> Iterator[tuple[int, int, TransactionRecord]]:
        with closing(self._open(segment)) as source:
            if isinstance(source, SegmentText):
                yield from self._printed(source, segment)
                return
            for piece in stream_batches(
                source, ByteRange(0, segment.size, segment.size), expected_offset=segment.base_offset
            ):
                if piece.damages:
                    self.unreadable.append(f"{directory.topic}-{directory.partition}: {piece.damages[0].detail}")
                batches = data_of(piece.batches, _MAX_BATCH)
                for data in whole_batches(batches["position"], batches["size"], source):
                    yield from self._decode(data, directory)

    def _printed(self, source: SegmentText, segment: SegmentFile) -> Iterator[tuple[int, int, TransactionRecord]]:
        from kaudit.reading.dump_text_content import printed_transactions  # noqa: PLC0415 - few logs are texts

        try:
            yield from printed_transactions(source)
        except (MissingContentError, WireError) as error:
            self.unreadable.append(f"{segment.path}: {error}; --transaction-log-decoder prints the states")

    def _decode(self, data: memoryview, directory: PartitionDirectory) -> Iterator[tuple[int, int, TransactionRecord]]:
        try:
            for record in read_records(data):
                yield (
                    record.offset,
                    record.timestamp,
                    transaction_state.parse_transaction_record(record.key, record.value),
                )
        except WireError as error:
            self.unreadable.append(f"{directory.topic}-{directory.partition}: {error}")


MAX_DECISIONS = 500_000
"""Decisions kept in all; beyond, outcomes are not compared."""

_PREPARED = {TransactionStatus.PREPARE_COMMIT: 1, TransactionStatus.PREPARE_ABORT: 0}


class Decision(Struct, frozen=True):
    """One transaction's end as decided: `type` 1 commit, 0 abort; the (topic, partition) it wrote to; the record's offset."""

    transactional_id: str
    type: int
    partitions: frozenset[tuple[str, int]]
    offset: int


class _Known(Struct):
    offset: int
    value: TransactionValue


class DecisionHistory(Struct):
    """Follows the records of __transaction_state, one replica's partition after the other.

    `decisions` by producer id, of partitions whose records are all there; None of a producer with an unfinished one.
    """

    transitions: list[tuple[str, IllegalTransition]] = field(default_factory=list)
    """Illegal ones, each with the directory of the partition it lies in."""
    decisions: dict[int, list[Decision] | None] = field(default_factory=dict)
    complete: bool = True
    _directory: PartitionDirectory | None = None
    _latest: dict[str, _Known] = field(default_factory=dict)
    _own: dict[int, list[Decision]] = field(default_factory=dict)
    _next: int = 0
    _whole: bool = True
    _count: int = 0

    def enter(self, directory: PartitionDirectory) -> None:
        """The records that follow are of this replica's partition, which is read from its beginning."""
        self.leave()
        self._directory, self._next, self._whole = directory, 0, True
        self._latest, self._own = {}, {}

    def take(self, offset: int, record: TransactionRecord) -> None:
        """Take the next record. Where records are missing (compaction), states before and after are not neighbours."""
        assert self._directory is not None
        if offset != self._next:
            self._whole = False
            self._latest.clear()
        self._next = offset + 1
        if record.value is None:
            self._latest.pop(record.transactional_id, None)
            return
        before = self._latest.get(record.transactional_id)
        self._latest[record.transactional_id] = _Known(offset, record.value)
        if before is not None:
            reason = transaction_metadata.why_illegal(before.value, record.value)
            if reason is not None:
                found = IllegalTransition(
                    record.transactional_id, before.offset, before.value, offset, record.value, reason
                )
                self.transitions.append((self._directory.directory, found))
        self._decide(record.transactional_id, offset, record.value)

    def lose(self) -> None:
        """Records of this partition cannot be read: what it decided is not known."""
        self._whole = False
        self._latest.clear()

    def _decide(self, name: str, offset: int, value: TransactionValue) -> None:
        decided = _PREPARED.get(value.status)
        if decided is None or not self._whole:
            return
        if self._count >= MAX_DECISIONS:
            self.complete = False
            return
        self._count += 1
        partitions = frozenset(
            (entry.topic, partition) for entry in value.partitions or () for partition in entry.partitions
        )
        self._own.setdefault(value.producer_id, []).append(Decision(name, decided, partitions, offset))

    def leave(self) -> None:
        """The partition has ended: its decisions count if none of its records was missing and all are carried out."""
        pending = {known.value.producer_id for known in self._latest.values() if known.value.status in _PREPARED}
        if self._whole and self.complete:
            for producer_id, decisions in self._own.items():
                # another replica of the partition says the same: one is enough
                self.decisions.setdefault(producer_id, None if producer_id in pending else decisions)
        self._directory = None


_Key = tuple[int, int, str]
"""Partition, offset and transactional id of a record: the same in all replicas."""


class ExpiredIds(Struct):
    """Follows the records of __transaction_state, one replica's partition after the other.

    A record without a value says that its id has expired (TransactionStateManager.enableTransactionalIdExpiration). Each is
    `kept` once, whatever the replicas; of more than PRODUCERS the newest are, and the others only counted: `counts` has
    those of each partition, by the replica with the most.
    """

    kept: dict[_Key, ExpiredTransactionalId] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    _partition: int = -1
    _count: int = 0
    _used: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Producer id, epoch and last update of the ids that have not expired, up to here."""
    _gone: dict[str, _Key] = field(default_factory=dict)
    """The ids that have expired and not come back, of those kept."""

    def enter(self, partition: int) -> None:
        """The records that follow are of a replica of this partition, from its beginning."""
        self.leave()
        self._partition = partition

    def take(self, offset: int, timestamp: int, record: TransactionRecord) -> None:
        """Take the next record; `timestamp` in ms."""
        name, value = record.transactional_id, record.value
        if value is not None:
            key = self._gone.pop(name, None)
            if key is not None:
                self._keep(replace(self.kept[key], next_producer_id=value.producer_id))
            self._used[name] = value.producer_id, value.producer_epoch, value.last_update_timestamp
        elif name not in self._gone:  # a coordinator whose write seemed to fail writes it again
            producer_id, epoch, updated = self._used.pop(name, (None, None, None))
            self._count += 1
            self._counted(self._partition, self._count)
            self._gone[name] = self._partition, offset, name
            entry = ExpiredTransactionalId(name, producer_id, epoch, updated, timestamp, self._partition, offset)
            self._keep(entry)

    def leave(self) -> None:
        """The replica's partition has ended."""
        self._count, self._used, self._gone = 0, {}, {}

    def add(self, others: "ExpiredIds") -> None:
        """Take what was found elsewhere, in other replicas for instance."""
        for partition, count in others.counts.items():
            self._counted(partition, count)
        for entry in others.kept.values():
            self._keep(entry)

    def newest(self) -> list[ExpiredTransactionalId]:
        """Return those that are listed, the last to expire first."""
        return nsmallest(PRODUCERS, self.kept.values(), key=_newest_first)

    @property
    def omitted(self) -> int:
        """How many there are beside those that are listed."""
        return max(sum(self.counts.values()), len(self.kept)) - min(len(self.kept), PRODUCERS)

    def _counted(self, partition: int, count: int) -> None:
        self.counts[partition] = max(self.counts.get(partition, count), count)

    def _keep(self, entry: ExpiredTransactionalId) -> None:
        known = self.kept.get(_key_of(entry))
        self.kept[_key_of(entry)] = entry if known is None else _together(known, entry)
        if len(self.kept) >= 2 * PRODUCERS:  # the oldest are dropped many at a time: to find them takes a look at all
            self.kept = {_key_of(one): one for one in self.newest()}
            self._gone = {name: key for name, key in self._gone.items() if key in self.kept}


def _key_of(entry: ExpiredTransactionalId) -> _Key:
    return entry.partition, entry.offset, entry.transactional_id


def _newest_first(entry: ExpiredTransactionalId) -> tuple[int, int, int]:
    return -entry.expired_timestamp, entry.partition, entry.offset


def _together(known: ExpiredTransactionalId, entry: ExpiredTransactionalId) -> ExpiredTransactionalId:
    """Put together what two replicas say: in either, records before and after may have been compacted away."""
    following = known.next_producer_id if known.next_producer_id is not None else entry.next_producer_id
    return replace(entry if known.producer_id is None else known, next_producer_id=following)


ReadCoordinator = Callable[[Sequence[PartitionDirectory], Collection[int]], tuple[CoordinatorReader, CoordinatorView]]
"""Returns what partitions of __transaction_state say of these producer ids, and who read it."""


ReadNames = Callable[[Sequence[PartitionDirectory], NDArray[np.int64] | None], Mapping[int, str]]
"""Returns the transactional ids that partitions of __transaction_state name of these producer ids, of all if None."""


def names_of(open_source: OpenSource) -> ReadNames:
    """Return what reads transactional ids whenever it is asked, and raises UnreadableInputError where it cannot."""

    def read(directories: Sequence[PartitionDirectory], wanted: NDArray[np.int64] | None) -> Mapping[int, str]:
        chosen = None if wanted is None else frozenset(wanted.tolist())
        reader = CoordinatorReader(open_source)
        names = reader.names(directories, lambda own: chosen is None or own in chosen)
        if reader.failed:
            raise UnreadableInputError(f"{reader.failed[0].path}: {reader.failed[0].reason}")
        return names

    return read


def coordinator_of(open_source: OpenSource) -> ReadCoordinator:
    """Return what reads __transaction_state whenever it is asked."""

    def read(
        directories: Sequence[PartitionDirectory], wanted: Collection[int]
    ) -> tuple[CoordinatorReader, CoordinatorView]:
        reader = CoordinatorReader(open_source)
        return reader, reader.view(directories, wanted)

    return read
