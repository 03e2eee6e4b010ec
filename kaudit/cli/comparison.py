"""Runs `kaudit diff`: replicas, fingerprints or a saved report are compared with logs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from msgspec.structs import replace

from kaudit.checks.command_line import quote_text
from kaudit.cli.audit import Recording, refuse_urls, run_audit
from kaudit.cli.commands.diff import DiffOptions
from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import RowTarget, console_of, show
from kaudit.cli.parsing import is_fingerprint, parse_names
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.request import AuditRequest, audit_request
from kaudit.cli.settings import Settings
from kaudit.cli.streams import write_notes, write_pieces
from kaudit.cli.targets import output_file, split_formats
from kaudit.diff.fingerprint.document import (
    FingerprintError,
    read_fingerprint_document,
    schema_of,
    write_fingerprint,
)
from kaudit.engines import fingerprints
from kaudit.engines.engine import Engine
from kaudit.engines.fingerprints import verify_report
from kaudit.engines.progress import Progress
from kaudit.engines.replicas import diff, name_replicas
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.digests import ALGORITHM, PartitionDigest
from kaudit.model.fingerprint import Fingerprint, FingerprintDiff, VerificationOutcome
from kaudit.model.replicas import DiffResult, Relation, Replica
from kaudit.model.result import NotAudited
from kaudit.model.severity import Severity
from kaudit.reading.digest_tree import widened
from kaudit.report.console import Console, visible
from kaudit.report.text.digest_comparisons import (
    comparison_document,
    comparison_text,
    verification_document,
    verification_text,
)
from kaudit.results.saved_scan import SCHEMA as SAVED_SCAN
from kaudit.results.saved_scan import SavedScanError, read_saved
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.local import read_text

_FORMATS = ("table", "json")
_FAILS = frozenset((VerificationOutcome.DIFFERS, VerificationOutcome.MISSING))


def run_diff(settings: Settings, paths: Sequence[str], comparison: DiffOptions) -> int:
    """Compare replicas, fingerprints or a saved report with logs; return the exit code."""
    scan = replace(comparison.audit, paths=paths, compacted_topics=settings.compacted_topics)
    if comparison.fingerprint or any(map(is_fingerprint, paths)):
        return (_write_digests if comparison.fingerprint else _compare_fingerprints)(comparison, scan)
    named = parse_names(comparison.replicas.names, paths)
    return _compare_replicas(
        diff_request(settings, scan, comparison), name_replicas(paths, named), choose_engine(comparison.engine)
    )


def diff_request(settings: Settings, scan: ScanOptions, comparison: DiffOptions) -> AuditRequest:
    """Return how a comparison is shown. Raises UsageError where it would go to a URL."""
    output = comparison.output
    shown = comparison.findings, comparison.display
    request = audit_request(settings, scan, output, *shown, statistics=output.statistics, compares=True)
    refuse_urls(request, "diff writes to a directory")
    return request


def _compare_replicas(request: AuditRequest, replicas: Sequence[Replica], engine: Engine) -> ExitCode:
    """Compare replicas; return the exit code."""

    def produce(progress: Progress, recording: Recording) -> DiffResult:
        compared = request.selection.of_comparison(
            diff(request.options, replicas, progress, each=engine.each_partition)
        )
        for replica in replicas if request.shows_histories("diff") else ():
            # a replica that none of the partitions are on has nothing to record
            with suppress(NothingToAuditError):
                recording.keep(replica.name, engine.record(replace(request.options, paths=[replica.path]), progress))
        return compared

    return run_audit(request, "diff", produce, empty=lambda nothing: DiffResult(nothing, replicas))


def _write_digests(comparison: DiffOptions, options: ScanOptions) -> int:
    """Write the fingerprint of the one directory among the paths; return the exit code."""
    site, document, file = fingerprint_asked(comparison, options)
    other = None if document is None else _read(document)
    each = choose_engine(comparison.engine).each_partition
    with progress_of(comparison) as progress:
        made = fingerprints.fingerprint(replace(options, paths=[site.path]), site, progress, other, each=each)
    write_pieces(file, write_fingerprint(made))
    return finished(comparison, made.not_audited, incomplete=made.incomplete)


def fingerprint_asked(comparison: DiffOptions, options: ScanOptions) -> tuple[Replica, str | None, Path | None]:
    """Return of which site a fingerprint is made, the one that it answers, and the file that it goes to. Raises UsageError."""
    documents, sites = documents_and_sites(comparison, options.paths)
    if len(sites) != 1 or len(documents) > 1:
        raise UsageError("--fingerprint takes one directory, and at most one fingerprint to compare it with")
    targets = split_formats(comparison.output.output_format or ["json"], comparison.output.output)
    if [name for name, _ in targets] != ["json"]:
        raise UsageError(f"--output-format {targets[0][0]}: a fingerprint is json")
    return name_replicas(sites, {})[0], documents[0] if documents else None, output_file(targets[0][1], options.given)


def _compare_fingerprints(comparison: DiffOptions, options: ScanOptions) -> int:
    """Compare two sites, one of them at least by its fingerprint, or logs with the digests of a report; return the exit code."""
    documents, sites = documents_and_sites(comparison, options.paths)
    given = parse_names(comparison.replicas.names, options.paths)
    texts = {path: read_text(path) for path in documents}
    reports = [path for path in documents if schema_of(texts[path]) == SAVED_SCAN]
    if reports:
        if len(documents) > 1 or not sites or given:
            raise UsageError(
                f"{reports[0]}: a saved report is compared with directories: give one report and no --name"
            )
        targets = comparison_targets(comparison, options)
        return _verify(comparison, replace(options, paths=sites), (reports[0], texts[reports[0]]), targets)
    if len(options.paths) != 2:
        raise UsageError("fingerprints are compared two at a time: one with a directory, or with another fingerprint")
    targets = comparison_targets(comparison, options)
    found = _compared(comparison, options, {path: _parsed(path, texts[path]) for path in documents}, given)
    narrowing = " ".join(["kaudit diff --fingerprint", *map(quote_text, options.paths)]) if sites else None
    show_comparison(
        targets,
        comparison,
        document=lambda: comparison_document(found),
        render=lambda console: comparison_text(found, console, narrowing),
    )
    differs = any(entry.relation is Relation.DIVERGED for entry in found.partitions)
    return finished(comparison, found.not_audited, incomplete=found.incomplete, differs=differs)


def show_comparison(
    targets: Sequence[RowTarget],
    comparison: DiffOptions,
    *,
    document: Callable[[], Iterable[str]],
    render: Callable[[Console], Iterable[str]],
) -> None:
    """Write a comparison as it is asked for."""
    terminal = comparison.display.terminal
    for target in targets:
        show(target, document() if target.form == "json" else render(console_of(target, terminal)), terminal)


def finished(
    comparison: DiffOptions, not_audited: Sequence[NotAudited], *, incomplete: bool, differs: bool = False
) -> ExitCode:
    """Name what could not be read; return the exit code."""
    write_notes(entry for entry in not_audited if entry.unreadable)
    if differs and comparison.findings.fail_on.reached(Severity.ERROR):
        return ExitCode.OK if comparison.findings.exit_zero else ExitCode.FINDINGS
    return ExitCode.UNREADABLE if incomplete else ExitCode.OK


def comparison_targets(comparison: DiffOptions, options: ScanOptions) -> list[RowTarget]:
    """Return where a comparison of fingerprints goes, and in what form."""
    targets = [
        RowTarget(name, output_file(file, options.given))
        for name, file in split_formats(comparison.output.output_format or (), comparison.output.output)
    ]
    for target in targets:
        if target.form not in _FORMATS:
            raise UsageError(f"--output-format {target.form}: a comparison of fingerprints is {' or '.join(_FORMATS)}")
    return targets


def _compared(
    comparison: DiffOptions,
    options: ScanOptions,
    read: Mapping[str, Fingerprint],
    given: Mapping[str, str],
) -> FingerprintDiff:
    replicas = name_replicas(options.paths, given)
    titles = {replica.path: replica.name for replica in replicas}
    if len(read) == 2:
        (one, ours), (other, theirs) = read.items()
        return fingerprints.compare_fingerprints((titles[one], titles[other]), (ours, theirs))
    ((name, theirs),) = read.items()
    site = next(replica for replica in replicas if replica.path not in read)
    reading = replace(options, paths=[site.path])
    each = choose_engine(comparison.engine).each_partition
    with progress_of(comparison) as progress:
        return fingerprints.compare_with_logs(reading, site, titles[name], theirs, progress, each=each)


def progress_of(comparison: DiffOptions) -> AbstractContextManager[Progress]:
    """Show progress as it is asked for."""
    return progress_on_stderr(quiet=comparison.display.quiet, verbose=comparison.display.verbose)


def documents_and_sites(comparison: DiffOptions, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the fingerprints and the directories. Raises UsageError where names are to be hidden."""
    if comparison.output.redaction.redact:
        raise UsageError("--redact: a fingerprint names topics, so that another site can compare it")
    return [path for path in paths if is_fingerprint(path)], [path for path in paths if not is_fingerprint(path)]


