"""Runs `kaudit diff --by records`: the topics of one input compared with their copies in another."""

from collections.abc import Sequence

from msgspec.structs import replace

from kaudit.cli.audit import Recording, refuse_urls, run_audit
from kaudit.cli.commands.dedup import IsolationLevel
from kaudit.cli.commands.diff import DiffOptions
from kaudit.cli.options import EngineChoice
from kaudit.cli.parsing import is_fingerprint, parse_names
from kaudit.cli.request import audit_request
from kaudit.cli.settings import Settings
from kaudit.engines.progress import Progress
from kaudit.engines.record_ledger import LedgerRequest, record_ledger
from kaudit.engines.replicas import name_replicas
from kaudit.errors import UsageError
from kaudit.model.ledger import LedgerResult
from kaudit.model.replicas import Replica
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import WHOLE, parse_identity
from kaudit.report.formats import Format


def run_record_ledger(settings: Settings, paths: Sequence[str], comparison: DiffOptions) -> int:
    """Compare two inputs record by record; return the exit code."""
    sides = _sides(paths, comparison)
    asked = comparison.ledger
    scan = replace(comparison.audit, paths=paths, compacted_topics=settings.compacted_topics)
    output = comparison.output
    request = audit_request(
        settings,
        scan,
        output,
        comparison.findings,
        comparison.display,
        statistics=output.statistics,
        compares=True,
    )
    refuse_urls(request, "diff writes to a directory")
    if request.redactor is not None:
        raise UsageError("--redact: a ledger of records is not redacted; leave one of the two out")
    identity = WHOLE if asked.identity is None else parse_identity(asked.identity)
    how = LedgerRequest(
        reader=IdentityReader(identity),
        given=asked.identity is not None,
        read_committed=asked.isolation_level is IsolationLevel.READ_COMMITTED,
        maps=asked.maps or (),
        temporary_directory=asked.temporary_directory,
    )

    def produce(progress: Progress, recording: Recording) -> LedgerResult:
        return request.selection.of_comparison(recording.held(record_ledger(request.options, sides, how, progress)))

    return run_audit(
        request,
        produce=produce,
        render=Format.ledger,
        empty=lambda nothing: LedgerResult(nothing, sides),
        scan_of=lambda result: result.scan,
        with_scan=lambda result, scan: replace(result, scan=scan),
    )


def _sides(paths: Sequence[str], comparison: DiffOptions) -> tuple[Replica, Replica]:
    if comparison.fingerprint or any(map(is_fingerprint, paths)):
        raise UsageError("--by records compares logs: neither fingerprints nor reports")
    if comparison.engine.engine is not EngineChoice.LOCAL:
        raise UsageError("--by records --engine spark: records are compared by this machine's processes")
    if len(paths) != 2:
        raise UsageError("--by records takes two inputs, a source and a target")
    source, target = name_replicas(paths, parse_names(comparison.name or (), paths))
    return source, target
