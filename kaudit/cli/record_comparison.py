"""Runs `kaudit diff --by records`: the topics of one input compared with their copies in another."""

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kaudit.cli.audit import Recording, run_audit
from kaudit.cli.commands.diff import DiffOptions
from kaudit.cli.comparison import diff_request
from kaudit.cli.engine import choose_engine
from kaudit.cli.loading import loaded
from kaudit.cli.parsing import is_fingerprint, parse_names
from kaudit.cli.settings import Settings
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file
from kaudit.diff.records.group_offsets import offsets_file, read_again, translated
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.engines.record_ledger import LOCAL_RECORDS, LedgerRequest, RecordEngine, commits_of_source, record_ledger
from kaudit.engines.replicas import name_replicas
from kaudit.errors import UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.report.console import visible
from kaudit.scanning.options import ScanOptions


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
    if bool(asked.translate_groups) != (comparison.unit.offsets_file is not None):
        raise UsageError("--translate-group and --offsets-file belong together")
    file = output_file(comparison.unit.offsets_file, paths)
    how = LedgerRequest.of(asked)
    engine = records_engine(comparison)

    def produce(progress: Progress, recording: Recording) -> LedgerResult:
        result = recording.held(record_ledger(request.options, sides, how, progress, engine))
        if asked.translate_groups:
            _write_offsets(result, asked.translate_groups, request.options, file)
        return request.selection.of_comparison(result)

    return run_audit(request, "ledger", produce, empty=lambda nothing: LedgerResult(nothing, sides))


def records_engine(comparison: DiffOptions) -> RecordEngine:
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
