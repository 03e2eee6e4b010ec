"""Selection and policy of a run, as tasks of an engine apply them to the findings they make."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.model.finding import Finding
from kaudit.policy.policy import Policy
from kaudit.results.selection import Selection


class Decision(Struct, frozen=True):
    """What a run reports of findings, and as what."""

    selection: Selection
    policy: Policy

    def __call__(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings that belong into the report, with severities, topics and baseline applied."""
        return self.policy.decide([finding for finding in findings if self.selection.includes(finding.code)])
