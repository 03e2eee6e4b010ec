"""Replicas that hold different records at one offset, or records that a newer leader began without."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.broker.partition.log_loading import gap_effect
from kaudit.checks.check import REPLICAS_NOT_COMPARED, Evidence, Withdrawal, check
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import COPY_OF_DAMAGE, DIVERGENCE, LEADER_CHANGE
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.replicas.wording import ABSENT, copy_of_batch, hold, inspect_replica, offsets_text, recreated_topic
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence import BrokerEvidence, FindingEvidence
from kaudit.model.evidence_parts import CopyOfBatch, EpochEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.leader_epochs import log_end_of, unheard
from kaudit.model.replicas import (
    Difference,
    MissingRecords,
    OffsetRange,
    PartitionComparison,
    Relation,
    ReplicaEvidence,
    ReplicaGap,
)
from kaudit.model.severity import Confidence, Severity

_RULE = (
    "replicas copy the leader's batches byte for byte: at one offset all of them hold the same batch with the same "
    "leader epoch, as far as their logs go"
)
_ANY_PRODUCER = "the replicas may hold different producers' batches here"
_LEADER_EPOCHS_LISTED = 5
_NOTHING_LOST = ": no record is lost that was acknowledged"
_COMPACTED = Explanation(
    "the topic is compacted, and neither a checkpoint nor a thinned-out batch shows it (then pass --compacted)",
    innocent=True,
)


class _DifferenceEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    kind: str | None = None
    count: int | None = None
    rule: str
    broker: str
    previous: CopyOfBatch | None
    copies: Mapping[str, CopyOfBatch] | None
    reference: str | None
    end_offsets: Mapping[str, int]
    leader_epochs: Mapping[str, Sequence[EpochEvidence]]
    truncation_offsets: Mapping[str, int | None]
    only_on: Mapping[str, OffsetRange]
    high_watermarks: Mapping[str, int]
    missing_on_reference: Mapping[str, MissingRecords | None]
    to_be_certain: str | None = None

    def own_fields(self) -> dict[str, object]:
        own = super().own_fields()
        if self.copies is None:  # there is no difference at one offset
            del own["previous"], own["copies"]
        return own


class _LackingEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    missing_on: Sequence[str]
    held_by: Sequence[str]
    records: int | None
    end_offsets: Mapping[str, int]


@check(
    "KA601",
    severity=Severity.ERROR,
    severity_note="note where no acknowledged record is lost; warning where compaction may explain it",
    summary="replicas hold different records at one offset",
    needs=(ReplicaEvidence,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(COPY_OF_DAMAGE, DIVERGENCE, LEADER_CHANGE),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
)
def replicas_diverged(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the first difference, ends of logs that a newer leader began without, and offsets that copies lack."""
    for found in evidence.of(ReplicaEvidence):
        if found.comparison.relation is Relation.MISSING:
            continue  # not every broker has every partition
        if found.comparison.first_difference is not None:
            yield _different(context, found, found.comparison.first_difference)
        if found.comparison.beyond_reference:
            yield _passed_over(context, found)
        for gap in found.comparison.gaps:
            yield _lacking(context, found, gap)


