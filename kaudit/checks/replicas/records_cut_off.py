"""Records that replicas cut off when they followed a new leader that began without them."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kaudit.checks.check import REPLICAS_NOT_COMPARED, Evidence, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DIVERGENCE, LOGGED
from kaudit.checks.log_causes import OUT_OF_SYNC
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.record_loss import CutRecords
from kaudit.model.severity import Confidence, Severity

_RULE = (
    "a follower cuts off what its leader does not have (KIP-101): records that only the leader before had, which acknowledged "
    "them alone (acks=0 or 1, or the last replica in sync), are gone"
)
_GONE = Explanation("the log directory, or its end that had not been flushed, was lost while the broker was down")
_RESTORED = Explanation("the log directory was put back from an older copy")
_ABSENT = {
    **dict.fromkeys(("file", "segment", "position"), "the records are in no file any more"),
    **dict.fromkeys(("producer_id", "producer_epoch"), "the records may be any producer's"),
}


class CutEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    """What brokers cut off; `cut_off_by` is empty where a leader began that was not in sync and no line shows what the one before had."""

    subject: str
    cut_off_by: Sequence[str]
    back_with_less: Sequence[str]
    first_cut_offset: int
    last_cut_offset: int | None
    leader_epoch: int | None
    leader_epoch_began_timestamp: int | None
    first_timestamp: int | None
    last_timestamp: int | None
    high_watermark: int | None
    unclean_election: bool
    sent_again_by_idempotent_producers: int
    sent_again_by_others: int
    producers_that_raised_their_epoch: int
    to_be_certain: str | None = None


@check(
    "KA612",
    severity=Severity.ERROR,
    severity_note="warning where all of it may have been sent again, note where it was, or where the partition is not an input",
    summary="other replicas cut off records that a new leader lacked",
    needs=(CutRecords,),
    incident=(DIVERGENCE, LOGGED),
    caused_by=(OUT_OF_SYNC,),
    simulated=REPLICAS_NOT_COMPARED,
)
def records_cut_off(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each leader epoch once, however many replicas cut off what its leader lacked."""
    for found in evidence.of(CutRecords):
        yield _cut(replace(context, topic=found.topic, partition=found.partition), found)


def _cut(context: Context, found: CutRecords) -> Finding:
    last = None if found.end_offset is None else found.end_offset - 1
    least, most = found.records_lost_at_least, found.records_lost_at_most
    severity = Severity.ERROR if least else Severity.NOTE if most == 0 else Severity.WARNING
    times = [at for at in (found.began_ms, found.cut_ms) if at is not None]
    return records_cut_off.finding(
        context,
        f"{_lacking(found)}: {_lost(found)}",
        severity=severity,
        confidence=Confidence.CERTAIN if least == most else Confidence.LIKELY,
        offset=found.first_offset,
        last_offset=last,
        anchor=f"{found.first_offset} {found.leader_epoch}",
        evidence=CutEvidence(
            rule=_RULE,
            broker="has them no more: only a copy of the directory that was made before, and the producers, can bring them back",
            subject=context.name,
            cut_off_by=list(found.brokers),
            back_with_less=list(found.back_with_less),
            first_cut_offset=found.first_offset,
            last_cut_offset=last,
            leader_epoch=found.leader_epoch,
            leader_epoch_began_timestamp=found.began_ms,
            first_timestamp=min(times, default=None),
            last_timestamp=max(times, default=None),
            high_watermark=found.high_watermark,
            unclean_election=found.unclean,
            sent_again_by_idempotent_producers=found.idempotent_sent_again,
            sent_again_by_others=found.others_sent_again,
            producers_that_raised_their_epoch=found.raised_epochs,
            to_be_certain="; ".join(found.unknown) or None,
            events=found.shown,
        ),
        explanations=_causes(found),
        impact=Impact(records_lost_at_least=least, records_lost_at_most=most, cautions=_cautions(context, found)),
        following=[context.inspect_around(found.first_offset)] if found.partition_read else (),
        absent=_ABSENT,
    )


def _lacking(found: CutRecords) -> str:
    if not found.brokers:
        return (
            f"the leader of epoch {found.leader_epoch} began at offset {found.first_offset} without having been in sync, and nothing shows "
            "how much more the leader before had"
        )
    cut = [broker for broker in found.brokers if broker not in found.back_with_less]
    texts = [f"{listed(found.back_with_less)} came back without"] if found.back_with_less else []
    texts += [f"{listed(cut)} cut off"] if cut else []
    return f"{', '.join(texts)} {_offsets(found)}, which the leader{_of_epoch(found)} began without"


def _offsets(found: CutRecords) -> str:
    if found.end_offset is None:
        logs = "its log" if len(found.brokers) == 1 else "their logs"
        return f"the end of {logs} from offset {found.first_offset} on"
    count = counted(found.end_offset - found.first_offset, "offset")
    return f"offsets {found.first_offset}..{found.end_offset - 1} ({count})"


def _of_epoch(found: CutRecords) -> str:
    return "" if found.leader_epoch is None else f" of epoch {found.leader_epoch}"


def _lost(found: CutRecords) -> str:
    least, most = found.records_lost_at_least, found.records_lost_at_most
    if most == 0:
        return "nothing is lost, its producers waited for all replicas in sync and sent all of it again"
    if most is None:
        return f"at least {counted(least, 'record')} lost" if least else "how many records are lost is not known"
    if least == most:
        return f"{counted(least, 'record')} lost"
    at_least = f"at least {least:,} and " if least else ""
    return f"{at_least}at most {counted(most, 'record')} lost"


def _cautions(context: Context, found: CutRecords) -> Sequence[Caution]:
    """Return what not to do where a broker came back with less, and no other replica has cut off yet what it lacks."""
    is_over = not found.brokers or list(found.brokers) != list(found.back_with_less)
    if found.records_lost_at_most == 0 or is_over or not found.has_followers:
        return ()
    lack = "lacks" if len(found.back_with_less) == 1 else "lack"
    reason = f"records that {listed(found.back_with_less)} {lack} are cut off when they follow it"
    return (Caution(Act.RESTART, f"any other replica of {context.name}", reason),)


def _causes(found: CutRecords) -> list[Explanation]:
    again = found.idempotent_sent_again + found.others_sent_again
    if found.records_lost_at_most == 0:
        return [
            Explanation(
                "only idempotent producers or coordinators wrote here, with acks=all: they had no answer for these records, and sent "
                "them again",
                innocent=True,
            )
        ]
    below = (
        [f"the high watermark was {found.high_watermark}: consumers could read up to there"]
        if found.high_watermark is not None and found.high_watermark > found.first_offset
        else []
    )
    raised = (
        [
            f"{counted(found.raised_epochs, 'producer')} raised {'its' if found.raised_epochs == 1 else 'their'} epoch there"
        ]
        if found.raised_epochs
        else []
    )
    unclean = Explanation(
        "an unclean election: the new leader had not been in sync, and lacked records that were acknowledged to all producers",
        speaks_for=(*(["a line says so"] if found.unclean else []), *below, *raised),
    )
    alone = Explanation(
        "producers with acks=1 or acks=0: the old leader acknowledged records that no follower had fetched",
        speaks_against=below,
    )
    if found.back_with_less or not found.brokers:
        return [_GONE, _RESTORED] if found.brokers else [unclean]
    causes = [unclean, alone] if found.unclean or below or raised else [alone]
    if again and not found.records_lost_at_least:
        text = f"producers sent them again: {counted(again, 'record')} after the change may be the same ones"
        causes.append(Explanation(text, innocent=True))
    return causes
