"""What scan, timeline, producers and diff have in common: run the engine, show the result, settle the exit code."""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.checks.command_line import quote_text
from kaudit.cli.exits import ExitCode, FailOn, exit_code
from kaudit.cli.pager import paged
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.targets import Target, console_of, write
from kaudit.engines.progress import Progress
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.listings.query import Query
from kaudit.model.json_record import rfc3339
from kaudit.model.limits import FINDINGS_OF_CHECK
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult, Replica
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult, Summary, TimelineResult
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Decision, Policy
from kaudit.report.console import ColorChoice, visible
from kaudit.report.formats import FORMATS, Format
from kaudit.report.render_options import Output, RenderOptions, Tables
from kaudit.report.text.formatting import closing_line, state_lines
from kaudit.results.selection import Selection, count
from kaudit.scanning.options import ScanOptions
from kaudit.source.filesystem import require_listener
from kaudit.source.uri import Uri, UrlError

if TYPE_CHECKING:  # numpy comes with them
    from kaudit.engines.engine import Engine
    from kaudit.listings.producer_histories import EngineTables, RecordedScan
    from kaudit.listings.producer_listing import ListedProducers

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable by which GitHub Actions names the file of a step's summary."""
_Result = TypeVar("_Result", ScanResult, TimelineResult, ProducersResult, DiffResult)


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
    """Replicas are held against one another."""
    batches: bool = False
    """Tables have a row for every batch."""

    def shows_histories(self, result: str) -> bool:
        """Whether a target shows the producers' histories with this result of an audit."""
        return any(result in target.form.histories for target in self.targets)

    @property
    def scope(self) -> Scope:
        """Return what was looked for: the measure of what a baseline may call stale."""
        return Scope(self.selection.includes, self.options, self.compares)

    @property
    def show_notes(self) -> bool:
        """Return whether human formats list notes: asked for, or about what was asked for."""
        asked_for = self.selection.select or self.options.producer_ids
        return self.verbose or bool(asked_for) or self.fail_on is FailOn.NOTE


def _refuse_urls(request: AuditRequest, instead: str) -> None:
    """Refuse before the audit what could not be written after it."""
    for target in request.targets:
        if target.url is not None:
            raise UsageError(
                f"--output {target.url}: tables are written to a URL by kaudit scan, timeline and producers with --engine spark; {instead}"
            )


def _check_urls(request: AuditRequest, engine: "Engine") -> None:
    """Refuse before the audit URLs that this engine does not write to, and HDFS that nobody serves."""
    if not engine.writes_to_urls:
        _refuse_urls(request, "the local engine writes to a directory")
    for target in request.targets:
        if target.url is not None:
            _require_name_nodes(target.url)


def _require_name_nodes(url: str) -> None:
    from kaudit.source.hadoop import name_nodes  # XML takes 10 ms

    try:
        place = Uri.parse(url)
        if place.scheme == "hdfs":
            require_listener(url, name_nodes(place.authority))
    except UrlError as error:
        raise UsageError(f"--output {error}") from error
    except OSError as error:
        raise UsageError(f"--output {url}: {error.strerror}") from error


def run_scan(request: AuditRequest, engine: "Engine") -> int:
    """Audit and report; return the exit code."""
    _check_urls(request, engine)

    def produce(progress: Progress, recording: _Recording) -> ScanResult:
        if not request.shows_histories("scan"):
            return request.selection.of_scan(engine.scan(request.options, progress))
        recorded = recording.keep(None, engine.record(request.options, progress))
        return request.selection.of_scan(recorded.result)

    return _run(
        request,
        produce=produce,
        render=Format.scan,
        empty=lambda nothing: nothing,
        scan_of=lambda result: result,
        with_scan=lambda _, scan: scan,
    )


def run_timeline(request: AuditRequest, engine: "Engine") -> int:
    """Write the producers' histories; return the exit code."""
    _check_urls(request, engine)

    def produce(progress: Progress, recording: _Recording) -> TimelineResult:
        if request.shows_histories("timeline"):
            recorded = recording.keep(None, engine.record(request.options, progress))
            if all("timeline" in target.form.histories for target in request.targets):
                return request.selection.of_timeline(TimelineResult(recorded.result, ()))
        found = request.selection.of_timeline(engine.timeline(request.options, progress))
        if found.omitted:
            sys.stderr.write(
                f"kaudit: the first {len(found.timelines):,} timelines of {len(found.timelines) + found.omitted:,}; "
                "--producer-id chooses, and the tables of --output-format parquet have all\n"
            )
        return found

    return _run(
        request,
        produce=produce,
        render=Format.timeline,
        empty=lambda nothing: TimelineResult(nothing, []),
        scan_of=lambda result: result.scan,
        with_scan=lambda result, scan: replace(result, scan=scan),
    )


