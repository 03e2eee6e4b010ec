"""Records that are on one replica alone."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check
from kaudit.checks.context import Context
from kaudit.checks.replicas.wording import ABSENT, inspect_replica, listed, offsets_text
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.replicas import OffsetRange, PartitionComparison, Relation, ReplicaEvidence


@check(
    "KA603",
    severity=Severity.ERROR,
    severity_note="warning above the high watermark",
    summary="records that are on one replica alone",
    needs=(ReplicaEvidence,),
)
def only_copy(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each replica's end that no other has, where that is not a divergence."""
    for found in evidence.of(ReplicaEvidence):
        if found.comparison.relation is Relation.MISSING:
            continue
        for name, offsets in found.comparison.only_on.items():
            if not _is_divergence(found.comparison, name, offsets.first):
                yield _only_copy(context, found, name, offsets)


def _is_divergence(comparison: PartitionComparison, name: str, offset: int) -> bool:
    """Whether the others differ there, or a newer leader began there: KA601 reports that."""
    difference = comparison.first_difference
    differs = difference is not None and difference.offset == offset and name in difference.batches
    other_ends = [end for other, end in comparison.end_offsets.items() if other != name]
    return differs or name in comparison.beyond_reference or offset not in other_ends


def _only_copy(context: Context, found: ReplicaEvidence, name: str, offsets: OffsetRange) -> Finding:
    end_offsets = found.comparison.end_offsets
    holder, mark = found.high_watermark or (None, None)
    below = mark is not None and mark > offsets.first
    others = [other for other in end_offsets if other != name]
    message = f"{offsets_text(offsets.first, offsets.last)} are on {name} alone"
    return only_copy.finding(
        context.replicas[name],
        f"{message}, below the high watermark {mark}" if below else message,
        severity=Severity.ERROR if below else Severity.WARNING,
        confidence=Confidence.CERTAIN if below else Confidence.POSSIBLE,
        offset=offsets.first,
        last_offset=offsets.last,
        evidence={
            "rule": "records survive the loss of a broker only once another replica has them; below the high "
            "watermark every in-sync replica has them",
            "broker": f"the records are lost if {' or '.join(others)} is elected without {name}",
            "only_on": name,
            "end_offsets": dict(end_offsets),
            "high_watermark": mark,
            "high_watermark_of": holder,
            "last_acknowledged_offset": min(mark - 1, offsets.last) if mark is not None and below else None,
            "ends_in_damage": list(found.torn),
        },
        explanations=_causes(found, name, below=below),
        following=(inspect_replica(context, name, offsets.first),),
        absent=ABSENT,
    )


def _causes(found: ReplicaEvidence, name: str, *, below: bool) -> list[Explanation]:
    causes = [
        Explanation(
            f"{name} was the only replica in sync: the followers were stopped or too slow",
            speaks_for=("the high watermark passed these offsets",) if below else (),
        ),
        Explanation("the others lost them: truncated after an unclean election, deleted, or damaged"),
    ]
    if found.torn:
        causes.append(Explanation("another copy ends in damage", speaks_for=(f"{listed(found.torn)} does",)))
    causes.append(
        Explanation("the copies were made while the brokers ran, and the followers were about to fetch", innocent=True)
    )
    return causes
