"""A client raised its own epoch where the partition's leader changed: what the old leader acknowledged may be gone."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.epochs.client_bumps import not_repeated
from kaudit.checks.incident_rules import EPOCH_BUMP, LEADER_CHANGE
from kaudit.checks.log_causes import BUMPED, ELECTED, REFUSED
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.checks.repeats.wording import records_text
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.impact import Impact
from kaudit.model.leader_epochs import HeldRecords, LeaderChange, OtherCopies, copies_between
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation

_RULE = (
    "a new leader that lacks a producer's last batches refuses its next one (OUT_OF_ORDER_SEQUENCE_NUMBER); the client then "
    "raises its epoch and starts at sequence 0 (KIP-360)"
)


@check(
    "KA206",
    severity=Severity.WARNING,
    summary="a client raised its own epoch where the partition's leader changed: acknowledged records may be gone",
    needs=(LeaderChange,),
    faulty_column="epoch",
    incident=(LEADER_CHANGE, EPOCH_BUMP),
    caused_by=(ELECTED, REFUSED, BUMPED),
    simulated=Simulated("unclean-election"),
)
def bump_at_leader_change(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each client bump between two leader epochs, unless the client wrote the old epoch's tail again."""
    for change in evidence.of(LeaderChange):
        bumps = not_repeated(evidence, change.bumps)
        for bump in bumps:
            yield _bump(context, evidence, change, bump, others=len(bumps) - 1)


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
        evidence=classified_evidence(
            bump,
            _RULE,
            broker=f"truncates the old leader's copy to offset {change.start_offset} when that one comes back; until "
            "then kaudit diff shows what only that copy has",
            leader_epoch=change.leader_epoch,
            leader_epoch_start_offset=change.start_offset,
            previous_leader_epoch=last.leader_epoch,
            others_that_bumped=others,
            others_in_sequence=change.continued,
            held_by=[records.to_dict() for records in held],
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
    bumped = [f"{_producers(others)} raised {_their(others)} epoch at the same leader change"] if others else []
    in_sequence = [f"{_producers(change.continued)} went on in sequence across it"] if change.continued else []
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
        f"{records.copy} holds {records_text(records.records)} at offsets {records.first_offset}.."
        f"{records.last_offset} under leader epoch {records.leader_epoch}, which are not here"
    )


def _producers(number: int) -> str:
    return f"{number:,} other producer" + ("" if number == 1 else "s")


def _their(number: int) -> str:
    return "its" if number == 1 else "their"
