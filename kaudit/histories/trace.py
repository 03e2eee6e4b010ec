"""What two findings must share to be called the same trace."""

from collections.abc import Mapping
from typing import Any

from kaudit.model.finding import Finding

_FEW = 5
"""Batches a broker remembers of a producer; more than that is another case than fewer."""

Trace = Mapping[str, object]


def trace_of(finding: Finding) -> Trace:
    """Return what a finding shows, without offsets, times and sizes. Two findings are the same if their traces are equal.

    - the check, and the class it gives the finding;
    - whether the offending batch is transactional, and whether a newer leader wrote it than the batch before it;
    - its producer epoch beside that batch's: lower, same, the next, or later; another producer id;
    - its first sequence beside that batch's last: the next, 0, the same or before, or one that leaves out 1, up to 5, or more;
    - how many records or batches it is about: 1, up to 5, or more; whether they have their old timestamps.
    """
    evidence = finding.evidence
    offending, before = _batch(evidence, "offending"), _batch(evidence, "previous")
    trace: dict[str, object] = {"code": finding.code, "class": evidence.get("class")}
    trace["is_transactional"] = offending.get("is_transactional")
    trace["same_timestamps"] = evidence.get("same_timestamps")
    for count in ("records", "batches"):
        trace[count] = _size(evidence.get(count))
    if before and offending:
        leaders = (before.get("leader_epoch"), offending.get("leader_epoch"))
        trace["same_leader"] = None if None in leaders else leaders[0] == leaders[1]
        trace["epoch"] = _order(before.get("producer_epoch"), offending.get("producer_epoch"))
        trace["same_id"] = before.get("producer_id") == offending.get("producer_id")
        trace["sequence"] = _step(before.get("last_sequence"), offending.get("base_sequence"))
    return trace


def _batch(evidence: Mapping[str, object], name: str) -> Mapping[str, Any]:
    batch = evidence.get(name)
    return batch if isinstance(batch, Mapping) else {}


def _size(count: object) -> str | None:
    if not isinstance(count, int):
        return None
    return "1" if count == 1 else "few" if count <= _FEW else "many"


def _order(before: object, after: object) -> str | None:
    if not isinstance(before, int) or not isinstance(after, int):
        return None
    step = after - before
    return "lower" if step < 0 else "same" if step == 0 else "next" if step == 1 else "later"


def _step(last: object, first: object) -> str | None:
    if not isinstance(last, int) or not isinstance(first, int) or first < 0:
        return None
    if first == last + 1:
        return "next"
    if first == 0:
        return "0"
    return "before" if first <= last else f"gap of {_size(first - last - 1)}"
