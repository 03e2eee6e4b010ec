"""Runs scan and timeline, and what producers and diff have in common: the engine audits, the result is shown, the exit code follows."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.cli.commands.scan import ScanCommand
from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import ExitCode, exit_code
from kaudit.cli.loading import loaded
from kaudit.cli.options import AuditOptions
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.request import AuditRequest, audit_request, nothing_audited, run_facts, show
from kaudit.cli.settings import Settings
from kaudit.engines.engine import Engine
from kaudit.engines.progress import Progress
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.grouping import grouped
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import NotAudited, ScanResult, TimelineResult
from kaudit.report.console import visible
from kaudit.report.text.formatting import state_lines
from kaudit.report.text.not_checked import closing_line
from kaudit.scanning.options import Depth

if TYPE_CHECKING:  # a scan needs none of the tables of producers
    from kaudit.listings.producer_histories import EngineTables, RecordedScan
    from kaudit.listings.producer_listing import ListedProducers
    from kaudit.model.ledger import LedgerResult
    from kaudit.report.formats import Result

_NAMED = 3
"""Things with one reason that have a line each; of more the first are named in one."""


def request_of(settings: Settings, paths: Sequence[str], options: AuditOptions, **others: bool) -> AuditRequest:
    """Return the request that the options make; `others` are fields of AuditRequest."""
    scan = replace(options.audit, paths=paths)
    return audit_request(settings, scan, options.output, options.findings, options.display, **others)


def refuse_urls(request: AuditRequest, instead: str) -> None:
    """Refuse before the audit what could not be written after it."""
    for target in request.targets:
        if target.url is not None:
            raise UsageError(
                f"--output {target.url}: tables are written to a URL by kaudit scan, timeline and producers with --engine spark; {instead}"
            )


def check_urls(request: AuditRequest, engine: Engine) -> None:
    """Refuse before the audit URLs that this engine does not write to, and HDFS that nobody serves."""
    if request.redactor is not None and engine.writes_to_urls and any(each.form.directory for each in request.targets):
        raise UsageError("--redact: the tables that --engine spark makes are not redacted; leave one of the two out")
    if not engine.writes_to_urls:
        refuse_urls(request, "the local engine writes to a directory")
    for target in request.targets:
        if target.url is not None:
            loaded("spark_engine", "require_name_nodes")(target.url)


def _named(request: AuditRequest) -> Sequence[str]:
    """Return the paths of the command line."""
    return request.options.given


def run_scan(settings: Settings, paths: Sequence[str], options: ScanCommand) -> ExitCode:
    """Audit and report; return the exit code."""
    if options.audit.digests and options.audit.depth is Depth.HEADERS:
        raise UsageError("--digests needs CRCs that were checked: --depth crc or records")
    output = options.output
    request = request_of(settings, paths, options, statistics=output.statistics, batches=output.batches)
    if output.batches and not any(target.form.directory for target in request.targets):
        raise UsageError("--batches needs --output-format parquet")
    engine = choose_engine(options.engine)
    check_urls(request, engine)

    def produce(progress: Progress, recording: Recording) -> ScanResult:
        if not request.shows_histories("scan"):
            return request.selection.of_scan(engine.scan(request.options, progress))
        recorded = recording.keep(None, engine.record(request.options, progress))
        return request.selection.of_scan(recorded.result)

    return run_audit(request, "scan", produce, empty=lambda nothing: nothing)


def run_timeline(settings: Settings, paths: Sequence[str], options: AuditOptions) -> ExitCode:
    """Write the producers' histories; return the exit code."""
    request = request_of(settings, paths, options)
    engine = choose_engine(options.engine)
    check_urls(request, engine)

    def produce(progress: Progress, recording: Recording) -> TimelineResult:
        if request.shows_histories("timeline"):
            recorded = recording.keep(None, engine.record(request.options, progress))
            if all("timeline" in target.form.histories for target in request.targets):
                return request.selection.of_timeline(TimelineResult(recorded.result, ()))
        found = request.selection.of_timeline(engine.timeline(request.options, progress))
        if found.omitted:
            listed = sum(len(each.producer_ids) for each in found.histories)
            sys.stderr.write(
                f"kaudit: the first {listed:,} timelines of {listed + found.omitted:,}; "
                "--producer-id chooses, and the tables of --output-format parquet have all\n"
            )
        return found

    return run_audit(request, "timeline", produce, empty=lambda nothing: TimelineResult(nothing, []))


