"""What one check reports of one log."""

from pathlib import Path

from kaudit.checks.check import Check
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Log


def findings_of(check: Check, directory: Path, log: Log, **options):
    """Scan a log in a partition directory of its own; return severity, producer id and offset of the check's findings."""
    written = log.write(directory / "orders-0")
    result = scan(ScanOptions([str(written)], **options), SilentProgress())
    return [
        (found.severity.value, found.producer_id, found.offset) for found in result.findings if found.code == check.code
    ]


def recorded_findings(check: Check, path: str, **options):
    """Scan a recorded log; return severity, topic, producer id and offset of the check's findings."""
    result = scan(ScanOptions([path], **options), SilentProgress())
    return [
        (found.severity.value, found.topic, found.producer_id, found.offset)
        for found in result.findings
        if found.code == check.code
    ]
