"""KA506: leader-epoch-checkpoint against itself and the leader epochs in the batches."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from kaudit.checks.sidefiles import SideFileFact
from kaudit.formats.sidefiles.checkpoints import EpochStart, LeaderEpochCheckpoint
from kaudit.model.finding import Explanation, Severity

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
_RULE = (
    "the checkpoint names the first offset of every leader epoch; followers truncate by it after a leader change "
    "(LeaderEpochFileCache)"
)
_USES = "believes it: a follower, or a fetcher of this one, may truncate at a wrong offset after the next leader change"


class EpochStretch(Struct, frozen=True):
    """Consecutive batches of one leader epoch (>= 0), first and last offset inclusive."""

    leader_epoch: int
    first_offset: int
    last_offset: int
    segment: int


def check_leader_epochs(
    checkpoint: LeaderEpochCheckpoint, size: int, stretches: Sequence[EpochStretch] | None
) -> SideFileFact | None:
    """Return what is wrong with the checkpoint. `stretches` None: the log's own epochs cannot be relied on."""
    if checkpoint.damage:
        damage = checkpoint.damage[0]
        return SideFileFact(
            "KA506",
            LEADER_EPOCH_CHECKPOINT,
            f"leader-epoch-checkpoint cannot be parsed: {damage.detail}",
            _RULE,
            "fails the whole log directory at start (KafkaStorageException); with no other directory the broker stops",
            severity=Severity.ERROR,
            position=damage.position,
            evidence={"reason": damage.reason.value, "detail": damage.detail, "size": size},
            explanations=(
                Explanation("the host stopped while the file was being replaced"),
                Explanation("the file was edited, or cut by a copy"),
            ),
        )
    rows = checkpoint.rows
    for before, row in pairwise(rows):
        if row.epoch <= before.epoch or row.start_offset < before.start_offset:
            detail = f"epoch {row.epoch} from offset {row.start_offset} follows epoch {before.epoch} from {before.start_offset}"
            return _disagrees(
                detail, row.start_offset, None, "drops the entries that contradict a later one when it loads them"
            )
    if not stretches or not rows:
        return None
    return _against_log(rows, stretches)


def _against_log(rows: Sequence[EpochStart], stretches: Sequence[EpochStretch]) -> SideFileFact | None:
    # entries below the log's start are cut away with it, even where no checkpoint tells that start any more
    known_from = rows[0].start_offset
    for stretch in stretches:
        first = max(stretch.first_offset, known_from)
        if first > stretch.last_offset:
            continue
        following = len([row for row in rows if row.start_offset <= first])
        told = rows[following - 1].epoch
        if told != stretch.leader_epoch:
            detail = f"epoch {told} for offset {first}, where the log has epoch {stretch.leader_epoch}"
            return _disagrees(detail, first, stretch.segment, _USES)
        if following < len(rows) and rows[following].start_offset <= stretch.last_offset:
            row = rows[following]
            detail = f"epoch {row.epoch} from offset {row.start_offset}, where the log has epoch {stretch.leader_epoch}"
            return _disagrees(detail, row.start_offset, stretch.segment, _USES)
    return None


def _disagrees(detail: str, offset: int, segment: int | None, broker: str) -> SideFileFact:
    return SideFileFact(
        "KA506",
        LEADER_EPOCH_CHECKPOINT,
        f"leader-epoch-checkpoint disagrees with the log: {detail}",
        _RULE,
        broker,
        severity=Severity.WARNING,
        segment=segment,
        offset=offset,
        last_offset=offset,
        evidence={"detail": detail},
        explanations=(
            Explanation(
                "the checkpoint is older than the log: it was restored, or not written before the host stopped"
            ),
            Explanation("the log was put together from two replicas"),
        ),
    )
