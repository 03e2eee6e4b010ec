"""A file or directory a broker left behind; it is not checked."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.texts import listed
from kaudit.model.copy_identities import LogCopy, RecreatedLog, SetAsideLog
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.severity import Severity
from kaudit.source.layout import LeftoverFile

_MEANING = {
    "deleted": "retention or compaction renamed it; the broker removes it after file.delete.delay.ms",
    "cleaned": "the log cleaner was writing it; a broker removes it at start",
    "swap": "the log cleaner was swapping files; a broker finishes that at start",
    "future": "a replica is being moved between log directories (JBOD); it is not yet in use",
    "delete": "the partition was deleted or moved; the broker removes it after file.delete.delay.ms",
    "stray": "according to the metadata this broker no longer owns the partition",
    "odd-name": "not a name a broker gives",
}
_METADATA_WENT_BACK = Explanation(
    "the controllers' metadata was put back to an older copy, or made anew: it never had this topic, and no consumer can read it",
    speaks_for=("no TopicRecord in __cluster_metadata has its topic id",),
)
_DIRECTORY_KINDS = ("future", "delete", "stray")
_MAX_LISTED = 20


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    kind: str
    count: int
    files: Sequence[str]
    first_offset: int | None
    last_offset: int | None
    found_nowhere_else: Sequence[int] | None = None
    """First and last offset that only a directory set aside holds."""
    topic_deletion: str | None = None
    """Where the deletion of its topic is written: in __cluster_metadata or in a line of a log."""


@check(
    "KA011",
    severity=Severity.WARNING,
    severity_note="note where nothing in it is the only copy, or the topic was deleted",
    summary="a file or directory a broker leaves behind, not checked",
    needs=(LeftoverFile,),
    incident=none_because(
        "a leftover file is what one interrupted deletion or swap left; nothing else follows from it"
    ),
    caused_by=none_because("brokers log the deletion or swap that left a file only at levels that are off"),
    simulated=none_because("schedules interrupt neither deletions nor swaps of files"),
)
def stray_file(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report leftovers: one note for each directory, and for a partition's files of one kind."""
    logs = {log.directory: log for log in evidence.of(SetAsideLog)}
    recreated = {(found.topic, found.partition) for found in evidence.of(RecreatedLog)}
    for _, group in groupby(sorted(evidence.of(LeftoverFile), key=_group), key=_group):
        first, *others = group
        offsets = [file.base_offset for file in (first, *others) if file.base_offset is not None]
        log = logs.get(first.relative)
        if log is not None:
            offsets = [log.log.start_offset, (log.log.end_offset or 0) - 1]
        alone = None if log is None else log.alone
        # the copy that is moved lies on another disk, which need not be among the inputs
        wanted = alone is not None and (first.kind == "stray" or (first.kind == "future" and bool(log and log.copies)))
        is_counted = (first.topic, first.partition) in recreated or bool(log and log.twin)  # by KA613, or here
        count = 0 if alone is None else alone[1] - alone[0] + 1
        more = f" and {len(others)} more" if others else ""
        yield stray_file.finding(
            replace(context, topic=first.topic, partition=first.partition, log_dir=first.log_dir),
            f"{first.name}{more} not checked: {_MEANING[first.kind]}{'' if log is None else _held(log)}",
            severity=Severity.WARNING if wanted else Severity.NOTE,
            file=first.relative,
            anchor=first.name,
            evidence=_Evidence(
                kind=first.kind,
                count=1 + len(others),
                files=[file.relative for file in (first, *others)][:_MAX_LISTED],
                first_offset=min(offsets, default=None),
                last_offset=max(offsets, default=None),
                found_nowhere_else=alone,
                topic_deletion=None if log is None else log.removed,
            ),
            explanations=(
                *([_METADATA_WENT_BACK] if log is not None and log.never_created else ()),
                Explanation(_MEANING[first.kind], innocent=alone is None and first.kind != "odd-name"),
            ),
            impact=Impact()
            if alone is None or not wanted
            else Impact(
                records_lost_at_least=None if is_counted else count if log and log.never_created else 0,
                records_lost_at_most=None if is_counted else count,
                # as a shell finds it: the id between is 32 digits
                cautions=(Caution(Act.DELETE, f"{first.topic}-{first.partition}.*-{first.kind}", _alone(log, alone)),),
            ),
            following=() if log is None else _commands(f"{log.log.log_dir}/{first.name}", log),
        )


def _commands(path: str, log: SetAsideLog) -> list[str]:
    same = [copy for copy in log.copies if not _other_topic(copy, log.log) and copy.cluster_id == log.log.cluster_id]
    others = [quote(f"{copy.log_dir}/{copy.topic}-{copy.partition}") for copy in same]
    compared = [f"kaudit diff {quote(path)} {' '.join(others)}"] if others else []
    return [f"kaudit scan {quote(path)}", *compared]


def _held(log: SetAsideLog) -> str:
    """Say what the directory holds, and whether a copy in use holds it too."""
    removed = "" if log.removed is None else f"; its topic was deleted ({log.removed})"
    if log.alone is None:
        return f"{removed}; it holds {log.log.offsets}, and so do copies in use"
    in_use = [f"{copy.name} ({copy.offsets}{_other_topic(copy, log.log)})" for copy in log.copies]
    where = f"not {listed(in_use)}" if in_use else "no other copy that was given"
    return f"{removed}; {_alone(log, log.alone)}, {where}"


def _alone(log: SetAsideLog | None, alone: tuple[int, int]) -> str:
    holders = f"with {log.twin} it alone" if log is not None and log.twin else "it alone"
    return f"{holders} holds offsets {alone[0]}..{alone[1]}"


def _other_topic(copy: LogCopy, own: LogCopy) -> str:
    return (
        ", of another topic id" if None not in {copy.topic_id, own.topic_id} and copy.topic_id != own.topic_id else ""
    )


def _group(file: LeftoverFile) -> tuple[str, str, int, str, str]:
    # a directory is a finding of its own: it has no base offset and may be a whole partition
    own = file.relative if file.kind in _DIRECTORY_KINDS or file.topic is None else ""
    partition = -1 if file.partition is None else file.partition
    return (file.log_dir or "", file.topic or "", partition, file.kind, own)
