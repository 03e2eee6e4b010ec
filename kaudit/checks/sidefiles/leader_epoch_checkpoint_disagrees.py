"""A leader-epoch-checkpoint that cannot be parsed, or contradicts itself or the leader epochs in the batches."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.sidefiles.about_file import partition_file
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.side_files import UnparsableSideFile, WrongLeaderEpochs

_KIND = "leader_epoch"
"""The name in `source/file_kinds.py`, whose import would load numpy for `kaudit explain`."""
_RULE = (
    "the checkpoint names the first offset of every leader epoch; followers truncate by it after a leader change "
    "(LeaderEpochFileCache)"
)
_UNPARSABLE_CAUSES = (
    Explanation("the host stopped while the file was being replaced"),
    Explanation("the file was edited, or cut by a copy"),
)
_WRONG_CAUSES = (
    Explanation("the checkpoint is older than the log: it was restored, or not written before the host stopped"),
    Explanation("the log was put together from two replicas"),
)


@check(
    "KA506",
    severity=Severity.ERROR,
    severity_note="warning when it can be parsed",
    summary="leader-epoch-checkpoint cannot be parsed or disagrees with the batches",
    needs=(UnparsableSideFile, WrongLeaderEpochs),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("a checkpoint of leader epochs is one file"),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("side files are written from the simulated state, and schedules damage none"),
)
def leader_epoch_checkpoint_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report a partition's file once, at its first fault."""
    for unparsable in evidence.of(UnparsableSideFile):
        if unparsable.kind == _KIND:
            yield _unparsable(context, unparsable)
    for wrong in evidence.of(WrongLeaderEpochs):
        yield _wrong(context, wrong)


def _unparsable(context: Context, found: UnparsableSideFile) -> Finding:
    return leader_epoch_checkpoint_disagrees.finding(
        context,
        f"{found.file} cannot be parsed: {found.detail}",
        position=found.position,
        evidence={
            "rule": _RULE,
            "broker": "fails the whole log directory at start (KafkaStorageException); with no other directory the broker "
            "stops",
            "reason": found.reason,
            "detail": found.detail,
            "size": found.size,
        },
        explanations=_UNPARSABLE_CAUSES,
        **partition_file(context, found.file),
    )


def _wrong(context: Context, found: WrongLeaderEpochs) -> Finding:
    uses = (
        "believes it: a follower, or a fetcher of this one, may truncate at a wrong offset after the next leader change"
    )
    drops = "drops the entries that contradict a later one when it loads them"
    return leader_epoch_checkpoint_disagrees.finding(
        context,
        f"{found.file} disagrees with the log: {found.detail}",
        severity=Severity.WARNING,
        segment=found.segment,
        offset=found.offset,
        last_offset=found.offset,
        evidence={"rule": _RULE, "broker": drops if found.segment is None else uses, "detail": found.detail},
        explanations=_WRONG_CAUSES,
        **partition_file(context, found.file),
    )
