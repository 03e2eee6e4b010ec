"""A partition's log held against what a report judged of it."""

from collections.abc import Iterable

from kaudit.diff.fingerprint.comparison import Block, Bounds, blocks, joined, without
from kaudit.diff.fingerprint.reading import Rows
from kaudit.model.digests import PartitionDigest
from kaudit.model.fingerprint import PartitionFingerprint, PartitionVerification, VerificationOutcome
from kaudit.model.replicas import OffsetRange


def rows_of_judged(judged: PartitionDigest) -> Rows:
    """Return the digests to make of a log that can be compared with a report's."""
    ranges = judged.ranges
    return Rows(
        most_ranges=0,
        ranges=[] if ranges is None else [(ranges.first_offset, ranges.width, len(ranges.digests))],
        start_offset=judged.start_offset,
        end_offset=judged.end_offset,
        cleaned=True,
    )


def verify(
    judged: PartitionDigest, log: PartitionFingerprint, cleaned_below: int, *, read_whole: bool = True
) -> PartitionVerification:
    """Say what of the judged offsets a log holds now; below `cleaned_below` the log cleaner may have rewritten it.

    What differs is not compared where the log could not be `read_whole`.
    """
    start, end = judged.start_offset, judged.end_offset
    begins, ends = min(max(start, log.log_start_offset), end), max(min(end, log.log_end_offset), start)
    found = joined(blocks(log, _as_fingerprint(judged)))
    differing = [block for block in found if block.same is False and read_whole]
    changed = [block for block in differing if block.first >= cleaned_below]
    lost = OffsetRange(ends, end - 1) if ends < end and read_whole else None
    cleaned = [block for block in differing if block.first < cleaned_below]
    unchanged = [block for block in found if block.same]
    if changed or lost is not None:
        verdict = VerificationOutcome.DIFFERS
    elif cleaned:
        verdict = VerificationOutcome.CLEANED
    else:
        verdict = (
            VerificationOutcome.UNCHANGED
            if (unchanged or start == end) and read_whole
            else VerificationOutcome.UNPROVEN
        )
    return PartitionVerification(
        topic=judged.topic,
        partition=judged.partition,
        replica=judged.replica,
        verdict=verdict,
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


def _as_fingerprint(judged: PartitionDigest) -> PartitionFingerprint:
    start, end = judged.start_offset, judged.end_offset
    return PartitionFingerprint(
        topic=judged.topic,
        partition=judged.partition,
        log_start_offset=start,
        log_end_offset=end,
        start_offset=start,
        end_offset=end,
        batches=judged.batches,
        digest=judged.digest,
        ranges=[] if judged.ranges is None else [judged.ranges],
    )


def _ranges(found: Iterable[Block]) -> list[OffsetRange]:
    return [OffsetRange(block.first, block.end - 1) for block in found]
