"""A block of producer ids that no broker writes."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.producer_ids.wording import about_entry, block_evidence, entry_anchor
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.producer_ids import MalformedBlock

_CAUSES = (
    Explanation("the znode was written by hand or by another tool"),
    Explanation("a broker of a version kaudit does not know wrote it", innocent=True),
)


@check(
    "KA403",
    severity=Severity.WARNING,
    summary="a block of producer ids that no broker writes",
    needs=(MalformedBlock,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("a malformed block is one record or znode"),
    caused_by=none_because("controllers and brokers log no allocation that names the ids in question"),
    simulated=none_because("no history of producer id blocks is scanned with a schedule"),
)
def block_malformed(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such entry of the history."""
    for found in evidence.of(MalformedBlock):
        yield block_malformed.finding(
            context,
            f"a block of producer ids is not as brokers write it: {'; '.join(found.defects)}",
            anchor=entry_anchor(found.entry),
            evidence={
                "rule": 'brokers write {"version":1,"broker":B,"block_start":"S","block_end":"S+999"}',
                "defects": list(found.defects),
                "block": block_evidence(found.entry),
            },
            explanations=_CAUSES,
            **about_entry(found.entry),
        )
