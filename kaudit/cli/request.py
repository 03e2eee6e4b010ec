"""An audit as asked for on a command line, and its result shown as asked."""

import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.checks.command_line import quote_text
from kaudit.cli.exits import ExitCode, FailOn, exit_code
from kaudit.cli.loading import loaded
from kaudit.cli.options import DisplayOptions, OutputOptions, WatchedFindings, WatchOutput
from kaudit.cli.pager import paged
from kaudit.cli.parsing import parse_policy, parse_selection, read_scan
from kaudit.cli.settings import Settings
from kaudit.cli.targets import Target, console_of, parse_targets, write
from kaudit.errors import NothingToAuditError, UnreadableInputError
from kaudit.model.json_record import rfc3339
from kaudit.model.limits import FINDINGS_OF_CHECK
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult, Summary
from kaudit.model.severity import Severity
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Decision, Policy
from kaudit.report.console import ColorChoice
from kaudit.report.formats import FORMATS, Format
from kaudit.report.render_options import Output, RenderOptions, Tables
from kaudit.report.text.not_checked import closing_line
from kaudit.results.selection import Selection, count
from kaudit.scanning.options import ScanOptions

if TYPE_CHECKING:  # few results are redacted
    from kaudit.cli.commands.report import ReportOptions
    from kaudit.results.redaction import Redactor

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable by which GitHub Actions names the file of a step's summary."""


class AuditRequest(Struct, frozen=True):
    """One audit as asked for: what to read, what to report, where and how."""

    options: ScanOptions
    selection: Selection
    targets: Sequence[Target]
    fail_on: FailOn
    exit_zero: bool
    color: ColorChoice
    quiet: bool
    verbose: bool
    reproducible: bool
    policy: Policy = field(default_factory=Policy)
    pager: bool = False
    statistics: bool = False
    """Human formats count findings by check instead of listing them."""
    compares: bool = False
    """Replicas are compared with one another."""
    batches: bool = False
    """Tables have a row for every batch."""
    redactor: "Redactor | None" = None
    """Replaces names in what is shown."""

    def shows_histories(self, result: str) -> bool:
        """Whether a target shows the producers' histories with this result of an audit."""
        return any(result in target.form.histories for target in self.targets)

    @property
    def scope(self) -> Scope:
        """Return what was looked for: an entry of a baseline outside of it cannot be stale."""
        return Scope(self.selection.includes, self.options, self.compares)

    @property
    def show_notes(self) -> bool:
        """Return whether human formats list notes: asked for, or about what was asked for."""
        asked_for = self.selection.select or self.options.producer_ids
        return self.verbose or bool(asked_for) or self.fail_on is FailOn.NOTE


def audit_request(
    settings: Settings,
    scan: ScanOptions,
    output: OutputOptions | WatchOutput,
    findings: WatchedFindings,
    display: DisplayOptions,
    **others: Any,  # noqa: ANN401 - fields of AuditRequest
) -> AuditRequest:
    """Return the request that the options make. Raises UsageError for an option that means nothing."""
    return AuditRequest(
        options=replace(scan, compacted_topics=settings.compacted_topics),
        selection=parse_selection(findings.select or (), findings.ignore or ()),
        targets=parse_targets(output.output_format or (), output.output, scan.given),
        fail_on=findings.fail_on,
        exit_zero=findings.exit_zero,
        color=display.terminal.color_choice,
        pager=not display.terminal.no_pager,
        quiet=display.quiet,
        verbose=display.verbose,
        reproducible=display.reproducible,
        policy=parse_policy(findings, settings),
        redactor=output.redaction.redactor(),
        **others,
    )


def run_facts(started_ms: int, *, reproducible: bool) -> Mapping[str, object] | None:
    """Return host and time of this run, nothing with --reproducible."""
    if reproducible:
        return None

    return {"host": platform.node(), "started_at": rfc3339(started_ms)}


