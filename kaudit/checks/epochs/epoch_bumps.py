"""Raised producer epochs: at a change of leader, by a new instance or after an error, with missing sequences, near their maximum."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kaudit.checks.check import Evidence, Simulated, check, none_because
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import EPOCH_BUMP, EPOCHS_USED_UP, LEADER_CHANGE, OF_DISTRESS, PRODUCER_STATE
from kaudit.checks.log_causes import BUMPED, ELECTED, FENCED, REFUSED, TIMED_OUT
from kaudit.checks.observations import ClassifiedEvidence, LackingEvidence, observation_finding
from kaudit.checks.texts import counted
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.leader_epochs import HeldRecords, LeaderChange, OtherCopies, copies_between
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import RepeatedEpoch
from kaudit.model.record_loss import ReportedChange
from kaudit.model.severity import Confidence, Severity


def not_repeated(evidence: Evidence, bumps: Iterable[Observation]) -> Sequence[Observation]:
    """Return the bumps after which the client did not write the old epoch's tail again.

    Where it did, it went on from batches that are still in the log, so nothing was cut off.
    """
    repeated = {(found.producer_id, found.producer_epoch) for found in evidence.of(RepeatedEpoch)}
    return [bump for bump in bumps if (bump.producer_id, bump.producer_epoch) not in repeated]


def without_finding(evidence: Evidence, bumps: Iterable[Observation]) -> Sequence[Observation]:
    """Return the bumps that neither KA704 nor KA206 or KA612 reports."""
    nothing_cut = {change.leader_epoch for change in evidence.of(ReportedChange) if not change.cut}
    reported = {
        (bump.producer_id, bump.offset)
        for change in evidence.of(LeaderChange)
        for bump in change.bumps
        if change.leader_epoch not in nothing_cut
    }
    return [bump for bump in not_repeated(evidence, bumps) if (bump.producer_id, bump.offset) not in reported]


_LEADER_CHANGE_RULE = (
    "a new leader that lacks a producer's last batches refuses its next one (OUT_OF_ORDER_SEQUENCE_NUMBER); the client then "
    "raises its epoch and starts at sequence 0 (KIP-360)"
)


@check(
    "KA206",
    severity=Severity.WARNING,
    summary="a client raised its own epoch where the partition's leader changed: acknowledged records may be gone",
    needs=(LeaderChange,),
    faulty_column="epoch",
    incident=(LEADER_CHANGE, EPOCH_BUMP, OF_DISTRESS),
    caused_by=(ELECTED, REFUSED, BUMPED),
    simulated=Simulated("unclean-election"),
)
def bump_at_leader_change(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each client bump between two leader epochs, unless the client wrote the old epoch's tail again.

    Where logs of brokers show what was cut off there, nothing or what KA612 reports, there is nothing to suspect.
    """
    reported = {change.leader_epoch for change in evidence.of(ReportedChange)}
    for change in evidence.of(LeaderChange):
        if change.leader_epoch in reported:
            continue
        bumps = not_repeated(evidence, change.bumps)
        for bump in bumps:
            yield _bump(context, evidence, change, bump, others=len(bumps) - 1)


class _LeaderChangeEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    broker: str
    leader_epoch: int
    leader_epoch_start_offset: int
    previous_leader_epoch: int
    others_that_bumped: int
    others_in_sequence: int
    held_by: Sequence[HeldRecords]


