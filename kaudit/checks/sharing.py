"""KA404: two producers that write under one id, told from one producer with gaps and repeats."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kaudit.broker.producer_ids.interleaved_writers import MIN_CHANGES
from kaudit.model.sequence_patterns import Chain, InterleavedWriters
from kaudit.checks.catalogue import OBSERVERS
from kaudit.checks.context import Context
from kaudit.checks.sequence import step_mismatches
from kaudit.model.finding import Confidence, Explanation, Finding
from kaudit.model.observation import Observation, ObservationKind

if TYPE_CHECKING:  # few logs come with a history of blocks
    from kaudit.broker.producer_ids.block_history import BlockEntry

_ANOMALIES = frozenset(
    {
        ObservationKind.EXACT_DUPLICATE,
        ObservationKind.SAME_SEQUENCES,
        ObservationKind.BEHIND_WINDOW,
        ObservationKind.OVERLAP,
        ObservationKind.INSIDE,
        ObservationKind.GAP,
        ObservationKind.SEQUENCE_RESTART,
    }
)
MAX_SUSPECTS = 200
"""Producer ids of one partition looked at again."""


class InterleavedWritersFinding(Struct, frozen=True):
    """A (producer id, epoch) whose batches are two chains, and the facts the weave makes of it."""

    producer_id: int
    producer_epoch: int
    woven: InterleavedWriters
    facts: Sequence[Observation]
    log_append_time: bool


def suspects(facts: Sequence[Observation]) -> Mapping[tuple[int, int], int]:
    """Choose the (producer id, epoch)s to look at again: with as many anomalies as a weave has changes.

    The value is the offset to look from. Clients that count wrongly look woven too: they have their own check.
    """
    miscounted = {fact.producer_id for chain in step_mismatches(facts) for fact in chain}
    counted: dict[tuple[int, int], list[Observation]] = {}
    for fact in facts:
        if (
            not fact.explained
            and fact.kind in _ANOMALIES
            and fact.batch is not None
            and fact.producer_id not in miscounted
        ):
            counted.setdefault((fact.producer_id, fact.producer_epoch), []).append(fact)
    chosen = {key: _start(own[0]) for key, own in counted.items() if len(own) >= MIN_CHANGES}
    return dict(list(chosen.items())[:MAX_SUSPECTS])


def _start(fact: Observation) -> int:
    state = fact.remembered
    if state is None:
        return fact.offset
    # the window's oldest batch is the first chain's, before the second one came
    return state.window[0].base_offset if state.window else fact.offset


def believable(sharing: InterleavedWritersFinding) -> bool:
    """Tell whether two writers explain it better than copies whose CRC the broker changed (LogAppendTime)."""
    if not sharing.log_append_time:
        return True
    return 2 * sharing.woven.rewritten < sharing.woven.second.batches


def without_woven(facts: Sequence[Observation], found: Sequence[InterleavedWritersFinding]) -> list[Observation]:
    """Leave out the facts that one KA404 tells better."""
    told = {id(fact) for sharing in found for fact in sharing.facts}
    return [fact for fact in facts if id(fact) not in told]


def facts_of_weave(
    facts: Sequence[Observation], producer_id: int, epoch: int, woven: InterleavedWriters
) -> list[Observation]:
    """Choose the facts that lie within the weave."""
    first = min(woven.first.first_offset, woven.second.first_offset)
    last = max(woven.first.last_offset, woven.second.last_offset)
    return [
        fact
        for fact in facts
        if (fact.producer_id, fact.producer_epoch) == (producer_id, epoch)
        and not fact.explained
        and fact.kind in _ANOMALIES
        and first <= fact.offset <= last
    ]


def report_sharing(
    context: Context, found: Sequence[InterleavedWritersFinding], blocks: "Mapping[int, Sequence[BlockEntry]]"
) -> list[Finding]:
    """Report each; `blocks` are the grants that hold the id, where a history tells."""
    return [_report(context, sharing, blocks.get(sharing.producer_id, ())) for sharing in found]


def _report(context: Context, sharing: InterleavedWritersFinding, blocks: "Sequence[BlockEntry]") -> Finding:
    woven, producer_id = sharing.woven, sharing.producer_id
    first, second = woven.first, woven.second
    anchor = next((fact for fact in sharing.facts if fact.offset == second.first_offset), None)
    place = anchor if anchor is not None else sharing.facts[0]
    twice = len(blocks) > 1
    causes = [
        Explanation(
            "the id was granted twice: the migration to KRaft (KAFKA-15552), a restored or edited znode",
            speaks_for=(f"the history grants it {len(blocks)} times (KA402)",) if twice else (),
            speaks_against=("the history grants it once",) if len(blocks) == 1 else (),
        ),
        Explanation("two processes were given one id by hand, or one writes with a copied state"),
    ]
    return context.finding(
        "KA404",
        f"two writers under producer id {producer_id} epoch {sharing.producer_epoch}: {_chain_text(first)} and "
        f"{_chain_text(second)} alternate {woven.changes} times",
        confidence=Confidence.LIKELY if woven.rewritten else Confidence.CERTAIN,
        segment=place.segment,
        position=place.position,
        offset=second.first_offset,
        last_offset=max(first.last_offset, second.last_offset),
        producer_id=producer_id,
        producer_epoch=sharing.producer_epoch,
        evidence={
            "rule": "one producer makes one chain of sequences: it may break, but does not go back and forth between two",
            "chains": [_chain_evidence(first), _chain_evidence(second)],
            "changes": woven.changes,
            "copies": woven.copies,
            "rewritten": woven.rewritten,
            "replaces": _counts(sharing.facts),
        },
        explanations=causes,
        following=(context.timeline_command(producer_id),),
    )


def _chain_text(chain: Chain) -> str:
    return f"sequences {chain.first_sequence}..{chain.last_sequence} from offset {chain.first_offset}"


def _chain_evidence(chain: Chain) -> dict[str, object]:
    return {
        "first_offset": chain.first_offset,
        "last_offset": chain.last_offset,
        "first_sequence": chain.first_sequence,
        "last_sequence": chain.last_sequence,
        "batches": chain.batches,
    }


def _counts(facts: Sequence[Observation]) -> dict[str, int]:
    codes = [OBSERVERS[fact.kind] for fact in facts]
    return {code: codes.count(code) for code in sorted(set(codes))}
