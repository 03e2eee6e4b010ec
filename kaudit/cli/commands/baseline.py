"""`kaudit baseline create|update|prune`: the findings a team has accepted, as a file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from kaudit.cli import options
from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import ExitCode
from kaudit.cli.inputs import read_scan
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.parsing import parse_selection, parse_severities
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.settings.configure import settings_of
from kaudit.cli.settings.settings import Settings
from kaudit.cli.targets import output_file, parse_targets, write
from kaudit.errors import UsageError
from kaudit.model.finding import Finding, Severity, Status
from kaudit.model.result import ScanResult
from kaudit.policy.baseline import Baseline, parse_day, read_baseline
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Policy
from kaudit.report.text.formatting import plural
from kaudit.scanning.options import ScanOptions, parse_broker_version

_EXAMPLES = """\b
Examples:
  kaudit baseline create --reason "before the upgrade" /var/lib/kafka/data
  kaudit baseline update --expires 2026-12-31 scan.json
  kaudit scan --baseline kaudit-baseline.json /var/lib/kafka/data
"""

_DEFAULT_FILE = "kaudit-baseline.json"

_Inputs = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="What scan takes, or one saved scan: a .json that scan wrote."),
]


class _AuditOptions(OptionGroup, frozen=True, kw_only=True):
    """The baseline, and the audit whose findings it is compared with."""

    heading = "Audit"

    baseline: Annotated[str, typer.Option("--baseline", metavar="FILE", help="The baseline.")] = _DEFAULT_FILE
    select: options.Select = None
    ignore: options.Ignore = None
    broker_version: str = "auto"
    quiet: options.Quiet = False
    configuration: options.ConfigurationOptions


class _NewEntries(OptionGroup, frozen=True, kw_only=True):
    """Which findings become entries of the baseline, why, and until when."""

    heading = "Entries"

    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why these findings are accepted.")] = None
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="The last day they are accepted: 2026-12-31.")] = (
        None
    )
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Accept notes too.")] = False


class _NewBaseline(_NewEntries, frozen=True, kw_only=True):
    """What a new baseline holds, and whether it may take the place of an old one."""

    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing baseline, with the reasons people wrote in it.")
    ] = False


app = typer.Typer(name="baseline", epilog=_EXAMPLES)


@app.callback()
def _group() -> None:
    """Keep the findings a team knows of in a file, so that only new ones fail."""


@app.command(short_help="Write a new baseline.")
@with_option_groups
def create(context: typer.Context, paths: _Inputs, *, entries: _NewBaseline, audit: _AuditOptions) -> int:
    """Write a baseline of all findings there are: errors and warnings."""
    if not entries.force:
        _refuse_to_replace(audit.baseline)
    audited = _audit(settings_of(context), paths, audit)
    return _write(audited, audit.baseline, audited.added_to(Baseline(), entries))


@app.command(short_help="Add what is new.")
@with_option_groups
def update(context: typer.Context, paths: _Inputs, *, entries: _NewEntries, audit: _AuditOptions) -> int:
    """Add new findings to a baseline; entries that are there keep their reasons and dates, none is removed."""
    old = read_baseline(audit.baseline)
    audited = _audit(settings_of(context), paths, audit)
    return _write(audited, audit.baseline, audited.added_to(old, entries), old)


@app.command(short_help="Remove what is no longer found.")
@with_option_groups
def prune(context: typer.Context, paths: _Inputs, *, audit: _AuditOptions) -> int:
    """Remove entries whose findings are no longer there; what this audit could not see stays."""
    old = read_baseline(audit.baseline)
    audited = _audit(settings_of(context), paths, audit)
    return _write(audited, audit.baseline, old.without(audited.stale_in(old)), old)


_SAVED_SUFFIX = ".json"


class _AuditedFindings(Struct, frozen=True):
    """Everything an audit found, and what it looked for."""

    result: ScanResult
    scope: Scope
    quiet: bool

    def added_to(self, baseline: Baseline, new: _NewEntries) -> Baseline:
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


def _audit(settings: Settings, paths: Sequence[str], asked: _AuditOptions) -> _AuditedFindings:
    """Audit the paths, or read the one saved scan among them."""
    parse_targets(["json"], asked.baseline, paths)  # a place that cannot be is refused before the audit
    selection = parse_selection(asked.select or (), asked.ignore or ())
    policy = Policy(parse_severities(settings.texts("severity")), settings.topics)
    scan_options = ScanOptions(
        paths=paths,
        broker_version=parse_broker_version(asked.broker_version),
        compacted_topics=settings.compacted_topics,
    )
    if len(paths) == 1 and paths[0].endswith(_SAVED_SUFFIX) and not Path(paths[0]).is_dir():
        scope, result = Scope(selection.includes), read_scan(paths[0]).result
    else:
        engine = choose_engine(options.EngineChoice.LOCAL, None, ())
        with progress_on_stderr(quiet=asked.quiet) as progress:
            scope, result = Scope(selection.includes, scan_options), engine.scan(scan_options, progress)
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
