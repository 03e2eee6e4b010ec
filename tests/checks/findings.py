"""What one check reports of one log."""

from pathlib import Path

from msgspec.structs import replace

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


def cost_of(finding):
    """What a finding cost, without the acts that would make it cost more."""
    return replace(finding.impact, cautions=())


def cautions_of(finding):
    """The acts that would make a finding cost more, and on what."""
    return [(caution.act.value, caution.target) for caution in finding.impact.cautions]
