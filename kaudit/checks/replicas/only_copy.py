"""Records that exist on only one replica."""

from collections.abc import Iterator, Mapping, Sequence

from kaudit.checks.check import REPLICAS_NOT_COMPARED, Evidence, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import COPY_OF_DAMAGE, DIVERGENCE
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.replicas.wording import (
    ABSENT,
    copy_of_batch,
    inspect_replica,
    offsets_text,
    recreated_topic,
)
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.evidence_parts import CopyOfBatch
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.replicas import (
    CopyChange,
    MissingRecords,
    OffsetRange,
    PartitionComparison,
    Relation,
    ReplicaEvidence,
)
from kaudit.model.severity import Confidence, Severity

_SHORTEST_LAG_MS = 10_000
"""replica.lag.time.max.ms (30 s since 2.5, 10 s before): a follower that lags by at most this still counts as in sync."""
_ABOUT_TO_FETCH = Explanation(
    "the copies were made while the brokers ran, and the followers were about to fetch", innocent=True
)


class _TruncatedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    only_on: str
    later_copy: str
    broker_id: int
    copies: Mapping[str, CopyOfBatch]
    end_offsets: Mapping[str, int]
    high_watermark: int | None
    high_watermark_of: str | None
    missing_on_later_copy: MissingRecords | None


class _OnlyCopyEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    only_on: str
    end_offsets: Mapping[str, int]
    high_watermark: int | None
    high_watermark_of: str | None
    last_acknowledged_offset: int | None
    ends_in_damage: Sequence[str]
    without_producer_id: int | None = None


