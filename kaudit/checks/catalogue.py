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
    ("KA601", "replicas-diverged", "error", "", "replicas hold different records at one offset", "0.1.0"),
    ("KA602", "replica-behind", "note", "", "a replica ends before the others", "0.1.0"),
    (
        "KA603",
        "only-copy",
        "error",
        "warning above the high watermark",
        "records that are on one replica alone",
        "0.1.0",
    ),
    (
        "KA701",
        "repeated-across-sessions",
        "warning",
        "",
        "a producer's first records are those another session had written (--depth records)",
        "0.1.0",
    ),
    ("KA702", "retry-duplicate", "warning", "", "a batch without a producer id is in the log twice", "0.1.0"),
    ("KA703", "reordered-retry", "warning", "", "a retry has put batches without producer ids out of order", "0.1.0"),
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
