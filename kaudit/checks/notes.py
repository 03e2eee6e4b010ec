"""At most one note per (code, partition, producer id, class): informational, so once is enough."""

from collections.abc import Iterable

from msgspec.structs import replace

from kaudit.model.finding import Finding, Severity


def fold_notes(findings: Iterable[Finding]) -> list[Finding]:
    """Fold notes of one partition replica that say the same into the first of them, with count and offsets."""
    kept: list[Finding] = []
    places: dict[tuple[object, ...], int] = {}
    for finding in findings:
        if finding.severity is not Severity.NOTE or "count" in finding.evidence:
            kept.append(finding)
            continue
        key = (finding.code, finding.producer_id, finding.evidence.get("class"))
        place = places.get(key)
        if place is None:
            places[key] = len(kept)
            counted = {"count": 1, "first_offset": finding.offset, "last_offset": finding.last_offset}
            kept.append(replace(finding, evidence={**finding.evidence, **counted}))
            continue
        first = kept[place]
        count = first.evidence["count"]
        assert isinstance(count, int)
        more = {"count": count + 1, "last_offset": finding.last_offset}
        kept[place] = replace(first, evidence={**first.evidence, **more})
    return kept
