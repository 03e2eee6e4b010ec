"""Producers whose sequences are missing exactly where offsets are: part of the finding about the offsets."""

from collections.abc import Mapping

from kaudit.checks.check import Evidence

_MAX_LISTED = 20


def consequences(evidence: Evidence, first: int | None, last: int | None) -> Mapping[str, object]:
    """Return `{"consequences": [...]}` for the missing offsets first..last, {} if no producer lacks anything there."""
    if first is None or last is None:
        return {}
    found: list[dict[str, int]] = []
    for observation in evidence.explained:
        remembered = observation.remembered
        before = remembered.last.last_offset if remembered and remembered.last else -1
        if before < first and observation.offset > last:
            found.append(
                {
                    "producer_id": observation.producer_id,
                    "producer_epoch": observation.producer_epoch,
                    "missing_sequences": observation.missing_sequences,
                    "offset": observation.offset,
                }
            )
    if not found:
        return {}
    found.sort(key=lambda entry: (entry["offset"], entry["producer_id"]))
    more = len(found) - _MAX_LISTED
    return {"consequences": [*found[:_MAX_LISTED], {"more": more}] if more > 0 else found}
