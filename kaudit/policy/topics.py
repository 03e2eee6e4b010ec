"""A team's settings for a topic: what is normal there, and which findings are accepted, with a reason."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding, Status


class Accepted(Struct, frozen=True):
    """Codes, or prefixes of codes, that are accepted, and why."""

    codes: Sequence[str]
    reason: str


class TopicRule(Struct, frozen=True):
    """`pattern`: a topic's name, or with `*` and `?` many (Kafka allows neither in a name).

    `expected_producers`: up to this many producer ids in a partition are not reported.
    """

    pattern: str
    compacted: bool = False
    expected_producers: int | None = None
    accepted: Sequence[Accepted] = ()

    def applies_to(self, topic: str | None) -> bool:
        """Whether the rule is for this topic."""
        return topic is not None and fnmatchcase(topic, self.pattern)

    def apply(self, finding: Finding) -> Finding:
        """Return the finding, suppressed if it is accepted here."""
        if finding.status is not Status.NEW or not self.applies_to(finding.topic):
            return finding
        reason = self._reason(finding)
        return finding if reason is None else replace(finding, status=Status.SUPPRESSED, suppression=reason)

    def _reason(self, finding: Finding) -> str | None:
        for accepted in self.accepted:
            if any(finding.code.startswith(code) for code in accepted.codes):
                return accepted.reason
        tolerated = CHECKS[finding.code].tolerated if finding.code in CHECKS else None
        if tolerated is None:
            return None
        number, most = tolerated.number(finding.evidence), getattr(self, tolerated.setting)
        if number is not None and most is not None and number <= most:
            return tolerated.reason.format(most)
        return None
