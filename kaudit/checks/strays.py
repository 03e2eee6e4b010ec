"""KA011: files and directories a broker leaves behind, not audited."""

from collections.abc import Sequence
from itertools import groupby

from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Confidence, Explanation, Finding
from kaudit.source.layout import StrayFile

_MEANING = {
    "deleted": "retention or compaction renamed it; the broker removes it after file.delete.delay.ms",
    "cleaned": "the log cleaner was writing it; a broker removes it at start",
    "swap": "the log cleaner was swapping files; a broker finishes that at start",
    "future": "a replica is being moved between log directories (JBOD); it is not yet in use",
    "delete": "the partition was deleted or moved; the broker removes it after file.delete.delay.ms",
    "stray": "according to the metadata this broker no longer owns the partition",
    "odd-name": "not a name that a broker gives",
}


def report_strays(strays: Sequence[StrayFile], replica: str | None = None) -> list[Finding]:
    """Report leftovers, one note a directory or a partition's files of one kind."""
    ordered = sorted(strays, key=_group)
    return [_report(list(group), replica) for _, group in groupby(ordered, key=_group)]


def _group(stray: StrayFile) -> tuple[str, str, int, str, str]:
    # a stray directory is a finding of its own: it has no base offset and may be a whole partition
    own = stray.relative if stray.kind in ("future", "delete", "stray") or stray.topic is None else ""
    partition = -1 if stray.partition is None else stray.partition
    return (stray.log_dir or "", stray.topic or "", partition, stray.kind, own)


def _report(group: list[StrayFile], replica: str | None) -> Finding:
    first, count = group[0], len(group)
    check = CHECKS["KA011"]
    offsets = [stray.base_offset for stray in group if stray.base_offset is not None]
    several = f" and {count - 1} more" if count > 1 else ""
    name = first.relative.rsplit("/", 1)[-1]
    return Finding(
        code=check.code,
        name=check.name,
        severity=check.severity,
        confidence=Confidence.CERTAIN,
        message=f"{name}{several} not audited: {_MEANING[first.kind]}",
        topic=first.topic,
        partition=first.partition,
        replica=replica,
        log_dir=first.log_dir,
        file=first.relative,
        anchor=name,
        evidence={
            "class": first.kind,
            "count": count,
            "files": [stray.relative for stray in group[:20]],
            "first_offset": min(offsets) if offsets else None,
            "last_offset": max(offsets) if offsets else None,
        },
        explanations=(Explanation(_MEANING[first.kind], innocent=first.kind != "odd-name"),),
    )
