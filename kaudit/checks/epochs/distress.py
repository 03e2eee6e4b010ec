"""Producers in distress: one finding for each producer whose sends fail again and again, however many notes that would be."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.checks.check import Check, Evidence, Simulated, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DISTRESS
from kaudit.checks.log_causes import BUMPED, CUT_OFF, FENCED, OUT_OF_SYNC, REFUSED, RETRIED, SUCCEEDED, TIMED_OUT
from kaudit.checks.observations import ClassifiedEvidence, batch_evidence, observation_finding
from kaudit.checks.sequences.sequence_observations import sequences_text
from kaudit.checks.texts import counted
from kaudit.model.batch_fields import NO_SEQUENCE
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import FailedSends, ProducerBatch
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.observation import Observation
from kaudit.model.producer_patterns import GivenUpSends, RaisedEpochs, RepeatedStarts
from kaudit.model.sequence import distance
from kaudit.model.severity import Confidence, Severity

_LISTED = 100
_UNBOUNDED = 1 << 31
"""More than all sequences."""
_SHOWN = 3
_SEVERAL = 2
_TEN_MINUTES = 600
_MANY_EPOCHS = {"producer_epoch": "it is about several epochs"}


class _RisesEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    first_epoch: int
    last_epoch: int
    rises: int
    epochs_here: int
    epochs_without_batch: int
    records: int
    first_timestamp: int
    last_timestamp: int
    per_minute: float
    to_be_certain: str | None = None
    written_though_failed: int | None = None
    not_written: int | None = None
    failed: Sequence[FailedSends] = ()
    transactional_id: str | None = None
    fenced_epochs: int | None = None


class _Account(NamedTuple):
    """What a client's log proves of its failed sends: how many records the log holds all the same, and how many it does not."""

    written: int
    not_written: int
    failed: Sequence[FailedSends]


_CLIENT_RULE = (
    "a client that cannot know whether a batch was written raises its epoch and starts at sequence 0 (KIP-360); the application got "
    "an error for what the client gave up, whether it was written or not"
)
_LOG_WITH_FAILURES = (
    "the application's log with the errors of its sends, and the client's at level INFO: which records failed"
)


