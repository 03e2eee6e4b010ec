"""Runs `kaudit diff --by records`: topics compared with their copies in another input, one of which may be known by its fingerprint."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from kaudit.checks.command_line import quote_text
from kaudit.cli.audit import Recording, run_audit
from kaudit.cli.commands.diff import DiffOptions
from kaudit.cli.comparison import (
    comparison_targets,
    diff_request,
    documents_and_sites,
    fingerprint_asked,
    finished,
    progress_of,
    show_comparison,
)
from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import ExitCode
from kaudit.cli.loading import loaded
from kaudit.cli.parsing import is_fingerprint, parse_names
from kaudit.cli.settings import Settings
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file
from kaudit.diff.records.fingerprints import (
    RecordFingerprint,
    RecordFingerprintError,
    compare_record_fingerprints,
    narrower,
    read_record_fingerprint,
    write_record_fingerprint,
)
from kaudit.diff.records.group_offsets import offsets_file, read_again, translated
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.engines.record_ledger import (
    LOCAL_RECORDS,
    LedgerRequest,
    RecordEngine,
    commits_of_source,
    record_fingerprint,
    record_ledger,
)
from kaudit.engines.replicas import name_replicas
from kaudit.errors import UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.reading.identity.grammar import parse_identity
from kaudit.report.console import visible
from kaudit.report.text.ledger import record_comparison_document, record_comparison_text
from kaudit.scanning.options import ScanOptions
from kaudit.source.local import read_text


def run_record_ledger(settings: Settings, paths: Sequence[str], comparison: DiffOptions) -> int:
    """Compare two inputs record by record; return the exit code."""
    scan = replace(comparison.audit, paths=paths, compacted_topics=settings.compacted_topics)
    if comparison.fingerprint or any(map(is_fingerprint, paths)):
        return (_write_fingerprint if comparison.fingerprint else _compare_fingerprints)(comparison, scan)
    sides = _sides(paths, comparison)
    asked = comparison.ledger
    request = diff_request(settings, scan, comparison)
    if request.redactor is not None:
        raise UsageError("--redact: a ledger of records is not redacted; leave one of the two out")
    if bool(asked.translate_groups) != (comparison.unit.offsets_file is not None):
        raise UsageError("--translate-group and --offsets-file belong together")
    file = output_file(comparison.unit.offsets_file, paths)
    how = LedgerRequest.of(asked)
    engine = _records_engine(comparison)

    def produce(progress: Progress, recording: Recording) -> LedgerResult:
        result = recording.held(record_ledger(request.options, sides, how, progress, engine))
        if asked.translate_groups:
            _write_offsets(result, asked.translate_groups, request.options, file)
        return request.selection.of_comparison(result)

    return run_audit(request, "ledger", produce, empty=lambda nothing: LedgerResult(nothing, sides))


def _records_engine(comparison: DiffOptions) -> RecordEngine:
    """Return what compares records on the engine asked for."""
    local = choose_engine(comparison.engine) is LOCAL
    engine: RecordEngine = LOCAL_RECORDS if local else loaded("spark_engine", "records_on_spark")(comparison.engine)
    return engine


def _write_offsets(result: LedgerResult, groups: Sequence[str], options: ScanOptions, file: Path | None) -> None:
    """Write where the groups of the source go on in the target."""
    commits, unread = commits_of_source(result.sides[0], groups, options)
    found = list(translated(result.ledgers, commits))
    write_pieces(file, offsets_file(found, with_group=len(groups) > 1))
    for offset, records in read_again(result.ledgers, found):
        text = f"group {offset.group} is given {records:,} records of {offset.topic}-{offset.partition} from offset {offset.offset} on that are there again"
        sys.stderr.write(f"kaudit: {visible(text)}\n")
    topics = {commit.topic for commit in commits} - {ledger.source for ledger in result.ledgers}
    for text in [*unread, *(f"{topic}: was not compared, its offsets are not translated" for topic in sorted(topics))]:
        sys.stderr.write(f"kaudit: {visible(text)}\n")


def _sides(paths: Sequence[str], comparison: DiffOptions) -> tuple[Replica, Replica]:
    if len(paths) != 2:
        raise UsageError("--by records takes two inputs, a source and a target")
    source, target = name_replicas(paths, parse_names(comparison.replicas.names, paths))
    return source, target


def _write_fingerprint(comparison: DiffOptions, options: ScanOptions) -> ExitCode:
    site, document, file = fingerprint_asked(comparison, options)
    request = LedgerRequest.of(comparison.ledger)
    if document is not None:
        other = _read(document)
        like = _like(request, other)
        own = _made(comparison, options, site, like)
        maps = comparison.ledger.maps
        width, within = narrower(own, other, maps, own_is_source=options.paths[0] == site.path)
        made = _made(comparison, options, site, replace(like, window_ms=width), within)
    else:
        made = _made(comparison, options, site, request)
    write_pieces(file, write_record_fingerprint(made))
    return finished(comparison, made.not_audited, incomplete=made.incomplete)


def _compare_fingerprints(comparison: DiffOptions, options: ScanOptions) -> ExitCode:
    documents, sites = documents_and_sites(comparison, options.paths)
    if len(options.paths) != 2:
        raise UsageError("--by records takes two inputs, a source and a target")
    targets = comparison_targets(comparison, options)
    replicas = name_replicas(options.paths, parse_names(comparison.replicas.names, options.paths))
    read = {path: _read(path) for path in documents}
    first = next(iter(read.values()))
    request = LedgerRequest.of(comparison.ledger)
    for replica in replicas:
        if replica.path not in read:
            read[replica.path] = _made(comparison, options, replica, _like(request, first))
    source, target = (read[path] for path in options.paths)
    for what in ("identity", "read_committed", "milliseconds"):
        if getattr(source, what) != getattr(target, what):
            raise UsageError(
                f"these fingerprints differ in {what}: {getattr(source, what)} and {getattr(target, what)}"
            )
    names = replicas[0].name, replicas[1].name
    found = compare_record_fingerprints(names, (source, target), comparison.ledger.maps)
    narrowing = " ".join(["kaudit diff --fingerprint --by records", *map(quote_text, options.paths)]) if sites else None
    show_comparison(
        targets,
        comparison,
        document=lambda: record_comparison_document(found),
        render=lambda console: record_comparison_text(found, console, narrowing),
    )
    differs = any(each.windows.differing for each in found.topics)
    return finished(comparison, found.not_audited, incomplete=found.incomplete, differs=differs)


def _like(request: LedgerRequest, other: RecordFingerprint) -> LedgerRequest:
    """Return how a site is read so that it can be compared with another's fingerprint."""
    if request.given and request.reader.identity.text != other.identity:
        raise UsageError(f"--identity {request.reader.identity.text}: the fingerprint is by {visible(other.identity)}")
    reader = replace(request.reader, identity=parse_identity(other.identity))
    return replace(request, reader=reader, read_committed=other.read_committed, window_ms=other.milliseconds)


def _made(
    comparison: DiffOptions,
    options: ScanOptions,
    site: Replica,
    request: LedgerRequest,
    within: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> RecordFingerprint:
    with progress_of(comparison) as progress:
        reading = replace(options, paths=[site.path])
        return record_fingerprint(reading, site, request, progress, _records_engine(comparison), within)


def _read(path: str) -> RecordFingerprint:
    try:
        return read_record_fingerprint(read_text(path))
    except RecordFingerprintError as error:
        raise UsageError(f"{path}: {visible(str(error))}") from error
