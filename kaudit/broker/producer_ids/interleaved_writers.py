"""Two writers under one producer id: two gap-free sequence chains interleaved in one log.

One writer makes one chain. It may break - a gap, a restart at 0, copies of old batches - but it does not come back to a
chain it left and then to the other one again. So chains count as interleaved when the log changes between them three times
(A B A B) or more, and both the chains go on without a gap at each change.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kaudit.broker.producer_state.rules import in_sequence
from kaudit.model.producer_patterns import Chain, InterleavedWriters

MIN_CHANGES = 3
"""A B A may be one writer: a gap filled late, or a restart and one overtaken batch."""

_SEQUENCE_BITS = 31
_CRC_BITS = 32

SequencedBatch = tuple[int, int, int, int]
"""offset, first sequence, last sequence, crc of one data batch."""


def find_interleaved_writers(batches: Iterable[SequencedBatch]) -> InterleavedWriters | None:
    """Find two interleaved chains among the data batches of one (producer id, epoch), in offset order.

    Sequences are 0..2^31-1 and wrap. Returns the first part of the log that shows it, None when one writer with
    gaps, restarts, copies or overtaken batches explains everything. Takes one pass; memory grows with the batches.
    """
    for pair in _chain_pairs(batches):
        if pair.second is not None and pair.changes >= MIN_CHANGES:
            return InterleavedWriters(pair.first.seen(), pair.second.seen(), pair.changes, pair.copies, pair.rewritten)
    return None


class _Growing(Struct):
    """A chain while batches are added to it."""

    first_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    batches: int = 1

    def add(self, batch: SequencedBatch) -> None:
        self.last_offset, _, self.last_sequence, _ = batch
        self.batches += 1

    def seen(self) -> Chain:
        return Chain(self.first_offset, self.last_offset, self.first_sequence, self.last_sequence, self.batches)


def _started(batch: SequencedBatch) -> _Growing:
    offset, first, last, _ = batch
    return _Growing(offset, offset, first, last)


class _ChainPair(Struct):
    """The two chains the last batches made. `on_second`: the last batch extended the second one."""

    first: _Growing
    second: _Growing | None = None
    on_second: bool = False
    changes: int = 0
    copies: int = 0
    rewritten: int = 0

    def begin_second(self, batch: SequencedBatch) -> None:
        """Let the batch start a second chain."""
        self.second = _started(batch)
        self.on_second = True
        self.changes = 1

    def extend(self, batch: SequencedBatch) -> bool:
        """Add the batch to the chain it continues - of both, the one that grew last - or to a second one, if it can."""
        second = self.second
        to_first = bool(in_sequence(self.first.last_sequence, batch[1]))
        if second is None:
            if to_first:
                self.first.add(batch)
            else:
                self.begin_second(batch)
            return True
        to_second = bool(in_sequence(second.last_sequence, batch[1]))
        if not (to_first or to_second):
            return False
        use_second = self.on_second if to_first and to_second else to_second
        self.changes += use_second != self.on_second
        self.on_second = use_second
        (second if use_second else self.first).add(batch)
        self._join(self.first, second)
        self._join(second, self.first)
        return True

    def _join(self, lower: _Growing, upper: _Growing) -> None:
        """Make one chain of two that meet: batches that overtook others, all of one writer."""
        if self.second is None or not in_sequence(lower.last_sequence, upper.first_sequence):
            return
        self.first = _Growing(
            min(lower.first_offset, upper.first_offset),
            max(lower.last_offset, upper.last_offset),
            lower.first_sequence,
            upper.last_sequence,
            lower.batches + upper.batches,
        )
        self.second = None
        self.on_second = False
        self.changes = self.rewritten = 0


def _chain_pairs(batches: Iterable[SequencedBatch]) -> Iterator[_ChainPair]:
    """Yield each pair of chains as it stood when a batch fitted neither chain, and the last one."""
    pair: _ChainPair | None = None
    spans: set[int] = set()
    contents: set[int] = set()
    for batch in batches:
        _, first, last, crc = batch
        span = first << _SEQUENCE_BITS | last
        content = span << _CRC_BITS | crc
        if pair is None:
            pair = _ChainPair(_started(batch))
        elif content in contents:
            pair.copies += 1
        else:
            if not pair.extend(batch):
                yield pair
                # The chain that grew last may go on, the other one ended.
                kept = pair.second if pair.on_second and pair.second else pair.first
                pair = _ChainPair(kept, copies=pair.copies)
                pair.begin_second(batch)
            pair.rewritten += span in spans
        spans.add(span)
        contents.add(content)
    if pair is not None:
        yield pair
