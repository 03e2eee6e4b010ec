"""Checkpoints that cannot be parsed, or that contradict the log."""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.broker.partition.log_loading import unparsable_checkpoint_effect
from kaudit.checks.check import Evidence, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.sidefiles.about_file import (
    WHOLE_FILE,
    FaultEvidence,
    UnparsableEvidence,
    file_finding,
    side_file_check,
)
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.record_loss import ReportedChange
from kaudit.model.severity import Severity
from kaudit.model.side_files import CheckpointBeyondLogEnd, UnparsableCheckpoint, UnparsableSideFile, WrongLeaderEpochs

_LOG_START, _HIGH_WATERMARK = "log-start-offset-checkpoint", "replication-offset-checkpoint"
_MEANING = {
    "recovery-point-offset-checkpoint": "everything below it was flushed, so it cannot lie beyond the log's end",
    _HIGH_WATERMARK: "the high watermark: records below it were acknowledged by all in-sync replicas",
    _LOG_START: "records below it were deleted, so it cannot lie beyond the log's end",
    "cleaner-offset-checkpoint": "the cleaner has read up to it, so it cannot lie beyond the log's end",
}
_BROKER_BEYOND = {
    "recovery-point-offset-checkpoint": "takes the log's end instead",
    _HIGH_WATERMARK: "takes the log's end instead: records that were acknowledged are not there",
    _LOG_START: "removes all segments and starts the log anew at that offset",
    "cleaner-offset-checkpoint": "resets the cleaner to the log's start",
}
_BEYOND_CAUSES = (
    Explanation("the end of the log was lost: with the page cache, or by an incomplete copy"),
    Explanation("the checkpoint was copied later than the log", innocent=True),
)
_LOST_CAUSES = (
    Explanation("the end of the log was lost: with the page cache, by an incomplete copy, or by another program"),
    Explanation("a leader that lacked the records was elected, and the log was truncated to its end"),
)
_UNPARSABLE_OFFSETS_CAUSES = (Explanation("the host stopped while the file was replaced, or the file was edited"),)
_OF_A_LOG_DIR = dict.fromkeys(
    ("topic", "partition", "replica", "segment", "offset", "last_offset", "producer_id", "producer_epoch"),
    "the file belongs to a log directory",
)


class _BeyondEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    checkpoint_offset: int
    log_end_offset: int
    not_copied_later: str | None


