"""`diff`, `dedup` and the ledger as rows of DataFrames: a task compares partitions, or pairs of topics, as the local engine does."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from kaudit.diff.audit import Task, compare_task
from kaudit.diff.records.group_offsets import GroupOffset, read_again, translated
from kaudit.diff.records.topics import Pairing
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerPlan, LedgerRequest, commits_of_source, plan_ledger, record_ledger
from kaudit.engines.repeated_records import Comparable, RepeatPlan, plan_repeats, repeated_records
from kaudit.engines.replicas import name_replicas, plan_diff
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.report.machine.tables import comparison_rows, matched_range_rows, record_range_rows
from kaudit.report.render_options import Row
from kaudit.report.text.duplicates import duplicate_rows
from kaudit.scanning.comparison_options import LedgerOptions, RecordOptions, ReplicaOptions
from kaudit.source.layout import Layout, Unreadable
from kaudit.source.schemes import open_segment
from kaudit.spark.composition import incomplete, require_complete
from kaudit.spark.options import ReadOptions, absolute
from kaudit.spark.plan import USUAL_BLOCK_BYTES, Sized, grouped, task_bytes
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
        return _parts(planned.work, planned.unreadable, self.options)

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:
        """Compare the partitions of a task and yield the rows."""
        return _in_task("diff", part, self._rows)

    def _rows(self, work: Sequence[Task]) -> Iterator[Row]:
        for task in work:
            compared = compare_task(task, self.options.scan_options(), open_segment)
            _require(compared.unreadable, self.options)
            yield from comparison_rows(() if compared.comparison is None else (compared.comparison,))


class DedupReader:
    """Lists the input, and reads schemas, where Spark plans; a task compares the records of partitions of about a block together."""

    def __init__(self, options: ReadOptions) -> None:
        self.options, self._asked = options, options.compared_as(RecordOptions)

    def parts(self) -> list[bytes]:
        """Return what each task compares. Raises as `plan_repeats`, and UnreadableInputError."""
        plan = plan_repeats(self.options.scan_options(), self._asked)
        return _parts(plan.compared, plan.layout.unreadable, self.options)

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:
        """Compare the records of each partition of a task and yield the rows."""
        return _in_task("dedup", part, self._rows)

    def _rows(self, compared: Sequence[Comparable]) -> Iterator[Row]:
        options, plan = (
            self.options.scan_options(jobs=1),
            RepeatPlan(Layout([each.directory for each in compared]), compared),
        )
        with repeated_records(options, SilentProgress(), self._asked, plan=plan) as listing:
            if not self.options.allow_incomplete:
                require_complete(listing.scan)
            yield from duplicate_rows(listing, read_committed=self._asked.read_committed)
            _require(listing.failed, self.options)


class LedgerReader:
    """Lists both sides, and reads schemas and commits, where Spark plans; a task compares pairs of topics of about a block together."""

    def __init__(self, options: ReadOptions) -> None:
        self.options, self._sides = options, sides_of(options)
        self._request = LedgerRequest.of(options.compared_as(LedgerOptions))

    def parts(self) -> list[bytes]:
        """Return what each task compares. Raises as `plan_ledger`, UsageError for a group without commits, and UnreadableInputError."""
        plan = plan_ledger(self.options.scan_options(), self._sides, self._request)
        return _parts(plan.pairings, plan.unreadable, self.options, commits_of(self.options))

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:
        """Compare the topics of a task and yield the rows."""
        return _in_task("ledger", part, self._rows)

    def _rows(self, pairings: Sequence[Pairing], commits: Sequence[GroupOffset]) -> Iterator[Row]:
        asked, plan = self.options.scan_options(jobs=1), LedgerPlan.of_part(pairings)
        with record_ledger(asked, self._sides, self._request, SilentProgress(), plan=plan) as result:
            yield from ledger_rows(result, commits, self.options)


def _parts(work: Sequence[Sized], unreadable: Sequence[Unreadable], options: ReadOptions, *same: object) -> list[bytes]:
    """Return for each task its share of the work, and what is the same for all."""
    _require(unreadable, options)
    size = task_bytes(sum(each.bytes for each in work), USUAL_BLOCK_BYTES)
    return [pickle.dumps((group, *same)) for group in grouped(work, size)]


def _in_task(table: str, part: bytes, rows: Callable[..., Iterator[Row]]) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    return to_batches(table, rows(*pickle.loads(part)))  # noqa: S301 - what kaudit itself has planned


def _require(unreadable: Sequence[Unreadable], options: ReadOptions) -> None:
    if unreadable and not options.allow_incomplete:
        raise incomplete(unreadable)


def commits_of(options: ReadOptions) -> Sequence[GroupOffset]:
    """Return what the groups asked for committed last in the source. Raises UsageError for a group without any, and UnreadableInputError."""
    groups = options.compared_as(LedgerOptions).translate_groups
    if not groups:
        return ()
    commits, unread = commits_of_source(sides_of(options)[0], groups, options.scan_options())
    if unread and not options.allow_incomplete:
        raise UnreadableInputError(unread[0])
    return commits


def ledger_rows(result: LedgerResult, commits: Sequence[GroupOffset], options: ReadOptions) -> Iterator[Row]:
    """Return the ranges that differ, then those that both sides have, then where groups with these commits go on in the target.

    Raises:
        UnreadableInputError: something could not be read, and the options do not allow that.

    """
    if not options.allow_incomplete:
        require_complete(result.scan)
    return chain(record_range_rows(result), matched_range_rows(result), _group_rows(result, commits))


def _group_rows(result: LedgerResult, commits: Sequence[GroupOffset]) -> Iterator[Row]:
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
