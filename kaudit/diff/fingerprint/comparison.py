"""Comparison of two logs by fingerprints, and of a log with the digests of a report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kaudit.diff.fingerprint.reading import Rows
from kaudit.model.digests import LEAF_OFFSETS, MOST_RANGES, PartitionDigest, RangeDigests
from kaudit.model.fingerprint import (
    MOST_NARROWED,
    FingerprintComparison,
    HeldBatch,
    ListedBatches,
    PartitionFingerprint,
    PartitionVerification,
    VerificationOutcome,
)
from kaudit.model.replicas import OffsetRange, Relation
from kaudit.reading.digest_tree import widened


class Block(NamedTuple):
    """Offsets `first` to `end` (exclusive), the `width` of the digests compared, and whether both hold the same (None: unknown)."""

    first: int
    end: int
    width: int
    same: bool | None


class Bounds(NamedTuple):
    """Offsets `start` to `end` (exclusive)."""

    start: int
    end: int


def compare(names: tuple[str, str], ours: PartitionFingerprint, theirs: PartitionFingerprint) -> FingerprintComparison:
    """Compare one partition on two sites; `names` are the sites'."""
    logs = [Bounds(side.log_start_offset, side.log_end_offset) for side in (ours, theirs)]
    found = blocks(ours, theirs)
    differing = [OffsetRange(block.first, block.end - 1) for block in joined(found) if block.same is False]
    common = Bounds(max(log.start for log in logs), min(log.end for log in logs))
    known = [block for block in joined(found) if block.same is not None]
    unknown = list(without(common, known))
    compacted = ours.compacted or theirs.compacted
    identical = common.start
    for block in known:
        if block.same and block.first <= identical < block.end:
            identical = min(block.end, common.end)
    if common.start >= common.end or not known:
        relation = Relation.IDENTICAL if logs[0] == logs[1] and logs[0].start == logs[0].end else None
    elif differing and not compacted:
        relation = Relation.DIVERGED
    elif differing:
        relation = None
    else:
        relation = Relation.IDENTICAL if logs[0].end == logs[1].end else Relation.BEHIND
    return FingerprintComparison(
        topic=ours.topic,
        partition=ours.partition,
        relation=relation,
        start_offsets={name: log.start for name, log in zip(names, logs, strict=True)},
        end_offsets={name: log.end for name, log in zip(names, logs, strict=True)},
        identical_up_to=identical if identical > common.start else None,
        differing=differing,
        not_compared=unknown,
        first_difference=_first_difference(names, ours, theirs, differing),
        compacted=compacted,
        damaged_on=[name for name, side in zip(names, (ours, theirs), strict=True) if side.damaged],
    )