def _bump(context: Context, evidence: Evidence, change: LeaderChange, bump: Observation, *, others: int) -> Finding:
    assert bump.remembered is not None
    last, first = bump.remembered.last, bump.batch
    assert last is not None
    assert first is not None
    others_copies = copies_between(evidence.of(OtherCopies), last.leader_epoch, first.leader_epoch)
    held = [records for copies in others_copies for records in copies.held_by]
    return observation_finding(
        bump_at_leader_change,
        context,
        bump,
        f"after the leader changed (leader epoch {last.leader_epoch} to {first.leader_epoch}) producer {bump.producer_id} started "
        f"again at sequence 0, in epoch {bump.producer_epoch}, at offset {bump.offset}: records that only the old leader had "
        "may be lost, acknowledged ones too",
        confidence=Confidence.LIKELY if held else Confidence.POSSIBLE,
        evidence=_LeaderChangeEvidence(
            rule=_LEADER_CHANGE_RULE,
            observation=bump,
            broker=f"truncates the old leader's copy to offset {change.start_offset} when that one comes back; until "
            "then kaudit diff shows what only that copy has",
            leader_epoch=change.leader_epoch,
            leader_epoch_start_offset=change.start_offset,
            previous_leader_epoch=last.leader_epoch,
            others_that_bumped=others,
            others_in_sequence=change.continued,
            held_by=held,
        ),
        explanations=_explanations(change, last, others, held),
        impact=Impact(
            records_lost_at_least=0, records_lost_at_most=max((records.records for records in held), default=None)
        ),
        following=[
            *(f"kaudit diff {quote(records.directory)} {quote(context.directory)}" for records in held[:1]),
            *context.compare_records_command(),
        ],
    )


def _explanations(
    change: LeaderChange, last: BoundaryBatch, others: int, copies: Sequence[HeldRecords]
) -> Sequence[Explanation]:
    epochs = f"leader epoch {last.leader_epoch} before it, {change.leader_epoch} at it"
    bumped = (
        [f"{counted(others, 'other producer')} raised {_their(others)} epoch at the same leader change"]
        if others
        else []
    )
    in_sequence = (
        [f"{counted(change.continued, 'other producer')} went on in sequence across it"] if change.continued else []
    )
    held = [_held(records) for records in copies]
    return (
        Explanation(
            "the old leader's last records were cut off: no replica in sync had them (unclean election)",
            speaks_for=(epochs, *held, *bumped),
            speaks_against=in_sequence,
        ),
        Explanation(
            "nothing was cut off here: the client raised its epoch for another partition, for a batch it gave up "
            "(delivery.timeout.ms), or because the new leader had lost its snapshot",
            innocent=True,
            speaks_for=in_sequence,
            speaks_against=(*held, *bumped),
        ),
    )


def _held(records: HeldRecords) -> str:
    return (
        f"{records.copy} holds {counted(records.records, 'record')} at offsets {records.first_offset}.."
        f"{records.last_offset} under leader epoch {records.leader_epoch}, which are not here"
    )


def _their(number: int) -> str:
    return "its" if number == 1 else "their"


_CAUSES = {
    ObservationKind.RESTART_BUMP: "the transactional producer was initialised again, by a new instance or, since 2.5, after an error",
    ObservationKind.TIMEOUT_ABORT: "the coordinator aborted its transaction and fenced it (timeout, or a new instance)",
    ObservationKind.CLIENT_BUMP: "the client raised its own epoch after an error it could not resolve (2.5 and later)",
}
_NOT_KEPT = dict.fromkeys(("file", "segment", "position"), "only the marker's offset is kept to the end of the log")


