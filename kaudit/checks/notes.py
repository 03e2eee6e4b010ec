"""At most one note per (code, partition, producer id, class): informational, so once is enough."""

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from kaudit.checks.observations import LazyEvidence
from kaudit.model.finding import Finding, Severity


def fold_notes(findings: Iterable[Finding]) -> list[Finding]:
    """Fold notes of one partition replica that say the same into the first of them, with count and offsets."""
    kept: list[Finding] = []
    counts: dict[tuple[object, ...], _Counted] = {}
    for finding in findings:
        if finding.severity is not Severity.NOTE or "count" in finding.evidence:
            kept.append(finding)
            continue
        key = (finding.code, finding.producer_id, finding.evidence.get("class"))
        counted = counts.get(key)
        if counted is None:
            counts[key] = counted = _Counted(finding)
            kept.append(replace(finding, evidence=LazyEvidence(counted, _COUNTS, finding.evidence)))
        counted.count += 1
        counted.last_offset = finding.last_offset
    return kept


class _Counted:
    """How many notes one stands for, and where they are."""

    __slots__ = ("count", "first_offset", "last_offset")

    def __init__(self, first: Finding) -> None:
        self.count = 0
        self.first_offset = self.last_offset = first.offset


_COUNTS: Mapping[str, Callable[[_Counted], object]] = {
    "count": lambda counted: counted.count,
    "first_offset": lambda counted: counted.first_offset,
    "last_offset": lambda counted: counted.last_offset,
}
