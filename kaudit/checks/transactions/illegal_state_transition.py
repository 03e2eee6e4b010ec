"""Two states of a transactional id that cannot follow one another."""

from collections.abc import Iterator

from kaudit.checks.check import COORDINATOR_LOSES_NOTHING, Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity
from kaudit.model.transactions import IllegalTransition

_RULE = (
    "a transactional id goes from Empty over Ongoing and Prepare to Complete, its epoch never falls "
    "(TransactionMetadata.validPreviousStates)"
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    transactional_id: str
    before_offset: int
    before_status: str
    after_status: str
    before_update_timestamp: int
    after_update_timestamp: int


@check(
    "KA307",
    severity=Severity.WARNING,
    summary="two states of a transactional id that cannot follow one another",
    needs=(IllegalTransition,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because(
        "the states of one transactional id contradict each other; what its partitions show is not known to follow from it"
    ),
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=COORDINATOR_LOSES_NOTHING,
)
def illegal_state_transition(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report neighbouring records of one partition of __transaction_state."""
    for found in evidence.of(IllegalTransition):
        yield illegal_state_transition.finding(
            context,
            f"transactional id {found.transactional_id!r} went to {found.reason}",
            offset=found.offset,
            last_offset=found.offset,
            producer_id=found.after.producer_id,
            producer_epoch=found.after.producer_epoch,
            evidence=_Evidence(
                rule=_RULE,
                broker="believes the newest record when it loads the partition",
                transactional_id=found.transactional_id,
                before_offset=found.before_offset,
                before_status=found.before.status_name,
                after_status=found.after.status_name,
                before_update_timestamp=found.before.last_update_timestamp,
                after_update_timestamp=found.after.last_update_timestamp,
            ),
            explanations=(
                Explanation("two coordinators wrote to the partition: an unclean leader election, or a stale leader"),
                Explanation("records between the two were cut out of the log"),
            ),
            following=(context.inspect_command("--records", "--offset", f"{found.before_offset}..{found.offset}"),),
            absent=dict.fromkeys(("file", "segment", "position"), "the record is named by its offset"),
        )
