"""The local engine."""

# ruff: noqa: ARG001

from kaudit.model.result import ScanResult, TimelineResult
from kaudit.pipeline.options import NothingToAuditError, Progress, ScanOptions


def scan(options: ScanOptions, progress: Progress) -> ScanResult:
    """Audit the paths."""
    raise NothingToAuditError("nothing to audit")


def timeline(options: ScanOptions, progress: Progress) -> TimelineResult:
    """Tell the producers' histories."""
    raise NothingToAuditError("nothing to audit")
