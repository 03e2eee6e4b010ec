"""Records that a copy of a topic lacks, has twice, has in another order, or has alone."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.checks.check import (
    REPLICAS_NOT_COMPARED,
    Check,
    Evidence,
    Reading,
    check,
    none_because,
)
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.texts import counted
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.json_record import JsonRecord
from kaudit.model.ledger import MovedRecord, RecordRange, RepeatedRange, TopicLedger
from kaudit.model.severity import Severity

_MOST_SHOWN = 20
_ABSENT = {
    **dict.fromkeys(("file", "segment", "position"), "topics as a whole are compared"),
    **dict.fromkeys(("producer_id", "producer_epoch"), "the records may be any producer's"),
}
_ledger_check = functools.partial(
    check,
    needs=(TopicLedger,),
    incident=none_because("what happens to a mirror is no incident of the cluster that it is in"),
    caused_by=none_because("mirrors log what they do, not what they leave out"),
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
    reads=Reading.RECORDS,
)
"""Declares a check of what the ledger of a topic and its copy shows."""

_UNCOMMITTED = (
    Explanation("the mirror reads uncommitted, and copies the records of aborted transactions like others"),
)


class _CopyEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    source_topic: str
    target_topic: str
    identity: str
    records: int
    records_in_both: int

    more: int


class _RangesEvidence(_CopyEvidence, frozen=True, kw_only=True, gc=False):
    ranges: Sequence[RecordRange]


class _RepeatedEvidence(_CopyEvidence, frozen=True, kw_only=True, gc=False):
    ranges: Sequence[RepeatedRange]


class _MovedEvidence(_CopyEvidence, frozen=True, kw_only=True, gc=False):
    ranges: Sequence[MovedRecord]


class _Difference(NamedTuple):
    """What is said of one kind of difference: whose topic has the records (0: the source's), where, and why.

    `listed` of `ranges`, which `evidence` has as they are, are what the finding counts beyond the first ones.
    """

    side: int
    records: int
    places: Sequence[RecordRange | RepeatedRange]
    rule: str
    text: str
    evidence: Callable[..., FindingEvidence]
    ranges: Sequence[JsonRecord]
    listed: int
    explanations: Sequence[Explanation]
    impact: Impact = NO_IMPACT


def _finding(check_: Check, context: Context, found: TopicLedger, what: _Difference) -> Finding:
    """Report a difference: of one partition if only one has the records."""
    own = list(context.replicas.values())[what.side]
    topic = (found.source, found.target)[what.side]
    partitions = {each.partition for each in what.places}
    partition = partitions.pop() if len(partitions) == 1 else None
    first = what.places[:1]
    directory = own.directory
    if first and not directory.rstrip("/").endswith(f"/{topic}-{first[0].partition}"):
        directory = f"{directory}/{topic}-{first[0].partition}"
    return check_.finding(
        replace(own, topic=topic, partition=partition),
        f"{counted(what.records, 'record')} {what.text}",
        evidence=what.evidence(
            rule=what.rule,
            source_topic=found.source,
            target_topic=found.target,
            identity=found.identity,
            records=what.records,
            records_in_both=found.matched,
            ranges=what.ranges[:_MOST_SHOWN],
            more=max(what.listed - _MOST_SHOWN, 0),
        ),
        following=[f"kaudit inspect --records --around {each.first} {quote(directory)}" for each in first],
        explanations=what.explanations,
        impact=what.impact,
        offset=None if partition is None else what.places[0].first,
        last_offset=None if partition is None else what.places[-1].last,
        absent=_ABSENT if partition is not None else {**_ABSENT, "offset": "the records lie in several partitions"},
    )


def _went_on_later(found: TopicLedger) -> Iterator[Explanation]:
    """Yield why a mirror left out the first records that its source has: by where the logs begin."""
    for pair in found.partitions:
        skipped = next((each for each in found.missing_ranges if each.partition == pair.source_partition), None)
        if skipped is None or not skipped.first == pair.source_begins <= skipped.last < pair.source_first_offset:
            continue
        if pair.target_begins == pair.target_first_offset:
            yield Explanation(
                "the mirror did not begin with the first record: it had a position from before, of an earlier target of that name (Connect's "
                "offset storage, mm2-offset-syncs), or began with the newest (auto.offset.reset=latest)",
                speaks_for=(
                    f"the first record of the copy of partition {pair.source_partition} is the source's at offset {pair.source_first_offset}",
                ),
            )
            return
        older = (
            f"the copy of partition {pair.source_partition} has other records before offset {pair.target_first_offset}"
        )
        if pair.source_begins == 0:
            yield Explanation(
                "the source topic was created again: the mirror went on at the offset it had reached in the topic before",
                speaks_for=(f"{older}, and the source begins at offset 0",),
            )
        else:
            yield Explanation(
                "the mirror was paused longer than the source's retention: the offset it had reached was gone, and it went on later "
                "(auto.offset.reset=latest)",
                speaks_for=(f"{older}, and the source begins at offset {pair.source_begins}",),
            )
        return


def _of_the_topic_before(found: TopicLedger) -> Iterator[Explanation]:
    """Yield why a copy has records before the first that both have, where the source's log begins at offset 0."""
    firsts = {pair.target_partition: pair for pair in found.partitions}
    own = [firsts.get(each.partition) for each in found.only_in_target_ranges]
    if own and all(
        pair is not None and pair.source_begins == 0 and each.last < pair.target_first_offset
        for pair, each in zip(own, found.only_in_target_ranges, strict=True)
    ):
        yield Explanation(
            "the source topic was created again: these are records of the topic before",
            speaks_for=("all of them lie before the first record that both have, and the source begins at offset 0",),
        )


def _from_the_start(found: TopicLedger) -> Iterator[Explanation]:
    """Yield why a mirror copied again what its source begins with."""
    begins = {pair.source_partition: pair.source_begins for pair in found.partitions}
    for each in found.repeated_ranges:
        if each.source_first_offset == begins.get(each.source_partition):
            yield Explanation(
                "the mirror was paused until its position was gone (offsets.retention.minutes, or below the log start), and it went on "
                "with the first record that there was (auto.offset.reset=earliest)",
                speaks_for=(
                    f"records again begin with the first of partition {each.source_partition}, at offset {each.source_first_offset}",
                ),
            )
            return


@_ledger_check(
    "KA705",
    severity=Severity.ERROR,
    summary="records of a topic that its copy does not have",
)
def missing_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy that lacks records between others that it has."""
    for found in (each for each in evidence.of(TopicLedger) if each.missing):
        what = _Difference(
            side=0,
            records=found.missing,
            places=found.missing_ranges,
            rule="a copy has every record of its source up to the last one that it has",
            text=f"of {found.source} missing in {found.target}",
            evidence=_RangesEvidence,
            ranges=found.missing_ranges,
            listed=len(found.missing_ranges),
            explanations=(
                *_went_on_later(found),
                Explanation(
                    "the mirror committed its position in the source before the target had acknowledged the records, or its "
                    "producer gave up on them (delivery.timeout.ms, a record too large) and it went on"
                ),
                Explanation("a filter or a transformation leaves them out on purpose", innocent=True),
            ),
            impact=Impact(records_lost_at_least=0, records_lost_at_most=found.missing),
        )
        yield _finding(missing_on_target, context, found, what)


@_ledger_check(
    "KA706",
    severity=Severity.WARNING,
    summary="records that the copy of a topic has more often than the topic itself",
)
def doubled_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy with records that it has again."""
    for found in (each for each in evidence.of(TopicLedger) if each.repeated):
        what = _Difference(
            side=1,
            records=found.repeated,
            places=found.repeated_ranges,
            rule="a copy has each record as often as its source",
            text=f"of {found.source} again in {found.target}",
            evidence=_RepeatedEvidence,
            ranges=found.repeated_ranges,
            listed=len(found.repeated_ranges),
            explanations=(
                *_from_the_start(found),
                Explanation(
                    "the mirror was restarted, or its tasks moved, and it went on from an older position: it copies at least once "
                    "(MirrorMaker 2 without exactly.once.source.support, KIP-618)"
                ),
                Explanation("two mirrors copy the topic"),
                Explanation("the source had them twice, too, and lost one of the two since", innocent=True),
            ),
            impact=Impact(records_duplicated=found.repeated),
        )
        yield _finding(doubled_on_target, context, found, what)


@_ledger_check(
    "KA707",
    severity=Severity.WARNING,
    summary="records of one key that the copy of a topic has in another order",
)
def reordered_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy in which a key's records have another order."""
    for found in (each for each in evidence.of(TopicLedger) if each.out_of_order):
        places = sorted((each.target_partition, each.target_offset) for each in found.moved)
        what = _Difference(
            side=1,
            records=found.out_of_order,
            places=[RecordRange(partition, offset, offset, 1) for partition, offset in places],
            rule="a copy has the records of a key in their order",
            text=f"of {found.source} in {found.target} before the record of the same key that precedes it",
            evidence=_MovedEvidence,
            ranges=found.moved,
            listed=found.out_of_order,
            explanations=(
                Explanation(
                    "the mirror's producer has several requests in flight without idempotence (enable.idempotence=false, "
                    "max.in.flight.requests.per.connection above 1), and one of them was retried"
                ),
                Explanation("the target's partitioner or number of partitions changed while records were copied"),
            ),
        )
        yield _finding(reordered_on_target, context, found, what)


@_ledger_check(
    "KA708",
    severity=Severity.WARNING,
    summary="records in the copy of a topic that the topic does not have",
)
def only_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy with records of its own."""
    for found in (each for each in evidence.of(TopicLedger) if each.only_in_target):
        what = _Difference(
            side=1,
            records=found.only_in_target,
            places=found.only_in_target_ranges,
            rule="a copy has the records of its source and no others",
            text=f"of {found.target} missing in {found.source}",
            evidence=_RangesEvidence,
            ranges=found.only_in_target_ranges,
            listed=len(found.only_in_target_ranges),
            explanations=(
                *_of_the_topic_before(found),
                Explanation("something else writes to the target: a producer of the other cluster, a second mirror"),
                *(_UNCOMMITTED if found.read_committed else ()),
                Explanation("the mirror changes records on their way, so that they are others by this identity"),
                Explanation("the source lost them after they were copied: its log was truncated"),
            ),
        )
        yield _finding(only_on_target, context, found, what)
