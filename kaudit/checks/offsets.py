"""KA007, KA008, KA009: breaks in a partition's offsets and leader epochs."""

from collections.abc import Sequence

from kaudit.checks.context import Context
from kaudit.checks.damage import consequences_of
from kaudit.checks.loading import gap_verdict
from kaudit.model.continuity import EpochRegression, Missing, MissingCause
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import Observation


def report_missing(
    context: Context, missing: Sequence[Missing], leftovers: Sequence[str], explained: Sequence[Observation]
) -> list[Finding]:
    """Report offsets nobody can explain; none in a compacted partition. Those lost to damage are reported with it.

    `leftovers` are names of files a broker left beside the segments: one of them may hold what is missing.
    """
    if context.compacted:
        return []
    found: list[Finding] = []
    for gap in missing:
        if gap.cause is MissingCause.UNKNOWN:
            found.append(_offset_gap(context, gap, explained))
        elif gap.cause is MissingCause.MISSING_SEGMENT:
            found.append(_missing_segment(context, gap, leftovers, explained))
    return found


def report_leader_epochs(context: Context, regressions: Sequence[EpochRegression]) -> list[Finding]:
    """Report batches whose leader epoch does not fit between their neighbours'."""
    return [
        context.finding(
            "KA009",
            f"the batch at offset {entry.base_offset} has leader epoch {entry.leader_epoch} "
            f"among batches of leader epoch {entry.expected_epoch}",
            segment=entry.segment,
            position=entry.position,
            offset=entry.base_offset,
            last_offset=entry.last_offset,
            evidence={
                "rule": "leader epochs never fall along a log (LeaderEpochFileCache); the CRC does not cover the field",
                "broker": gap_verdict(),
                "leader_epoch": entry.leader_epoch,
                "expected_leader_epoch": entry.expected_epoch,
            },
            explanations=(
                Explanation("a bit of the field flipped on disk or in memory: the CRC does not cover it"),
                Explanation("the log was written by two leaders that did not know of each other"),
            ),
            following=("compare the leader epochs with those of the other replicas and leader-epoch-checkpoint",),
            absent=_NO_PRODUCER,
        )
        for entry in regressions
    ]


_NO_PRODUCER = {
    "producer_id": "offsets belong to the partition, not to a producer",
    "producer_epoch": "offsets belong to the partition, not to a producer",
}


def _offset_gap(context: Context, gap: Missing, explained: Sequence[Observation]) -> Finding:
    count = gap.last_offset - gap.first_offset + 1
    return context.finding(
        "KA007",
        f"{_offsets(gap)} missing: the next batch, at byte {gap.position}, starts {count:,} {'offset' if count == 1 else 'offsets'} too high",
        segment=gap.segment,
        position=gap.position,
        offset=gap.first_offset,
        last_offset=gap.last_offset,
        evidence=_evidence(
            "in a partition that is not compacted every offset from the log start on is covered by a batch",
            gap,
            explained,
        ),
        explanations=(
            Explanation("records were cut out of the segment"),
            Explanation(
                "the topic was compacted in the past and there is no checkpoint to show it (then pass --compacted)",
                innocent=True,
            ),
        ),
        following=("look for these offsets on the partition's other replicas",),
        absent=_NO_PRODUCER,
    )


def _missing_segment(
    context: Context, gap: Missing, leftovers: Sequence[str], explained: Sequence[Observation]
) -> Finding:
    count = gap.last_offset - gap.first_offset + 1
    wanted = f"{gap.first_offset:020d}.log"
    beside = [name for name in leftovers if name.startswith(wanted)]
    segment = gap.empty_segment if gap.empty_segment is not None else max(gap.segment - 1, 0)
    what = f"segment {wanted} is empty" if gap.empty_segment is not None else f"no segment holds {_offsets(gap)}"
    explanations = [
        Explanation(f"{name} lies beside the segments: it may hold them", speaks_for=(name,)) for name in beside
    ]
    explanations += [
        Explanation("a segment was deleted or not copied"),
        Explanation("the segment before it was cut at a batch boundary by an unclean recovery"),
    ]
    return context.finding(
        "KA008",
        f"{what}: {_offsets(gap)} ({count}) missing between two segments",
        segment=segment,
        position=0 if gap.empty_segment is not None else None,
        offset=gap.first_offset,
        last_offset=gap.last_offset,
        evidence=_evidence("a segment begins where the one before it ends", gap, explained)
        | {"next_segment": context.segments[gap.segment], "leftovers": beside},
        explanations=explanations,
        following=("copy the missing segment from another replica or from the original host",),
        absent={**_NO_PRODUCER, "position": "the bytes are not there"},
    )


def _offsets(gap: Missing) -> str:
    if gap.first_offset == gap.last_offset:
        return f"offset {gap.first_offset}"
    return f"offsets {gap.first_offset}..{gap.last_offset}"


def _evidence(rule: str, gap: Missing, explained: Sequence[Observation]) -> dict[str, object]:
    evidence: dict[str, object] = {
        "rule": rule,
        "broker": gap_verdict(),
        "missing_offsets": gap.last_offset - gap.first_offset + 1,
    }
    consequences = consequences_of(gap.first_offset, gap.last_offset, explained)
    if consequences:
        evidence["consequences"] = consequences
    return evidence
