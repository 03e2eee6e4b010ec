"""Runs `kaudit baseline`: an audit, or a saved scan, compared with the baseline file, and the file written."""

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kaudit.cli.commands.baseline import BaselineAudit, NewEntries
from kaudit.cli.exits import ExitCode
from kaudit.cli.parsing import parse_selection, parse_severities, read_scan
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.settings import Settings
from kaudit.cli.targets import output_file, parse_targets, write
from kaudit.engines.local import LOCAL
from kaudit.errors import UsageError
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.model.severity import Severity, Status
from kaudit.policy.baseline import Baseline, parse_day, read_baseline
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Policy
from kaudit.report.text.formatting import plural

_SAVED_SUFFIX = ".json"


def run_create(
    settings: Settings, paths: Sequence[str], entries: NewEntries, asked: BaselineAudit, *, force: bool
) -> ExitCode:
    """Write a new baseline; return the exit code."""
    if not force:
        _refuse_to_replace(asked.baseline)
    audited = _audit(settings, paths, asked)
    return _write(audited, asked.baseline, audited.added_to(Baseline(), entries))


def run_update(settings: Settings, paths: Sequence[str], entries: NewEntries, asked: BaselineAudit) -> ExitCode:
    """Add new findings to a baseline; return the exit code."""
    old = read_baseline(asked.baseline)
    audited = _audit(settings, paths, asked)
    return _write(audited, asked.baseline, audited.added_to(old, entries), old)


def run_prune(settings: Settings, paths: Sequence[str], asked: BaselineAudit) -> ExitCode:
    """Remove the entries of a baseline that are no longer found; return the exit code."""
    old = read_baseline(asked.baseline)
    audited = _audit(settings, paths, asked)
    return _write(audited, asked.baseline, old.without(audited.stale_in(old)), old)


class _AuditedFindings(Struct, frozen=True):
    """Everything an audit found, and what it looked for."""

    result: ScanResult
    scope: Scope
    quiet: bool

    def added_to(self, baseline: Baseline, new: NewEntries) -> Baseline:
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


def _audit(settings: Settings, paths: Sequence[str], asked: BaselineAudit) -> _AuditedFindings:
    """Audit the paths, or read the one saved scan among them."""
    parse_targets(["json"], asked.baseline, paths)  # a place that cannot be is refused before the audit
    selection = parse_selection(asked.selection.select or (), asked.selection.ignore or ())
    policy = Policy(parse_severities(settings.texts("severity")), settings.topics)
    scan = replace(asked.audit, paths=paths, compacted_topics=settings.compacted_topics)
    if len(paths) == 1 and paths[0].endswith(_SAVED_SUFFIX) and not Path(paths[0]).is_dir():
        scope, result = Scope(selection.includes), read_scan(paths[0]).result
    else:
        with progress_on_stderr(quiet=asked.quiet) as progress:
            scope, result = Scope(selection.includes, scan), LOCAL.scan(scan, progress)
    return _AuditedFindings(policy.apply(selection.of_scan(result), scope), scope, asked.quiet)


def _refuse_to_replace(file: str) -> None:
    """Refuse to write over a baseline: it may hold reasons that people wrote."""
    place = output_file(file, ())
    if place is not None and place.exists():
        raise UsageError(f"baseline {file}: exists already; 'kaudit baseline update' adds to it, --force replaces it")


def _write(audited: _AuditedFindings, file: str, new: Baseline, old: Baseline | None = None) -> ExitCode:
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
