"""What a scan and `kaudit transactions` say of an application, beside what a consumer reads of its outputs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.listings.transactions import Query
from kaudit.model.exactly_once import Outcome
from kaudit.model.finding import Finding
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.live_brokers.exactly_once.stage import Truth

OUTSIDE = "KA917"
ALONE = "KA918"
_CODES = {"doubled": "KA915", "skipped": "KA916"}


def wrong(truth: Truth, log: Path) -> Iterator[str]:
    """Yield what is said and is not so, or is so and is not said.

    Where the offsets are in no transaction, inputs cannot be told: there it is that which is to be said.
    """
    listing = local.transactions(ScanOptions([str(log)], jobs=1), SilentProgress(), Query())
    findings = [finding for finding in listing.scan.findings if finding.severity is not Severity.NOTE]
    if truth.healthy and findings:
        yield f"healthy, and {[finding.code for finding in findings]}"
    outside = [finding for finding in findings if finding.code == OUTSIDE]
    blind = any(finding.evidence.transactional_id for finding in outside)
    for what, code in _CODES.items():
        said = [finding for finding in findings if finding.code == code]
        ranges = [(part, *each) for part, own in getattr(truth, what).items() for each in own]
        again = sum(
            int(str(finding.evidence.to_dict()["written_again"])) for finding in findings if finding.code == ALONE
        )
        if (
            again and what == "doubled"
        ):  # no transaction names these inputs: there are as many as records that were written again
            ranges = [] if again == sum(last - first + 1 for _, first, last in ranges) else ranges
        if not blind and not _are_the_same(ranges, said):
            yield f"{what} {ranges}, and {[finding.message for finding in said]}"
    if (truth.doubled or truth.skipped) and not findings:
        yield "nothing is said"
    committed = Counter(
        each.transactional_id
        for each in listing.transactions
        if each.outcome is Outcome.COMMITTED and each.read_committed
    )
    if truth.commits and committed != Counter(truth.commits):
        yield f"{truth.commits} committed, and {dict(committed)}"
    records = sum(each.records for each in listing.transactions if each.outcome is Outcome.COMMITTED)
    if truth.commits and records != truth.outputs:
        yield f"{truth.outputs} outputs, and {records}"


def _are_the_same(ranges: list[tuple[str, int, int]], said: list[Finding]) -> bool:
    """Whether each range is said once; its beginning need not be known."""
    if len(ranges) != len(said):
        return False
    for finding in said:
        inputs = finding.evidence.to_dict()["inputs"]
        assert isinstance(inputs, dict)
        part, first, last = str(inputs["partition"]), inputs["first"], inputs["end"] - 1
        if not any(part == own[0] and last == own[2] and first in {None, own[1]} for own in ranges):
            return False
    return True
