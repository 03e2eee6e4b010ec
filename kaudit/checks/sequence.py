"""KA101-KA107: batches whose sequences do not follow the producer's batch before them."""

from collections.abc import Sequence

from kaudit.checks.context import Context
from kaudit.checks.judged import judged_finding
from kaudit.model import sequence
from kaudit.model.continuity import MissingCause, MissingOffsets
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind

_STEP_JOINTS = 3
"""Joints of one pattern that make a client's bug of it."""
_DAY_MS = 86_400_000
_K = ObservationKind
_STEPPED = frozenset({_K.OVERLAP, _K.INSIDE, _K.GAP})


def report_sequences(
    context: Context, facts: Sequence[Observation], missing: Sequence[MissingOffsets]
) -> list[Finding]:
    """Report the sequence facts of one partition."""
    reported = [fact for fact in facts if not fact.explained and (fact.kind is _K.GAP or fact.kind in _REPORTS)]
    patterns, folded = _step_patterns(reported)
    found = [_step_mismatch(context, chain) for chain in patterns]
    for fact in reported:
        if id(fact) in folded:
            continue
        if fact.kind is _K.GAP:
            found.append(_gap(context, fact, missing))
        else:
            found.append(_REPORTS[fact.kind](context, fact))
    return found


def step_mismatches(facts: Sequence[Observation]) -> list[list[Observation]]:
    """Find the chains of facts that KA107 reports: clients that advance their sequence by another rule."""
    patterns, _ = _step_patterns(facts)
    return patterns


def _duplicate(context: Context, fact: Observation) -> Finding:
    batch, twin = _batch(fact), fact.twin
    assert twin is not None
    exact = fact.kind is _K.EXACT_DUPLICATE
    same = "the same bytes" if exact else "the same sequences but other bytes"
    return judged_finding(
        context,
        fact,
        f"{_batch_text(fact)} is a repeat of the batch at offset {twin.base_offset}: {same}",
        "a batch with the epoch and exact sequences of one of the last five is a duplicate: a leader answers it with "
        "that batch's offset and appends nothing (ProducerStateEntry.findDuplicateBatch)",
        severity=Severity.ERROR if exact else Severity.WARNING,
        confidence=Confidence.CERTAIN if exact else Confidence.LIKELY,
        explanations=(*_lost_state(fact, batch), _PUT_THERE)
        if exact
        else (
            Explanation(
                "the broker compressed it again or stamped it with its own time: the CRC differs though it is a re-send"
            ),
            *_lost_state(fact, batch),
            Explanation("two producers write under one id"),
        ),
        extra={"original_offset": twin.base_offset, "original_crc": twin.crc},
    )


def _old_duplicate(context: Context, fact: Observation) -> Finding:
    state = fact.remembered
    assert state is not None
    return judged_finding(
        context,
        fact,
        f"{_batch_text(fact)} ends before the duplicate window, which begins at sequence {_window_start(fact)}",
        "only the last five batches of a producer are known as duplicates; what ends before them is answered with "
        "OUT_OF_ORDER_SEQUENCE_NUMBER (ProducerAppendInfo.checkSequence)",
        explanations=(*_lost_state(fact, _batch(fact)), _PUT_THERE),
        extra={"window_first_sequence": _window_start(fact)},
    )


def _overlap(context: Context, fact: Observation) -> Finding:
    state = fact.remembered
    assert state is not None
    return judged_finding(
        context,
        fact,
        f"{_batch_text(fact)} repeats sequences up to {state.last_sequence}, which came before it, in another batch",
        "a batch is either wholly new or exactly a known one: partial repeats are refused in every version "
        "(ProducerAppendInfo.checkSequence)",
        explanations=(
            Explanation("a client split or regrouped a batch before it sent it again"),
            Explanation("two producers write under one id"),
            *_lost_state(fact, _batch(fact)),
        ),
    )