def narrowed(ours: PartitionFingerprint, theirs: PartitionFingerprint) -> Rows:
    """Return the digests to make next of our log: of all that both have, narrower where it differs or is unknown."""
    compared = blocks(ours, theirs)
    ranges: list[tuple[int, int, int]] = []
    listed: list[int] = []
    for block in [block for block in compared if block.same is not True][:MOST_NARROWED]:
        if block.width > LEAF_OFFSETS:
            width = max(block.width // MOST_RANGES, LEAF_OFFSETS)
            ranges.append((block.first // block.width * block.width, width, block.width // width))
        else:
            listed.append(block.first // LEAF_OFFSETS * LEAF_OFFSETS)
    return Rows(
        ranges=list(dict.fromkeys(ranges)),
        listed=list(dict.fromkeys(listed)),
        start_offset=theirs.log_start_offset,
        end_offset=theirs.log_end_offset,
    )


def blocks(ours: PartitionFingerprint, theirs: PartitionFingerprint) -> list[Block]:
    """Return the comparison of each range of offsets, in offset order; the narrowest digests decide."""
    found = [block for one in ours.ranges for other in theirs.ranges for block in _of_rows(ours, one, theirs, other)]
    found += [
        block
        for one in ours.listed
        for other in theirs.listed
        if one.first_offset == other.first_offset
        for block in _of_lists(ours, one, theirs, other)
    ]
    edges = sorted({edge for block in found for edge in (block.first, block.end)})
    narrowest: dict[int, Block] = {}
    places = {edge: at for at, edge in enumerate(edges)}
    for block in sorted(found, key=lambda block: (-block.width, block.same is not None, block.same is False)):
        for at in range(places[block.first], places[block.end]):
            narrowest[at] = block
    return [Block(edges[at], edges[at + 1], narrowest[at].width, narrowest[at].same) for at in sorted(narrowest)]


def _of_rows(
    ours: PartitionFingerprint, one: RangeDigests, theirs: PartitionFingerprint, other: RangeDigests
) -> Iterator[Block]:
    width = max(one.width, other.width)
    first = -(-max(one.first_offset, other.first_offset) // width) * width
    for at in range(first, min(one.end_offset, other.end_offset) - width + 1, width):
        held, others = (_held(side, at, at + width) for side in (ours, theirs))
        both = Bounds(max(held.start, others.start), min(held.end, others.end))
        if both.start < both.end:
            same = widened(one, at, width) == widened(other, at, width) if held == others else None
            yield Block(*both, width, same)


def _of_lists(
    ours: PartitionFingerprint, one: ListedBatches, theirs: PartitionFingerprint, other: ListedBatches
) -> Iterator[Block]:
    """Compare two lists of batches offset by offset: a batch that only one has is a difference."""
    # the last batch that begins in the range may end after it
    end = max([one.end_offset, *(batch.last_offset + 1 for batch in [*one.batches, *other.batches])])
    common = Bounds(
        max(one.first_offset, ours.start_offset, theirs.start_offset), min(end, ours.end_offset, theirs.end_offset)
    )
    position = common.start
    for batch in sorted({*one.batches} ^ {*other.batches}, key=lambda batch: batch.base_offset):
        first, end = max(batch.base_offset, position), min(batch.last_offset + 1, common.end)
        if first >= end:
            continue
        if position < first:
            yield Block(position, first, 1, same=True)
        yield Block(first, end, 1, same=False)
        position = end
    if position < common.end:
        yield Block(position, common.end, 1, same=True)


def _held(side: PartitionFingerprint, first: int, end: int) -> Bounds:
    """Return the part of offsets `first` to `end` that a fingerprint covers."""
    start = max(first, side.start_offset)
    return Bounds(start, max(start, min(end, side.end_offset)))


def joined(found: Sequence[Block]) -> list[Block]:
    """Merge neighbouring blocks with the same result."""
    together: list[Block] = []
    for block in found:
        if together and together[-1].end == block.first and together[-1].same is block.same:
            together[-1] = Block(together[-1].first, block.end, max(together[-1].width, block.width), block.same)
        else:
            together.append(block)
    return together


def without(within: Bounds, known: Sequence[Block]) -> Iterator[OffsetRange]:
    """Yield the parts of a range that are in none of the `known` blocks."""
    position = within.start
    for block in known:
        if position < min(block.first, within.end):
            yield OffsetRange(position, min(block.first, within.end) - 1)
        position = max(position, block.end)
    if position < within.end:
        yield OffsetRange(position, within.end - 1)


def _first_difference(
    names: tuple[str, str],
    ours: PartitionFingerprint,
    theirs: PartitionFingerprint,
    differing: Sequence[OffsetRange],
) -> Mapping[str, HeldBatch | None] | None:
    """Return the batches at the first offset that differs, where both sites list them."""
    if not differing:
        return None
    first = differing[0].first
    lists = [
        next((row for row in side.listed if row.first_offset <= first < row.end_offset), None)
        for side in (ours, theirs)
    ]
    if None in lists:
        return None
    return {
        name: next((batch for batch in row.batches if batch.base_offset <= first <= batch.last_offset), None)
        for name, row in zip(names, lists, strict=True)
        if row is not None
    }


def rows_of_audited(audited: PartitionDigest) -> Rows:
    """Return the digests of a log that can be compared with a report's."""
    ranges = audited.ranges
    return Rows(
        most_ranges=0,
        ranges=[] if ranges is None else [(ranges.first_offset, ranges.width, len(ranges.digests))],
        start_offset=audited.start_offset,
        end_offset=audited.end_offset,
        cleaned=True,
    )


def verify(
    audited: PartitionDigest, log: PartitionFingerprint, cleaned_below: int, *, read_whole: bool = True
) -> PartitionVerification:
    """Compare a log with the offsets that a report audited; below `cleaned_below` the log cleaner may have rewritten it.

    Differences do not count where the log could not be `read_whole`.
    """
    start, end = audited.start_offset, audited.end_offset
    begins, ends = min(max(start, log.log_start_offset), end), max(min(end, log.log_end_offset), start)
    found = joined(blocks(log, _as_fingerprint(audited)))
    differing = [block for block in found if block.same is False and read_whole]
    changed = [block for block in differing if block.first >= cleaned_below]
    lost = OffsetRange(ends, end - 1) if ends < end and read_whole else None
    cleaned = [block for block in differing if block.first < cleaned_below]
    unchanged = [block for block in found if block.same]
    if changed or lost is not None:
        outcome = VerificationOutcome.DIFFERS
    elif cleaned:
        outcome = VerificationOutcome.CLEANED
    else:
        outcome = (
            VerificationOutcome.UNCHANGED
            if (unchanged or start == end) and read_whole
            else VerificationOutcome.UNPROVEN
        )
    return PartitionVerification(
        topic=audited.topic,
        partition=audited.partition,
        replica=audited.replica,
        verdict=outcome,
        start_offset=start,
        end_offset=end,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        unchanged=_ranges(unchanged),
        differing=_ranges(changed),
        cleaned=_ranges(cleaned),
        not_compared=list(without(Bounds(begins, ends), sorted([*differing, *unchanged]))),
        removed=OffsetRange(start, begins - 1) if start < begins else None,
        lost=lost,
        damaged=log.damaged,
    )


def _as_fingerprint(audited: PartitionDigest) -> PartitionFingerprint:
    start, end = audited.start_offset, audited.end_offset
    return PartitionFingerprint(
        topic=audited.topic,
        partition=audited.partition,
        log_start_offset=start,
        log_end_offset=end,
        start_offset=start,
        end_offset=end,
        batches=audited.batches,
        digest=audited.digest,
        ranges=[] if audited.ranges is None else [audited.ranges],
    )


def _ranges(found: Iterable[Block]) -> list[OffsetRange]:
    return [OffsetRange(block.first, block.end - 1) for block in found]