def repository_root() -> str | None:
    """Return the root of the checkout that the working directory lies in; in a work tree `.git` is a file."""
    here = Path.cwd()
    return next((str(place) for place in (here, *here.parents) if (place / ".git").exists()), None)


def show(
    request: AuditRequest,
    run: Mapping[str, object] | None,
    code: ExitCode,
    render: Callable[[Format, RenderOptions], Output],
    *,
    machines_only: bool,
) -> None:
    """Write the result to every target, and the step summary where a target is for GitHub Actions."""
    view = RenderOptions(
        show_notes=request.show_notes,
        verbose=request.verbose,
        statistics=request.statistics,
        run=run,
        exit_code=int(code),
        codes=request.selection.codes(),
        fail_on=None if request.fail_on is FailOn.NEVER else Severity(request.fail_on.value),
        producer_ids=frozenset(request.options.producer_ids) or None,
        batches=request.batches,
        digests=request.options.digests,
        command=" ".join(["kaudit", *map(quote_text, sys.argv[1:])]),
        repository=repository_root(),
        decide=Decision(request.selection, request.policy),
        log_start_offset=request.options.log_start_offset,
        findings_of_check=FINDINGS_OF_CHECK if request.policy.max_findings is None else None,
    )
    if request.redactor is not None:
        view = loaded("redacting", "redacted_view")(request.redactor, view)
    for target in request.targets:
        if target.form.machine or not machines_only:
            with paged(wanted=request.pager and target.file is None):
                write(target, render(target.form, replace(view, console=console_of(target, request.color))))
        if target.form.name == "github":
            _append_step_summary("".join(_texts(render(FORMATS["markdown"], view))), os.environ)


def _texts(content: Output) -> Iterable[str]:
    assert not isinstance(content, Tables)
    return content


def nothing_audited(options: ScanOptions, error: NothingToAuditError) -> ScanResult:
    """Return the result of an audit that found no log, for the formats that must be valid even then."""
    unreadable = isinstance(error, UnreadableInputError)
    return ScanResult(
        inputs=list(options.paths),
        broker_version=BrokerVersions(options.broker_version, None, None, None),
        partitions=(),
        findings=(),
        not_audited=[NotAudited(path, str(error), unreadable=unreadable) for path in options.paths],
        summary=Summary(findings=count(())),
        incomplete=True,
    )


def _append_step_summary(text: str, environ: Mapping[str, str]) -> None:
    """Append the text where a runner wants it; without a runner there is nothing to do."""
    file = environ.get(_STEP_SUMMARY)
    if not file:
        return

    try:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(text)
    except OSError as error:
        # The annotations are out already, and the audit is what counts: report it, do not fail.
        sys.stderr.write(f"kaudit: ${_STEP_SUMMARY} cannot be written: {error.strerror}\n")


def run_report(settings: Settings, file: str, options: "ReportOptions") -> ExitCode:
    """Render a saved scan; return the code the scan would have returned."""
    request = audit_request(
        settings,
        ScanOptions(paths=[file]),
        options.output,
        options.findings,
        options.display,
        statistics=options.output.statistics,
    )
    saved = read_scan(file)
    scan = request.policy.apply(request.selection.of_scan(saved.result), Scope(request.selection.includes))
    code = exit_code(scan, request.fail_on, exit_zero=request.exit_zero)
    if not scan.partitions and scan.incomplete and code is ExitCode.OK:
        code = ExitCode.NOTHING_TO_AUDIT
    listed = request.policy.limit(scan)
    if request.redactor is not None:
        listed, scan = loaded("redacting", "redacted_result")(request.redactor, (listed, scan), [file])
    run = None if request.reproducible else saved.run
    show(request, run, code, lambda form, view: form.render("scan", listed, view), machines_only=False)
    if not request.quiet:
        sys.stderr.write(closing_line(scan, notes_hidden=not request.show_notes, seconds=None) + "\n")
    return code
