"""What a scan says of groups."""

from pathlib import Path
from typing import Any

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.scanning.options import ScanOptions
from tests.commits import GroupLog


def scanned(*paths: Path) -> ScanResult:
    """Scan directories."""
    return scan(ScanOptions([str(path) for path in paths], jobs=1), SilentProgress())


def of_groups(result: ScanResult) -> list[Finding]:
    """The findings about committed offsets, whatever was processed."""
    return [finding for finding in result.findings if "KA900" <= finding.code < "KA915"]


def evidence_of(finding: Finding) -> dict[str, Any]:
    """Its evidence, as JSON has it."""
    return finding.evidence.to_dict()


def shown(log: GroupLog, directory: Path) -> list[tuple[str, str, int]]:
    """Code, severity and number of steps of what a scan finds in a partition of __consumer_offsets."""
    found = of_groups(scanned(log.write(directory)))
    return [(each.code, each.severity.value, evidence_of(each)["times"]) for each in found]