class Recording:
    """The producers' histories and the tables of a list of producers, kept until the report is written."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.recorded: dict[str | None, RecordedScan] = {}
        self.listed: EngineTables | None = None

    def held(self, result: "AbstractContextManager[LedgerResult]") -> "LedgerResult":
        """Return a result whose files are kept until the report is written."""
        return self._stack.enter_context(result)

    def list(self, listing: "AbstractContextManager[ListedProducers]") -> ProducersResult:
        """Return a list of producers; its tables are kept."""
        listed = self._stack.enter_context(listing)
        self.listed = listed.tables
        return listed.result

    def keep(self, name: str | None, recorded: "AbstractContextManager[RecordedScan]") -> "RecordedScan":
        """Keep the histories of a replica, None for the input as a whole."""
        self.recorded[name] = self._stack.enter_context(recorded)
        return self.recorded[name]


def run_audit(
    request: AuditRequest,
    kind: str,
    produce: "Callable[[Progress, Recording], Result]",
    empty: "Callable[[ScanResult], Result]",
) -> ExitCode:
    """Produce a result, apply the policy, show it, and return the exit code.

    `kind` is what formats call the result (Format.render), `empty` makes one without a log.
    Raises what `produce` raises, also where nothing was found to audit: by then the formats for programs have a valid document.
    """
    started_ms, started = round(time.time() * 1000), time.monotonic()
    with ExitStack() as stack:
        recording = Recording(stack)
        try:
            with progress_on_stderr(quiet=request.quiet, verbose=request.verbose) as progress:
                result = produce(progress, recording)
        except NothingToAuditError as error:
            # Whoever parses stdout gets a valid document also now, with the reason in it.
            if request.redactor is not None:
                error = request.redactor.of_error(error, request.options.given)
            nothing = empty(nothing_audited(request.options, error))
            if request.redactor is not None:
                nothing = request.redactor.redacted(nothing)
            facts = run_facts(started_ms, reproducible=request.reproducible)
            code = ExitCode.UNREADABLE if isinstance(error, UnreadableInputError) else ExitCode.NOTHING_TO_AUDIT
            show(request, facts, code, lambda form, view: form.render(kind, nothing, view), machines_only=True)
            raise error from None
        seconds = None if request.reproducible else time.monotonic() - started
        scan = request.policy.apply(result if isinstance(result, ScanResult) else result.scan, request.scope)
        code = exit_code(scan, request.fail_on, exit_zero=request.exit_zero)
        limited = request.policy.limit(scan)
        listed = limited if isinstance(result, ScanResult) else replace(result, scan=limited)
        recorded: Mapping[str | None, RecordedScan] = recording.recorded
        if request.redactor is not None:
            listed, scan = loaded("redacting", "redacted_result")(request.redactor, (listed, scan), _named(request))
            recorded = loaded("redacting", "redacted_recordings")(request.redactor, recorded)
        facts = run_facts(started_ms, reproducible=request.reproducible)
        show(
            request,
            facts,
            code,
            lambda form, view: form.render(kind, listed, replace(view, recorded=recorded, listed=recording.listed)),
            machines_only=False,
        )
    sys.stderr.writelines(_missing_lines(scan.not_audited))
    if scan.state is not None:
        sys.stderr.writelines(f"kaudit: {visible(line)}\n" for line in state_lines(scan.state, quiet=request.quiet))
    if not request.quiet:
        sys.stderr.write(closing_line(scan, notes_hidden=not request.show_notes, seconds=seconds) + "\n")
    return code


def _missing_lines(notes: Sequence[NotAudited]) -> Iterator[str]:
    """Yield a line for each thing asked for that was not audited; of many with one reason the first are named."""
    by_reason = grouped((note.reason, note.path) for note in notes if note.asked_for)
    for reason, paths in by_reason.items():
        named = [f"{visible(path)}: " for path in paths]
        if len(paths) > _NAMED:
            first = ", ".join(map(visible, paths[: _NAMED - 1]))
            named = [f"{first} and {len(paths) - _NAMED + 1:,} more: "]
        yield from (f"kaudit: {each}{visible(reason)}\n" for each in named)
