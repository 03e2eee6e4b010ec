"""A file or directory a broker left behind; it is not audited."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding, Severity
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
_DIRECTORY_KINDS = ("future", "delete", "stray")
_MAX_LISTED = 20


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    kind: str
    count: int
    files: Sequence[str]
    first_offset: int | None
    last_offset: int | None


@check(
    "KA011",
    severity=Severity.NOTE,
    summary="a file or directory a broker leaves behind, not audited",
    needs=(LeftoverFile,),
    incident=none_because(
        "a leftover file is what one interrupted deletion or swap left; nothing else follows from it"
    ),
    caused_by=none_because("brokers log the deletion or swap that left a file only at levels that are off"),
    simulated=none_because("schedules interrupt neither deletions nor swaps of files"),
)
def stray_file(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report leftovers: one note for each directory, and for a partition's files of one kind."""
    for _, group in groupby(sorted(evidence.of(LeftoverFile), key=_group), key=_group):
        first, *others = group
        offsets = [file.base_offset for file in (first, *others) if file.base_offset is not None]
        more = f" and {len(others)} more" if others else ""
        yield stray_file.finding(
            replace(context, topic=first.topic, partition=first.partition, log_dir=first.log_dir),
            f"{first.name}{more} not audited: {_MEANING[first.kind]}",
            file=first.relative,
            anchor=first.name,
            evidence=_Evidence(
                kind=first.kind,
                count=1 + len(others),
                files=[file.relative for file in (first, *others)][:_MAX_LISTED],
                first_offset=min(offsets, default=None),
                last_offset=max(offsets, default=None),
            ),
            explanations=(Explanation(_MEANING[first.kind], innocent=first.kind != "odd-name"),),
        )


def _group(file: LeftoverFile) -> tuple[str, str, int, str, str]:
    # a directory is a finding of its own: it has no base offset and may be a whole partition
    own = file.relative if file.kind in _DIRECTORY_KINDS or file.topic is None else ""
    partition = -1 if file.partition is None else file.partition
    return (file.log_dir or "", file.topic or "", partition, file.kind, own)
