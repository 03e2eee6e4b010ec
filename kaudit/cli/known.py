"""What the baseline commands share: an audit, which of its findings to keep, and writing the file."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from kaudit.analysis.scan.options import ScanOptions, UsageError
from kaudit.cli.decisions import parse_severities
from kaudit.cli.exits import ExitCode
from kaudit.cli.parsing import parse_broker_version, parse_selection
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.rendering import read_scan
from kaudit.cli.settings.settings import Settings
from kaudit.cli.targets import parse_targets, write
from kaudit.model.finding import Finding, Severity, Status
from kaudit.model.result import ScanResult
from kaudit.policy.baseline import Baseline
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Policy
from kaudit.report.formatting import plural

_SAVED_SUFFIX = ".json"


class Seen(Struct, frozen=True):
    """An audit as a baseline needs it: everything it found, and what it looked for."""

    result: ScanResult
    scope: Scope
    quiet: bool

    def worth_keeping(self, *, notes: bool) -> list[Finding]:
        """Return the findings a baseline takes: those the configuration has not accepted, notes only if asked for."""
        return [
            finding
            for finding in self.result.findings
            if finding.status is Status.NEW and (notes or finding.severity is not Severity.NOTE)
        ]

    def stale_in(self, baseline: Baseline) -> list[str]:
        """Return the fingerprints of entries that this audit would have seen and has not."""
        seen = {finding.fingerprint for finding in self.result.findings}
        return [
            entry.fingerprint
            for entry in baseline.entries
            if entry.fingerprint not in seen and self.scope.covers(entry, self.result)
        ]


def audit(
    settings: Settings,
    paths: Sequence[str],
    file: str,
    select: Sequence[str],
    ignore: Sequence[str],
    broker_version: str,
    *,
    quiet: bool,
) -> Seen:
    """Audit the paths, or read the one saved scan among them."""
    parse_targets(["json"], file, paths)  # a place that cannot be is refused before the audit
    selection = parse_selection(select, ignore)
    policy = Policy(parse_severities(settings.texts("severity")), settings.topics)
    options = ScanOptions(
        paths=paths,
        broker_version=parse_broker_version(broker_version),
        compacted_topics=tuple(rule.pattern for rule in settings.topics if rule.compacted),
    )
    if len(paths) == 1 and paths[0].endswith(_SAVED_SUFFIX) and not Path(paths[0]).is_dir():
        scope, result = Scope(selection.includes), read_scan(paths[0]).result
    else:
        from kaudit.engines import local

        with progress_on_stderr(quiet=quiet) as progress:
            scope, result = Scope(selection.includes, options), local.scan(options, progress)
    return Seen(policy.apply(selection.of_scan(result), scope), scope, quiet)


def refuse_to_replace(file: str) -> None:
    """Refuse to write over a baseline: it may hold reasons that people wrote."""
    if Path(file).exists():
        raise UsageError(f"baseline {file}: is there already; 'kaudit baseline update' adds to it, --force replaces it")


def write_baseline(seen: Seen, file: str, new: Baseline, old: Baseline | None = None) -> ExitCode:
    """Write the file and say what changed; return 4 where something could not be read, as a scan does."""
    (target,) = parse_targets(["json"], file, ())
    write(target, [new.to_text()])
    if not seen.quiet:
        sys.stderr.write(f"{file}: {_change(old or Baseline(), new)}\n")
    unreadable = any(item.unreadable for item in seen.result.not_audited)
    return ExitCode.UNREADABLE if unreadable else ExitCode.OK


def _change(old: Baseline, new: Baseline) -> str:
    before, after = set(old.by_fingerprint()), set(new.by_fingerprint())
    return f"{plural(len(after), 'entry', 'entries')}: {_count(after - before)} added, {_count(before - after)} removed"


def _count(items: Iterable[str]) -> str:
    return f"{len(list(items)):,}"