@check(
    "KA603",
    severity=Severity.ERROR,
    severity_note="warning above the high watermark; note where idempotent producers wrote all of it just before",
    summary="records that are on one replica alone",
    needs=(ReplicaEvidence,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(COPY_OF_DAMAGE, DIVERGENCE),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
)
def only_copy(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each replica's end that no other replica has, unless it is a divergence, and what a broker truncated."""
    for found in evidence.of(ReplicaEvidence):
        if found.comparison.relation is Relation.MISSING:
            continue
        changes = {change.earlier: change for change in found.comparison.copy_changes}
        for name, offsets in found.comparison.only_on.items():
            if name in changes:
                yield from _truncated(context, found, changes[name], offsets)
            elif not _is_divergence(found.comparison, name, offsets.first):
                yield _only_copy(context, found, name, offsets)


def _truncated(context: Context, found: ReplicaEvidence, change: CopyChange, offsets: OffsetRange) -> Iterator[Finding]:
    """Report records that a broker truncated before it was copied again, unless all of them were written again."""
    missing = found.missing.get(change.earlier)
    if missing is not None and not missing.records:
        return
    ids = {name: found.topic_ids[name] for name in (change.earlier, change.later) if name in found.topic_ids}
    recreated = recreated_topic(ids)
    mark = found.high_watermarks.get(change.earlier)
    below = missing.below_high_watermark if missing is not None and not recreated else 0
    count = (
        counted(offsets.last - offsets.first + 1, "offset") if missing is None else counted(missing.records, "record")
    )
    acknowledged = f"; {below:,} lie below its high watermark {mark}" if below else ""
    difference = change.first_difference
    least, most = (0, None) if missing is None else missing.lost
    yield only_copy.finding(
        context.replicas[change.earlier],
        f"offsets {offsets.first}..{offsets.last} ({count}) are on {change.earlier} alone: broker {change.broker_id} "
        f"truncated them before {change.later} was copied{acknowledged}",
        severity=Severity.ERROR if least and not recreated else Severity.WARNING,
        confidence=Confidence.CERTAIN
        if below
        else Confidence.LIKELY
        if least and not recreated
        else Confidence.POSSIBLE,
        offset=offsets.first,
        last_offset=offsets.last,
        evidence=_TruncatedEvidence(
            rule="a broker only appends to its log, unless it truncates it to follow another leader (KIP-101) or loses "
            "the end of it",
            broker=f"followed a leader whose log parts at offset {change.common_end_offset}, and dropped its own from "
            "there on"
            if difference is not None
            else f"has its log end at offset {change.common_end_offset} now",
            only_on=change.earlier,
            later_copy=change.later,
            broker_id=change.broker_id,
            copies={}
            if difference is None
            else {name: copy_of_batch(held) for name, held in difference.batches.items()},
            end_offsets={name: found.comparison.end_offsets[name] for name in (change.earlier, change.later)},
            high_watermark=mark,
            high_watermark_of=None if mark is None else change.earlier,
            missing_on_later_copy=missing,
        ),
        explanations=[*recreated, *_causes_of_truncation(change, missing, acknowledged=bool(least))],
        impact=Impact(records_lost_at_least=least, records_lost_at_most=most),
        following=(inspect_replica(context, change.earlier, offsets.first),),
        absent=ABSENT,
    )


def _causes_of_truncation(
    change: CopyChange, missing: MissingRecords | None, *, acknowledged: bool
) -> Iterator[Explanation]:
    difference = change.first_difference
    if difference is None:
        yield Explanation(
            "the broker's host failed before its page cache was on disk, or the end of the log was deleted or damaged",
            speaks_for=(f"{change.later} has nothing in their place",),
        )
    else:
        epochs = [str(held.leader_epoch) for held in difference.batches.values()]
        yield Explanation(
            "the broker failed as the leader with records that no follower had, and truncated them when it followed the "
            "next one (acks=0 or 1, or an unclean election)",
            speaks_for=(f"leader epochs {' and '.join(epochs)} there",) if len(set(epochs)) > 1 else (),
        )
    if acknowledged:
        return
    again = missing.elsewhere if missing is not None else 0
    yield Explanation(
        "they had not been acknowledged: with acks=all their producers sent them again or got an error",
        innocent=True,
        speaks_for=(f"{counted(again, 'record')} truncated with them are in {change.later} at other offsets",)
        if again
        else (),
    )


def _is_divergence(comparison: PartitionComparison, name: str, offset: int) -> bool:
    """Whether the others differ there, or a newer leader began there: KA601 reports that."""
    difference = comparison.first_difference
    differs = difference is not None and difference.offset == offset and name in difference.batches
    return differs or name in comparison.beyond_reference or offset not in comparison.replica_ends.values()


def _only_copy(context: Context, found: ReplicaEvidence, name: str, offsets: OffsetRange) -> Finding:
    end_offsets = found.comparison.replica_ends
    holder, mark = found.high_watermark or (None, None)
    last_acknowledged = min(mark - 1, offsets.last) if mark is not None and mark > offsets.first else None
    below = last_acknowledged is not None
    missing = found.missing.get(name)
    is_recent = missing is not None and missing.span_ms < _SHORTEST_LAG_MS
    waiting = missing if mark is not None and not below and is_recent else None
    unacknowledged = waiting is not None and not waiting.without_producer_id
    others = [other for other in end_offsets if other != name]
    place = f"{found.comparison.topic}-{found.comparison.partition}"
    return only_copy.finding(
        context.replicas[name],
        f"{offsets_text(offsets.first, offsets.last)} are on {name} alone" + _acknowledged(mark, waiting, below=below),
        severity=Severity.ERROR if below else Severity.NOTE if unacknowledged else Severity.WARNING,
        confidence=Confidence.CERTAIN if below else Confidence.LIKELY if unacknowledged else Confidence.POSSIBLE,
        offset=offsets.first,
        last_offset=offsets.last,
        evidence=_OnlyCopyEvidence(
            rule="records survive the loss of a broker only once another replica has them; below the high "
            "watermark every in-sync replica has them",
            broker="acknowledges records to producers with acks=all once every in-sync replica has them"
            if unacknowledged
            else f"the records are lost if {' or '.join(others)} is elected without {name}",
            only_on=name,
            end_offsets=dict(end_offsets),
            high_watermark=mark,
            high_watermark_of=holder,
            last_acknowledged_offset=last_acknowledged,
            ends_in_damage=list(found.torn),
            without_producer_id=None if missing is None else missing.without_producer_id,
        ),
        explanations=[_ABOUT_TO_FETCH] if unacknowledged else _causes(found, name, below=below),
        impact=Impact(
            records_lost_at_least=0,
            records_lost_at_most=_lost_at_most(missing, bounded=below or waiting is not None),
            cautions=() if unacknowledged else _cautions(name, others, offsets, place),
        ),
        following=(inspect_replica(context, name, offsets.first),),
        absent=ABSENT,
    )


def _cautions(name: str, others: Sequence[str], offsets: OffsetRange, place: str) -> Sequence[Caution]:
    """Return what destroys the records of the one replica that has them."""
    reason = f"{name} alone holds {offsets_text(offsets.first, offsets.last)}"
    elected = f"{' or '.join(others)} ({place})"
    return Caution(Act.DELETE, f"replica {name}", reason), Caution(Act.ELECT, elected, reason)


def _acknowledged(mark: int | None, waiting: MissingRecords | None, *, below: bool) -> str:
    """Say which producers had an acknowledgement, as far as the high watermark shows; those of `waiting` had none yet."""
    if below:
        return f", below the high watermark {mark}"
    if waiting is None:
        return ""
    text = f", above the high watermark {mark}: producers with acks=all had no acknowledgement yet"
    if waiting.without_producer_id:
        # an idempotent producer has acks=all, others need not (ProducerConfig.ENABLE_IDEMPOTENCE_DOC)
        text += f"; {counted(waiting.without_producer_id, 'record')} without a producer id may be acks=1"
    return text


def _lost_at_most(missing: MissingRecords | None, *, bounded: bool) -> int | None:
    """Records that may have been acknowledged; all of them where the high watermark does not bound it."""
    if missing is None:
        return None
    return missing.below_high_watermark + missing.without_producer_id if bounded else missing.records


def _causes(found: ReplicaEvidence, name: str, *, below: bool) -> list[Explanation]:
    causes = [
        Explanation(
            f"{name} was the only replica in sync: the followers were stopped or too slow",
            speaks_for=("the high watermark passed these offsets",) if below else (),
        ),
        Explanation("the others lost them: truncated after an unclean election, deleted, or damaged"),
    ]
    if found.torn:
        do = "does" if len(found.torn) == 1 else "do"
        causes.append(Explanation("another copy ends in damage", speaks_for=(f"{listed(found.torn)} {do}",)))
    return [*causes, _ABOUT_TO_FETCH]
