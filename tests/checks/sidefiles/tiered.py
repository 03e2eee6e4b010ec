"""What a scan says of remote segments."""

from pathlib import Path

from kaudit.model.coverage import Coverage
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from tests.checks.groups.scanned import scanned
from tests.live_brokers.accidents.judged import recorded as accident

__all__ = ["account_of", "of_remote_segments", "recorded", "scanned", "shown"]


def of_remote_segments(result: ScanResult) -> list[Finding]:
    """The findings about remote segments."""
    return [finding for finding in result.findings if "KA510" <= finding.code <= "KA519"]


def shown(directory: Path) -> list[tuple[str, str, int | None, int | None]]:
    """Code, severity and offsets of each."""
    found = of_remote_segments(scanned(directory))
    return [(each.code, each.severity.value, each.offset, each.last_offset) for each in found]


def account_of(directory: Path) -> Coverage:
    """What became of the offsets of orders-0."""
    (account,) = [each for each in scanned(directory).coverage if each.topic == "orders"]
    return account


def recorded(name: str, moment: str) -> Path:
    """The directories of the brokers at a moment of a recorded accident."""
    return accident(name) / moment
