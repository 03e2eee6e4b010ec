"""Runs `kaudit diff --by records`: the topics of one input compared with their copies in another."""

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kaudit.cli.audit import Recording, run_audit
from kaudit.cli.commands.diff import DiffOptions
from kaudit.cli.comparison import diff_request
from kaudit.cli.engine import choose_engine
from kaudit.cli.identities import identity_reader
from kaudit.cli.loading import loaded
from kaudit.cli.parsing import is_fingerprint, parse_duration, parse_names
from kaudit.cli.settings import Settings
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file
from kaudit.diff.records.group_offsets import committed_offsets, offsets_file, read_again, translated
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.engines.record_ledger import LOCAL_RECORDS, LedgerRequest, RecordEngine, record_ledger
from kaudit.engines.replicas import layout_of, name_replicas
from kaudit.errors import UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.reading.identity.grammar import Identity
from kaudit.report.console import visible
from kaudit.scanning.options import IsolationLevel, ScanOptions
from kaudit.source.schemes import open_segment


def run_record_ledger(settings: Settings, paths: Sequence[str], comparison: DiffOptions) -> int:
    """Compare two inputs record by record; return the exit code."""
    scan = replace(comparison.audit, paths=paths, compacted_topics=settings.compacted_topics)
    if comparison.fingerprint or any(map(is_fingerprint, paths)):
        return int(loaded("record_fingerprints", "run_record_fingerprints")(comparison, scan))
    sides = _sides(paths, comparison)
    asked = comparison.ledger
    request = diff_request(settings, scan, comparison)
    if request.redactor is not None:
        raise UsageError("--redact: a ledger of records is not redacted; leave one of the two out")
    if bool(asked.translate_group) != (asked.offsets_file is not None):
        raise UsageError("--translate-group and --offsets-file belong together")
    file = output_file(asked.offsets_file, paths)
    how = ledger_request(comparison)
    engine = records_engine(comparison)

    def produce(progress: Progress, recording: Recording) -> LedgerResult:
        result = recording.held(record_ledger(request.options, sides, how, progress, engine))
        if asked.translate_group:
            _write_offsets(result, asked.translate_group, request.options, file)
        return request.selection.of_comparison(result)

    return run_audit(request, "ledger", produce, empty=lambda nothing: LedgerResult(nothing, sides))


def ledger_request(comparison: DiffOptions) -> LedgerRequest:
    """Return how records are compared."""
    asked = comparison.ledger
    reader = identity_reader(asked.identity, asked.schema or (), asked.key_schema or ())
    return LedgerRequest(
        reader=reader,
        given=asked.identity is not None,
        read_committed=asked.isolation_level is IsolationLevel.READ_COMMITTED,
        maps=asked.maps or (),
        window_ms=_window_ms(asked.windows, reader.identity),
        temporary_directory=asked.temporary_directory,
        target_command_config=asked.target_command_config,
        target_remote=asked.target_remote,
    )


def records_engine(comparison: DiffOptions) -> RecordEngine:
    """Return what compares records on the engine asked for."""
    local = choose_engine(comparison.engine) is LOCAL
    engine: RecordEngine = LOCAL_RECORDS if local else loaded("spark_engine", "records_on_spark")(comparison.engine)
    return engine


def _window_ms(text: str | None, identity: Identity) -> int | None:
    """Return the width of windows. Raises UsageError where equal records may lie in several."""
    width = parse_duration(text, "--windows")
    if width == 0:
        raise UsageError(f"--windows {text}: a window has a length")
    if width is not None and not identity.is_timed:
        raise UsageError(
            f"--windows: equal records may lie in several windows by --identity {identity.text}: add timestamp"
        )
    return width


def _write_offsets(result: LedgerResult, groups: Sequence[str], options: ScanOptions, file: Path | None) -> None:
    """Write where the groups of the source go on in the target."""
    layout = layout_of(result.sides[0], replace(options, topics=(), partitions=()))
    commits, unread = committed_offsets(layout.partitions, groups, open_segment)
    for group in groups:
        if all(commit.group != group for commit in commits):
            raise UsageError(f"--translate-group {group}: __consumer_offsets of the source has no commit of it")
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
    source, target = name_replicas(paths, parse_names(comparison.name or (), paths))
    return source, target
