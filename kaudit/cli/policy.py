"""The options that say what to make of findings: --severity, --baseline, --max-findings and the configured topics."""

from collections.abc import Sequence

from kaudit.cli.settings.settings import Settings
from kaudit.errors import UsageError, suggestion
from kaudit.model.finding import Severity
from kaudit.policy.baseline import read_baseline
from kaudit.policy.policy import NamedBaseline, Policy
from kaudit.policy.severities import Severities
from kaudit.results.selection import parse_codes


def parse_policy(severity: Sequence[str], baseline: str | None, max_findings: int | None, settings: Settings) -> Policy:
    """Read the options, and the baseline they name."""
    known = None if baseline is None else NamedBaseline(baseline, read_baseline(baseline))
    return Policy(parse_severities(severity), settings.topics, known, max_findings)


def parse_severities(values: Sequence[str]) -> Severities:
    """Parse CODE=LEVEL, commas between, repeatable; the last word on a code counts."""
    levels: dict[str, Severity] = {}
    for pair in (pair.strip() for value in values for pair in value.split(",")):
        codes, equals, level = pair.partition("=")
        if not equals:
            raise UsageError(f"--severity {pair}: write CODE=LEVEL, such as KA302=error")
        words = [severity.value for severity in Severity]
        if level not in words:
            hint = suggestion(level, words) or f"; there are {', '.join(words)}"
            raise UsageError(f"--severity {pair}: there is no level {level}{hint}")
        for code in parse_codes([codes], "--severity"):
            levels[code] = Severity(level)
    return Severities(levels)