def _different(context: Context, found: ReplicaEvidence, difference: Difference) -> Finding:
    comparison, reference = found.comparison, found.comparison.reference
    assert reference is not None
    diverged = [name for name, relation in comparison.relations.items() if relation is Relation.DIVERGED]
    name = next((name for name in diverged if name in difference.batches), next(iter(difference.batches)))
    batch, previous = difference.batches[name], found.last_common.get(name)
    cut = comparison.truncation_offsets.get(name)
    like = difference.same_as(name)
    others = [other for other in difference.batches if other not in like]
    parted = [other for other in diverged if other not in comparison.beyond_reference]
    alike = difference.in_epoch_alone and all(
        missing is not None and missing.nothing for missing in map(found.missing.get, parted)
    )
    what = "the same records under another leader epoch than" if difference.in_epoch_alone else "other records than"
    message = f"{hold(like)} {what} {listed(others or [reference])} from offset {difference.offset} on"
    impact = _lost_records(found, parted)
    outcome = _NOTHING_LOST if _is_cut_off(comparison, parted, difference) and _is_harmless(impact) else ""
    return replicas_diverged.finding(
        context.replicas[name],
        f"{message}: nothing is lost" if alike else message + outcome,
        severity=Severity.NOTE if alike or outcome else Severity.ERROR,
        segment=batch.segment,
        position=batch.position,
        offset=difference.offset,
        last_offset=batch.last_offset,
        anchor=str(difference.offset),
        evidence=replace(
            _evidence(found, name, difference.offset, _to_be_certain(found, parted, impact)),
            kind="leader-epoch" if alike else None,
            count=len(parted) if alike else None,
            broker=_what_follows(comparison, name, difference.offset)
            + (" and are fetched again" if alike and cut is not None and cut <= difference.offset else ""),
            previous=None if previous is None else copy_of_batch(previous),
            copies={other: copy_of_batch(held) for other, held in difference.batches.items()},
        ),
        explanations=_causes(found, difference, noticed=cut is not None and cut <= difference.offset),
        impact=impact,
        following=[
            *(inspect_replica(context, key, difference.offset) for key in dict.fromkeys([name, *others[:1]])),
            *_by_records(context, found, name),
        ],
        absent={"producer_id": _ANY_PRODUCER, "producer_epoch": _ANY_PRODUCER},
    )


def _passed_over(context: Context, found: ReplicaEvidence) -> Finding:
    comparison, reference = found.comparison, found.comparison.reference
    assert reference is not None
    names = comparison.beyond_reference
    name = max(names, key=lambda key: comparison.end_offsets[key])
    first, end = comparison.end_offsets[reference], comparison.end_offsets[name]
    newest = comparison.leader_epochs[reference][-1]
    impact = _lost_records(found, names)
    begins = f"leader epoch {newest.epoch} of {reference} begins at offset {newest.start_offset}"
    return replicas_diverged.finding(
        context.replicas[name],
        f"{hold(names)} {offsets_text(first, end - 1)}, which {reference} began leader epoch {newest.epoch} without{_NOTHING_LOST if _is_harmless(impact) else ''}",
        severity=Severity.NOTE if _is_harmless(impact) else Severity.ERROR,
        offset=first,
        last_offset=end - 1,
        anchor=str(first),
        evidence=_evidence(found, name, first, _to_be_certain(found, names, impact)),
        explanations=[*recreated_topic(found.topic_ids), *_made_anew(found), _failed_leader(begins)],
        impact=impact,
        following=(inspect_replica(context, name, first),),
        absent=ABSENT,
    )


def _lacking(context: Context, found: ReplicaEvidence, gap: ReplicaGap) -> Finding:
    """Report offsets that copies lack in the middle of their logs for no known reason."""
    name = gap.missing_on[0]
    verb = "lacks" if len(gap.missing_on) == 1 else "lack"
    theirs = "records" if gap.records is None else counted(gap.records, "record")
    return replicas_diverged.finding(
        context.replicas[name],
        f"{listed(gap.missing_on)} {verb} offsets {gap.first_offset}..{gap.last_offset}, where {hold(gap.held_by)} {theirs}",
        severity=Severity.WARNING if gap.may_be_compaction else Severity.ERROR,
        confidence=Confidence.POSSIBLE if gap.may_be_compaction else Confidence.CERTAIN,
        segment=gap.segment,
        position=gap.position,
        offset=gap.first_offset,
        last_offset=gap.last_offset,
        anchor=str(gap.first_offset),
        evidence=_LackingEvidence(
            rule=_RULE,
            broker=f"{gap_effect()}: consumers read past these offsets where a copy that lacks them leads",
            missing_on=list(gap.missing_on),
            held_by=list(gap.held_by),
            records=gap.records,
            end_offsets=dict(found.comparison.replica_ends),
        ),
        explanations=[
            Explanation("records were cut out of a segment, or a segment was not copied"),
            *([_COMPACTED] if gap.may_be_compaction else []),
        ],
        impact=Impact(records_lost_at_least=0, records_lost_at_most=gap.records),
        following=[inspect_replica(context, key, gap.first_offset) for key in (gap.held_by[0], name)],
        absent={"producer_id": _ANY_PRODUCER, "producer_epoch": _ANY_PRODUCER},
    )


