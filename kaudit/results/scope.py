"""How much was audited, in words: what was read, and what became of its offsets."""

from collections.abc import Sequence

from kaudit.checks.texts import counted
from kaudit.model.coverage import NOT_ACCOUNTED, Coverage, OffsetClass
from kaudit.model.result import ScanResult

_NOT_IN_THE_LOG = (OffsetClass.COMPACTED, OffsetClass.REMOTE)


def extent(result: ScanResult) -> str:
    """Return how much was read: `in 3 segments, 2 partitions, 1.2 GB`; without segments for live brokers, `in 2 logs` without both."""
    summary = result.summary
    if result.log_events is not None and not summary.partitions:
        return f"in {counted(len(result.log_events.files), 'log')} of brokers and clients"
    segments = f"{counted(summary.segments, 'segment')}, " if summary.segments or not summary.partitions else ""
    return f"in {segments}{counted(summary.partitions, 'partition')}, {size(summary.bytes)}"


def size(number: int) -> str:
    """Return a size in decimal units, as `df -H` does."""
    if number < 1000:
        return f"{number} B"
    scaled = float(number)
    for unit in ("kB", "MB", "GB", "TB"):
        scaled /= 1000
        if scaled < 999.95:  # a larger value would round to 1000.0
            return f"{scaled:.1f} {unit}"
    return f"{scaled / 1000:.1f} PB"


def coverage_sentence(result: ScanResult) -> str:
    """Return `every offset accounted for` with how many of them were compacted or are remote, or how many are not accounted for.

    Records that a finding calls lost were in no log that was read, or beyond its ends: the logs have no gap then. Nothing where no
    partition was audited.
    """
    accounts = result.coverage
    if not accounts:
        return ""
    left = [account for account in accounts if not account.all_accounted]
    if not left:
        absent = _numbers(accounts, _NOT_IN_THE_LOG)
        lost = any(finding.impact.records_lost_at_most != 0 for finding in result.findings if finding.impact.is_lossy)
        every = "no offset is missing within the logs" if lost else "every offset accounted for"
        return every + (f" ({absent})" if absent else "")
    places = f" in {counted(len(left), 'partition')}" if len(accounts) > 1 else ""
    return f"offsets not accounted for: {_numbers(left, NOT_ACCOUNTED) or 'their number is not known'}{places}"


def _numbers(accounts: Sequence[Coverage], kinds: Sequence[OffsetClass]) -> str:
    numbers = {kind.value: sum(account.offsets.get(kind.value, 0) for account in accounts) for kind in kinds}
    return ", ".join(f"{number:,} {kind}" for kind, number in numbers.items() if number)
