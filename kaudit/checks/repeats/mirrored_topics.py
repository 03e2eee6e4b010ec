"""Records that a copy of a topic lacks, has twice, has in another order, or has alone."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
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
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.impact import Impact
from kaudit.model.json_record import JsonRecord
from kaudit.model.ledger import MovedRecord, RecordRange, RepeatedRange, TopicLedger

_MOST_SHOWN = 20
_ABSENT = {
    **dict.fromkeys(("file", "segment", "position"), "topics as a whole are compared"),
    **dict.fromkeys(("producer_id", "producer_epoch"), "the records may be any producer's"),
}
_COMPARED_ALONE = none_because("what happens to a mirror is no incident of the cluster that it is in")
_NOT_LOGGED = none_because("mirrors log what they do, not what they leave out")

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


class _Kind(NamedTuple):
    """What is said of one kind of difference: whose topic has the records (0: the source's), and where."""

    side: int
    records: int
    ranges: Sequence[RecordRange | RepeatedRange]
    rule: str
    text: str


def _finding(  # noqa: PLR0913, PLR0917 - what differs, and what is said of it
    check_: Check,
    context: Context,
    found: TopicLedger,
    kind: _Kind,
    evidence: Callable[..., FindingEvidence],
    explanations: Sequence[Explanation],
    impact: Impact,
) -> Finding:
    """Report a difference: of one partition if only one has the records."""
    own = list(context.replicas.values())[kind.side]
    topic = (found.source, found.target)[kind.side]
    partitions = {each.partition for each in kind.ranges}
    partition = partitions.pop() if len(partitions) == 1 else None
    facts = {
        "rule": kind.rule,
        "source_topic": found.source,
        "target_topic": found.target,
        "identity": found.identity,
        "records": kind.records,
        "records_in_both": found.matched,
    }
    first = kind.ranges[:1]
    directory = own.directory
    if first and not directory.rstrip("/").endswith(f"/{topic}-{first[0].partition}"):
        directory = f"{directory}/{topic}-{first[0].partition}"
    return check_.finding(
        replace(own, topic=topic, partition=partition),
        f"{counted(kind.records, 'record')} {kind.text}",
        evidence=evidence(**facts),
        following=[f"kaudit inspect --records --around {each.first} {quote(directory)}" for each in first],
        explanations=explanations,
        impact=impact,
        offset=None if partition is None else kind.ranges[0].first,
        last_offset=None if partition is None else kind.ranges[-1].last,
        absent=_ABSENT if partition is not None else {**_ABSENT, "offset": "the records lie in several partitions"},
    )


def _ranges(
    shape: Callable[..., FindingEvidence], ranges: Sequence[JsonRecord], records: int
) -> Callable[..., FindingEvidence]:
    return partial(shape, ranges=ranges[:_MOST_SHOWN], more=max(records - _MOST_SHOWN, 0))


@check(
    "KA705",
    severity=Severity.ERROR,
    summary="records of a topic that its copy does not have",
    needs=(TopicLedger,),
    incident=_COMPARED_ALONE,
    caused_by=_NOT_LOGGED,
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
    reads=Reading.RECORDS,
)
def missing_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy that lacks records between others that it has."""
    for found in (each for each in evidence.of(TopicLedger) if each.missing):
        kind = _Kind(
            side=0,
            records=found.missing,
            ranges=found.missing_ranges,
            rule="a copy has every record of its source up to the last one that it has",
            text=f"of {found.source} missing in {found.target}",
        )
        yield _finding(
            missing_on_target,
            context,
            found,
            kind,
            _ranges(_RangesEvidence, found.missing_ranges, len(found.missing_ranges)),
            explanations=(
                Explanation(
                    "the mirror committed its position in the source before the target had acknowledged the records, or its "
                    "producer gave up on them (delivery.timeout.ms, a record too large) and it went on"
                ),
                Explanation(
                    "the source's retention removed them before the mirror read them, and it went on with what was left"
                ),
                Explanation("a filter or a transformation leaves them out on purpose", innocent=True),
            ),
            impact=Impact(records_lost_at_least=0, records_lost_at_most=found.missing),
        )


@check(
    "KA706",
    severity=Severity.WARNING,
    summary="records that the copy of a topic has more often than the topic itself",
    needs=(TopicLedger,),
    incident=_COMPARED_ALONE,
    caused_by=_NOT_LOGGED,
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
    reads=Reading.RECORDS,
)
def doubled_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy with records that it has again."""
    for found in (each for each in evidence.of(TopicLedger) if each.repeated):
        kind = _Kind(
            side=1,
            records=found.repeated,
            ranges=found.repeated_ranges,
            rule="a copy has each record as often as its source",
            text=f"of {found.source} again in {found.target}",
        )
        yield _finding(
            doubled_on_target,
            context,
            found,
            kind,
            _ranges(_RepeatedEvidence, found.repeated_ranges, len(found.repeated_ranges)),
            explanations=(
                Explanation(
                    "the mirror was restarted, or its tasks moved, and it went on from an older position: it copies at least once "
                    "(MirrorMaker 2 without exactly.once.source.support, KIP-618)"
                ),
                Explanation("two mirrors copy the topic"),
                Explanation("the source had them twice, too, and lost one of the two since", innocent=True),
            ),
            impact=Impact(records_duplicated=found.repeated),
        )


@check(
    "KA707",
    severity=Severity.WARNING,
    summary="records of one key that the copy of a topic has in another order",
    needs=(TopicLedger,),
    incident=_COMPARED_ALONE,
    caused_by=_NOT_LOGGED,
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
    reads=Reading.RECORDS,
)
def reordered_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy in which a key's records have another order."""
    for found in (each for each in evidence.of(TopicLedger) if each.out_of_order):
        places = sorted((each.target_partition, each.target_offset) for each in found.moved)
        kind = _Kind(
            side=1,
            records=found.out_of_order,
            ranges=[RecordRange(partition, offset, offset, 1) for partition, offset in places],
            rule="a copy has the records of a key in their order",
            text=f"of {found.source} in {found.target} before the record of the same key that precedes it",
        )
        yield _finding(
            reordered_on_target,
            context,
            found,
            kind,
            _ranges(_MovedEvidence, found.moved, found.out_of_order),
            explanations=(
                Explanation(
                    "the mirror's producer has several requests in flight without idempotence (enable.idempotence=false, "
                    "max.in.flight.requests.per.connection above 1), and one of them was retried"
                ),
                Explanation("the target's partitioner or number of partitions changed while records were copied"),
            ),
            impact=Impact(),
        )


@check(
    "KA708",
    severity=Severity.WARNING,
    summary="records in the copy of a topic that the topic does not have",
    needs=(TopicLedger,),
    incident=_COMPARED_ALONE,
    caused_by=_NOT_LOGGED,
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
    reads=Reading.RECORDS,
)
def only_on_target(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each copy with records of its own."""
    for found in (each for each in evidence.of(TopicLedger) if each.only_in_target):
        kind = _Kind(
            side=1,
            records=found.only_in_target,
            ranges=found.only_in_target_ranges,
            rule="a copy has the records of its source and no others",
            text=f"of {found.target} missing in {found.source}",
        )
        yield _finding(
            only_on_target,
            context,
            found,
            kind,
            _ranges(_RangesEvidence, found.only_in_target_ranges, len(found.only_in_target_ranges)),
            explanations=(
                Explanation("something else writes to the target: a producer of the other cluster, a second mirror"),
                *(_UNCOMMITTED if found.read_committed else ()),
                Explanation("the mirror changes records on their way, so that they are others by this identity"),
                Explanation("the source lost them after they were copied: its log was truncated"),
            ),
            impact=Impact(),
        )
