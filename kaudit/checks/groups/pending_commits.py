"""Commits in transactions that do not end."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.texts import listed, time_text
from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.group_commits import CommitsInTransaction


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str
    group_ids: Sequence[str]
    first_timestamp: int
    last_timestamp: int


@check(
    "KA905",
    severity=Severity.WARNING,
    summary="commits of a group are in a transaction that does not end: its members cannot fetch their offsets",
    needs=(CommitsInTransaction,),
    withdrawn_by=Withdrawal.END_OF_TRANSACTION,
    incident=none_because("the transaction itself is KA301 or KA302, where it is known to hang"),
    caused_by=none_because("brokers log no commits"),
    simulated=none_because("simulated clusters have no consumer groups"),
    transactional=True,
)
def commits_never_decided(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each transaction with commits that is open for longer than brokers let it be."""
    for found in evidence.of(CommitsInTransaction):
        if not context.clock.has_passed(MAX_TRANSACTION_TIMEOUT_MS, found.timestamp):
            continue
        groups = sorted({group for group, _, _ in found.partitions})
        yield commits_never_decided.finding(
            context,
            f"the commits of {listed(groups)} in the transaction of producer {found.producer_id} wait for its end since "
            f"{time_text(found.timestamp)}",
            confidence=Confidence.LIKELY,
            offset=found.offset,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            evidence=_Evidence(
                rule="offsets that a transaction commits count from its marker on (KIP-447, OffsetMetadataManager)",
                broker="answers whoever asks for them with UNSTABLE_OFFSET_COMMIT: consumers of Kafka Streams and those with "
                "isolation.level=read_committed wait",
                group_ids=groups,
                first_timestamp=found.timestamp,
                last_timestamp=found.timestamp,
            ),
            explanations=(
                Explanation("the transaction hangs: no coordinator ends it"),
                Explanation("its marker is beyond the end of this copy", innocent=True),
            ),
            absent=dict.fromkeys(("segment", "position"), "a commit is placed by its offset"),
        )
