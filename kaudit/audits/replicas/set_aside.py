"""Logs in directories that brokers have set aside - moved, deleted, not theirs any more - beside the copies that are in use."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kaudit.audits.replicas.copy_identities import log_copy
from kaudit.model.batch import last_offsets
from kaudit.model.copy_identities import LogCopy, SetAsideLog
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import last_batches
from kaudit.source.layout import LeftoverFile, PartitionDirectory


def set_aside_logs(
    leftovers: Iterable[LeftoverFile],
    copies: Sequence[LogCopy],
    removed: Callable[[], Mapping[str, str]],
    open_source: OpenSource,
) -> Iterator[SetAsideLog]:
    """Yield the logs that hold batches; `open_source` notes what cannot be read, and such a log ends before it.

    `removed` returns where deletions of topics are written, by topic id; it is called only where a directory is set aside.
    """
    for leftover in leftovers:
        if leftover.log is None:
            continue
        end, leader_epoch = _end(leftover.log, open_source)
        own = log_copy(leftover.log, end, leader_epoch)
        if end is None or end <= own.start_offset:
            continue
        others = [copy for copy in copies if (copy.topic, copy.partition) == (own.topic, own.partition)]
        # retention may have removed the beginning elsewhere: what is missing after it is what counts
        ends = (copy.end_offset or 0 for copy in others if copy.start_offset <= end and not _contradict(copy, own))
        reached = max(ends, default=0)
        first = max(reached, own.start_offset)
        alone = (first, end - 1) if first < end else None
        yield SetAsideLog(leftover.relative, own, alone, others, removed().get(own.topic_id or ""))


def _contradict(copy: LogCopy, own: LogCopy) -> bool:
    """Whether ids show that the copies are not of one topic."""
    ids = (copy.topic_id, own.topic_id), (copy.cluster_id, own.cluster_id)
    return any(None not in pair and pair[0] != pair[1] for pair in ids)


def _end(log: PartitionDirectory, open_source: OpenSource) -> tuple[int | None, int]:
    """Return the end (exclusive) and leader epoch of the last batch that can be read, None and -1 without one."""
    for segment in reversed(log.segments):
        try:
            for batches in reversed([*last_batches(segment, open_source)]):
                return int(last_offsets(batches)[-1]) + 1, int(batches["leader_epoch"][-1])
        except OSError:
            continue  # `open_source` has noted it
    return None, -1
