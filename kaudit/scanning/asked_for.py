"""What whoever asked for an audit named, and it is not there: inputs that hold nothing, topics, partitions, producer ids."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kaudit.errors import suggestion
from kaudit.model.result import NotAudited
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.uri import Uri
from kaudit.source.zookeeper import find_zookeeper_files

_NEAREST = 3
_LISTED = 10


def empty_inputs(layout: Layout) -> Iterator[NotAudited]:
    """Yield the inputs that held nothing to audit, and no blocks of producer ids either."""
    for entry in layout.empty_inputs:
        uri = Uri.parse(entry.path)
        files = find_zookeeper_files(Path(uri.path)) if uri.is_local and Path(uri.path).is_dir() else None
        if files is None or not (files.logs or files.snapshots):
            yield NotAudited(entry.path, entry.reason, asked_for=True)


def missing_from_inputs(options: ScanOptions, layout: Layout) -> Iterator[NotAudited]:
    """Yield the inputs that held nothing, and what was asked for and none of them holds."""
    yield from empty_inputs(layout)
    yield from missing_partitions(options, layout.everything)


def inputs_without_choice(
    options: ScanOptions, chosen: Sequence[PartitionDirectory], others: Sequence[PartitionDirectory]
) -> Iterator[NotAudited]:
    """Yield the inputs from which the filters chose no partition: they hold only `others`."""
    for path in options.paths:
        place = Uri.parse(path)
        if _any_in(place, others) and not _any_in(place, chosen):
            yield NotAudited(path, "holds no partition that was asked for", asked_for=True)


def _any_in(place: Uri, partitions: Sequence[PartitionDirectory]) -> bool:
    return any(Uri.parse(segment.path).lies_in(place) for entry in partitions for segment in entry.segments[:1])


def missing_partitions(options: ScanOptions, found: Sequence[PartitionDirectory]) -> Iterator[NotAudited]:
    """Yield the topics and partitions asked for that are not among those found."""
    topics = sorted({directory.topic for directory in found})
    for topic in options.topics:
        if topic not in topics:
            near = suggestion(topic, topics) or f"; topics there: {_listed(topics)}"
            yield NotAudited(f"--topic {topic}", f"no such topic{near}", asked_for=True)
    of_topics = [entry for entry in found if not options.topics or entry.topic in options.topics]
    numbers = sorted({directory.partition for directory in of_topics})
    for number in options.partitions if of_topics else ():
        if number not in numbers:
            there = f"no such partition; there: {_listed(map(str, numbers))}"
            yield NotAudited(f"--partition {number}", there, asked_for=True)


def missing_producers(
    options: ScanOptions, ids_of: Iterable[NDArray[np.int64]], known: Iterable[int | None]
) -> Iterator[NotAudited]:
    """Yield the producer ids asked for that are neither in the logs nor `known` from elsewhere.

    `ids_of` are the ids of each partition.
    """
    if not options.producer_ids:
        return
    there = np.unique(np.concatenate([*ids_of, np.empty(0, dtype=np.int64)]))
    for producer_id in sorted(set(options.producer_ids) - set(known)):
        at = int(np.searchsorted(there, producer_id))
        if at == len(there) or there[at] != producer_id:
            yield NotAudited(missing_producer(producer_id), _near(producer_id, there), asked_for=True)


def missing_producer(producer_id: int) -> str:
    """Return how the result names a producer id that was asked for."""
    return f"--producer-id {producer_id}"


def _near(producer_id: int, there: NDArray[np.int64]) -> str:
    if not len(there):
        return "no such producer id: there are none in these logs"
    nearest = np.sort(there[np.argsort(np.abs(there - producer_id), kind="stable")[:_NEAREST]]).tolist()
    if len(there) <= _NEAREST:
        return f"no such producer id; there: {_listed(map(str, nearest))}"
    return f"no such producer id; nearest: {_listed(map(str, nearest))} ({len(there):,} ids from {there[0]} to {there[-1]})"


def _listed(names: Iterable[str]) -> str:
    all_names = list(names)
    more = len(all_names) - _LISTED
    return ", ".join(all_names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
