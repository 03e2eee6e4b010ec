"""Running `kaudit diff` with a saved report: whether logs still hold what it judged, and the exit code."""

import sys
from collections import Counter
from collections.abc import Sequence

from kaudit.cli.audit_options import DiffOptions, DisplayOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import RowTarget, console_of, show
from kaudit.cli.progress import progress_on_stderr
from kaudit.engines.verification import verify_report
from kaudit.errors import UsageError
from kaudit.model.digests import ALGORITHM, PartitionDigest
from kaudit.model.finding import Severity
from kaudit.model.fingerprint import VerificationOutcome
from kaudit.reading.digest_tree import widened
from kaudit.report.console import visible
from kaudit.report.text.verification import document, render
from kaudit.results.saved_scan import SavedScanError, read_saved
from kaudit.scanning.options import Depth, ScanOptions

_FAILS = frozenset((VerificationOutcome.DIFFERS, VerificationOutcome.MISSING))


def run_verification(
    comparison: DiffOptions,
    options: ScanOptions,
    saved: tuple[str, str],
    targets: Sequence[RowTarget],
    display: DisplayOptions,
) -> int:
    """Hold the logs at `options.paths` against a saved report, its name and its text; return the exit code."""
    report, text = saved
    if options.depth is Depth.HEADERS:
        raise UsageError("--depth headers proves nothing: a report is held against CRCs that were checked")
    judged = _digests(report, text)
    each = comparison.engine.choose().each_partition
    with progress_on_stderr(quiet=display.quiet, verbose=display.verbose) as progress:
        found = verify_report(options, judged, progress, each=each)
    for target in targets:
        console = console_of(target, display.terminal)
        pieces = document(found, report) if target.form == "json" else render(found, report, console)
        show(target, pieces, display.terminal)
    for entry in found.not_audited:
        if entry.unreadable:
            sys.stderr.write(f"kaudit: {visible(entry.path)}: {visible(entry.reason)}\n")
    fails = any(entry.verdict in _FAILS for entry in found.partitions)
    if fails and comparison.findings.fail_on.reached(Severity.ERROR):
        return ExitCode.OK if comparison.findings.exit_zero else ExitCode.FINDINGS
    return ExitCode.UNREADABLE if found.incomplete else ExitCode.OK


def _digests(report: str, text: str) -> Sequence[PartitionDigest]:
    try:
        digests = read_saved(text).result.digests
    except SavedScanError as error:
        raise UsageError(f"{report}: {visible(str(error))}") from error
    if digests is None:
        raise UsageError(f"{report}: does not name what it judged; 'kaudit scan --digests' writes reports that do")
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