def _gap(context: Context, fact: Observation, missing: Sequence[MissingOffsets]) -> Finding:
    state, batch = fact.remembered, _batch(fact)
    assert state is not None
    assert state.last is not None
    expected = sequence.add(state.last_sequence, 1)
    last_missing = sequence.subtract(batch.first_sequence, 1)
    moved = batch.leader_epoch != state.last.leader_epoch
    # offsets lost to damage are reported with it, and may be another producer's
    between = [
        gap
        for gap in missing
        if gap.cause is not MissingCause.DAMAGE
        and gap.first_offset > state.last.last_offset
        and gap.last_offset < batch.base_offset
    ]
    sequences = _sequences(expected, last_missing)
    explanations = [
        Explanation("records were lost before they reached this replica, and the leader's checks did not see it"),
        Explanation("data was put into the log past the broker's checks"),
    ]
    if moved:
        explanations.insert(
            0,
            Explanation(
                "the leader changed: records acknowledged by the old leader alone were lost (acks=1, unclean election)",
                speaks_for=(f"leader epoch {state.last.leader_epoch} before the gap, {batch.leader_epoch} after it",),
            ),
        )
    if not context.compacted:
        explanations.append(
            Explanation(
                "the topic was once compacted and there is no checkpoint to show it (then pass --compacted)",
                innocent=True,
            )
        )
    return judged_finding(
        context,
        fact,
        f"{sequences} of producer {fact.producer_id} ({fact.missing_sequences} records) missing before offset {batch.base_offset}",
        "within an epoch the next sequence follows the last; a leader refuses a gap with OUT_OF_ORDER_SEQUENCE_NUMBER "
        "(ProducerAppendInfo.inSequence)",
        severity=Severity.WARNING if moved else Severity.ERROR,
        confidence=Confidence.POSSIBLE if moved else Confidence.CERTAIN,
        offsets=(between[0].first_offset, between[-1].last_offset) if between else None,
        explanations=explanations,
        extra={
            "expected_sequence": expected,
            "missing_sequences": fact.missing_sequences,
            "missing_offsets": fact.missing_offsets,
        },
    )


def _restart(context: Context, fact: Observation) -> Finding:
    state = fact.remembered
    assert state is not None
    old = context.versions.any(lambda profile: profile.forgets_on_log_start_advance)
    innocent = Explanation(
        "a broker before 2.4 forgot the producer when its records were deleted; a client before 2.5 then starts again at 0 "
        "with the same id and epoch (UNKNOWN_PRODUCER_ID, KAFKA-7190)",
        innocent=True,
    )
    explanations = [
        Explanation("the broker had forgotten the producer: expiry, or a restart without its snapshot"),
        Explanation("two producers write under one id"),
    ]
    if old:
        explanations.insert(0, innocent)
    return judged_finding(
        context,
        fact,
        f"{_batch_text(fact)} starts again at sequence 0 after {state.last_sequence}, in the same epoch and with other records",
        "sequence 0 in an epoch that has data is out of order unless the broker has forgotten the producer",
        severity=Severity.NOTE if old else Severity.WARNING,
        confidence=Confidence.LIKELY,
        explanations=explanations,
    )


def _unknown_start(context: Context, fact: Observation) -> Finding:
    state, batch = fact.remembered, _batch(fact)
    accepts = context.versions.any(lambda profile: profile.accepts_unknown_nonzero)
    if state is not None:
        # a marker keeps the producer known: only its expiry makes the broker take any sequence again
        limit = min(profile.expiration_default_ms for profile in context.versions.profiles())
        accepts = accepts and batch.max_timestamp - state.last_timestamp >= limit
    after = " after nothing but an end marker" if state is not None else ""
    return judged_finding(
        context,
        fact,
        f"{_batch_text(fact)} is the first of this producer{after}: sequences before {batch.first_sequence} are nowhere in the log",
        "an unknown producer starts at sequence 0; from 2.5 on a leader takes any first sequence (KIP-360), before it "
        "answers UNKNOWN_PRODUCER_ID",
        severity=Severity.NOTE if accepts else Severity.WARNING,
        confidence=Confidence.POSSIBLE,
        explanations=(
            Explanation("earlier records of this producer were deleted, and no log start offset tells", innocent=True),
            Explanation(
                "the broker forgot an idle producer and took its next batch without a check (2.5 and later)",
                innocent=True,
            ),
            Explanation("records before it were lost"),
        ),
        extra={"missing_sequences": fact.missing_sequences, "missing_offsets": fact.missing_offsets},
    )


def _step_mismatch(context: Context, chain: Sequence[Observation]) -> Finding:
    first = chain[0]
    steps = [_step(fact) for fact in chain]
    excess = {step - records for step, records in steps}
    by_request = len(excess) > 1 or {step for step, _ in steps} == {1}
    pattern = (
        f"by {steps[0][0]} a batch, whatever the batch holds"
        if by_request
        else f"by {abs(steps[0][0] - steps[0][1])} {'more' if steps[0][0] > steps[0][1] else 'less'} than the batch holds"
    )
    return judged_finding(
        context,
        first,
        f"producer {first.producer_id} raises its sequence {pattern}, {len(chain)} times in a row",
        "the next base sequence is the last one plus the number of records (DefaultRecordBatch.incrementSequence)",
        code="KA107",
        explanations=(
            Explanation(
                "the client counts requests, or starts from a wrong last sequence: a bug of the client library"
            ),
        ),
        extra={
            "class": first.kind.label,
            "count": len(chain),
            "joints": [
                {"offset": fact.offset, "step": step, "records": records}
                for fact, (step, records) in zip(chain[:10], steps, strict=False)
            ],
            "first_offset": chain[0].offset,
            "last_offset": chain[-1].last_offset,
        },
    )


