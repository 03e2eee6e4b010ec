"""Parses what was typed, and reads the documents it names; every mistake gets a suggestion."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kaudit.cli.options import FindingOptions, WatchedFindings
from kaudit.cli.settings import Settings
from kaudit.deferred import Deferred
from kaudit.errors import UsageError, suggestion
from kaudit.model.result import AppliedConfiguration
from kaudit.model.severity import Severity
from kaudit.policy.baseline import read_baseline
from kaudit.policy.policy import NamedBaseline, Policy, Severities
from kaudit.results.selection import Selection, parse_codes
from kaudit.source.local import read_text

if TYPE_CHECKING:
    from kaudit.results import saved_scan
else:
    saved_scan = Deferred("kaudit.results.saved_scan")


def parse_selection(select: Sequence[str], ignore: Sequence[str]) -> Selection:
    """Parse --select and --ignore: codes, prefixes or names of checks, commas between, repeatable."""
    return Selection(parse_codes(select, "--select"), parse_codes(ignore, "--ignore"))


def parse_names(values: Sequence[str], paths: Sequence[str]) -> Mapping[str, str]:
    """Parse --name NAME=DIR of `diff`: names by path; each DIR is one of the paths as it was typed."""
    if len(paths) < 2:
        raise UsageError(f"diff needs two or more directories, one per replica; {paths[0]} is the only one given")
    named: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--name {value}: write NAME=DIR, such as b1={paths[0]}")
        if path not in paths:
            raise UsageError(f"--name {value}: {path} is not among the directories{suggestion(path, paths)}")
        if path in named:
            raise UsageError(f"--name {value}: {path} has the name {named[path]} already")
        named[path] = name
    return named


def is_fingerprint(path: str) -> bool:
    """Whether an argument of `diff` is a fingerprint, by its name: `.json`, or `-` for stdin."""
    return path == "-" or path.endswith(".json")


def parse_policy(findings: WatchedFindings, settings: Settings) -> Policy:
    """Read the options, and the baseline they name."""
    baseline = findings.baseline
    known = None if baseline is None else NamedBaseline(baseline, read_baseline(baseline))
    given = {"severity": findings.severity, "select": findings.select, "ignore": findings.ignore}
    # the command line replaces what is configured
    configured = {key for key, value in given.items() if value and list(value) == settings.texts(key)}
    return Policy(
        parse_severities(findings.severity or ()),
        settings.topics,
        known,
        findings.max_findings if isinstance(findings, FindingOptions) else None,
        configuration=_configuration(findings, settings),
        configured=frozenset(configured),
    )


def _configuration(findings: WatchedFindings, settings: Settings) -> AppliedConfiguration | None:
    sources = dict.fromkeys([*(value.origin for value in settings.values.values()), settings.topics_origin])
    sources.pop("", None)
    if not sources and not settings.not_used:
        return None
    fail_on, exit_zero = settings.values.get("fail-on"), settings.values.get("exit-zero")
    never = exit_zero is not None and exit_zero.value is True and findings.exit_zero
    configured = fail_on is not None and fail_on.value == findings.fail_on.value
    level = "never" if never else findings.fail_on.value if configured else None
    return AppliedConfiguration([*sources], settings.not_used, fail_on=level)


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


def read_scan(file: str) -> "saved_scan.Saved":
    """Return a saved scan, `-` for stdin. Raises UsageError where it cannot be read, or is not one."""
    try:
        return saved_scan.read_saved(read_text(file))
    except saved_scan.SavedScanError as error:
        raise UsageError(f"{file}: {error}") from error
