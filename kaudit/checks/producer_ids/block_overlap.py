"""Producer ids that were granted twice."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import SHARED_PRODUCER_ID
from kaudit.checks.producer_ids.wording import about_entry, block_evidence, block_text, entry_anchor
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.producer_ids import RegressionCause, SharedBlock

_CAUSES = {
    RegressionCause.MIGRATION: "the migration from ZooKeeper to KRaft copied the block in use instead of the next one "
    "(KAFKA-15552, fixed in 3.5.2 and 3.6.1)",
    RegressionCause.RECREATED: "the znode was deleted, and the blocks began again at 0",
    RegressionCause.SAME_BLOCK: "one block went to two brokers: the conditional update of the znode did not hold",
    RegressionCause.SET_BACK: "the znode holds an older value again: a restored ZooKeeper backup, or an edit by hand",
}
_UNKNOWN_CAUSE = "the history does not show what set the counter back"


@check(
    "KA402",
    severity=Severity.ERROR,
    summary="producer ids that were granted twice",
    needs=(SharedBlock,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(SHARED_PRODUCER_ID,),
    caused_by=none_because("controllers and brokers log no allocation that names the ids in question"),
    simulated=none_because("no history of producer id blocks is scanned with a schedule"),
)
def block_overlap(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range of ids, with those of them the logs show."""
    for found in evidence.of(SharedBlock):
        overlap, cause = found.overlap, found.cause
        seen = "none of them is in these logs"
        if found.seen_count:
            seen = f"{found.seen_count} of these ids {'is' if found.seen_count == 1 else 'are'} in the logs"
        yield block_overlap.finding(
            context,
            f"producer ids {overlap.first}..{overlap.last} were granted twice: as {block_text(overlap.earlier)}, then as "
            f"{block_text(overlap.later)}; {seen}",
            anchor=f"{overlap.first}-{overlap.last}-{entry_anchor(overlap.later)}",
            evidence={
                "rule": "a block begins where the last one ended: no id is granted twice",
                "class": cause.value if cause is not None else "unknown",
                "first_id": overlap.first,
                "last_id": overlap.last,
                "earlier": block_evidence(overlap.earlier),
                "later": block_evidence(overlap.later),
                "seen": found.seen_count,
                "seen_ids": list(found.seen),
            },
            explanations=(Explanation(_UNKNOWN_CAUSE if cause is None else _CAUSES[cause]),),
            **about_entry(overlap.later),
        )
