"""What two findings must share to be called the same trace."""

from collections.abc import Mapping

from kaudit.model.evidence import FindingEvidence
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
    evidence = FindingEvidence(finding.evidence)
    offending, before = evidence.offending, evidence.previous
    trace: dict[str, object] = {"code": finding.code, "class": evidence.kind}
    trace["is_transactional"] = None if offending is None else offending.is_transactional
    trace["same_timestamps"] = evidence.same_timestamps
    trace["records"], trace["batches"] = _size(evidence.records), _size(evidence.batches)
    if before is not None and offending is not None:
        leaders = (before.leader_epoch, offending.leader_epoch)
        trace["same_leader"] = None if None in leaders else leaders[0] == leaders[1]
        trace["epoch"] = _order(before.producer_epoch, offending.producer_epoch)
        trace["same_id"] = before.producer_id == offending.producer_id
        trace["sequence"] = _step(before.last_sequence, offending.base_sequence)
    return trace


def _size(count: int | None) -> str | None:
    if count is None:
        return None
    return "1" if count == 1 else "few" if count <= _FEW else "many"


def _order(before: int | None, after: int | None) -> str | None:
    if before is None or after is None:
        return None
    step = after - before
    return "lower" if step < 0 else "same" if step == 0 else "next" if step == 1 else "later"


def _step(last: int | None, first: int | None) -> str | None:
    if last is None or first is None or first < 0:
        return None
    if first == last + 1:
        return "next"
    if first == 0:
        return "0"
    return "before" if first <= last else f"gap of {_size(first - last - 1)}"
