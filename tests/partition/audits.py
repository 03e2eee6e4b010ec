"""Audits with a saved state, held against audits without one."""

from pathlib import Path

from msgspec.structs import replace

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError
from kaudit.model.result import ScanResult, StateUse
from kaudit.scanning.options import ScanOptions


class ReadBytes(SilentProgress):
    """Takes note of how many bytes of the log an audit planned to read."""

    planned = 0

    def start(self, total_bytes: int) -> None:
        """Take the plan."""
        self.planned = total_bytes


class Audited:
    """A log directory that is audited again and again with the same state."""

    def __init__(self, directory: Path, state: Path, **options: object) -> None:
        self.options = ScanOptions(paths=[str(directory)], **options)  # type: ignore[arg-type]
        self.state = state
        self.read_bytes = 0

    def full(self) -> ScanResult | None:
        """What an audit without a state gives, None where there is nothing to audit."""
        try:
            return local.scan(self.options, SilentProgress())
        except NothingToAuditError:
            return None

    def audit(self) -> StateUse:
        """Audit with the state, and compare all of the result with a full audit's; return what the state was of use for."""
        progress = ReadBytes()
        try:
            result = local.scan(replace(self.options, state=str(self.state)), progress)
        except NothingToAuditError:
            assert self.full() is None
            return StateUse()
        self.read_bytes = progress.planned
        assert result.state is not None
        expected = self.full()
        assert expected is not None
        assert expected.state is None
        assert replace(result, state=None) == expected
        return result.state
