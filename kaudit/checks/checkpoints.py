"""KA505: the four offset checkpoints of a log directory against its partitions."""

from kaudit.broker.partition.log_loading import unparsable_checkpoint_verdict
from kaudit.checks.registry import CHECKS
from kaudit.checks.sidefiles import SideFileFact
from kaudit.formats.errors import Damage
from kaudit.model.finding import Confidence, Explanation, Finding

_MEANING = {
    "recovery-point-offset-checkpoint": "everything below it was flushed, so it cannot lie beyond the log's end",
    "replication-offset-checkpoint": "the high watermark: records below it were acknowledged by all in-sync replicas",
    "log-start-offset-checkpoint": "records below it were deleted, so it cannot lie beyond the log's end",
    "cleaner-offset-checkpoint": "the cleaner has read up to it, so it cannot lie beyond the log's end",
}
_BROKER_BEYOND = {
    "recovery-point-offset-checkpoint": "takes the log's end instead",
    "replication-offset-checkpoint": "takes the log's end instead: records that were acknowledged are not there",
    "log-start-offset-checkpoint": "removes all segments and starts the log anew at that offset",
    "cleaner-offset-checkpoint": "resets the cleaner to the log's start",
}


def unparsable_checkpoint(log_dir: str, file: str, damage: Damage) -> Finding:
    """Return the finding of a checkpoint that does not parse: it belongs to the log directory, to no partition."""
    check = CHECKS["KA505"]
    absent = "the file belongs to a log directory"
    return Finding(
        code=check.code,
        name=check.name,
        severity=check.severity,
        confidence=Confidence.CERTAIN,
        message=f"{file} cannot be parsed: {damage.detail}",
        log_dir=log_dir,
        file=file,
        position=damage.position,
        anchor=file,
        evidence={
            "rule": "version 0, a count, and one line of topic, partition and offset each (OffsetCheckpointFile)",
            "broker": unparsable_checkpoint_verdict(file),
            "detail": damage.detail,
        },
        explanations=(Explanation("the host stopped while the file was replaced, or the file was edited"),),
        absent=dict.fromkeys(
            ("topic", "partition", "replica", "segment", "offset", "last_offset", "producer_id", "producer_epoch"),
            absent,
        ),
    )


def check_checkpoint(file: str, offset: int, log_end_offset: int) -> SideFileFact | None:
    """Return the fact of a checkpoint that lies beyond the log's end (exclusive); behind it is healthy."""
    if offset <= log_end_offset:
        return None
    return SideFileFact(
        "KA505",
        file,
        f"{file} says {offset}, but the log ends at {log_end_offset}",
        _MEANING[file],
        _BROKER_BEYOND[file],
        offset=log_end_offset,
        last_offset=offset - 1,
        evidence={"checkpoint_offset": offset, "log_end_offset": log_end_offset},
        explanations=(
            Explanation("the end of the log was lost: with the page cache, or by an incomplete copy"),
            Explanation("the checkpoint was copied later than the log", innocent=True),
        ),
        beside=True,
    )
