"""Folds notes: at most one per (code, partition, producer id, class), because a note is only informational."""

from collections.abc import Iterable

from msgspec.structs import replace

from kaudit.model.evidence_parts import FoldedNotes
from kaudit.model.finding import Finding, Severity


def fold_notes(findings: Iterable[Finding]) -> list[Finding]:
    """Fold notes of one partition replica that say the same into the first of them, with count and offsets."""
    kept: list[Finding] = []
    alike: dict[tuple[object, ...], list[int | None]] = {}
    first: dict[int, list[int | None]] = {}
    for finding in findings:
        if finding.severity is Severity.NOTE and finding.evidence.count is None:
            key = (finding.code, finding.producer_id, finding.evidence.kind)
            ends = alike.setdefault(key, [])
            ends.append(finding.last_offset)
            if len(ends) > 1:
                continue
            first[len(kept)] = ends
        kept.append(finding)
    for place, ends in first.items():
        finding = kept[place]
        folded = FoldedNotes(len(ends), finding.offset, ends[-1])
        kept[place] = replace(finding, evidence=replace(finding.evidence, folded=folded))
    return kept