def run_producers(request: AuditRequest, query: Query, engine: "Engine") -> int:
    """List producer ids; return the exit code."""
    _check_urls(request, engine)

    def produce(progress: Progress, recording: _Recording) -> ProducersResult:
        if request.shows_histories("producers"):
            recording.keep(None, engine.record(request.options, progress))
        found = request.selection.of_producers(
            recording.list(engine.listed_producers(request.options, progress, query))
        )
        if found.omitted:
            sys.stderr.write(
                f"kaudit: the first {found.listed:,} producer ids of {found.listed + found.omitted:,}; "
                "--producer-id, --sort and --limit choose, and the tables of --output-format parquet have all\n"
            )
        return found

    return _run(
        request,
        produce=produce,
        render=Format.producers,
        empty=lambda nothing: ProducersResult(nothing, (), found=0, listed=0, summary=nothing.summary.to_dict()),
        scan_of=lambda result: result.scan,
        with_scan=lambda result, scan: replace(result, scan=scan),
    )


def run_diff(
    request: AuditRequest,
    replicas: Sequence[Replica],
    engine: Callable[[ScanOptions, Sequence[Replica], Progress], DiffResult],
    record: "Callable[[ScanOptions, Progress], AbstractContextManager[RecordedScan]]",
) -> int:
    """Compare replicas; return the exit code. `record` reads the histories of one replica."""
    _refuse_urls(request, "diff writes to a directory")

    def produce(progress: Progress, recording: _Recording) -> DiffResult:
        compared = request.selection.of_diff(engine(request.options, replicas, progress))
        for replica in replicas if request.shows_histories("diff") else ():
            # a replica that none of the partitions are on has nothing to record
            with suppress(NothingToAuditError):
                recording.keep(replica.name, record(replace(request.options, paths=[replica.path]), progress))
        return compared

    return _run(
        request,
        produce=produce,
        render=Format.diff,
        empty=lambda nothing: DiffResult(nothing, replicas),
        scan_of=lambda result: result.scan,
        with_scan=lambda result, scan: replace(result, scan=scan),
    )


class _Recording:
    """The producers' histories and the tables of a list of producers, kept until the report is written."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.recorded: dict[str | None, RecordedScan] = {}
        self.listed: EngineTables | None = None

    def list(self, listing: "AbstractContextManager[ListedProducers]") -> ProducersResult:
        listed = self._stack.enter_context(listing)
        self.listed = listed.tables
        return listed.result

    def keep(self, name: str | None, recorded: "AbstractContextManager[RecordedScan]") -> "RecordedScan":
        self.recorded[name] = self._stack.enter_context(recorded)
        return self.recorded[name]


def _run(  # noqa: PLR0913, PLR0917 - independent inputs, named at each call
    request: AuditRequest,
    produce: Callable[[Progress, _Recording], _Result],
    render: Callable[[Format, _Result, RenderOptions], Output],
    empty: Callable[[ScanResult], _Result],
    scan_of: Callable[[_Result], ScanResult],
    with_scan: Callable[[_Result, ScanResult], _Result],
) -> int:
    started_ms, started = round(time.time() * 1000), time.monotonic()
    with ExitStack() as stack:
        recording = _Recording(stack)
        try:
            with progress_on_stderr(quiet=request.quiet, verbose=request.verbose) as progress:
                result = produce(progress, recording)
        except NothingToAuditError as error:
            # Whoever parses stdout gets a valid document also now, with the reason in it.
            nothing = empty(nothing_audited(request.options, error))
            facts = run_facts(started_ms, reproducible=request.reproducible)
            code = ExitCode.UNREADABLE if isinstance(error, UnreadableInputError) else ExitCode.NOTHING_TO_AUDIT
            show(request, facts, code, lambda form, view: render(form, nothing, view), machines_only=True)
            raise
        seconds = None if request.reproducible else time.monotonic() - started
        scan = request.policy.apply(scan_of(result), request.scope)
        code = exit_code(scan, request.fail_on, exit_zero=request.exit_zero)
        listed = with_scan(result, request.policy.limit(scan))
        facts = run_facts(started_ms, reproducible=request.reproducible)
        show(
            request,
            facts,
            code,
            lambda form, view: render(
                form, listed, replace(view, recorded=recording.recorded, listed=recording.listed)
            ),
            machines_only=False,
        )
    for missing in scan.not_audited:
        if missing.asked_for:
            sys.stderr.write(f"kaudit: {visible(missing.path)}: {visible(missing.reason)}\n")
    if scan.state is not None:
        sys.stderr.writelines(f"kaudit: {visible(line)}\n" for line in state_lines(scan.state, quiet=request.quiet))
    if not request.quiet:
        sys.stderr.write(closing_line(scan, notes_hidden=not request.show_notes, seconds=seconds) + "\n")
    return code


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
        fail_on=request.fail_on.severity,
        producer_ids=frozenset(request.options.producer_ids) or None,
        batches=request.batches,
        digests=request.options.digests,
        command=" ".join(["kaudit", *map(quote_text, sys.argv[1:])]),
        repository=repository_root(),
        decide=Decision(request.selection, request.policy),
        log_start_offset=request.options.log_start_offset,
        findings_of_check=FINDINGS_OF_CHECK if request.policy.max_findings is None else None,
    )
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
