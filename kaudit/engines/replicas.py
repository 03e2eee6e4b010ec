"""The local engine for `diff`: one task a partition, in processes or here."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.options import NothingToAuditError, Progress, ScanOptions, UsageError
from kaudit.diff.audit import Task, broker_copies, compare_task, diff_result, tasks
from kaudit.engines.ranges import PROCESSES_PAY_BYTES
from kaudit.model.replicas import DiffResult, Replica
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.layout import Layout
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri, UrlError


class _Readable(Protocol):
    @property
    def bytes(self) -> int:
        """Bytes to read."""


_Task = TypeVar("_Task", bound=_Readable)
_Task_contra = TypeVar("_Task_contra", bound=_Readable, contravariant=True)
_Done = TypeVar("_Done")
_Done_co = TypeVar("_Done_co", covariant=True)


class _Job(Protocol[_Task_contra, _Done_co]):
    def __call__(self, task: _Task_contra, /, options: ScanOptions, open_source: OpenSource) -> _Done_co:
        """Do one task."""


def diff(options: ScanOptions, replicas: Sequence[Replica], progress: Progress) -> DiffResult:
    """Compare the replicas' partitions; `options.paths` are the replicas' paths.

    Raises:
        UsageError: a path does not exist, or holds one partition twice.
        NothingToAuditError: no segment was found, or no two replicas have a partition in common; not where something could
            not be read.

    """
    layouts = {replica.name: layout_of(replica, options) for replica in replicas}
    moments = broker_copies(layouts, open_segment)
    work = tasks(layouts, moments)
    if not any(layout.unreadable for layout in layouts.values()):
        _require_common(replicas, work)
    progress.start(sum(task.bytes for task in work))
    compared = list(each_partition(work, compare_task, options, progress))
    return diff_result(replicas, layouts, compared, moments)


def _require_common(replicas: Sequence[Replica], work: Sequence[Task]) -> None:
    """Require a partition that two of the replicas have, with a segment."""
    if not any(directory.segments for task in work for directory in task.holders.values()):
        where = ", ".join(replica.path for replica in replicas)
        raise NothingToAuditError(f"nothing to compare under {where}: no segment was found")
    if all(len(task.holders) < 2 for task in work):
        have = [f"{replica.path} has {_partitions(replica.name, work)}" for replica in replicas]
        raise NothingToAuditError(f"nothing to compare: no two of these have a partition in common: {'; '.join(have)}")


def _partitions(name: str, work: Sequence[Task]) -> str:
    held = [next(iter(task.holders.values())).name for task in work if name in task.holders]
    more = f" and {len(held) - 1} more" if len(held) > 1 else ""
    return held[0] + more if held else "none"


def each_partition(
    work: Sequence[_Task],
    job: _Job[_Task, _Done],
    options: ScanOptions,
    progress: Progress,
) -> Iterator[_Done]:
    """Yield what comes of each task, in their order: in processes, where that pays."""
    jobs = min(options.jobs or os.cpu_count() or 1, len(work))
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    local = all(Uri.parse(path).is_local for path in options.paths)
    one = partial(job, options=options, open_source=open_segment)
    if jobs < 2 or not local or sum(task.bytes for task in work) < PROCESSES_PAY_BYTES:
        yield from _advancing(work, map(one, work), progress)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from _advancing(work, pool.map(one, work), progress)


def _advancing(work: Sequence[_Task], results: Iterable[_Done], progress: Progress) -> Iterator[_Done]:
    for task, result in zip(work, results, strict=True):
        progress.advance(task.bytes)
        yield result


def layout_of(replica: Replica, options: ScanOptions) -> Layout:
    """Return what lies where under one replica's path. Raises UsageError where that is none, or holds a partition twice."""
    try:
        layout = discover([replica.path], cluster=options.cluster)
    except PathNotFoundError as error:
        raise UsageError(f"no such file or directory: {error}") from error
    except UrlError as error:
        raise UsageError(str(error)) from error
    chosen = [
        entry
        for entry in layout.partitions
        if (not options.topics or entry.topic in options.topics)
        and (not options.partitions or entry.partition in options.partitions)
    ]
    places: dict[tuple[str, int], str] = {}
    for entry in chosen:
        before = places.setdefault((entry.topic, entry.partition), entry.directory)
        if before != entry.directory:
            raise UsageError(
                f"{replica.path} holds {entry.topic}-{entry.partition} twice ({before} and {entry.directory}): "
                "give each replica's directory by itself"
            )
    return replace(layout, partitions=chosen)


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
