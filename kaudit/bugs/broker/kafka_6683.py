"""Producer snapshots hold batches from beyond their own offset."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _runs_ahead(case: Case) -> bool:
    last, offset = case.number("stored", "last_offset"), case.finding.offset
    return last is not None and offset is not None and last >= offset


BUG = Bug(
    id="KAFKA-6683",
    title="ReplicaFetcher crashes with 'Attempted to complete a transaction which was not started'",
    summary="an append changes the state of its producer before the segment is rolled, so that the snapshot runs ahead",
    program=Program.BROKER,
    affected=(Affected("1.0.0", "1.0.1"),),
    fixed_in=("1.0.2", "1.1.0"),
    codes=codes("KA502"),
    traits=(Trait("a producer snapshot holds a batch from beyond its own offset", _runs_ahead),),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-6683"), "https://github.com/apache/kafka/pull/4755"),
    module=__name__,
)
