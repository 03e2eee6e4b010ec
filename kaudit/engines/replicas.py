"""`diff`: one task a partition, done by an engine."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.command_line import quote
from kaudit.checks.texts import first_of
from kaudit.diff.audit import Task, compare_task, diff_result, replicas_of_brokers, tasks
from kaudit.engines.engine import EachPartition
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.replicas import BrokerReplicas, DiffResult, Replica
from kaudit.reading.failed_reads import FailedReads
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import chosen_input
from kaudit.source.layout import Layout, Unreadable
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri, UrlError


class DiffPlan(Struct, frozen=True):
    """Replicas by name, those that are copies of one broker, a task for each log, and what could not be listed or opened."""

    layouts: Mapping[str, Layout]
    copies: Sequence[BrokerReplicas]
    work: Sequence[Task]
    unreadable: Sequence[Unreadable]

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(task.bytes for task in self.work)


def diff(
    options: ScanOptions, replicas: Sequence[Replica], progress: Progress, each: EachPartition = LOCAL.each_partition
) -> DiffResult:
    """Compare the replicas' partitions; `options.paths` are the replicas' paths, `each` does the work of every partition.

    Raises:
        UsageError: a path does not exist, or holds one partition twice.
        NothingToAuditError: no segment was found, or no two replicas have a partition in common; not where something could
            not be read.

    """
    planned = plan_diff(options, replicas)
    progress.start(planned.bytes)
    compared = list(each(planned.work, compare_task, options, progress))
    return diff_result(replicas, planned.layouts, compared, planned.copies, planned.unreadable)


def plan_diff(options: ScanOptions, replicas: Sequence[Replica]) -> DiffPlan:
    """List the replicas, and share the comparison among tasks. Raises as `diff`."""
    layouts = {replica.name: layout_of(replica, options) for replica in replicas}
    reads = FailedReads(open_segment)
    copies = replicas_of_brokers(layouts, reads)
    work = tasks(layouts, copies)
    listed = [entry for layout in layouts.values() for entry in layout.unreadable]
    if not listed:
        _require_common(replicas, work)
    return DiffPlan(layouts, copies, work, [*listed, *(entry for entry in reads.unreadable if entry not in listed)])


def _require_common(replicas: Sequence[Replica], work: Sequence[Task]) -> None:
    """Require a partition that two of the replicas have, with a segment."""
    if not any(directory.segments for task in work for directory in task.holders.values()):
        where = ", ".join(replica.path for replica in replicas)
        raise NothingToAuditError(f"nothing to compare under {where}: no segment was found")
    if all(len(task.holders) < 2 and not task.separate for task in work):
        have = [f"{replica.path} has {_partitions(replica.name, work)}" for replica in replicas]
        raise NothingToAuditError(
            f"nothing to compare: no two of these have a partition in common: {'; '.join(have)}{_by_records(replicas)}"
        )


def _by_records(replicas: Sequence[Replica]) -> str:
    """Return which command compares topics that are copies of one another, and no replicas."""
    if len(replicas) != 2:
        return ""
    paths = " ".join(quote(replica.path) for replica in replicas)
    return f"; 'kaudit diff --by records {paths}' compares a source's topics with their copies, record by record"


def _partitions(name: str, work: Sequence[Task]) -> str:
    held = [next(iter(task.holders.values())).name for task in work if name in task.holders]
    return first_of(held) if held else "none"


def layout_of(replica: Replica, options: ScanOptions) -> Layout:
    """Return what lies where under one replica's path. Raises UsageError where that is none, or holds a partition twice."""
    layout = chosen_input(replace(options, paths=[replica.path]))
    places: dict[tuple[str, int], str] = {}
    for entry in layout.partitions:
        before = places.setdefault((entry.topic, entry.partition), entry.directory)
        if before != entry.directory:
            raise UsageError(
                f"{replica.path} holds {entry.topic}-{entry.partition} twice ({before} and {entry.directory}): "
                "give each replica's directory by itself"
            )
    return layout


def name_replicas(paths: Sequence[str], names: Mapping[str, str]) -> list[Replica]:
    """Name each path: as `names` (by path) says, else by the shortest suffix that differs between all paths.

    Raises UsageError when two have the same name or are the same directory.
    """
    parts = {path: _parts(path) for path in paths}
    if len({os.path.realpath(path) if Uri.parse(path).is_local else path for path in paths}) < len(paths):
        raise UsageError("a replica is given twice: compare different directories")
    unnamed = [path for path in paths if path not in names]
    suffixes: dict[str, str] = {}
    for depth in range(1, max((len(entry) for entry in parts.values()), default=0) + 1):
        suffixes = {path: "/".join(parts[path][-depth:]) for path in unnamed}
        if len(set(suffixes.values())) == len(unnamed):
            break
    found = [Replica(names.get(path) or suffixes[path], path) for path in paths]
    if len({replica.name for replica in found}) < len(found):
        raise UsageError("two replicas have the same name: give each its own with --name NAME=PATH")
    return found


def _parts(path: str) -> tuple[str, ...]:
    try:
        return tuple(part for part in Uri.parse(path).parts() if part != "/")
    except UrlError as error:
        raise UsageError(str(error)) from error
