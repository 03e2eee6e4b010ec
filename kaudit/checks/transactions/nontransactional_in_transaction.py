"""A producer that wrote outside its open transaction."""

from collections.abc import Iterator

from kaudit.checks.check import CLIENTS_FOLLOW_PROTOCOL, Evidence, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE, TRANSACTION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT
from kaudit.checks.observations import ObservationEvidence, observation_finding
from kaudit.checks.transactions.unfinished import held_back_from, oldest_transaction
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import ObservationKind
from kaudit.model.severity import Severity

_RULE = (
    "a producer with an open transaction writes inside it: INVALID_TXN_STATE for every origin, so that loading this log "
    "or replicating it fails (ProducerAppendInfo.appendDataBatch)"
)


@check(
    "KA303",
    severity=Severity.ERROR,
    summary="a producer wrote outside its open transaction; brokers crash loading this",
    observes=(ObservationKind.OUTSIDE_TRANSACTION,),
    faulty_column="kind",
    incident=(TRANSACTION, PRODUCER_STATE),
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=CLIENTS_FOLLOW_PROTOCOL,
    transactional=True,
)
def nontransactional_in_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the first such batch of each transaction."""
    oldest = oldest_transaction(evidence)
    for observation in evidence.observed(*nontransactional_in_transaction.observes):
        state = observation.remembered
        assert state is not None
        yield observation_finding(
            nontransactional_in_transaction,
            context,
            observation,
            f"the batch at offset {observation.offset} of producer {observation.producer_id} is not transactional, but its "
            f"transaction that starts at offset {state.txn_first_offset} is still open",
            evidence=ObservationEvidence(rule=_RULE, observation=observation),
            impact=held_back_from(context, state.txn_first_offset, oldest),
            explanations=(
                Explanation("the end marker between them is missing from this log"),
                Explanation("data bypassed the broker's checks"),
            ),
        )