def _is_cut_off(comparison: PartitionComparison, parted: Sequence[str], difference: Difference) -> bool:
    """Return whether the brokers of all these replicas notice that they differ, and truncate their logs."""
    cuts = [comparison.truncation_offsets.get(name) for name in parted]
    return bool(cuts) and all(cut is not None and cut <= difference.offset for cut in cuts)


def _is_harmless(impact: Impact) -> bool:
    return impact.records_lost_at_most == 0


def _evidence(found: ReplicaEvidence, name: str, offset: int, certain: str | None) -> _DifferenceEvidence:
    comparison = found.comparison
    return _DifferenceEvidence(
        rule=_RULE,
        broker=_what_follows(comparison, name, offset),
        previous=None,
        copies=None,
        reference=comparison.reference,
        end_offsets=dict(comparison.replica_ends),
        leader_epochs={
            key: [EpochEvidence(row.epoch, row.start_offset) for row in rows[-_LEADER_EPOCHS_LISTED:]]
            for key, rows in comparison.leader_epochs.items()
        },
        truncation_offsets=dict(comparison.truncation_offsets),
        only_on=dict(comparison.only_on),
        high_watermarks=dict(found.high_watermarks),
        missing_on_reference={key: found.missing[key] for key in comparison.relations if key in found.missing},
        to_be_certain=certain,
    )


def _what_follows(comparison: PartitionComparison, name: str, offset: int) -> str:
    """Say what brokers do about the difference at `offset` when `name` follows the reference."""
    reference, end = comparison.reference, comparison.end_offsets[name]
    cut = comparison.truncation_offsets.get(name)
    if cut is None:
        return f"has no leader epochs to go by: {name} truncates to its high watermark when it follows {reference}"
    if cut <= offset:
        lost = f", which drops its offsets {cut}..{end - 1}" if cut < end else ""
        return f"truncates {name} to offset {cut} when it follows {reference} (OffsetsForLeaderEpoch, KIP-101){lost}"
    return (
        f"does not notice: by its leader epochs {name} agrees with {reference} up to offset {cut}, so what differs from "
        f"{offset} on stays (OffsetsForLeaderEpoch, KIP-101)"
    )


def _causes(found: ReplicaEvidence, difference: Difference, *, noticed: bool) -> list[Explanation]:
    epochs = {batch.leader_epoch for batch in difference.batches.values()}
    causes = [*recreated_topic(found.topic_ids), *_made_anew(found)]
    if len(epochs) > 1:
        causes.append(_failed_leader("the leader epochs differ there" if noticed else None))
    else:
        causes.append(
            Explanation(
                "two leaders wrote under one leader epoch, or truncation went by the high watermark (before KIP-101 and "
                "KIP-279: Kafka 2.0)",
                speaks_for=("both batches carry the same leader epoch",),
            )
        )
        causes.append(Explanation("one copy was edited, restored, or put together from others"))
    if difference.in_epoch_alone:
        causes.append(Explanation("a bit of the leader epoch flipped: the CRC does not cover it (KA009)"))
    return causes


def _made_anew(found: ReplicaEvidence) -> list[Explanation]:
    """Return the cause of a log that begins with its first offset under a newer leader epoch than other copies of the same topic id."""
    comparison = found.comparison
    if len(set(found.topic_ids.values())) != 1 or not any(
        _begins_anew(comparison, name) for name in comparison.relations
    ):
        return []
    first = comparison.leader_epochs[comparison.reference or ""][0]
    return [
        Explanation(
            "the log was created twice under one topic id: its broker found the directory lost or empty, made it anew and led",
            speaks_for=(f"the log of {comparison.reference} begins at offset 0 with leader epoch {first.epoch}",),
        )
    ]