def _read(file: str) -> Fingerprint:
    return _parsed(file, read_text(file))


def _parsed(file: str, text: str) -> Fingerprint:
    try:
        return read_fingerprint_document(text)
    except FingerprintError as error:
        raise UsageError(f"{file}: {visible(str(error))}") from error


def _verify(
    comparison: DiffOptions,
    options: ScanOptions,
    saved: tuple[str, str],
    targets: Sequence[RowTarget],
) -> int:
    """Compare the logs at `options.paths` with a saved report, its name and its text; return the exit code."""
    report, text = saved
    if options.depth is Depth.HEADERS:
        raise UsageError("--depth headers proves nothing: a report is compared with CRCs that were verified")
    digests = _digests(report, text)
    each = choose_engine(comparison.engine).each_partition
    with progress_of(comparison) as progress:
        found = verify_report(options, digests, progress, each=each)
    show_comparison(
        targets,
        comparison,
        document=lambda: verification_document(found, report),
        render=lambda console: verification_text(found, report, console),
    )
    differs = any(entry.verdict in _FAILS for entry in found.partitions)
    return finished(comparison, found.not_audited, incomplete=found.incomplete, differs=differs)


def _digests(report: str, text: str) -> Sequence[PartitionDigest]:
    try:
        digests = read_saved(text).result.digests
    except SavedScanError as error:
        raise UsageError(f"{report}: {visible(str(error))}") from error
    if digests is None:
        raise UsageError(f"{report}: has no digests of the audited batches; 'kaudit scan --digests' writes them")
    if digests.algorithm != ALGORITHM:
        raise UsageError(f"{report}: has digests of {visible(digests.algorithm)}, this version makes {ALGORITHM}")
    counts = Counter((entry.topic, entry.partition, entry.replica) for entry in digests.partitions)
    if any(count > 1 for count in counts.values()):
        raise UsageError(f"{report}: damaged: a partition replica has two digests")
    for entry in digests.partitions:
        if not _is_consistent(entry):
            name = visible(f"{entry.topic}-{entry.partition}")
            raise UsageError(f"{report}: damaged: the digest of {name} is not that of its ranges")
    return digests.partitions


def _is_consistent(entry: PartitionDigest) -> bool:
    ranges = entry.ranges
    if entry.start_offset > entry.end_offset:
        return False
    if ranges is None:
        return entry.digest is None and entry.start_offset == entry.end_offset
    covers = ranges.first_offset <= entry.start_offset and entry.end_offset <= ranges.end_offset
    return covers and widened(ranges, ranges.first_offset, ranges.end_offset - ranges.first_offset) == entry.digest
