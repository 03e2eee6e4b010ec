"""What the baseline commands share: an audit, which of its findings become entries, and writing the file."""

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kaudit.cli.baseline_options import BaselineAuditOptions, NewEntryOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.parsing import parse_broker_version, parse_selection
from kaudit.cli.policy import parse_severities
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.rendering import read_scan
from kaudit.cli.settings.settings import Settings
from kaudit.cli.targets import output_file, parse_targets, write
from kaudit.errors import UsageError
from kaudit.model.finding import Finding, Severity, Status
from kaudit.model.result import ScanResult
from kaudit.policy.baseline import Baseline, parse_day
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Policy
from kaudit.report.text.formatting import plural
from kaudit.scanning.options import ScanOptions

_SAVED_SUFFIX = ".json"


class AuditedFindings(Struct, frozen=True):
    """Everything an audit found, and what it looked for."""

    result: ScanResult
    scope: Scope
    quiet: bool

    def added_to(self, baseline: Baseline, new: NewEntryOptions) -> Baseline:
        """Return the baseline with an entry for every finding that the configuration has not accepted."""
        findings = [finding for finding in self.result.findings if _becomes_entry(finding, notes=new.verbose)]
        expires = None if new.expires is None else parse_day(new.expires, "--expires")
        return baseline.adding(findings, reason=new.reason, expires=expires)

    def stale_in(self, baseline: Baseline) -> list[str]:
        """Return the fingerprints of entries that this audit would have found and has not."""
        found = {finding.fingerprint for finding in self.result.findings}
        return [
            entry.fingerprint
            for entry in baseline.entries
            if entry.fingerprint not in found and self.scope.covers(entry, self.result)
        ]


def _becomes_entry(finding: Finding, *, notes: bool) -> bool:
    return finding.status is Status.NEW and (notes or finding.severity is not Severity.NOTE)


def audit(settings: Settings, paths: Sequence[str], options: BaselineAuditOptions) -> AuditedFindings:
    """Audit the paths, or read the one saved scan among them."""
    parse_targets(["json"], options.baseline, paths)  # a place that cannot be is refused before the audit
    selection = parse_selection(options.select or (), options.ignore or ())
    policy = Policy(parse_severities(settings.texts("severity")), settings.topics)
    scan_options = ScanOptions(
        paths=paths,
        broker_version=parse_broker_version(options.broker_version),
        compacted_topics=settings.compacted_topics,
    )
    if len(paths) == 1 and paths[0].endswith(_SAVED_SUFFIX) and not Path(paths[0]).is_dir():
        scope, result = Scope(selection.includes), read_scan(paths[0]).result
    else:
        from kaudit.engines import local

        with progress_on_stderr(quiet=options.quiet) as progress:
            scope, result = Scope(selection.includes, scan_options), local.scan(scan_options, progress)
    return AuditedFindings(policy.apply(selection.of_scan(result), scope), scope, options.quiet)


def refuse_to_replace(file: str) -> None:
    """Refuse to write over a baseline: it may hold reasons that people wrote."""
    place = output_file(file, ())
    if place is not None and place.exists():
        raise UsageError(f"baseline {file}: exists already; 'kaudit baseline update' adds to it, --force replaces it")


def write_baseline(audited: AuditedFindings, file: str, new: Baseline, old: Baseline | None = None) -> ExitCode:
    """Write the file and report what changed; return 4 where something could not be read, as a scan does."""
    (target,) = parse_targets(["json"], file, ())
    write(target, [new.to_text()])
    if not audited.quiet:
        sys.stderr.write(f"{file}: {_change(old or Baseline(), new)}\n")
    unreadable = any(item.unreadable for item in audited.result.not_audited)
    return ExitCode.UNREADABLE if unreadable else ExitCode.OK


def _change(old: Baseline, new: Baseline) -> str:
    before, after = set(old.by_fingerprint()), set(new.by_fingerprint())
    entries = plural(len(after), "entry", "entries")
    return f"{entries}: {len(after - before):,} added, {len(before - after):,} removed"
