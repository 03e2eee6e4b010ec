"""Records that brokers delete, or will not delete, because of what producers put into them: their timestamps, or no key."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import LOGGED
from kaudit.checks.log.missing_offsets import NO_PRODUCER
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.json_record import rfc3339
from kaudit.model.record_loss import FreshRecordsDeleted, FutureRecords, KeylessRecordsRemoved
from kaudit.model.severity import Confidence, Severity

_BY_TIMESTAMPS = (
    "time retention goes by the greatest timestamp of a segment's records, which clients set (CreateTime) or the broker "
    "(LogAppendTime)"
)
_REPLAYED = Explanation("events of the past were written with their own times: a replay, a backfill, a simulation")
_NOT_SIMULATED = none_because("simulated clients have the cluster's clock, and simulated brokers delete nothing")
_BROKERS_CLOCK = Explanation("the clock of the broker was ahead")
_CLOCK = Explanation("a producer's clock was wrong")
_OWN_TIMES = Explanation("the application sets times of its own: due dates, forecasts, seconds for milliseconds")


class _DeletedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    subject: str
    segments: int
    retention_ms: int
    newest_record_timestamp: int
    last_written_timestamp: int


class _KeylessEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    subject: str
    records: int
    cleaned_by: Sequence[str]


class _FutureEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    records: int
    segments: int
    kept_bytes: int
    newest_record_timestamp: int
    written_by_timestamp: int


@check(
    "KA615",
    severity=Severity.ERROR,
    summary="retention deleted records that had just been written, because of their timestamps",
    confidence=Confidence.LIKELY,
    needs=(FreshRecordsDeleted,),
    incident=(LOGGED,),
    caused_by=none_because("the lines that show it are its evidence"),
    simulated=_NOT_SIMULATED,
)
def fresh_records_deleted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition once."""
    for found in evidence.of(FreshRecordsDeleted):
        own = replace(context, topic=found.topic, partition=found.partition)
        count = None if found.end_offset is None else found.end_offset - found.first_offset
        offsets = (
            f"the records from offset {found.first_offset} on"
            if count is None
            else f"offsets {found.first_offset}..{found.first_offset + count - 1} ({counted(count, 'offset')})"
        )
        yield fresh_records_deleted.finding(
            own,
            f"retention deleted {offsets} that had just been written: {_why(found)}",
            offset=found.first_offset,
            last_offset=None if found.end_offset is None else found.end_offset - 1,
            anchor=str(found.first_offset),
            evidence=_DeletedEvidence(
                rule=_BY_TIMESTAMPS,
                broker="deletes each segment whose newest record is older than retention.ms, whenever it was written",
                subject=own.name,
                segments=found.segments,
                retention_ms=found.retention_ms,
                newest_record_timestamp=found.newest_record_ms,
                last_written_timestamp=found.modified_ms,
                events=found.shown,
            ),
            impact=Impact(records_lost_at_least=count or 1, records_lost_at_most=count),
            explanations=(_BROKERS_CLOCK,) if found.by_clock else (_REPLAYED, _CLOCK),
            following=() if found.by_clock else (_configured(own, "message.timestamp.type=LogAppendTime"),),
            absent={**NO_PRODUCER, **dict.fromkeys(("file", "segment", "position"), "the records are in no file any more")},
        )  # fmt: skip


@check(
    "KA617",
    severity=Severity.ERROR,
    summary="the log cleaner removed records because they had no keys",
    needs=(KeylessRecordsRemoved,),
    incident=(LOGGED,),
    caused_by=none_because("the lines that show it are its evidence"),
    simulated=none_because("simulated topics are compacted only where all records have keys"),
)
def keyless_records_removed(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition once."""
    for found in evidence.of(KeylessRecordsRemoved):
        own = replace(context, topic=found.topic, partition=found.partition)
        yield keyless_records_removed.finding(
            own,
            f"the log cleaner of {listed(found.brokers)} removed {counted(found.records, 'record')} of {own.name} that had no keys",
            evidence=_KeylessEvidence(
                rule="compaction keeps the newest record of each key, and removes records without one",
                broker="refuses records without keys (INVALID_RECORD) since the topic has cleanup.policy=compact",
                subject=own.name,
                records=found.records,
                cleaned_by=list(found.brokers),
                events=found.shown,
            ),
            impact=Impact(records_lost_at_least=found.records, records_lost_at_most=found.records),
            following=(_configured(own, "cleanup.policy=delete"),),
            explanations=(Explanation("records without keys had been written to the topic before it was set to cleanup.policy=compact"),),
            absent={
                **NO_PRODUCER,
                **dict.fromkeys(("file", "segment", "position", "offset", "last_offset"), "the records are in no file any more"),
            },
        )  # fmt: skip


@check(
    "KA616",
    severity=Severity.WARNING,
    summary="records dated in the future, which time retention will not delete",
    needs=(FutureRecords,),
    incident=none_because("it concerns retention, and no other finding's records"),
    caused_by=none_because("brokers log no timestamps of records"),
    simulated=_NOT_SIMULATED,
)
def future_timestamps(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each replica once."""
    for found in evidence.of(FutureRecords):
        yield future_timestamps.finding(
            context,
            f"{counted(found.records, 'record')} at offsets {found.first_offset}..{found.last_offset} "
            f"{'is' if found.records == 1 else 'are'} dated up to {rfc3339(found.newest_ms)}, and "
            f"{'was' if found.records == 1 else 'were'} written by {rfc3339(found.written_by_ms)}: time retention keeps "
            f"{counted(found.segments, 'segment')} until then, and retention.ms longer",
            segment=found.segment,
            offset=found.first_offset,
            last_offset=found.last_offset,
            anchor=str(found.first_offset),
            evidence=_FutureEvidence(
                rule=_BY_TIMESTAMPS,
                broker="keeps these segments and all after them: it deletes from the oldest on (UnifiedLog.deletableSegments)",
                records=found.records,
                segments=found.segments,
                kept_bytes=found.kept_bytes,
                newest_record_timestamp=found.newest_ms,
                written_by_timestamp=found.written_by_ms,
            ),
            explanations=(_BROKERS_CLOCK,) if found.broker_ahead else (_CLOCK, _OWN_TIMES),
            following=(
                context.inspect_around(found.first_offset),
                f"kafka-delete-records.sh {context.bootstrap_arguments} --offset-json-file FILE",
            ),
            absent={**NO_PRODUCER, "position": "the records are in many batches"},
        )  # fmt: skip


def _why(found: FreshRecordsDeleted) -> str:
    newest = rfc3339(found.newest_record_ms)
    if found.by_clock:
        return f"the newest is of {newest}, and no file of the input was written later than retention.ms = {found.retention_ms} after that"
    return f"their timestamps, up to {newest}, were older than retention.ms = {found.retention_ms} already then"


def _configured(context: Context, setting: str) -> str:
    to = f"--alter --entity-type topics --entity-name {context.topic} --add-config {setting}"
    return f"kafka-configs.sh {context.bootstrap_arguments} {to}"
