"""Missing offsets inside a segment or between two, the producers that lack sequences there, and their cost."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kaudit.broker.partition.log_loading import gap_effect
from kaudit.checks.check import BYTES_NOT_DAMAGED, Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.json_record import JsonRecord
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.severity import Severity
from kaudit.source.layout import LeftoverFile

_MAX_LISTED = 20


def lacking_producers(evidence: Evidence, first: int | None, last: int | None) -> Sequence[Observation]:
    """Return the observations of producers that lack sequences across the missing offsets first..last, by offset."""
    if first is None or last is None:
        return ()
    return evidence.explained_across(first, last)


class LackingProducer(JsonRecord, frozen=True, gc=False):
    """A producer that lacks sequences, and the offset of its next batch."""

    producer_id: int
    producer_epoch: int
    missing_sequences: int
    offset: int


class MoreProducers(JsonRecord, frozen=True, gc=False):
    """The number of producers that are not listed."""

    more: int


Consequences = Sequence[LackingProducer | MoreProducers]


def consequences(lacking: Sequence[Observation]) -> Consequences | None:
    """Return the producers that lack sequences, the first of many; None if there are none."""
    if not lacking:
        return None
    listed = [
        LackingProducer(found.producer_id, found.producer_epoch, found.missing_sequences, found.offset)
        for found in lacking[:_MAX_LISTED]
    ]
    more = len(lacking) - _MAX_LISTED
    return [*listed, MoreProducers(more)] if more > 0 else listed


def lost_records(context: Context, evidence: Evidence, offsets: int, lacking: Sequence[Observation]) -> Impact:
    """Return what missing offsets cost: at most a record for each, at least the sequences that are missing there.

    A producer's missing sequence counts unless it came later, or other missing offsets between its two batches may
    have held it. After compaction or a change of leader none counts, as that may be why it is missing.
    """
    sequences = 0
    for observation in () if context.compacted else lacking:
        here = observation.missing_sequences - (observation.missing_offsets - offsets)
        # most are missing elsewhere where there is much damage: the cheapest question is asked first
        if here > 0 and observation.kind is ObservationKind.GAP and _has_one_leader(observation):
            sequences += max(here - evidence.repeated_sequences.count(observation.missing), 0)
    return Impact(records_lost_at_least=min(sequences, offsets), records_lost_at_most=offsets)


def _has_one_leader(observation: Observation) -> bool:
    state, batch = observation.remembered, observation.batch
    if state is None or state.last is None or batch is None:
        return False
    return state.last.leader_epoch == batch.leader_epoch


NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch"), "offsets belong to the partition, not to a producer")


def offsets_text(gap: MissingOffsets) -> str:
    """Return `offset 7` or `offsets 7..9`."""
    if gap.first_offset == gap.last_offset:
        return f"offset {gap.first_offset}"
    return f"offsets {gap.first_offset}..{gap.last_offset}"


class _GapEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    missing_offsets: int
    consequences: Consequences | None = None
    next_segment: str | None = None
    leftovers: Sequence[str] | None = None


def _gap_evidence(evidence: Evidence, gap: MissingOffsets, rule: str) -> _GapEvidence:
    lacking = lacking_producers(evidence, gap.first_offset, gap.last_offset)
    return _GapEvidence(rule=rule, broker=gap_effect(), missing_offsets=gap.count, consequences=consequences(lacking))


def _impact(context: Context, evidence: Evidence, gap: MissingOffsets) -> Impact:
    lacking = lacking_producers(evidence, gap.first_offset, gap.last_offset)
    return lost_records(context, evidence, gap.count, lacking)


_SEGMENT_RULE = "a segment begins where the one before it ends"
_SEGMENT_CAUSES = (
    Explanation("a segment was deleted or not copied"),
    Explanation("the segment before it was cut at a batch boundary by an unclean recovery"),
)


@check(
    "KA008",
    severity=Severity.ERROR,
    summary="offsets are missing exactly between two segments",
    needs=(MissingOffsets,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=BYTES_NOT_DAMAGED,
)
def missing_segment(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such gap; none in a compacted partition (KA013). A leftover file of that name may hold what is missing."""
    if context.compacted:
        return
    leftovers = [file.name for file in evidence.of(LeftoverFile)]
    for gap in evidence.of(MissingOffsets):
        if gap.cause is not MissingCause.MISSING_SEGMENT:
            continue
        wanted = f"{gap.first_offset:020d}.log"
        beside = [name for name in leftovers if name.startswith(wanted)]
        is_empty = gap.empty_segment is not None
        what = f"segment {wanted} is empty" if is_empty else f"no segment holds {offsets_text(gap)}"
        yield missing_segment.finding(
            context,
            f"{what}: {offsets_text(gap)} ({gap.count}) missing between two segments",
            segment=gap.empty_segment if gap.empty_segment is not None else max(gap.segment - 1, 0),
            position=0 if is_empty else None,
            offset=gap.first_offset,
            last_offset=gap.last_offset,
            evidence=replace(
                _gap_evidence(evidence, gap, _SEGMENT_RULE),
                next_segment=context.segments[gap.segment],
                leftovers=beside,
            ),
            impact=_impact(context, evidence, gap),
            explanations=[
                *(Explanation(f"{name} lies beside the segments: it may hold them", (name,)) for name in beside),
                *_SEGMENT_CAUSES,
            ],
            following=("copy the missing segment from another replica or from the original host",),
            absent={**NO_PRODUCER, "position": "the bytes are not there"},
        )


