"""An offset checkpoint of a log directory that cannot be parsed, or that lies beyond the end of a log."""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.broker.partition.log_loading import unparsable_checkpoint_verdict
from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.sidefiles.about_file import log_dir_file
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.side_files import CheckpointBeyondLogEnd, UnparsableCheckpoint

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
_BEYOND_CAUSES = (
    Explanation("the end of the log was lost: with the page cache, or by an incomplete copy"),
    Explanation("the checkpoint was copied later than the log", innocent=True),
)
_UNPARSABLE_CAUSES = (Explanation("the host stopped while the file was replaced, or the file was edited"),)
_OF_A_LOG_DIR = dict.fromkeys(
    ("topic", "partition", "replica", "segment", "offset", "last_offset", "producer_id", "producer_epoch"),
    "the file belongs to a log directory",
)


@check(
    "KA505",
    severity=Severity.WARNING,
    summary="an offset checkpoint cannot be parsed or lies beyond the end of a log",
    needs=(UnparsableCheckpoint, CheckpointBeyondLogEnd),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("a checkpoint is one file for all partitions of a log directory"),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("side files are written from the simulated state, and schedules damage none"),
)
def checkpoint_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report a file of a log directory once, and each partition whose log ends before a checkpoint; behind is healthy."""
    for unparsable in evidence.of(UnparsableCheckpoint):
        yield _unparsable(context, unparsable)
    for beyond in evidence.of(CheckpointBeyondLogEnd):
        yield _beyond(context, beyond)


def _unparsable(context: Context, found: UnparsableCheckpoint) -> Finding:
    return checkpoint_disagrees.finding(
        replace(context, log_dir=found.log_dir),
        f"{found.file} cannot be parsed: {found.detail}",
        file=found.file,
        position=found.position,
        anchor=found.file,
        evidence={
            "rule": "version 0, a count, and one line of topic, partition and offset each (OffsetCheckpointFile)",
            "broker": unparsable_checkpoint_verdict(found.file),
            "detail": found.detail,
        },
        explanations=_UNPARSABLE_CAUSES,
        absent=_OF_A_LOG_DIR,
    )


def _beyond(context: Context, found: CheckpointBeyondLogEnd) -> Finding:
    return checkpoint_disagrees.finding(
        context,
        f"{found.file} says {found.offset}, but the log ends at {found.log_end_offset}",
        offset=found.log_end_offset,
        last_offset=found.offset - 1,
        evidence={
            "rule": _MEANING[found.file],
            "broker": _BROKER_BEYOND[found.file],
            "checkpoint_offset": found.offset,
            "log_end_offset": found.log_end_offset,
        },
        explanations=_BEYOND_CAUSES,
        **log_dir_file(context, found.file),
    )
