"""`diff`, `dedup` and the ledger as rows of DataFrames: partitions are compared in tasks, records by the local engine in one."""

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa

from kaudit.diff.audit import Task, compare_task
from kaudit.diff.records.group_offsets import read_again, translated
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerRequest, commits_of_source, record_ledger
from kaudit.engines.repeated_records import RepeatRequest, repeated_records
from kaudit.engines.replicas import name_replicas, plan_diff
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.report.machine.tables import comparison_rows, matched_range_rows, record_range_rows
from kaudit.report.render_options import Row
from kaudit.report.text.duplicates import duplicate_rows
from kaudit.scanning.comparison_options import LedgerOptions, ReplicaOptions
from kaudit.source.layout import Unreadable
from kaudit.source.schemes import open_segment
from kaudit.spark.composition import incomplete, require_complete
from kaudit.spark.options import ReadOptions, absolute
from kaudit.spark.plan import USUAL_BLOCK_BYTES, grouped, task_bytes
from kaudit.spark.schemas import to_batches
from kaudit.spark.tasks import prepare_worker


class DiffReader:
    """Lists the replicas where Spark plans; a task compares partitions of about a block together."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def parts(self) -> list[bytes]:
        """Return what each task compares. Raises as the local `diff`, and UnreadableInputError."""
        names = dict(map(_named, self.options.compared_as(ReplicaOptions).names))
        planned = plan_diff(self.options.scan_options(), name_replicas(self.options.paths, names))
        self._require(planned.unreadable)
        size = task_bytes(planned.bytes, USUAL_BLOCK_BYTES)
        return [pack(group) for group in grouped(planned.work, size)]

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:
        """Compare the partitions of a task and yield the rows."""
        prepare_worker()
        return to_batches("diff", chain.from_iterable(map(self._rows, unpack(part, list[Task]))))

    def _rows(self, task: Task) -> Iterator[Row]:
        compared = compare_task(task, self.options.scan_options(), open_segment)
        self._require(compared.unreadable)
        return comparison_rows(() if compared.comparison is None else (compared.comparison,))

    def _require(self, unreadable: Sequence[Unreadable]) -> None:
        if unreadable and not self.options.allow_incomplete:
            raise incomplete(unreadable)


class RecordReader:
    """Compares records with the local engine, in one task; schemas are read where Spark plans."""

    def __init__(self, table: str, options: ReadOptions) -> None:
        asked = options.compared_as(LedgerOptions)
        self.options = options
        self._sides = sides_of(options) if table == "ledger" else None
        self._repeats, self._ledger = RepeatRequest.of(asked), LedgerRequest.of(asked)

    def parts(self) -> list[bytes]:
        """Return the one task."""
        return [b""]

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - there is one
        """Compare and yield the rows."""
        prepare_worker()
        return to_batches("dedup", self._duplicates()) if self._sides is None else self._ranges(self._sides)

    def _duplicates(self) -> Iterator[Row]:
        options, read_committed = self.options, self._ledger.read_committed
        with repeated_records(options.scan_options(jobs=1), SilentProgress(), self._repeats) as listing:
            if not options.allow_incomplete:
                require_complete(listing.scan)
            yield from duplicate_rows(listing, read_committed=read_committed)
            if listing.failed and not options.allow_incomplete:
                raise incomplete(listing.failed)

    def _ranges(self, sides: tuple[Replica, Replica]) -> Iterator[pa.RecordBatch]:
        asked = self.options.scan_options(jobs=1)
        with record_ledger(asked, sides, self._ledger, SilentProgress()) as result:
            yield from to_batches("ledger", ledger_rows(result, self.options))


def ledger_rows(result: LedgerResult, options: ReadOptions) -> Iterator[Row]:
    """Return the ranges that differ, then those that both sides have, then where groups go on in the target.

    Raises:
        UsageError: a group has no commits.
        UnreadableInputError: something could not be read, and the options do not allow that.

    """
    if not options.allow_incomplete:
        require_complete(result.scan)
    return chain(record_range_rows(result), matched_range_rows(result), _group_rows(result, options))


def _group_rows(result: LedgerResult, options: ReadOptions) -> Iterator[Row]:
    groups = options.compared_as(LedgerOptions).translate_groups
    commits, unread = commits_of_source(result, groups, options.scan_options()) if groups else ([], [])
    if unread and not options.allow_incomplete:
        raise UnreadableInputError(unread[0])
    for ledger in result.ledgers:
        for each in translated([ledger], commits):
            yield {
                "source_topic": ledger.source,
                "target_topic": ledger.target,
                "difference": "group-offset",
                "partition": each.partition,
                "first_offset": each.offset,
                "records": sum(records for _, records in read_again([ledger], [each])),
                "group": each.group,
            }


def sides_of(options: ReadOptions) -> tuple[Replica, Replica]:
    """Return source and target. Raises UsageError where they are not two."""
    if len(options.paths) != 1 or "target" not in options.compared:
        raise UsageError("a ledger compares two inputs: the path of the source, and the option target")
    return Replica("source", options.paths[0]), Replica("target", options.compared["target"])


def _named(text: str) -> tuple[str, str]:
    """Return the path of a replica, and its name."""
    name, equals, path = text.partition("=")
    if not (name and equals):
        raise UsageError(f"option names {text}: NAME=PATH is wanted")
    return absolute([path])[0], name
