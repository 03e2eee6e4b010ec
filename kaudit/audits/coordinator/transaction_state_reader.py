"""Reading __transaction_state: the newest state of the transactional ids that matter."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from kaudit.audits.coordinator.decision_history import DecisionHistory
from kaudit.audits.coordinator.expired_ids import ExpiredIds
from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.transaction_state import coordinator_partition, parse_transaction_record
from kaudit.formats.log.records import read_records
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.coordinator import CoordinatorEntry, CoordinatorView, TransactionRecord
from kaudit.reading.batch_content import data_batches
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory, SegmentFile
from kaudit.source.text import SegmentText

TRANSACTION_STATE = "__transaction_state"
_MAX_BATCH = 64 << 20


class CoordinatorReader:
    """Reads the partitions of __transaction_state once, keeping the entries of chosen producer ids only."""

    def __init__(self, open_source: OpenSource) -> None:
        self._open = open_source
        self.has_flexible_value = False
        self.unreadable: list[str] = []
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
        for directory in directories:
            self.history.enter(directory)
            self.expired.enter(directory.partition)
            for offset, timestamp, record in self.records(directory):
                self.history.take(offset, record)
                self.expired.take(offset, timestamp, record)
                if record.value is not None and record.value.version > 0:
                    self.has_flexible_value = True
                # with the wrong number of partitions ids would lie elsewhere than where their hash says
                complete = complete and coordinator_partition(record.transactional_id, count) == directory.partition
                self._take(current, record, offset, wanted)
        self.history.leave()
        self.expired.leave()
        for entry in current.values():
            if entry is not None:
                known = entries.get(entry.value.producer_id)
                if known is None or entry.value.last_update_timestamp >= known.value.last_update_timestamp:
                    entries[entry.value.producer_id] = entry
        return CoordinatorView(entries, present=bool(directories), complete=complete and not self.unreadable)

    def names(self, directories: Sequence[PartitionDirectory], wanted: Callable[[int], bool]) -> dict[int, str]:
        """Return the transactional id behind each wanted producer id, also of those it has moved on from."""
        found: dict[int, str] = {}
        for directory in directories:
            for _, _, record in self.records(directory):
                if record.value is not None and wanted(record.value.producer_id):
                    found[record.value.producer_id] = record.transactional_id
        return found

    @staticmethod
    def _take(
        current: dict[str, CoordinatorEntry | None], record: TransactionRecord, offset: int, wanted: frozenset[int]
    ) -> None:
        name = record.transactional_id
        if record.value is not None and record.value.producer_id in wanted:
            before = current.get(name)
            if before is None or record.value.last_update_timestamp >= before.value.last_update_timestamp:
                current[name] = CoordinatorEntry(name, record.value, offset)
        elif name in current:
            current[name] = None  # the id has moved to another producer id, or was removed

    def records(self, directory: PartitionDirectory) -> Iterator[tuple[int, int, TransactionRecord]]:
        """Yield a partition's records with their offsets and times (ms, -1 for none), in order; what cannot be read is listed."""
        for segment in directory.segments:
            try:
                yield from self._segment_records(directory, segment)
            except OSError as error:
                self.unreadable.append(f"{segment.path}: {error.strerror or type(error).__name__}")

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
                for data in data_batches(piece.batches, source, _MAX_BATCH):
                    yield from self._decode(data, directory)

    def _printed(self, source: SegmentText, segment: SegmentFile) -> Iterator[tuple[int, int, TransactionRecord]]:
        # imported here: few logs are texts
        from kaudit.formats.dump_text.record_content import parse_printed_transaction  # noqa: PLC0415
        from kaudit.reading.dump_text_content import MissingContentError, dump_text_records, is_data  # noqa: PLC0415

        try:
            for row in filter(is_data, dump_text_records(source)):
                timestamp = NO_TIMESTAMP if row.timestamp is None else row.timestamp
                yield row.offset, timestamp, parse_printed_transaction(row.key, row.payload)
        except (MissingContentError, WireError) as error:
            self.unreadable.append(f"{segment.path}: {error}; --transaction-log-decoder prints the states")

    def _decode(self, data: memoryview, directory: PartitionDirectory) -> Iterator[tuple[int, int, TransactionRecord]]:
        try:
            for record in read_records(data):
                yield record.offset, record.timestamp, parse_transaction_record(record.key, record.value)
        except WireError as error:
            self.unreadable.append(f"{directory.topic}-{directory.partition}: {error}")
