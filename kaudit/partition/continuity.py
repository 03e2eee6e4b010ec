"""Whether a partition's offsets and leader epochs go on without a break, and what damage explains where they do not."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from kaudit.model.damage import DamageKind, LeaderEpochRegression, LogDamage, MissingCause, MissingOffsets, PlacedDamage
from kaudit.model.limits import DAMAGES
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.rows import LEADER_EPOCH_START, Rows
from kaudit.source.layout import SegmentFile

MAX_LISTED = DAMAGES
"""Gaps and damages kept of one partition; more are only counted."""


class Continuity(Struct):
    """Follows a partition's chunks in offset order."""

    segments: Sequence[SegmentFile]
    log_start_offset: int | None
    missing: list[MissingOffsets] = field(default_factory=list)
    damages: list[PlacedDamage] = field(default_factory=list)
    unlisted: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    offsets_present: int = 0
    marker_offsets: int = 0
    cleaned_offsets: int = 0
    cleaned_to: int = -1
    """These four as in ChunkRows, of all chunks so far."""
    unlisted_missing: dict[int, int] = field(default_factory=dict)
    """How many offsets are missing in gaps that are only counted, by the segment that the gap lies in or before."""
    leader_epoch_changed: bool = False
    """Whether the chunks so far have more than one leader epoch."""
    _skipped: bool = False
    _steps: list[Rows] = field(default_factory=list)
    pending: list[tuple[int, LogDamage]] = field(default_factory=list)
    """Damage that nothing valid follows yet, each with its segment."""

    def accepts(self, chunk: ChunkRows) -> bool:
        """Return whether this chunk's offsets ascend and go on from the chunks before it."""
        if not chunk.ordered:
            return False
        if chunk.first_offset is None or chunk.last_offset is None:
            return True
        index = chunk.segment
        if chunk.first_offset < self.segments[index].base_offset:
            return False
        # an empty segment bounds nothing: what is read in order is bounded by the segments that are read
        after = index + chunk.joined + 1
        while after < len(self.segments) and not self.segments[after].size:
            after += 1
        following = self.segments[after].base_offset if after < len(self.segments) else None
        if following is not None and chunk.last_offset >= following:
            return False
        return self.next_offset is None or chunk.first_offset >= self.next_offset

    def feed(self, chunk: ChunkRows) -> None:
        """Take the next chunk."""
        wrapped = self._wrapped_offsets(chunk)
        gaps = {int(gap["position"]): gap for gap in chunk.gaps[:MAX_LISTED]}
        if chunk.first_offset is not None:
            self._join(chunk, chunk.first_offset - wrapped)
        group: list[LogDamage] = []
        expected: int | None = None
        for damage, wanted in zip(chunk.damages, chunk.expected_offsets, strict=True):
            if chunk.first_position is None or damage.position < chunk.first_position:
                continue  # taken by _join
            if group and group[-1].end != damage.position:
                self._place(group, chunk.segment, expected, gaps)
                group = []
            if not group:
                expected = wanted
            group.append(damage)
        self._finish_group(group, chunk, expected, gaps)
        for position, gap in gaps.items():
            first, last = int(gap["first_missing"]), int(gap["last_missing"])
            self._miss(MissingOffsets(first, last, MissingCause.UNKNOWN, chunk.segment, position))
        if chunk.last_offset is not None:
            self.next_offset = chunk.last_offset + 1
        self._take_epochs(chunk.leader_epochs)
        self._count_offsets(chunk, wrapped)

    def _take_epochs(self, steps: Rows) -> None:
        if len(steps) and self._steps and self._steps[-1]["leader_epoch"][-1] == steps["leader_epoch"][0]:
            steps = steps[1:]
        if len(steps):
            self._steps.append(steps)
            self.leader_epoch_changed |= bool((steps["leader_epoch"] != self._steps[0]["leader_epoch"][0]).any())

    def _count_offsets(self, chunk: ChunkRows, wrapped: int) -> None:
        more = chunk.gaps[MAX_LISTED:]
        if len(more):
            offsets = int((more["last_missing"] - more["first_missing"] + 1).sum())
            self._count_unlisted(chunk.segment, len(more), offsets)
        self.offsets_present += chunk.offsets_present + wrapped
        self.marker_offsets += chunk.marker_offsets
        self.cleaned_offsets += chunk.cleaned_offsets
        self.cleaned_to = max(self.cleaned_to, chunk.cleaned_to)

    def is_whole_from(self, offset: int) -> bool:
        """Whether no offset from this one on is missing, as far as is known: with gaps that are only counted it is not."""
        return not (self.damages or self.unlisted or any(gap.last_offset >= offset for gap in self.missing))

    def present_before(self, chunk: ChunkRows) -> int:
        """Offsets covered before this chunk's own counting starts; to be asked before the chunk is fed."""
        return self.offsets_present + self._wrapped_offsets(chunk)

    def _wrapped_offsets(self, chunk: ChunkRows) -> int:
        """Offsets a leading wrapper holds beside the one it names: it goes on from what came before it."""
        if not chunk.wrapper_first or chunk.first_offset is None:
            return 0
        expected = self.next_offset if self.next_offset is not None else self.segments[chunk.segment].base_offset
        return max(chunk.first_offset - expected, 0)

    def skip(self) -> None:
        """A chunk could not be read: what follows has nothing to go on from."""
        self._place_pending(self.next_offset, None)
        self.next_offset = None
        self.first_offset = None
        self._skipped = True

    def finish(self) -> None:
        """The log has ended.

        A broker names a segment by the log's end when it begins it (UnifiedLog.roll): before an empty last segment every offset
        was written. Damage that nothing follows costs an unknown number of offsets.
        """
        last = len(self.segments) - 1
        if (
            last < 1
            or self.segments[last].size
            or self.segments[last].deleted
            or (self._skipped and self.next_offset is None)
        ):
            self._place_pending(self.next_offset, None)
            return
        start = max(self.segments[0].base_offset, self.log_start_offset or 0)
        expected = start if self.next_offset is None else self.next_offset
        end = self.segments[last].base_offset
        missing = (expected, end - 1) if end > expected else None
        self._share_out(missing, self._place_pending(expected, missing), last, 0)

    def _place_pending(self, expected: int | None, missing: tuple[int, int] | None) -> list[PlacedDamage]:
        """List the damage that waited for what follows it, with the offsets it cost of those missing there."""
        placed = [PlacedDamage(damage, segment, expected, *_cost(damage, missing)) for segment, damage in self.pending]
        for entry in placed:
            self._list_damage(entry)
        self.pending = []
        return placed

    def _finish_group(
        self, group: list[LogDamage], chunk: ChunkRows, expected: int | None, gaps: dict[int, Rows]
    ) -> None:
        """Damage that ends at a gap explains it; damage at the chunk's end waits for what follows."""
        if not group:
            if chunk.first_position is None:
                self.pending += [(chunk.segment, damage) for damage in chunk.damages]
            return
        if group[-1].end in gaps or group[-1].end <= chunk.last_position:
            self._place(group, chunk.segment, expected, gaps)
        else:
            self.pending += [(chunk.segment, damage) for damage in group]

    def _join(self, chunk: ChunkRows, first_offset: int) -> None:
        """Join the first batch of a chunk to what came before it."""
        assert chunk.first_position is not None
        leading = [damage for damage in chunk.damages if damage.position < chunk.first_position]
        self.pending = self.pending + [(chunk.segment, damage) for damage in leading]
        base = self.segments[chunk.segment].base_offset
        expected = self.next_offset
        if self.first_offset is None:
            self.first_offset = first_offset
            # below the first segment there is nothing to expect: retention removed it, or the copy starts here
            # unless a segment that begins there is empty
            begin = base if self._skipped or chunk.start > 0 else self.segments[0].base_offset
            expected = max(begin, self.log_start_offset if self.log_start_offset is not None else begin)
            if self._skipped and chunk.start > 0:
                expected = first_offset  # what lies before it in the segment could not be read
            expected = min(expected, first_offset)
        assert expected is not None
        missing = (expected, first_offset - 1) if first_offset > expected else None
        self._share_out(
            missing, self._place_pending(expected, missing), chunk.segment, chunk.first_position, chunk.start
        )

    def _share_out(
        self,
        missing: tuple[int, int] | None,
        placed: Sequence[PlacedDamage],
        segment: int,
        position: int,
        start: int = 0,
    ) -> None:
        """List the offsets missing before `position` of a segment that is read from `start` on, and what took them."""
        for first, last, damaged, before in () if missing is None else _shares(missing, placed):
            if damaged:
                self._miss(MissingOffsets(first, last, MissingCause.DAMAGE, segment, position))
            elif before is not None:
                self._miss(MissingOffsets(first, last, MissingCause.UNKNOWN, before.segment, before.damage.position))
            else:
                self._miss_before(first, last, segment, position, start)

    def _miss_before(self, first: int, last: int, segment: int, position: int, start: int) -> None:
        """List offsets missing in front of a batch: those in front of its segment are a segment's."""
        base = self.segments[segment].base_offset
        if start == 0 and base > first:
            empty = self._empty_segment(segment, first)
            between = min(base - 1, last)
            self._miss(MissingOffsets(first, between, MissingCause.MISSING_SEGMENT, segment, 0, empty))
            first = between + 1
        if first <= last:
            self._miss(MissingOffsets(first, last, MissingCause.UNKNOWN, segment, position))

    def _empty_segment(self, following: int, first_missing: int) -> int | None:
        for index in range(following - 1, -1, -1):
            if self.segments[index].base_offset == first_missing:
                return index
        return None

    def _place(self, group: list[LogDamage], segment: int, expected: int | None, gaps: dict[int, Rows]) -> None:
        gap = gaps.pop(group[-1].end, None)
        missing = None if gap is None else (int(gap["first_missing"]), int(gap["last_missing"]))
        expected = expected if missing is None else missing[0]
        placed = [PlacedDamage(damage, segment, expected, *_cost(damage, missing)) for damage in group]
        for entry in placed:
            self._list_damage(entry)
        for first, last, damaged, before in _shares(missing, placed) if missing is not None else ():
            cause = MissingCause.DAMAGE if damaged else MissingCause.UNKNOWN
            position = group[-1].end if before is None else before.damage.position
            self._miss(MissingOffsets(first, last, cause, segment, position))

    def _list_damage(self, damage: PlacedDamage) -> None:
        if len(self.damages) < MAX_LISTED:
            self.damages.append(damage)
        else:
            self.unlisted += 1

    def _miss(self, missing: MissingOffsets) -> None:
        if len(self.missing) < MAX_LISTED:
            self.missing.append(missing)
        else:
            self._count_unlisted(missing.segment, 1, missing.count)

    def _count_unlisted(self, segment: int, gaps: int, offsets: int) -> None:
        self.unlisted += gaps
        self.unlisted_missing[segment] = self.unlisted_missing.get(segment, 0) + offsets

    def epoch_steps(self) -> Rows:
        """The first batch of every range with one leader epoch (>= 0), in offset order."""
        steps = self._all_steps()
        return steps[steps["leader_epoch"] >= 0]

    def _all_steps(self) -> Rows:
        if not self._steps:
            return np.empty(0, dtype=LEADER_EPOCH_START)
        steps = np.concatenate(self._steps)
        changed = np.ones(len(steps), dtype=bool)
        changed[1:] = steps["leader_epoch"][1:] != steps["leader_epoch"][:-1]
        return steps[changed]

    def epoch_regressions(self) -> list[LeaderEpochRegression]:
        """Batches whose leader epoch lies below one before them, is an odd one out above its neighbours, or is none (below -1)."""
        steps = self._all_steps()
        if (np.diff(steps["leader_epoch"].astype(np.int64)) >= 0).all() and (steps["leader_epoch"][:1] >= 0).all():
            return []
        return _odd_epochs(steps)


