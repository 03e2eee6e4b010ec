"""--severity CODE=LEVEL: severities that a team sets differently from the catalogue."""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.model.finding import Finding, Severity


class Severities(Struct, frozen=True):
    """Levels by code or prefix of codes; the longest prefix decides."""

    levels: Mapping[str, Severity] = field(default_factory=dict)

    def apply(self, finding: Finding) -> Finding:
        """Return the finding with the severity asked for. Its fingerprint stays: it is the same finding."""
        matching = [prefix for prefix in self.levels if finding.code.startswith(prefix)]
        return replace(finding, severity=self.levels[max(matching, key=len)]) if matching else finding
