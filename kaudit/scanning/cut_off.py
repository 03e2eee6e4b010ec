"""What logs of brokers say that replicas cut off, held against the partitions' own logs."""

from collections.abc import Iterator, Mapping, Sequence

from kaudit.audits.replicas.cut_records import KnownLog, changes_without_loss, cut_records
from kaudit.model.record_loss import CutRecords, LeaderHistory, ReportedChange
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions

_Histories = Mapping[tuple[str, int], LeaderHistory]


def what_was_cut_off(
    replicas: Sequence[PartitionAudit], histories: _Histories, open_source: OpenSource
) -> list[list[CutRecords | ReportedChange]]:
    """Return for each replica of one topic partition what its checks report: the copy of the newest leader reports what is lost."""
    nothing: list[list[CutRecords | ReportedChange]] = [[] for _ in replicas]
    directory = replicas[0].directory
    history = histories.get((directory.topic, directory.partition))
    if history is None:
        return nothing
    newest = max(range(len(replicas)), key=lambda number: _reach(replicas[number]))
    log = _known(replicas[newest])
    try:
        cuts = cut_records(history, log, open_source)
    except OSError:
        return nothing  # reported when the segment was read for the audit
    told = [ReportedChange(cut.leader_epoch, nothing_cut=False) for cut in cuts if cut.leader_epoch is not None]
    told += [ReportedChange(epoch, nothing_cut=True) for epoch in changes_without_loss(history)]
    return [[*told, *(cuts if number == newest else ())] for number in range(len(replicas))]


def cut_off_elsewhere(
    options: ScanOptions, parts: Sequence[PartitionAudit], histories: _Histories, open_source: OpenSource
) -> Iterator[CutRecords]:
    """Yield what was cut off in partitions whose logs are not among the inputs."""
    read = {(part.directory.topic, part.directory.partition) for part in parts}
    for key, history in sorted(histories.items()):
        if key not in read and options.asks_for(*key):
            yield from cut_records(history, None, open_source)


def _reach(part: PartitionAudit) -> tuple[int, int]:
    epochs = part.leader_epochs["leader_epoch"]
    return (int(epochs[-1]) if len(epochs) else -1), part.log_end_offset or 0


def _known(part: PartitionAudit) -> KnownLog | None:
    """Return the log of a partition; None of one whose end, or whose leader epochs, are not certain."""
    if part.log_end_offset is None or part.regressions or part.unreadable:
        return None
    return KnownLog(
        directory=part.directory,
        log_start=part.directory.start_offset,
        log_end=part.log_end_offset,
        starts=[(int(step["base_offset"]), int(step["leader_epoch"])) for step in part.leader_epochs],
        others_batches=part.counts.without_producer,
        bumps={change.leader_epoch: len(change.bumps) for change in part.leader_changes},
    )