_GAP_RULE = "in a partition that is not compacted every offset from the log start on is covered by a batch"
_GAP_CAUSES = (
    Explanation("records were cut out of the segment"),
    Explanation(
        "the topic was compacted in the past, and no checkpoint says so (then pass --compacted)", innocent=True
    ),
)


@check(
    "KA007",
    severity=Severity.ERROR,
    summary="offsets are missing inside a segment",
    needs=(MissingOffsets,),
    incident=(DAMAGE,),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("simulated logs are neither compacted nor cut: they have no gaps"),
)
def offset_gap(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report unexplained missing offsets; none in a compacted partition. Those lost to damage are reported with the damage."""
    if context.compacted:
        return
    for gap in evidence.of(MissingOffsets):
        if gap.cause is not MissingCause.UNKNOWN:
            continue
        offsets = "1 offset" if gap.count == 1 else f"{gap.count} offsets"
        yield offset_gap.finding(
            context,
            f"{offsets_text(gap)} missing: the next batch{context.at_byte(gap.position)} starts {offsets} too high",
            segment=gap.segment,
            position=gap.position,
            offset=gap.first_offset,
            last_offset=gap.last_offset,
            evidence=_gap_evidence(evidence, gap, _GAP_RULE),
            impact=_impact(context, evidence, gap),
            explanations=_GAP_CAUSES,
            following=("look for these offsets on the partition's other replicas",),
            absent=NO_PRODUCER,
        )


class _UncleanedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    missing_offsets: int
    gaps: int
    consequences: Consequences | None = None


_UNCLEANED_RULE = (
    "the log cleaner removes nothing at or above its first dirty offset and nothing of the active segment "
    "(LogCleanerManager.cleanableOffsets)"
)
_UNCLEANED_CAUSES = (
    Explanation("records were cut out of the segment, or a segment was deleted or not copied"),
    Explanation(
        "this replica fetched the offsets from a leader that had compacted them (its other replicas lack them too)",
        innocent=True,
    ),
    Explanation(
        "the segments and cleaner-offset-checkpoint were copied at different times, and the log cleaner worked between",
        innocent=True,
    ),
)


@check(
    "KA013",
    severity=Severity.ERROR,
    severity_note="warning where a leader's log cleaner may have removed them",
    summary="offsets are missing in a compacted partition where its log cleaner has not been",
    needs=(MissingOffsets,),
    incident=(DAMAGE,),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("simulated logs are not compacted"),
)
def uncleaned_gap(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report all such offsets of a partition together, those that a replica may have fetched cleaned apart from the others."""
    if not context.compacted:
        return
    for fetched_cleaned in (False, True):
        gaps = [
            gap
            for gap in evidence.of(MissingOffsets)
            if gap.cause in (MissingCause.UNKNOWN, MissingCause.MISSING_SEGMENT)
            and gap.fetched_cleaned is fetched_cleaned
        ]
        if gaps:
            yield _uncleaned(context, evidence, gaps, Severity.WARNING if fetched_cleaned else Severity.ERROR)


def _uncleaned(context: Context, evidence: Evidence, gaps: Sequence[MissingOffsets], severity: Severity) -> Finding:
    first, last = gaps[0], gaps[-1]
    offsets = sum(gap.count for gap in gaps)
    within = f" in {len(gaps)} gaps from {first.first_offset} to {last.last_offset}" if len(gaps) > 1 else ""
    what = f"{offsets} offsets{within}" if within else offsets_text(first)
    lacking = lacking_producers(evidence, first.first_offset, last.last_offset)
    return uncleaned_gap.finding(
        context,
        f"{what} missing where the log cleaner has not been",
        severity=severity,
        segment=first.segment,
        position=first.position,
        offset=first.first_offset,
        last_offset=last.last_offset,
        evidence=_UncleanedEvidence(
            rule=_UNCLEANED_RULE,
            broker=gap_effect(),
            missing_offsets=offsets,
            gaps=len(gaps),
            consequences=consequences(lacking),
        ),
        impact=Impact(records_lost_at_most=offsets),
        explanations=_UNCLEANED_CAUSES,
        following=("look for these offsets on the partition's other replicas",),
        absent=NO_PRODUCER,
    )