def _odd_epochs(steps: Rows) -> list[LeaderEpochRegression]:
    found: list[LeaderEpochRegression] = []
    epochs: list[int] = steps["leader_epoch"].tolist()
    accepted: int | None = None
    for index, epoch in enumerate(epochs):
        following = epochs[index + 1] if index + 1 < len(epochs) else None
        odd_up = following is not None and accepted is not None and accepted <= following < epoch
        odd_up = odd_up and not _is_next_odd(steps, index)
        if epoch < 0 or (accepted is not None and (epoch < accepted or odd_up)):
            expected = accepted if accepted is not None else (-1 if following is None else following)
            found.append(_regression(steps[index], expected))
        else:
            accepted = epoch
    return found


def _is_next_odd(steps: Rows, index: int) -> bool:
    """Whether of two ranges of batches the second is the odd one: it is one batch among several of the first one's epoch or a later."""
    if index + 2 >= len(steps) or steps["leader_epoch"][index + 2] < steps["leader_epoch"][index]:
        return False
    ends = steps["base_offset"][index + 1 : index + 3] == steps["last_offset"][index : index + 2] + 1
    return bool(ends[1] and not ends[0])


def _regression(step: Rows, expected: int) -> LeaderEpochRegression:
    return LeaderEpochRegression(
        int(step["leader_epoch"]),
        expected,
        int(step["base_offset"]),
        int(step["last_offset"]),
        int(step["position"]),
        int(step["segment"]),
    )


