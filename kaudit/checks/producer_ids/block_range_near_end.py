"""The range of producer ids is nearly used up."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.producer_ids.wording import about_entry, block_evidence, block_text, entry_anchor
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.producer_ids import NearEnd

_CAUSES = (
    Explanation("the counter was set near its end by hand: no cluster gets there by itself"),
    Explanation("an application opens producers in a loop"),
)


@check(
    "KA406",
    severity=Severity.WARNING,
    summary="the range of producer ids is nearly used up",
    needs=(NearEnd,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("the end of the range of producer ids concerns the whole cluster, and is one finding"),
    caused_by=none_because("controllers and brokers log no allocation that names the ids in question"),
    simulated=none_because("no history of producer id blocks is scanned with a schedule"),
)
def block_range_near_end(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the block with which the counter came near its end, and those after which none can follow."""
    for found in evidence.of(NearEnd):
        block = block_text(found.entry)
        message = f"{found.ids_left:,} producer ids are left after {block}"
        if found.exhausted:
            message = f"no block can follow {block}: the producer ids are used up"
        elif found.days_left is not None:
            message += f", {found.days_left:,.1f} days at the observed rate"
        yield block_range_near_end.finding(
            context,
            message,
            anchor=entry_anchor(found.entry),
            evidence={
                "rule": "a block that ends beyond 2^63 - 1 - 1000 cannot be followed by another",
                "class": "exhausted" if found.exhausted else "near",
                "ids_left": found.ids_left,
                "days_left": found.days_left,
                "block": block_evidence(found.entry),
            },
            explanations=_CAUSES,
            **about_entry(found.entry),
        )
