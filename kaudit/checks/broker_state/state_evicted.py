"""A producer that brokers before 2.4 forget because its data was deleted."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import BUMPED, FORGOTTEN, HEAD_REMOVED
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.producer_patterns import EvictedProducer

_RULE = (
    "brokers before 2.4 drop every producer whose last record lies below a new log start "
    "(ProducerStateManager.truncateHead; KAFKA-7190)"
)


@check(
    "KA802",
    severity=Severity.WARNING,
    severity_note="note when nothing in the log shows an effect",
    summary="a producer is forgotten because its data was deleted (brokers before 2.4)",
    needs=(EvictedProducer,),
    incident=none_because("that the log start moved past a producer's last record is no fault by itself"),
    caused_by=(FORGOTTEN, HEAD_REMOVED, BUMPED),
    simulated=none_because("no drawn schedule has been seen to leave it"),
)
def state_evicted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report evicted producers, as a warning where one repeats a deleted batch."""
    if not context.versions.all(lambda profile: profile.forgets_on_log_start_advance):
        return
    for producer in evidence.of(EvictedProducer):
        kind, then = _effect(producer)
        yield state_evicted.finding(
            context,
            f"producer {producer.producer_id} was forgotten when its last batch, at offset {producer.last_offset}, fell below "
            f"the log start: {then}",
            severity=Severity.WARNING if producer.repeated else Severity.NOTE,
            segment=producer.segment,
            position=producer.position,
            offset=producer.last_offset,
            last_offset=producer.last_offset,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            evidence={
                "rule": _RULE,
                "class": kind,
                "last_sequence": producer.last_sequence,
                "next_offset": producer.again,
            },
            explanations=(
                Explanation(
                    "retention or DeleteRecords moved the log start past its last record",
                    innocent=not producer.repeated,
                ),
            ),
            following=(context.timeline_command(producer.producer_id),),
        )


def _effect(producer: EvictedProducer) -> tuple[str, str]:
    """Return the class and the text of what the producer wrote above the log start."""
    if producer.repeated:
        return "repeated", f"the batch at offset {producer.again} repeats one that was deleted"
    if producer.again is not None:
        return "restarted", f"at offset {producer.again} it starts again at sequence 0"
    return "idle", "it has not written since"