@check(
    "KA203",
    severity=Severity.NOTE,
    summary="a producer's epoch was raised",
    confidence=Confidence.LIKELY,
    observes=tuple(_CAUSES),
    incident=(EPOCH_BUMP, OF_DISTRESS),
    caused_by=(TIMED_OUT, FENCED, REFUSED),
    simulated=Simulated("zombie-producer"),
)
def fencing(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report raised epochs, but not where each transaction raises it anyway (transaction version 2, KIP-890)."""
    every_transaction = context.versions.all(lambda profile: profile.transaction_version2)
    for observation in without_finding(evidence, evidence.observed(*fencing.observes)):
        if not (every_transaction and observation.is_transactional):
            yield _raised(context, observation)


def _raised(context: Context, observation: Observation) -> Finding:
    state = observation.remembered
    assert state is not None
    cause = _CAUSES[observation.kind]
    where = f"at offset {observation.offset}" if observation.offset >= 0 else "at the end of the log"
    by_abort = observation.kind is ObservationKind.TIMEOUT_ABORT
    before = "" if by_abort else f" from {state.epoch}"
    message = (
        f"the epoch of producer {observation.producer_id} rose{before} to {observation.producer_epoch} {where}: {cause}"
    )
    found = observation_finding(
        fencing,
        context,
        observation,
        message,
        evidence=ClassifiedEvidence(
            rule="a higher epoch fences every writer of the lower one", observation=observation
        ),
        following=context.compare_records_command() if observation.kind is ObservationKind.CLIENT_BUMP else (),
    )
    return replace(found, file=None, segment=None, position=None, absent=_NOT_KEPT) if by_abort else found


@check(
    "KA202",
    severity=Severity.ERROR,
    summary="a new epoch starts at a sequence other than 0",
    observes=(ObservationKind.BUMP_NONZERO,),
    faulty_column="sequence",
    incident=(EPOCH_BUMP, PRODUCER_STATE, OF_DISTRESS),
    caused_by=(FENCED, BUMPED),
    simulated=Simulated(),
)
def epoch_bump_nonzero(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report new epochs whose first sequences are missing and not explained by missing offsets."""
    for observation in evidence.observed(*epoch_bump_nonzero.observes):
        assert observation.batch is not None
        yield observation_finding(
            epoch_bump_nonzero,
            context,
            observation,
            f"epoch {observation.producer_epoch} of producer {observation.producer_id} starts at sequence "
            f"{observation.batch.first_sequence} instead of 0",
            evidence=LackingEvidence(
                observation=observation,
                rule="a new epoch starts at sequence 0 (ProducerAppendInfo.checkSequence)",
                missing_sequences=observation.missing_sequences,
                missing_offsets=observation.missing_offsets,
            ),
            impact=Impact(records_lost_at_least=0, records_lost_at_most=observation.missing_sequences),
            explanations=(
                Explanation("the first records of the new epoch were lost"),
                Explanation("a client raised its epoch without resetting its sequences"),
            ),
        )


_MAX_EPOCH = 32767
_MAX_EPOCH_RULE = (
    "a transactional id moves to a new producer id at epoch 32766; a client that raises its own epoch may overflow"
)

_OFTEN_INITIALISED = Explanation(
    "the transactional id was initialised very often (an instance per message, a crash loop), or transactions end with "
    "errors after which the client raises the epoch"
)
_RAISED_BY_CLIENT = Explanation("the client raises its epoch at every failed send")


@check(
    "KA204",
    severity=Severity.WARNING,
    severity_note="note for a transactional producer",
    summary="a producer's epoch is 32000 or more of 32767",
    observes=(ObservationKind.NEARLY_EXHAUSTED,),
    faulty_column="epoch",
    incident=(EPOCHS_USED_UP,),
    caused_by=none_because("no log counts the epochs of a producer id"),
    simulated=none_because(
        "the shipped scenario epoch-exhaustion leaves it, but thousands of epochs are too many to search through"
    ),
)
def epoch_nearly_exhausted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such producer once."""
    for observation in evidence.observed(*epoch_nearly_exhausted.observes):
        left = _MAX_EPOCH - observation.producer_epoch
        yield observation_finding(
            epoch_nearly_exhausted,
            context,
            observation,
            f"producer {observation.producer_id} is at epoch {observation.producer_epoch}, {left} below the maximum",
            severity=Severity.NOTE if observation.is_transactional else Severity.WARNING,
            evidence=ClassifiedEvidence(rule=_MAX_EPOCH_RULE, observation=observation),
            explanations=(_OFTEN_INITIALISED if observation.is_transactional else _RAISED_BY_CLIENT,),
        )