@check(
    "KA207",
    severity=Severity.ERROR,
    severity_note="warning unless the client's log shows sends that are not in the log",
    summary="a client raises its epoch again and again: its sends fail, and some are written all the same",
    confidence=Confidence.LIKELY,
    needs=(RaisedEpochs,),
    faulty_column="epoch",
    incident=(DISTRESS,),
    caused_by=(REFUSED, BUMPED, RETRIED, OUT_OF_SYNC, CUT_OFF),
    simulated=Simulated("deliveries-time-out"),
)
def failing_sends(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each series of epochs that an idempotent client raised itself."""
    for found in evidence.of(RaisedEpochs):
        if not found.rises[0].is_transactional:
            yield _failing(context, found)


def _failing(context: Context, found: RaisedEpochs) -> Finding:
    first, account = found.rises[0], _account(found)
    rises = _rises_evidence(found, _CLIENT_RULE, account)
    raised = rises.last_epoch - rises.first_epoch
    message = (
        f"producer {first.producer_id} raised its epoch {raised} times {_within(*found.times, raised)}: "
        f"{rises.epochs_here} epochs have batches here"
    )
    if rises.epochs_without_batch:
        none = "no batch here" if context.compacted else "none"
        message += f", {rises.epochs_without_batch} have {none}"
    if account is None:
        message += (
            f"; the application may have received an error for up to {counted(rises.records, 'record')} that are here, and other "
            "records that it sent may be missing"
        )
    else:
        message += (
            f"; as its log shows, at least {account.written:,}, at most {counted(rises.records, 'record')} are here of sends that "
            "failed" + (f", and at least {account.not_written:,} that it sent are not" if account.not_written else "")
        )
    proven = account is not None and account.not_written > 0
    return observation_finding(
        failing_sends,
        context,
        first,
        message,
        severity=Severity.ERROR if proven else Severity.WARNING,
        confidence=Confidence.LIKELY if account is None else Confidence.CERTAIN,
        last_offset=found.rises[-1].last_offset,
        producer_epoch=None,
        evidence=rises,
        impact=NO_IMPACT if account is None else _impact(account, rises.records),
        explanations=_failing_explanations(found, account),
        following=(*context.compare_records_command(), context.count_repeats_command()),
        absent=_MANY_EPOCHS,
    )


def _impact(account: _Account, most: int) -> Impact:
    return Impact(
        records_failed_but_written=account.written,
        records_failed_but_written_at_most=most,
        records_failed_not_written=account.not_written,
    )


def _rises_evidence(found: RaisedEpochs, rule: str, account: _Account | None = None) -> _RisesEvidence:
    begun, ended = found.times
    here = {found.first_epoch, *(rise.producer_epoch for rise in found.rises)}
    own = range(found.first_epoch + 1, found.last_epoch + 1)
    raised = found.last_epoch - found.first_epoch
    records = _in_flight(found.rises[0]) + sum(
        last + 1 for epoch, last in found.ends.items() if epoch in own and last != NO_SEQUENCE
    )
    is_certain = found.rises[0].is_transactional or (account is not None and account.written == records)
    return _RisesEvidence(
        rule=rule,
        observation=found.rises[0],
        first_epoch=found.first_epoch,
        last_epoch=found.last_epoch,
        rises=len(found.rises),
        epochs_here=len(here),
        epochs_without_batch=raised + 1 - len(here),
        records=records,
        first_timestamp=begun,
        last_timestamp=ended,
        per_minute=_per_minute(raised, begun, ended),
        to_be_certain=None if is_certain else _LOG_WITH_FAILURES,
        written_though_failed=None if account is None else account.written,
        not_written=None if account is None else account.not_written,
        failed=() if account is None else account.failed,
    )


def _in_flight(rise: Observation) -> int:
    """Return how many records may have been in flight before a rise: idempotent clients have five batches of a partition at most."""
    state = rise.remembered
    window = () if state is None else state.window
    return sum(distance(batch.first_sequence, batch.last_sequence) + 1 for batch in window)


def _within(first_ms: int, last_ms: int, number: int) -> str:
    """Return how long it took, and how fast: `in 160 s, 22.1 a minute`."""
    seconds = abs(last_ms - first_ms) / 1000
    length = f"{seconds:.0f} s" if seconds < _TEN_MINUTES else f"{seconds / 60:.0f} min"
    return f"in {length}, {_per_minute(number, first_ms, last_ms):g} a minute"


def _per_minute(number: int, first_ms: int, last_ms: int) -> float:
    return round(number * 60_000 / max(abs(last_ms - first_ms), 1_000), 1)


def _account(found: RaisedEpochs) -> _Account | None:
    """Count what a client gave up: what the log holds of it, and what it does not, of epochs that are over here."""
    failed, written, lacking = [], 0, 0
    held: list[range] = []
    by_epoch = {each.producer_epoch: each for each in found.given_up}
    for epoch, sends in sorted(by_epoch.items()):
        last_here = found.ends.get(epoch, NO_SEQUENCE)
        # batches that the log has under the epoch before were given new sequences, and may be in it once
        here_before = by_epoch.get(epoch - 1)
        held = [range(last_here + 1), *([] if here_before is None else _moved(here_before, held))]
        # an acknowledgement of an older epoch may stand there in place of this one's
        acknowledged = sends.last_assigned if sends.last_acknowledged is None else sends.last_acknowledged
        here = max(min(last_here, sends.last_assigned) - max(acknowledged, NO_SEQUENCE), 0)
        over = epoch < found.last_epoch
        missing = _outside(sends.last_assigned + 1, [*held, *_moved(sends)]) if over else 0
        if here or missing:
            first = min(max(acknowledged, NO_SEQUENCE), last_here) + 1
            last = sends.moved[0][0] - 1 if sends.moved else sends.last_assigned
            failed += [FailedSends(epoch, first, last, here)] if first <= last else []
        written += here
        lacking += missing
    return _Account(written, lacking, failed[:_LISTED]) if written or lacking else None


def _moved(sends: GivenUpSends, held: Sequence[range] | None = None) -> list[range]:
    """Return the sequences of batches that went on in the next epoch: those they had, or those they have there of what is `held` here.

    How long the last one is no line says: it may be all that follows.
    """
    firsts = [*sends.moved, (_UNBOUNDED, _UNBOUNDED)]
    lengths = [after[1] - before[1] for before, after in pairwise(firsts)]
    if held is None:
        return [range(old, old + length) for (old, _), length in zip(sends.moved, lengths, strict=True)]
    return [
        range(new, new + length)
        for (old, new), length in zip(sends.moved, lengths, strict=True)
        if any(old in own for own in held)
    ]


def _outside(end: int, held: Iterable[range]) -> int:
    """Return how many numbers from 0 to `end` (exclusive) are in none of the ranges."""
    number = at = 0
    for own in sorted(held, key=lambda each: each.start):
        number += max(min(own.start, end) - at, 0)
        at = max(at, own.stop)
    return number + max(end - at, 0)


def _given_up(sends: FailedSends) -> str:
    first, last, written = sends.first_sequence or 0, sends.last_sequence or 0, sends.written or 0
    here = [f"{sequences_text(first, first + written - 1)} are here"] if written else []
    lacking = [f"{sequences_text(first + written, last)} are not"] if first + written <= last else []
    return f"its log gives up, in epoch {sends.producer_epoch}: {', '.join((*here, *lacking))}"


def _failing_explanations(found: RaisedEpochs, account: _Account | None) -> Sequence[Explanation]:
    gave_up = [_given_up(sends) for sends in account.failed[:_SHOWN]] if account else []
    more = len(account.failed) - len(gave_up) if account else 0
    resent = (*gave_up, *([f"and in {counted(more, 'more epoch')}"] if more else []))
    moved = sum(rise.is_after_leader_change for rise in found.rises)
    changed = (f"the partition's leader had changed at {moved} of the rises",) if moved else ()
    return (
        Explanation(
            "deliveries time out (delivery.timeout.ms): brokers answer too late or not at all, and what is sent next waits behind them",
            speaks_for=resent,
        ),
        Explanation(
            "a broker refuses the producer's batches as out of order after each rise: batches before them had not reached it",
            speaks_for=changed,
        ),
    )


_FENCED_RULE = (
    "initTransactions raises the epoch of a transactional id and aborts the transaction that the instance before had open; what that "
    "one sends afterwards is refused"
)
_SESSION_RULE = "an application that is started again gets a new producer id, and sends again what it did not know to be acknowledged"
_TWO = Explanation("two instances run with one transactional.id, and each takes it from the other")
_CRASHES = Explanation("the application fails within its transactions, and is started again each time")


class _StartsEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    previous: ProducerBatch
    offending: ProducerBatch
    producer_ids: Sequence[int]
    records: int
    first_timestamp: int
    last_timestamp: int
    per_minute: float


@check(
    "KA208",
    severity=Severity.WARNING,
    summary="an application is started again and again: transactions are cut short, or records are written again",
    confidence=Confidence.LIKELY,
    needs=(RaisedEpochs, RepeatedStarts),
    faulty_column="epoch",
    incident=(DISTRESS,),
    caused_by=(SUCCEEDED, TIMED_OUT),
    simulated=Simulated("restart-loop"),
)
def restart_loop(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report transactions that one instance after another cut short, and sessions that wrote the records of earlier ones again."""
    for found in evidence.of(RaisedEpochs):
        if found.rises[0].is_transactional and _fenced_epochs(found) < _SEVERAL:
            message = "a restart loop, or two instances that fence each other"
            yield _cut_short(restart_loop, context, found, message, (_CRASHES, _TWO))
    for starts in evidence.of(RepeatedStarts):
        yield _started_again(context, starts)


@check(
    "KA209",
    severity=Severity.WARNING,
    summary="two instances of one transactional id fence each other",
    confidence=Confidence.LIKELY,
    needs=(RaisedEpochs,),
    faulty_column="epoch",
    incident=(DISTRESS,),
    caused_by=(FENCED, SUCCEEDED),
    simulated=none_because("the logs of brokers and clients tell two instances from one, and schedules write none"),
    transactional=True,
)
def mutual_fencing(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report transactions that one instance after another cut short while those before were still at work, as logs show."""
    for found in evidence.of(RaisedEpochs):
        fenced = _fenced_epochs(found)
        if found.rises[0].is_transactional and fenced >= _SEVERAL:
            message = f"two instances fence each other, as requests of {fenced} older epochs show that were refused"
            yield _cut_short(mutual_fencing, context, found, message, (_TWO,))


def _fenced_epochs(found: RaisedEpochs) -> int:
    """Return how many of the epochs had an instance that was still at work when another had taken its place."""
    own = range(
        found.first_epoch - 1, found.last_epoch + 1
    )  # the marker that cut a transaction short has a higher epoch
    return len({event.producer_epoch for event in found.fenced if event.producer_epoch in own})


def _cut_short(
    reporting: Check, context: Context, found: RaisedEpochs, what: str, explanations: Sequence[Explanation]
) -> Finding:
    first, name = found.rises[0], context.coordinator.transactional_id(found.rises[0].producer_id)
    rises = _rises_evidence(found, _FENCED_RULE)
    whose = f"producer {first.producer_id}" + (f" ({name})" if name is not None else "")
    return observation_finding(
        reporting,
        context,
        first,
        f"the transactional id of {whose} was initialised {rises.rises} times {_within(*found.times, rises.rises)}, each time in the middle of a "
        f"transaction: {what}",
        last_offset=found.rises[-1].last_offset,
        producer_epoch=None,
        evidence=replace(rises, transactional_id=name, fenced_epochs=_fenced_epochs(found)),
        explanations=explanations,
        absent=_MANY_EPOCHS,
    )


def _started_again(context: Context, starts: RepeatedStarts) -> Finding:
    sessions = starts.sessions
    first, last = sessions[0], sessions[-1]
    begun, ended = first.batch.max_timestamp, last.batch.max_timestamp
    ids = list(dict.fromkeys([first.previous_id, *(session.producer_id for session in sessions)]))
    records = sum(session.records for session in sessions)
    return restart_loop.finding(
        context,
        f"{len(sessions)} sessions began {_within(begun, ended, len(sessions))}, each with records of one before it "
        f"({counted(records, 'record')}, producer ids {ids[0]}..{ids[-1]}): an application is started again and again",
        segment=first.batch.segment,
        position=first.batch.position,
        offset=first.first_offset,
        last_offset=last.last_offset,
        producer_id=first.producer_id,
        evidence=_StartsEvidence(
            rule=_SESSION_RULE,
            previous=batch_evidence(first.previous, first.previous_id, first.previous_epoch),
            offending=batch_evidence(first.batch, first.producer_id, first.producer_epoch),
            producer_ids=ids[:_LISTED],
            records=records,
            first_timestamp=begun,
            last_timestamp=ended,
            per_minute=_per_minute(len(sessions), begun, ended),
        ),
        explanations=(
            Explanation("the application fails, and is started again each time"),
            Explanation("the application means to write these records again", innocent=True),
        ),
        following=(context.count_repeats_command(), context.timeline_command(*ids[:2])),
        absent={"producer_epoch": "it is about several producer ids"},
    )
