"""Checks that have not moved into a module of their own yet."""

from kaudit.checks.check import Check
from kaudit.model.finding import Confidence, Severity

# code, name, gravest severity, when it is less, one line, since
_ROWS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        "KA401",
        "unallocated-producer-id",
        "error",
        "warning when the block history is incomplete or older than the id",
        "a producer id that no block of the cluster's history holds",
        "0.1.0",
    ),
    ("KA402", "block-overlap", "error", "", "producer ids that were granted twice", "0.1.0"),
    ("KA403", "block-malformed", "warning", "", "a block of producer ids that no broker writes", "0.1.0"),
    ("KA405", "producer-id-flood", "note", "", "producer ids by the hundreds an hour, a few batches each", "0.1.0"),
    ("KA406", "block-range-near-end", "warning", "", "the range of producer ids is nearly used up", "0.1.0"),
)

CATALOGUE = [
    Check(
        code=code,
        name=name,
        severity=Severity(severity),
        confidence=Confidence.CERTAIN,
        severity_note=severity_note,
        summary=summary,
        since=since,
        needs=(),
        observes=(),
        faulty_column="",
        run=lambda _context, _evidence: (),
        package="kaudit.checks",
    )
    for code, name, severity, severity_note, summary, since in _ROWS
]