@side_file_check(
    "KA505",
    severity=Severity.ERROR,
    severity_note="warning where a checkpoint cannot be parsed, or may have been copied later than the log, "
    "unless it is the log start offset",
    summary="an offset checkpoint cannot be parsed or lies beyond the end of a log",
    needs=(UnparsableCheckpoint, CheckpointBeyondLogEnd),
    incident=none_because("a checkpoint is one file for all partitions of a log directory"),
    caused_by=(ELECTED, UNCLEAN_STOP),
)
def checkpoint_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report an unparsable file once, and each partition whose log ends before a checkpoint.

    A checkpoint below the log end is healthy, and so is a high watermark of before a truncation.
    """
    for unparsable in evidence.of(UnparsableCheckpoint):
        yield _unparsable_offsets(context, unparsable)
    cuts = [change.cut for change in evidence.of(ReportedChange)]
    for beyond in evidence.of(CheckpointBeyondLogEnd):
        # it is written every five seconds: one of before a truncation knows what was cut off then, which KA612 counts
        is_counted = any(beyond.log_end_offset in cut and beyond.offset - 1 in cut for cut in cuts)
        if not (is_counted and beyond.file == _HIGH_WATERMARK and beyond.not_later is None):
            yield _beyond(context, beyond)


def _unparsable_offsets(context: Context, found: UnparsableCheckpoint) -> Finding:
    return checkpoint_disagrees.finding(
        replace(context, log_dir=found.log_dir),
        f"{found.file} cannot be parsed: {found.detail}",
        severity=Severity.WARNING,
        file=found.file,
        position=found.position,
        anchor=found.file,
        evidence=FaultEvidence(
            rule="version 0, a count, and one line of topic, partition and offset each (OffsetCheckpointFile)",
            broker=unparsable_checkpoint_effect(found.file),
            detail=found.detail,
        ),
        explanations=_UNPARSABLE_OFFSETS_CAUSES,
        absent=_OF_A_LOG_DIR,
    )


def _beyond(context: Context, found: CheckpointBeyondLogEnd) -> Finding:
    empties = found.file == _LOG_START
    # a log start offset beyond the end costs what the log still has
    first = int(context.segments[0][:20]) if empties and context.segments else found.log_end_offset
    lost = found.log_end_offset - first if empties else found.offset - found.log_end_offset
    return checkpoint_disagrees.finding(
        context,
        f"{found.file} says {found.offset}, but the log ends at {found.log_end_offset}"
        + ("" if found.not_later is None else f": {found.not_later}"),
        severity=Severity.ERROR if empties or found.not_later is not None else Severity.WARNING,
        offset=found.log_end_offset,
        last_offset=found.offset - 1,
        evidence=_BeyondEvidence(
            rule=_MEANING[found.file],
            broker=_BROKER_BEYOND[found.file],
            checkpoint_offset=found.offset,
            log_end_offset=found.log_end_offset,
            not_copied_later=found.not_later,
        ),
        explanations=_BEYOND_CAUSES if found.not_later is None else _LOST_CAUSES,
        file=context.log_dir_file(found.file),
        anchor=found.file,
        following=(
            context.inspect_log_dir_file(found.file),
            "look for these offsets on the partition's other replicas before this one leads it",
        ),
        impact=Impact(records_lost_at_least=found.records or None, records_lost_at_most=lost),
        absent=WHOLE_FILE,
    )


_LEADER_EPOCHS = "leader_epoch"
"""The name in `source/file_kinds.py`, whose import would load numpy for `kaudit explain`."""
_EPOCHS_RULE = (
    "the checkpoint names the first offset of every leader epoch; followers truncate by it after a leader change "
    "(LeaderEpochFileCache)"
)
_UNPARSABLE_EPOCHS_CAUSES = (
    Explanation("the host stopped while the file was being replaced"),
    Explanation("the file was edited, or cut by a copy"),
)
_WRONG_EPOCHS_CAUSES = (
    Explanation("the checkpoint is older than the log: it was restored, or not written before the host stopped"),
    Explanation("the log was put together from two replicas"),
)


@side_file_check(
    "KA506",
    severity=Severity.ERROR,
    severity_note="warning when it can be parsed",
    summary="leader-epoch-checkpoint cannot be parsed or disagrees with the batches",
    needs=(UnparsableSideFile, WrongLeaderEpochs),
    incident=none_because("a checkpoint of leader epochs is one file"),
    caused_by=(ELECTED, UNCLEAN_STOP),
)
def leader_epoch_checkpoint_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report a partition's file once, at its first fault."""
    for unparsable in evidence.of(UnparsableSideFile):
        if unparsable.kind == _LEADER_EPOCHS:
            yield _unparsable_epochs(context, unparsable)
    for wrong in evidence.of(WrongLeaderEpochs):
        yield _wrong_epochs(context, wrong)


def _unparsable_epochs(context: Context, found: UnparsableSideFile) -> Finding:
    return file_finding(
        leader_epoch_checkpoint_disagrees,
        context,
        found.file,
        f"{found.file} cannot be parsed: {found.detail}",
        position=found.position,
        evidence=UnparsableEvidence(
            rule=_EPOCHS_RULE,
            broker="fails the whole log directory at start (KafkaStorageException); with no other directory the broker "
            "stops",
            reason=found.reason,
            detail=found.detail,
            size=found.size,
        ),
        explanations=_UNPARSABLE_EPOCHS_CAUSES,
    )


def _wrong_epochs(context: Context, found: WrongLeaderEpochs) -> Finding:
    uses = (
        "believes it: a follower, or a fetcher of this one, may truncate at a wrong offset after the next leader change"
    )
    drops = "drops the entries that contradict a later one when it loads them"
    return file_finding(
        leader_epoch_checkpoint_disagrees,
        context,
        found.file,
        f"{found.file} disagrees with the log: {found.detail}",
        severity=Severity.WARNING,
        segment=found.segment,
        offset=found.offset,
        last_offset=found.offset,
        evidence=FaultEvidence(rule=_EPOCHS_RULE, broker=drops if found.segment is None else uses, detail=found.detail),
        explanations=_WRONG_EPOCHS_CAUSES,
    )
