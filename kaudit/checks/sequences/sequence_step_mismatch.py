"""A client that does not advance its sequence by the number of records."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import CLIENTS_FOLLOW_PROTOCOL, Evidence, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import CLIENT_SEQUENCES
from kaudit.checks.log_causes import REFUSED
from kaudit.checks.observations import ClassifiedEvidence, observation_finding
from kaudit.model.evidence_parts import StepEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.producer_patterns import StepMismatch, sequence_step
from kaudit.model.severity import Severity

_RULE = "the next base sequence is the last one plus the number of records (DefaultRecordBatch.incrementSequence)"
_LISTED = 10
"""Steps listed in the evidence."""


class _StepsEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    count: int
    steps: Sequence[StepEvidence]
    first_offset: int
    last_offset: int


@check(
    "KA107",
    severity=Severity.ERROR,
    summary="a client does not advance its sequence by the number of records",
    needs=(StepMismatch,),
    faulty_column="sequence",
    incident=(CLIENT_SEQUENCES,),
    caused_by=(REFUSED,),
    simulated=CLIENTS_FOLLOW_PROTOCOL,
)
def sequence_step_mismatch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each pattern once, in place of its gaps and overlaps."""
    for mismatch in evidence.of(StepMismatch):
        chain = mismatch.observations
        first, steps = chain[0], [sequence_step(observation) for observation in chain]
        yield observation_finding(
            sequence_step_mismatch,
            context,
            first,
            f"producer {first.producer_id} advances its sequence {_pattern(steps)}, {len(chain)} times in a row",
            evidence=_StepsEvidence(
                rule=_RULE,
                observation=first,
                count=len(chain),
                steps=[
                    StepEvidence(observation.offset, step, records)
                    for observation, (step, records) in zip(chain[:_LISTED], steps, strict=False)
                ],
                first_offset=chain[0].offset,
                last_offset=chain[-1].last_offset,
            ),
            explanations=(
                Explanation(
                    "the client counts requests, or starts from a wrong last sequence: a bug of the client library"
                ),
            ),
        )


def _pattern(steps: Sequence[tuple[int, int]]) -> str:
    step, records = steps[0]
    by_batch = len({step - records for step, records in steps}) > 1 or {step for step, _ in steps} == {1}
    if by_batch:
        return f"by {step} per batch, whatever its number of records"
    return f"by {abs(step - records)} {'more' if step > records else 'less'} than the number of records"
