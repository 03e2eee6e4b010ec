"""Two producers that write with one id, as opposed to one producer with gaps and repeats."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kaudit.checks.check import BLOCKS_NOT_SCANNED, Evidence, Withdrawal, check, none_because, observers
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import SHARED_PRODUCER_ID
from kaudit.checks.sequences.duplicates import duplicate_batch, old_duplicate, overlapping_batch
from kaudit.checks.sequences.first_sequences import sequence_restart
from kaudit.checks.sequences.sequence_gap import sequence_gap
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.producer_patterns import Chain, SharedProducerId
from kaudit.model.severity import Confidence, Severity

_REPLACED = observers(duplicate_batch, old_duplicate, overlapping_batch, sequence_gap, sequence_restart)


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False, rename={"copied_batches": "copies"}):
    rule: str
    chains: Sequence[Chain]
    changes: int
    copied_batches: int
    rewritten: int
    replaces: Mapping[str, int]


@check(
    "KA404",
    severity=Severity.ERROR,
    summary="two writers interleaved under one producer id",
    needs=(SharedProducerId,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(SHARED_PRODUCER_ID,),
    caused_by=none_because("two clients with one id look like one client in the logs"),
    simulated=BLOCKS_NOT_SCANNED,
)
def producer_id_shared(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such id once, in place of the duplicates, overlaps, gaps and restarts two writers make of it."""
    for shared in evidence.of(SharedProducerId):
        yield _shared(context, shared)


def _shared(context: Context, shared: SharedProducerId) -> Finding:
    writers, producer_id = shared.writers, shared.producer_id
    first, second = writers.first, writers.second
    at = next((found for found in shared.observations if found.offset == second.first_offset), shared.observations[0])
    replaced = Counter(_REPLACED[observation.kind].code for observation in shared.observations)
    return producer_id_shared.finding(
        context,
        f"two producers write with producer id {producer_id}, epoch {shared.producer_epoch}: {_chain_text(first)} and "
        f"{_chain_text(second)} alternate {writers.changes} times",
        confidence=Confidence.LIKELY if writers.rewritten else Confidence.CERTAIN,
        segment=at.segment,
        position=at.position,
        offset=second.first_offset,
        last_offset=max(first.last_offset, second.last_offset),
        producer_id=producer_id,
        producer_epoch=shared.producer_epoch,
        evidence=_Evidence(
            rule="one producer makes one chain of sequences: it may break, but does not alternate between two",
            chains=[first, second],
            changes=writers.changes,
            copied_batches=writers.copies,
            rewritten=writers.rewritten,
            replaces=dict(sorted(replaced.items())),
        ),
        explanations=_explanations(shared.grants),
        following=(context.timeline_command(producer_id),),
    )


def _explanations(grants: int) -> Sequence[Explanation]:
    return (
        Explanation(
            "the id was granted twice: the migration to KRaft (KAFKA-15552), a restored or edited znode",
            speaks_for=(f"the history grants it {grants} times (see block-overlap)",) if grants > 1 else (),
            speaks_against=("the history grants it once",) if grants == 1 else (),
        ),
        Explanation("two processes were given one id by hand, or one writes with a copied state"),
    )


def _chain_text(chain: Chain) -> str:
    return f"sequences {chain.first_sequence}..{chain.last_sequence} from offset {chain.first_offset}"
