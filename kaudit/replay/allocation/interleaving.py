"""Two writers under one producer id: two gap-free sequence chains woven into one log (the facts behind KA404).

One writer makes one chain. It may break - a gap, a restart at 0, copies of old batches - but it does not come back to a
chain it left and then to the other one again. So chains count as woven when the log changes between them three times
(A B A B) or more, and both the chains go on without a gap at each change.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kaudit.model.sequence import add, follows

MIN_CHANGES = 3
"""A B A may be one writer: a gap filled late, or a restart and one overtaken batch."""

SequencedBatch = tuple[int, int, int, int]
"""offset, first sequence, last sequence, crc of one data batch."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Batches of which each starts where the one before it in the chain ended: offsets and sequences, inclusive.

    `first_offset` and `last_offset` are the base offsets of its first and last batch.
    """

    first_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    batches: int


@dataclass(frozen=True, slots=True)
class Woven:
    """Two chains, the one that starts first in the log first, and how often the log changes between them.

    `copies` are batches that repeat an earlier one, sequences and crc alike; they belong to neither chain.
    `rewritten` are batches of the chains whose sequences an earlier batch of another crc has exactly: a copy whose crc
    the broker changed (LogAppendTime, recompression) looks the same, so many of them weaken the verdict.
    """

    first: Chain
    second: Chain
    changes: int
    copies: int
    rewritten: int


def find_woven(batches: Iterable[SequencedBatch]) -> Woven | None:
    """Find two chains woven into one among the data batches of one (producer id, epoch), in offset order.

    Sequences are 0..2^31-1 and wrap. Returns the first stretch of the log that shows it, None when one writer with
    gaps, restarts, copies or overtaken batches explains everything. Takes one pass; memory grows with the batches.
    """
    for weave in _stretches(batches):
        if weave.second is not None and weave.changes >= MIN_CHANGES:
            return Woven(weave.first, weave.second, weave.changes, weave.copies, weave.rewritten)
    return None


@dataclass(frozen=True, slots=True)
class _Weave:
    """The two chains the last batches made. `on_second` tells which of them the last one extended."""

    first: Chain
    second: Chain | None = None
    on_second: bool = False
    changes: int = 0
    copies: int = 0
    rewritten: int = 0


def _stretches(batches: Iterable[SequencedBatch]) -> Iterator[_Weave]:
    """Yield each weave as it stood when a batch fitted neither chain, and the last one."""
    weave: _Weave | None = None
    seen: dict[tuple[int, int], set[int]] = {}
    for batch in batches:
        _, first, last, crc = batch
        crcs = seen.setdefault((first, last), set())
        if weave is None:
            weave = _Weave(_started(batch))
        elif crc in crcs:
            weave = replace(weave, copies=weave.copies + 1)
        else:
            extended = _extended(weave, batch, rewritten=bool(crcs))
            if extended is None:
                yield weave
                extended = _restarted(weave, batch, rewritten=bool(crcs))
            weave = extended
        crcs.add(crc)
    if weave is not None:
        yield weave


def _started(batch: SequencedBatch) -> Chain:
    offset, first, last, _ = batch
    return Chain(offset, offset, first, last, 1)


def _longer(chain: Chain, batch: SequencedBatch) -> Chain:
    offset, _, last, _ = batch
    return replace(chain, last_offset=offset, last_sequence=last, batches=chain.batches + 1)


def _extended(weave: _Weave, batch: SequencedBatch, *, rewritten: bool) -> _Weave | None:
    """Add the batch to the chain it continues - of both, the one that grew last - or to a second chain."""
    first_sequence = batch[1]
    second = weave.second
    if second is None:
        if follows(weave.first.last_sequence, first_sequence):
            return replace(weave, first=_longer(weave.first, batch))
        return replace(weave, second=_started(batch), on_second=True, changes=1, rewritten=int(rewritten))
    to_first = follows(weave.first.last_sequence, first_sequence)
    to_second = follows(second.last_sequence, first_sequence)
    if not (to_first or to_second):
        return None
    use_second = weave.on_second if to_first and to_second else to_second
    changes = weave.changes + (use_second != weave.on_second)
    weave = replace(weave, on_second=use_second, changes=changes, rewritten=weave.rewritten + rewritten)
    if use_second:
        return _joined(replace(weave, second=_longer(second, batch)))
    return _joined(replace(weave, first=_longer(weave.first, batch)))


def _joined(weave: _Weave) -> _Weave:
    """Make one chain of two that meet: batches that overtook others, all of one writer."""
    assert weave.second is not None
    for lower, upper in ((weave.first, weave.second), (weave.second, weave.first)):
        if add(lower.last_sequence, 1) == upper.first_sequence:
            one = Chain(
                min(lower.first_offset, upper.first_offset),
                max(lower.last_offset, upper.last_offset),
                lower.first_sequence,
                upper.last_sequence,
                lower.batches + upper.batches,
            )
            return _Weave(one, copies=weave.copies)
    return weave


def _restarted(weave: _Weave, batch: SequencedBatch, *, rewritten: bool) -> _Weave:
    """Go on with the chain that grew last and a new one: the other chain ended."""
    kept = weave.second if weave.on_second and weave.second is not None else weave.first
    return _Weave(kept, _started(batch), on_second=True, changes=1, copies=weave.copies, rewritten=int(rewritten))
