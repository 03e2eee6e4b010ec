"""KA402, KA403, KA406: what is wrong with the blocks themselves, whatever the logs show."""

from collections.abc import Mapping, Sequence

from kaudit.broker.producer_ids.allocation_rules import RegressionCause
from kaudit.broker.producer_ids.allocation_verdicts import MalformedBlock, NearEnd, SharedBlock
from kaudit.broker.producer_ids.block_history import BlockEntry
from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Confidence, Explanation, Finding

_CAUSES = {
    RegressionCause.MIGRATION: "the migration from ZooKeeper to KRaft copied the block in use instead of the next one "
    "(KAFKA-15552, fixed in 3.5.2 and 3.6.1)",
    RegressionCause.RECREATED: "the znode was deleted, and the blocks began again at 0",
    RegressionCause.SAME_BLOCK: "one block went to two brokers: the conditional update of the znode did not hold",
    RegressionCause.SET_BACK: "the znode holds an older value again: a restored ZooKeeper backup, or an edit by hand",
}


def block_text(entry: BlockEntry) -> str:
    """Return `3000..3999 of broker 0`."""
    block = f"{entry.start}..{entry.end}"
    return block if entry.broker is None else f"{block} of broker {entry.broker}"


def block_evidence(entry: BlockEntry) -> dict[str, object]:
    """One grant."""
    return {
        "start": entry.start,
        "end": entry.end,
        "broker": entry.broker,
        "version": entry.version,
        "zxid": entry.zxid,
        "offset": entry.offset,
        "timestamp": entry.at_ms,
        "source": entry.source,
        "position": entry.position,
    }


def report_shared(found: SharedBlock) -> Finding:
    """Report ids granted twice."""
    overlap = found.overlap
    seen = f"{found.seen_count} of these ids are in the logs" if found.seen_count else "none of them is in these logs"
    cause = _CAUSES[found.cause] if found.cause is not None else "the history does not show what set the counter back"
    return _finding(
        "KA402",
        overlap.later,
        f"producer ids {overlap.first}..{overlap.last} were granted twice: as {block_text(overlap.earlier)}, then as "
        f"{block_text(overlap.later)}; {seen}",
        anchor=f"{overlap.first}-{overlap.last}-{_identity(overlap.later)}",
        evidence={
            "rule": "a block begins where the last one ended: no id is granted twice",
            "class": found.cause.value if found.cause is not None else "unknown",
            "first_id": overlap.first,
            "last_id": overlap.last,
            "earlier": block_evidence(overlap.earlier),
            "later": block_evidence(overlap.later),
            "seen": found.seen_count,
            "seen_ids": list(found.seen),
        },
        explanations=(Explanation(cause),),
    )


def report_malformed(found: MalformedBlock) -> Finding:
    """Report a value that no broker writes."""
    return _finding(
        "KA403",
        found.entry,
        f"a block of producer ids is not as brokers write it: {'; '.join(found.defects)}",
        anchor=_identity(found.entry),
        evidence={
            "rule": 'brokers write {"version":1,"broker":B,"block_start":"S","block_end":"S+999"}',
            "defects": list(found.defects),
            "block": block_evidence(found.entry),
        },
        explanations=(
            Explanation("the znode was written by hand or by another tool"),
            Explanation("a broker of a version kaudit does not know wrote it", innocent=True),
        ),
    )


def report_near_end(found: NearEnd) -> Finding:
    """Report that the ids run out."""
    block = block_text(found.entry)
    if found.exhausted:
        message = f"no block can follow {block}: the producer ids are used up"
    else:
        message = f"{found.ids_left:,} producer ids are left after {block}"
        if found.days_left is not None:
            message += f", {found.days_left:,.1f} days at the observed rate"
    return _finding(
        "KA406",
        found.entry,
        message,
        anchor=_identity(found.entry),
        evidence={
            "rule": "a block that ends beyond 2^63 - 1 - 1000 cannot be followed by another",
            "class": "exhausted" if found.exhausted else "near",
            "ids_left": found.ids_left,
            "days_left": found.days_left,
            "block": block_evidence(found.entry),
        },
        explanations=(
            Explanation("the counter was set near its end by hand: no cluster gets there by itself"),
            Explanation("an application opens producers in a loop"),
        ),
    )


def _identity(entry: BlockEntry) -> str:
    """What stays the same about an entry wherever its files lie."""
    for name in ("zxid", "offset", "version"):
        value = getattr(entry, name)
        if value is not None:
            return f"{name}{value}"
    return f"{entry.start}-{entry.end}"


def _finding(
    code: str,
    entry: BlockEntry,
    message: str,
    *,
    anchor: str,
    evidence: Mapping[str, object],
    explanations: Sequence[Explanation],
) -> Finding:
    check = CHECKS[code]
    no_log = "about the blocks of producer ids, not about a partition"
    return Finding(
        code=code,
        name=check.name,
        severity=check.severity,
        confidence=Confidence.CERTAIN,
        message=message,
        file=entry.source,
        position=entry.position,
        anchor=anchor,
        evidence=evidence,
        explanations=explanations,
        next=(),
        absent=dict.fromkeys(("topic", "partition", "replica", "log_dir", "segment", "offset", "last_offset"), no_log),
    )
