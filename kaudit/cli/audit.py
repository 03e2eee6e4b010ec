"""What scan and timeline have in common: run the engine, show the result, settle the exit code."""

import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kaudit.cli.exits import FailOn, exit_code
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.targets import Target, console_of, write
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult, Summary, TimelineResult
from kaudit.pipeline.options import NothingToAuditError, Progress, ScanOptions
from kaudit.report.console import ColorChoice
from kaudit.report.formats import Format
from kaudit.report.moment import rfc3339
from kaudit.report.phrases import closing_line
from kaudit.report.selection import Selection, count
from kaudit.report.tables import Tables
from kaudit.report.view import View

_Result = TypeVar("_Result", ScanResult, TimelineResult)


@dataclass(frozen=True, slots=True)
class Request:
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

    @property
    def show_notes(self) -> bool:
        """Tell whether human formats list notes."""
        return self.verbose or bool(self.selection.select) or self.fail_on is FailOn.NOTE


def run_scan(request: Request, engine: Callable[[ScanOptions, Progress], ScanResult]) -> int:
    """Audit and report; return the exit code."""
    return _run(
        request,
        produce=lambda progress: request.selection.of_scan(engine(request.options, progress)),
        render=lambda form, result, view: form.scan(result, view),
        empty=lambda nothing: nothing,
        scan_of=lambda result: result,
    )


def run_timeline(request: Request, engine: Callable[[ScanOptions, Progress], TimelineResult]) -> int:
    """Tell the producers' histories; return the exit code."""
    return _run(
        request,
        produce=lambda progress: request.selection.of_timeline(engine(request.options, progress)),
        render=lambda form, result, view: form.timeline(result, view),
        empty=lambda nothing: TimelineResult(nothing, []),
        scan_of=lambda result: result.scan,
    )


def _run(
    request: Request,
    produce: Callable[[Progress], _Result],
    render: Callable[[Format, _Result, View], str | Tables],
    empty: Callable[[ScanResult], _Result],
    scan_of: Callable[[_Result], ScanResult],
) -> int:
    started_ms, started = round(time.time() * 1000), time.monotonic()
    try:
        with progress_on_stderr(quiet=request.quiet) as progress:
            result = produce(progress)
    except NothingToAuditError as error:
        # Whoever parses stdout gets a valid document also now, with the reason in it.
        nothing = empty(_nothing(request.options, error))
        _show(request, started_ms, lambda form, view: render(form, nothing, view), machines_only=True)
        raise
    seconds = None if request.reproducible else time.monotonic() - started
    _show(request, started_ms, lambda form, view: render(form, result, view), machines_only=False)
    scan = scan_of(result)
    if not request.quiet:
        sys.stderr.write(closing_line(scan, notes_hidden=not request.show_notes, seconds=seconds) + "\n")
    return exit_code(scan, request.fail_on, exit_zero=request.exit_zero)


def _show(
    request: Request, started_ms: int, render: Callable[[Format, View], str | Tables], *, machines_only: bool
) -> None:
    run = None if request.reproducible else {"host": platform.node(), "started_at": rfc3339(started_ms)}
    for target in request.targets:
        if target.form.machine or not machines_only:
            write(target, render(target.form, View(console_of(target, request.color), request.show_notes, run)))


def _nothing(options: ScanOptions, error: NothingToAuditError) -> ScanResult:
    """Return the result of an audit that found no log, for the formats that must be valid even then."""
    return ScanResult(
        inputs=list(options.paths),
        broker_version=BrokerVersions(options.broker_version, None, None, None),
        partitions=(),
        findings=(),
        not_audited=[NotAudited(path, str(error)) for path in options.paths],
        summary=Summary(findings=count(())),
        incomplete=True,
    )
