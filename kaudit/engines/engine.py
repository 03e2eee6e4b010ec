"""What an engine can do, and the commands over it, written once for all engines.

An engine reads the ranges of all partitions, keeps rows of each, does work for each partition, and writes tables.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from kaudit.engines.progress import Progress
from kaudit.engines.rows import NO_ROWS, Rows
from kaudit.listings.query import Query
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory

if TYPE_CHECKING:
    from kaudit.listings.producer_histories import RecordedScan
    from kaudit.listings.producer_listing import ListedProducers
    from kaudit.listings.transactions import Query as TransactionQuery
    from kaudit.listings.transactions import TransactionListing


class PartitionTask(Protocol):
    """Work for one partition."""

    @property
    def bytes(self) -> int:
        """Bytes to read."""

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The partition's directory on each replica."""


Task = TypeVar("Task", bound=PartitionTask)
Done = TypeVar("Done")
_Task_contra = TypeVar("_Task_contra", bound=PartitionTask, contravariant=True)
_Done_co = TypeVar("_Done_co", covariant=True)


class Job(Protocol[_Task_contra, _Done_co]):
    """A function that does one task, in any process."""

    def __call__(self, task: _Task_contra, /, options: ScanOptions, open_source: OpenSource) -> _Done_co:
        """Do one task."""


class EachPartition(Protocol):
    """An engine's method that does one task for each partition."""

    def __call__(
        self, work: Sequence[Task], job: Job[Task, Done], options: ScanOptions, progress: Progress
    ) -> Iterable[Done]:
        """Return the result of each task, in their order."""


class AuditedInput(ABC):
    """An input that was read and audited. The rows that were kept are there until the engine's context ends."""

    @property
    @abstractmethod
    def result(self) -> ScanResult:
        """The result of the scan."""

    @abstractmethod
    def timelines(self) -> TimelineResult:
        """Make the histories of producer ids, of the rows of `kept_rows.runs_of`."""

    @abstractmethod
    def producers(self, query: Query) -> "ListedProducers":
        """List the producer ids that `query` chooses, of the rows of `kept_rows.ACTIVITY`."""

    @abstractmethod
    def recorded(self) -> "RecordedScan":
        """Return the scan with what writes its tables, of the rows of `kept_rows.HISTORIES`."""

    @abstractmethod
    def transactions(self, query: "TransactionQuery") -> "TransactionListing":
        """List the transactions that `query` chooses, of an audit with `options.listed_transactions`."""


def listings() -> Any:  # noqa: ANN401 - a module
    """Return the module `kept_rows`: a scan starts without the listings that it imports."""
    from kaudit.engines import kept_rows  # noqa: PLC0415 - only `timeline`, `producers` and tables need them

    return kept_rows


class Engine(ABC):
    """Schedules the reading of logs. Every command raises what `audited` raises."""

    writes_to_urls = False
    """Whether its tables can be written to a URL."""

    @abstractmethod
    def audited(
        self, options: ScanOptions, progress: Progress, rows: Rows = NO_ROWS
    ) -> AbstractContextManager[AuditedInput]:
        """Audit everything under the given paths, and keep `rows` while the context lasts.

        Raises:
            UsageError: a path does not exist, an option does not fit, or the engine cannot be started.
            NothingToAuditError: no segment was found.
            UnreadableInputError: the engine gave up.

        """

    @abstractmethod
    def each_partition(
        self, work: Sequence[Task], job: Job[Task, Done], options: ScanOptions, progress: Progress
    ) -> Iterable[Done]:
        """Return the result of each task, in their order."""

    def scan(self, options: ScanOptions, progress: Progress) -> ScanResult:
        """Audit everything under the given paths."""
        with self.audited(options, progress) as audited:
            return audited.result

    def timeline(self, options: ScanOptions, progress: Progress) -> TimelineResult:
        """Audit, and return the history of the chosen producer ids, of all if none are chosen.

        An engine that brings them from elsewhere brings the first ones of all, and says how many more there are.
        """
        with self.audited(options, progress, listings().runs_of(options.producer_ids)) as audited:
            return audited.timelines()

    def producers(self, options: ScanOptions, progress: Progress, query: Query) -> ProducersResult:
        """Audit, and list the producer ids that `query` chooses."""
        with self.listed_producers(options, progress, query) as listed:
            return listed.result

    def transactions(self, options: ScanOptions, progress: Progress, query: "TransactionQuery") -> "TransactionListing":
        """Audit, and list the transactions that `query` chooses."""
        most = import_module("kaudit.listings.transactions").MOST_INPUTS  # no other command needs it
        asked = replace(options, listed_transactions=most, takes_logs=False)
        with self.audited(asked, progress) as audited:
            return audited.transactions(query)

    @contextmanager
    def listed_producers(self, options: ScanOptions, progress: Progress, query: Query) -> "Iterator[ListedProducers]":
        """Audit, and list producer ids; tables of all that `query` chooses can be made while the body runs."""
        with self.audited(options, progress, listings().ACTIVITY) as audited:
            yield audited.producers(query)

    @contextmanager
    def record(self, options: ScanOptions, progress: Progress) -> "Iterator[RecordedScan]":
        """Audit, and keep the producers' histories on disk while the body runs, for tables."""
        with self.audited(options, progress, listings().HISTORIES) as audited:
            yield audited.recorded()