def _step_patterns(facts: Sequence[Observation]) -> tuple[list[list[Observation]], set[int]]:
    """Find chains of three or more neighbouring bad joints of a producer that follow one pattern."""
    chains: dict[tuple[int, int], list[_Chain]] = {}
    for fact in facts:
        if fact.explained or fact.kind not in _STEPPED or fact.remembered is None or fact.remembered.last is None:
            continue
        known = chains.setdefault((fact.producer_id, fact.producer_epoch), [])
        if not known or not known[-1].takes(fact):
            known.append(_Chain(fact))
    patterns = [chain.facts for known in chains.values() for chain in known if len(chain.facts) >= _STEP_JOINTS]
    return patterns, {id(fact) for chain in patterns for fact in chain}


class _Chain:
    """Neighbouring joints: all move the base sequence equally far, or equally far beyond the batch before."""

    def __init__(self, fact: Observation) -> None:
        self.facts = [fact]
        self._moved, records = _step(fact)
        self._beyond = self._moved - records
        self._equally_far = self._equally_beyond = True

    def takes(self, fact: Observation) -> bool:
        """Add a joint if it goes on with the pattern."""
        assert fact.remembered is not None
        assert fact.remembered.last is not None
        if fact.remembered.last.base_offset != self.facts[-1].offset:
            return False
        moved, records = _step(fact)
        equally_far = self._equally_far and moved == self._moved
        equally_beyond = self._equally_beyond and moved - records == self._beyond
        if not equally_far and not equally_beyond:
            return False
        self.facts.append(fact)
        self._equally_far, self._equally_beyond = equally_far, equally_beyond
        return True


def _step(fact: Observation) -> tuple[int, int]:
    """Return (how far the base sequence moved, how many records the batch before held)."""
    assert fact.remembered is not None
    assert fact.remembered.last is not None
    before = fact.remembered.last
    moved = sequence.distance(before.first_sequence, _batch(fact).first_sequence)
    return moved, sequence.distance(before.first_sequence, before.last_sequence) + 1


_PUT_THERE = Explanation("data was put into the log past the broker's checks (a restored or copied segment)")


def _lost_state(fact: Observation, batch: BoundaryBatch) -> list[Explanation]:
    """Ways a broker comes to append what it should know, ranked by what speaks for each in this log."""
    state = fact.remembered
    last = state.last if state is not None else None
    found: list[Explanation] = []
    if last is not None and batch.leader_epoch != last.leader_epoch:
        found.append(
            Explanation(
                "the leader changed and the new one had forgotten the batch; the producer sent it again",
                speaks_for=(f"leader epoch {last.leader_epoch} before it, {batch.leader_epoch} at it",),
            )
        )
    if state is not None and batch.max_timestamp - state.last_timestamp >= _DAY_MS:
        found.append(
            Explanation(
                "the broker forgot the idle producer (producer.id.expiration.ms) and took the retry as new",
                speaks_for=(
                    f"{(batch.max_timestamp - state.last_timestamp) // 3_600_000} hours without a batch of it",
                ),
            )
        )
    found.append(
        Explanation("the broker lost the producer's state: a restart without its snapshot, DeleteRecords, or expiry")
    )
    return found


def _batch(fact: Observation) -> BoundaryBatch:
    assert fact.batch is not None
    return fact.batch


def _batch_text(fact: Observation) -> str:
    batch = _batch(fact)
    return f"the batch at offset {batch.base_offset} ({_sequences(batch.first_sequence, batch.last_sequence)})"


def _sequences(first: int, last: int) -> str:
    return f"sequence {first}" if first == last else f"sequences {first}..{last}"


def _window_start(fact: Observation) -> int | None:
    state = fact.remembered
    return state.window[0].first_sequence if state is not None and state.window else None


_REPORTS = {
    _K.EXACT_DUPLICATE: _duplicate,
    _K.SAME_SEQUENCES: _duplicate,
    _K.BEHIND_WINDOW: _old_duplicate,
    _K.OVERLAP: _overlap,
    _K.INSIDE: _overlap,
    _K.SEQUENCE_RESTART: _restart,
    _K.UNKNOWN_START: _unknown_start,
    _K.AFTER_MARKER: _unknown_start,
}
