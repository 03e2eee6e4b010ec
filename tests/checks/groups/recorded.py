"""Findings about recorded applications."""

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.scanning.options import ScanOptions
from tests.live_brokers.exactly_once.stage import DATA


def findings(name: str, code: str) -> list[Finding]:
    """What a check says of one recording."""
    result = scan(ScanOptions([str(DATA / f"{name}.tar.xz")], jobs=1), SilentProgress())
    return [finding for finding in result.findings if finding.code == code]