class _Share(NamedTuple):
    """Some of the offsets missing in one place: a damage cost them, or else batches were cut out beside it."""

    first: int
    last: int
    damaged: bool
    before: PlacedDamage | None
    """The damage that follows the offsets of removed batches, None after the last damage."""


def _shares(missing: tuple[int, int], placed: Sequence[PlacedDamage]) -> list[_Share]:
    """Share the missing offsets out: to the damages among them, as `_cost` says, and to what was cut out beside these."""
    shares: list[_Share] = []
    at = missing[0]
    for entry in sorted(placed, key=lambda entry: (entry.first_missing or 0, entry.last_missing or 0)):
        first, last = entry.first_missing, entry.last_missing
        if first is None or last is None or last < at:
            continue
        if first > at:
            shares.append(_Share(at, first - 1, damaged=False, before=entry))
        if shares and shares[-1].damaged:
            shares[-1] = shares[-1]._replace(last=last)
        else:
            shares.append(_Share(max(at, first), last, damaged=True, before=None))
        at = last + 1
    if at <= missing[1]:
        shares.append(_Share(at, missing[1], damaged=False, before=None))
    return shares


def _cost(damage: LogDamage, missing: tuple[int, int] | None) -> tuple[int | None, int | None]:
    """Offsets one damage cost, of those missing around it: what its header claims where that is among them."""
    if missing is None:
        return None, None
    claims = damage.kind is DamageKind.CRC_MISMATCH and damage.base_offset is not None
    if claims and damage.base_offset is not None and damage.last_offset is not None:
        first, last = damage.base_offset, damage.last_offset
        if missing[0] <= first <= last <= missing[1]:
            return first, last
    return missing
