"""Runs `kaudit diff --by records` where a site is known by its fingerprint, and makes fingerprints of records."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kaudit.checks.command_line import quote_text
from kaudit.cli.commands.diff import DiffOptions
from kaudit.cli.comparison import (
    comparison_targets,
    documents_and_sites,
    fingerprint_asked,
    finished,
    progress_of,
    show_comparison,
)
from kaudit.cli.exits import ExitCode
from kaudit.cli.parsing import parse_names
from kaudit.cli.record_comparison import records_engine
from kaudit.cli.streams import write_pieces
from kaudit.diff.records.fingerprints import (
    RecordFingerprint,
    RecordFingerprintError,
    compare_record_fingerprints,
    narrower,
    read_record_fingerprint,
    write_record_fingerprint,
)
from kaudit.engines.record_ledger import LedgerRequest, record_fingerprint
from kaudit.engines.replicas import name_replicas
from kaudit.errors import UsageError
from kaudit.model.replicas import Replica
from kaudit.reading.identity.grammar import parse_identity
from kaudit.report.console import visible
from kaudit.report.text.ledger import record_comparison_document, record_comparison_text
from kaudit.scanning.options import ScanOptions
from kaudit.source.local import read_text


def run_record_fingerprints(comparison: DiffOptions, options: ScanOptions) -> int:
    """Write the fingerprint of a site, or compare two sites of which one is a fingerprint at least; return the exit code."""
    return (_write if comparison.fingerprint else _compare)(comparison, options)


def _write(comparison: DiffOptions, options: ScanOptions) -> ExitCode:
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


def _compare(comparison: DiffOptions, options: ScanOptions) -> ExitCode:
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
        return record_fingerprint(reading, site, request, progress, records_engine(comparison), within)


def _read(path: str) -> RecordFingerprint:
    try:
        return read_record_fingerprint(read_text(path))
    except RecordFingerprintError as error:
        raise UsageError(f"{path}: {visible(str(error))}") from error