def _by_records(context: Context, found: ReplicaEvidence, name: str) -> Iterator[str]:
    """Yield the command for what may be two topics of one name, such as a mirror in place of its source: they have no batch in common."""
    reference = found.comparison.reference
    apart = not found.comparison.common_end_offset or recreated_topic(found.topic_ids)
    if apart and reference is not None and reference != name:
        paths = " ".join(quote(context.replicas[each].directory) for each in (reference, name))
        yield f"kaudit diff --by records {paths}"


def _failed_leader(shown_by: str | None) -> Explanation:
    return Explanation(
        "a leader failed with records that no follower had, and another replica went on without them (acks=0 or 1, "
        "or an unclean election); it has not been truncated yet",
        speaks_for=() if shown_by is None else (shown_by,),
    )


def _lost_records(found: ReplicaEvidence, names: Sequence[str]) -> Impact:
    """Count the records of these replicas that the reference lacks: they are lost when they follow its log.

    Replicas that hold the same where they leave the reference count once: as the one that may have lost the most.
    """
    difference = found.comparison.first_difference
    batches = difference.batches if difference is not None else {}
    copies: defaultdict[object, list[tuple[int, int]]] = defaultdict(list)
    for name in names:
        missing = found.missing.get(name)
        if missing is None:
            return Impact(records_lost_at_least=0)
        copies[batches[name].identity if name in batches else None].append(missing.lost)
    least = sum(max(lost for lost, _ in same) for same in copies.values())
    most = sum(max(lost for _, lost in same) for same in copies.values())
    # what a log held before it was made anew is not known
    known = not any(_begins_anew(found.comparison, name) for name in names) and not (
        most and _led_by_others(found, names)
    )
    reason = f"records that {found.comparison.reference} lacks are cut off when it follows {found.comparison.reference}"
    cautions = tuple(Caution(Act.RESTART, f"replica {name}", reason) for name in names if most or not known)
    return Impact(records_lost_at_least=least, records_lost_at_most=most if known else None, cautions=cautions)


def _led_by_others(found: ReplicaEvidence, names: Sequence[str]) -> list[int]:
    """Return the leader epochs between the last that these replicas know and the next of the reference under which other brokers may have led."""
    assert found.comparison.reference is not None
    epochs = found.comparison.leader_epochs
    known = max((epochs[name][-1].epoch for name in names if epochs[name]), default=None)
    following = [
        entry.epoch for entry in epochs[found.comparison.reference] if known is not None and entry.epoch > known
    ]
    return [] if known is None or not following else unheard(known, following[0], found.leaders)


def _to_be_certain(found: ReplicaEvidence, names: Sequence[str], impact: Impact) -> str | None:
    if impact.records_lost_at_most is not None:
        plain = any(found.missing[name].without_producer_id for name in names if name in found.missing)
        is_open = (impact.records_lost_at_least or 0) < impact.records_lost_at_most
        return (
            "the logs of producers without producer ids: which of these records they had an answer for"
            if plain and is_open
            else None
        )
    if any(_begins_anew(found.comparison, name) for name in names):
        return f"server.log of the broker of {found.comparison.reference}, or an older copy: how long its log had been before"
    if not (between := _led_by_others(found, names)):
        return None
    leader = found.leaders.get(between[-1])
    return log_end_of(between[-1], None if leader is None else f"broker {leader}")


def _begins_anew(comparison: PartitionComparison, name: str) -> bool:
    """Return whether the reference's log begins with its first offset under a newer leader epoch than this replica's."""
    assert comparison.reference is not None
    own, reference = comparison.leader_epochs[name], comparison.leader_epochs[comparison.reference]
    if not own or not reference or own[0].epoch >= reference[0].epoch:
        return False
    return not comparison.start_offsets[comparison.reference] and not own[0].start_offset
