"""The producers' histories and the duplicates of a redacted result: the names in them are replaced where they are written."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.listings.duplicates import DuplicateListing
from kaudit.listings.producer_histories import HistoryWriter, PartitionHistory, Piece, RecordedScan
from kaudit.listings.transactions import TransactionListing
from kaudit.model.batch import Batches
from kaudit.model.duplicates import RepeatedRange
from kaudit.model.finding import Finding
from kaudit.model.result import Changed
from kaudit.partition.batch_export import BatchWriter, SegmentTask
from kaudit.results.redaction import Redactor
from kaudit.source.layout import PartitionDirectory


def redacted_recording(recorded: RecordedScan, redactor: Redactor) -> RecordedScan:
    """Return the recording as if the log had had the redacted names; findings that it is given are redacted already."""

    def write_histories(writer: HistoryWriter, findings: Sequence[Finding]) -> Iterator[Piece]:
        def write(history: PartitionHistory, _: Sequence[Finding], newest: Profile) -> Iterator[Piece]:
            renamed = _renamed(history, redactor)
            own = [each for each in findings if (each.topic, each.partition, each.replica) == renamed.key]
            return writer(renamed, own, newest)

        return recorded.write_histories(write, ())

    def write_batches(writer: BatchWriter) -> Iterator[Piece]:
        def write(task: SegmentTask, batches: Batches) -> Piece:
            names = {"topic": redactor.topic(task.topic), "replica": redactor.redacted(task.replica, "replica")}
            return writer(replace(task, **names), batches)

        return recorded.write_batches(write)

    def high_watermarks() -> Mapping[tuple[str, int, str], int]:
        return {
            (redactor.topic(topic), partition, redactor.redacted(replica, "replica")): offset
            for (topic, partition, replica), offset in recorded.high_watermarks().items()
        }

    def transactional_ids(wanted: Collection[int] | None) -> Mapping[int, str]:
        found = recorded.transactional_ids(wanted)
        return {producer_id: redactor.redacted(name, "transactional_id") for producer_id, name in found.items()}

    return RecordedScan(
        result=redactor.redacted(recorded.result),
        write_histories=write_histories,
        write_batches=write_batches,
        high_watermarks=high_watermarks,
        transactional_ids=transactional_ids,
    )


def redacted_duplicates(listing: DuplicateListing, redactor: Redactor) -> DuplicateListing:
    """Return what a list of duplicates says of its scan and its partitions, as if the log had had the redacted names."""
    return replace(
        listing,
        ranges=[
            (replace(each, directory=_renamed_directory(each.directory, redactor)), _without_fields(found, redactor))
            for each, found in listing.ranges
        ],
        scan=redactor.learned(listing.scan),
        totals=redactor.learned(listing.totals),
        failed=redactor.learned(listing.failed),
        partitions=[
            replace(each, directory=_renamed_directory(each.directory, redactor)) for each in listing.partitions
        ],
    )


def redacted_transactions(listing: TransactionListing, redactor: Redactor) -> TransactionListing:
    """Return a list of transactions, and what it says of its scan, with hashes in place of names."""
    transactions = Changed(listing.transactions, redactor.redacted)
    return replace(listing, scan=redactor.learned(listing.scan), transactions=transactions)


def _without_fields(found: RepeatedRange, redactor: Redactor) -> RepeatedRange:
    """Leave out what its records call their fields and headers."""
    names = redactor.row_of_inspect({"differs_in": found.differs_in, "recognisable_by": found.recognisable_by})
    return replace(found, **names)


def _renamed(history: PartitionHistory, redactor: Redactor) -> PartitionHistory:
    renamed = _renamed_directory(history.partition.directory, redactor)
    return replace(history, partition=replace(history.partition, directory=renamed))


def _renamed_directory(directory: PartitionDirectory, redactor: Redactor) -> PartitionDirectory:
    return replace(
        directory,
        topic=redactor.topic(directory.topic),
        replica=redactor.redacted(directory.replica, "replica"),
        log_dir=redactor.path(directory.log_dir),
        directory=redactor.path(directory.directory),
        relative=redactor.path(directory.relative),
    )
