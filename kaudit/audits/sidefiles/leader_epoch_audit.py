"""A partition's leader-epoch-checkpoint compared with itself and with the leader epochs in the batches."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import LeaderEpochCheckpoint, parse_leader_epoch_checkpoint
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.side_files import WrongLeaderEpochs
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT
from kaudit.source.layout import PartitionDirectory


def lineage_of(directory: PartitionDirectory, files: SideFileReader) -> Sequence[EpochEntry]:
    """Return the rows of a partition's leader-epoch-checkpoint, none of one that is not valid: that is a finding of its own."""
    for file in directory.side_files:
        if file.name == LEADER_EPOCH_CHECKPOINT and (data := files.read(file)) is not None:
            try:
                rows = parse_leader_epoch_checkpoint(data).rows
            except WireError:
                return ()
            ascending = all(
                one.epoch < two.epoch and one.start_offset <= two.start_offset for one, two in pairwise(rows)
            )
            return rows if ascending else ()
    return ()


class LeaderEpochRun(Struct, frozen=True):
    """Consecutive batches of one leader epoch (>= 0), first and last offset inclusive."""

    leader_epoch: int
    first_offset: int
    last_offset: int
    segment: int


def compare_leader_epochs(checkpoint: LeaderEpochCheckpoint, log: LogFacts) -> Iterator[WrongLeaderEpochs]:
    """Yield the first contradiction of the checkpoint to itself or to the batches, if there is one."""
    reliable = not (log.epoch_regressions or log.unread or log.has_legacy)
    found = next(wrong_leader_epochs(checkpoint.rows, _runs(log) if reliable else ()), None)
    if found is not None:
        yield found


def wrong_leader_epochs(rows: Sequence[EpochEntry], runs: Sequence[LeaderEpochRun]) -> Iterator[WrongLeaderEpochs]:
    """Yield what is wrong with the rows: first between themselves, then against the log's runs, as far as there are any."""
    for before, row in pairwise(rows):
        if row.epoch <= before.epoch or row.start_offset < before.start_offset:
            follows = f"follows epoch {before.epoch} from {before.start_offset}"
            detail = f"epoch {row.epoch} from offset {row.start_offset} {follows}"
            yield WrongLeaderEpochs(LEADER_EPOCH_CHECKPOINT, row.start_offset, None, detail)
    if not rows:
        return
    # entries below the log's start are cut away with it, even where no checkpoint names that start any more
    known_from = rows[0].start_offset
    for run in runs:
        first = max(run.first_offset, known_from)
        if first > run.last_offset:
            continue
        following = len([row for row in rows if row.start_offset <= first])
        in_log = f"where the log has epoch {run.leader_epoch}"
        if rows[following - 1].epoch != run.leader_epoch:
            detail = f"epoch {rows[following - 1].epoch} for offset {first}, {in_log}"
            yield WrongLeaderEpochs(LEADER_EPOCH_CHECKPOINT, first, run.segment, detail)
        elif following < len(rows) and rows[following].start_offset <= run.last_offset:
            row = rows[following]
            detail = f"epoch {row.epoch} from offset {row.start_offset}, {in_log}"
            yield WrongLeaderEpochs(LEADER_EPOCH_CHECKPOINT, row.start_offset, run.segment, detail)


def _runs(log: LogFacts) -> list[LeaderEpochRun]:
    steps = log.epoch_steps
    if not len(steps) or log.log_end_offset is None:
        return []
    ends = np.append(steps["base_offset"][1:] - 1, log.log_end_offset - 1)
    start = log.directory.log_start_offset or 0
    return [
        LeaderEpochRun(
            int(step["leader_epoch"]),
            max(int(step["base_offset"]), start),
            # where offsets are missing, the next epoch may have begun before its first batch that is left
            int(step["last_offset"]) if log.compacted or log.missing else end,
            int(step["segment"]),
        )
        for step, end in zip(steps, ends.tolist(), strict=True)
        if step["leader_epoch"] >= 0 and end >= start and step["last_offset"] >= start
    ]
