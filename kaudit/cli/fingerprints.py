"""Running `kaudit diff` with fingerprints: what is made, what is compared, and the exit code."""

import sys
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kaudit.checks.command_line import quote_text
from kaudit.cli.audit_options import DiffOptions, DisplayOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import RowTarget, console_of, show
from kaudit.cli.parsing import is_fingerprint, parse_names
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file, split_formats
from kaudit.cli.verification import run_verification
from kaudit.diff.fingerprint.document import (
    FingerprintError,
    read_fingerprint_document,
    schema_of,
    write_fingerprint,
)
from kaudit.engines import fingerprints
from kaudit.engines.replicas import name_replicas
from kaudit.errors import UsageError
from kaudit.model.finding import Severity
from kaudit.model.fingerprint import Fingerprint, FingerprintDiff
from kaudit.model.replicas import Relation
from kaudit.model.result import NotAudited
from kaudit.report.console import visible
from kaudit.report.text.fingerprints import document, render
from kaudit.results.saved_scan import SCHEMA as SAVED_SCAN
from kaudit.scanning.options import ScanOptions
from kaudit.source.documents import read_document

_FORMATS = ("table", "json")


def write_digests(comparison: DiffOptions, options: ScanOptions, _: Sequence[str], display: DisplayOptions) -> int:
    """Write the fingerprint of the one directory among the paths; return the exit code."""
    documents, sites = _sorted(options.paths)
    if len(sites) != 1 or len(documents) > 1:
        raise UsageError("--fingerprint takes one directory, and at most one fingerprint to compare it with")
    targets = split_formats(comparison.output.output_format or ["json"], comparison.output.output)
    if [name for name, _ in targets] != ["json"]:
        raise UsageError(f"--output-format {targets[0][0]}: a fingerprint is json")
    file = output_file(targets[0][1], options.paths)
    other = _read(documents[0]) if documents else None
    site, reading = name_replicas(sites, {})[0], replace(options, paths=sites)
    each = comparison.engine.choose().each_partition
    with progress_on_stderr(quiet=display.quiet, verbose=display.verbose) as progress:
        made = fingerprints.fingerprint(reading, site, progress, other, each=each)
    write_pieces(file, write_fingerprint(made))
    return _closed(made.not_audited, incomplete=made.incomplete)


def run_comparison(comparison: DiffOptions, options: ScanOptions, names: Sequence[str], display: DisplayOptions) -> int:
    """Compare two sites, one of them at least by its fingerprint, or logs with what a report judged; return the exit code."""
    documents, sites = _sorted(options.paths)
    given = parse_names(names, options.paths)
    texts = {path: _text(path) for path in documents}
    reports = [path for path in documents if schema_of(texts[path]) == SAVED_SCAN]
    if reports:
        if len(documents) > 1 or not sites or names:
            raise UsageError(f"{reports[0]}: a saved report is held against directories: one report, and no --name")
        saved, reading = (reports[0], texts[reports[0]]), replace(options, paths=sites)
        return run_verification(comparison, reading, saved, _targets(comparison, options), display)
    if len(options.paths) != 2:
        raise UsageError("fingerprints are compared two at a time: one with a directory, or with another fingerprint")
    targets = _targets(comparison, options)
    found = _compared(comparison, options, {path: _parsed(path, texts[path]) for path in documents}, given, display)
    narrowing = " ".join(["kaudit diff --fingerprint", *map(quote_text, options.paths)]) if sites else None
    for target in targets:
        console = console_of(target, display.terminal)
        pieces = document(found) if target.form == "json" else render(found, console, narrowing)
        show(target, pieces, display.terminal)
    code = _closed(found.not_audited, incomplete=found.incomplete)
    diverged = any(entry.relation is Relation.DIVERGED for entry in found.partitions)
    if diverged and comparison.findings.fail_on.reached(Severity.ERROR):
        return ExitCode.OK if comparison.findings.exit_zero else ExitCode.FINDINGS
    return code


def _targets(comparison: DiffOptions, options: ScanOptions) -> list[RowTarget]:
    targets = [
        RowTarget(name, output_file(file, options.paths))
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
    display: DisplayOptions,
) -> FingerprintDiff:
    replicas = name_replicas(options.paths, given)
    titles = {replica.path: replica.name for replica in replicas}
    if len(read) == 2:
        (one, ours), (other, theirs) = read.items()
        return fingerprints.compare_fingerprints((titles[one], titles[other]), (ours, theirs))
    ((name, theirs),) = read.items()
    site = next(replica for replica in replicas if replica.path not in read)
    reading = replace(options, paths=[site.path])
    each = comparison.engine.choose().each_partition
    with progress_on_stderr(quiet=display.quiet, verbose=display.verbose) as progress:
        return fingerprints.compare_with_logs(reading, site, titles[name], theirs, progress, each=each)


def _sorted(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the fingerprints and the directories."""
    return [path for path in paths if is_fingerprint(path)], [path for path in paths if not is_fingerprint(path)]


def _read(file: str) -> Fingerprint:
    return _parsed(file, _text(file))


def _text(file: str) -> str:
    try:
        return read_document(file)
    except FileNotFoundError:
        raise UsageError(f"no such file: {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{file}: cannot be read: {reason}") from error


def _parsed(file: str, text: str) -> Fingerprint:
    try:
        return read_fingerprint_document(text)
    except FingerprintError as error:
        raise UsageError(f"{file}: {visible(str(error))}") from error


def _closed(not_audited: Sequence[NotAudited], *, incomplete: bool) -> ExitCode:
    for entry in not_audited:
        if entry.unreadable:
            sys.stderr.write(f"kaudit: {visible(entry.path)}: {visible(entry.reason)}\n")
    return ExitCode.UNREADABLE if incomplete else ExitCode.OK
