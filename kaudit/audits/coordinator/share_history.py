"""The state of share groups over time, as a share coordinator replays __share_group_state (ShareCoordinatorShard.replay)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from msgspec import Struct, field

from kaudit.audits.coordinator.group_log import GroupLogEntry, GroupRecord
from kaudit.model.batch_fields import NO_OFFSET, NO_TIMESTAMP
from kaudit.model.group_commits import DELIVERY_LIMIT, MOST_RANGES, SharedOffsets, SharePartition, StartJump

_MOST_PARTITIONS = 100_000
"""Share-partitions followed in one partition of __share_group_state."""
_SNAPSHOT = "ShareSnapshot"
_ARCHIVED = ("ARCHIVED", "ARCHIVING")
_DONE = ("ACKNOWLEDGED", *_ARCHIVED)
_ACQUIRED = "ACQUIRED"
_Key = tuple[str, str, int]
"""Group, topic id and partition."""


class _Range(NamedTuple):
    first: int
    last: int
    state: str
    deliveries: int


class _Share(Struct):
    """One share-partition; `ranges` ascend, and hold what is not below `start` (-1: not initialized)."""

    start: int = NO_OFFSET
    state_epoch: int = -1
    ranges: list[_Range] = field(default_factory=list)
    archived: list[SharedOffsets] = field(default_factory=list)
    rejected: int = 0
    exhausted: int = 0
    first_record: int = NO_OFFSET
    last_record: int = NO_OFFSET
    last_timestamp: int = NO_TIMESTAMP
    changed_ms: int = NO_TIMESTAMP
    jumps: list[StartJump] = field(default_factory=list)
    jump_count: int = 0


class ShareHistory(Struct):
    """Follows one partition of __share_group_state."""

    not_followed: int = 0
    _shares: dict[_Key, _Share] = field(default_factory=dict)

    def take(self, entry: GroupLogEntry) -> None:
        """Take the next entry."""
        if not isinstance(entry, GroupRecord):
            return
        key = cast("dict[str, Any]", entry.record.key)
        place = key["groupId"], key["topicId"], key["partition"]
        value = cast("dict[str, Any] | None", entry.record.value)
        share = self._shares.get(place)
        if value is None:  # the group or the topic was deleted
            if share is not None:
                share.start, share.ranges = NO_OFFSET, []
            return
        if share is None:
            if len(self._shares) >= _MOST_PARTITIONS:
                self.not_followed += 1
                return
            share = self._shares[place] = _Share()
        is_snapshot = entry.record.name == _SNAPSHOT
        written = sorted(
            _Range(each["firstOffset"], each["lastOffset"], str(each["deliveryState"]), each["deliveryCount"])
            for each in value["stateBatches"]
        )
        self._archive(share, written, entry)
        known = list(_overlaid(share.ranges, written))
        self._start(share, known, value, entry)
        kept = _overlaid((), written) if is_snapshot else known
        share.ranges = [each for each in kept if each.last >= share.start]
        share.changed_ms = entry.timestamp

    @staticmethod
    def _archive(share: _Share, written: Sequence[_Range], entry: GroupRecord) -> None:
        before = [known for known in share.ranges if known.state in _ARCHIVED]
        for found in _without((each for each in written if each.state in _ARCHIVED), before):
            count = found.last - found.first + 1
            if found.deliveries >= DELIVERY_LIMIT:
                share.exhausted += count
            else:
                share.rejected += count
            if len(share.archived) < MOST_RANGES:
                share.archived.append(SharedOffsets(found.first, found.last, found.deliveries))
            share.first_record = entry.offset if share.first_record < 0 else share.first_record
            share.last_record, share.last_timestamp = entry.offset, entry.timestamp

    @staticmethod
    def _start(share: _Share, known: Sequence[_Range], value: dict[str, Any], entry: GroupRecord) -> None:
        """Move the start. Whoever resets it makes all available again that lies from there on; what is done need not be below it."""
        start, epoch = value["startOffset"], value.get("stateEpoch", share.state_epoch)
        is_reset = 0 <= share.state_epoch < epoch
        share.state_epoch = epoch
        if start < 0:
            return
        if share.start >= 0:
            reached = _reached(share.start, known)
            done = sum(_length(each, reached, start) for each in known if each.state in _DONE)
            unread = max(start - reached - done, 0)
            if unread or start < (reached if is_reset else share.start):
                share.jump_count += 1
                if len(share.jumps) < MOST_RANGES:
                    share.jumps.append(StartJump(entry.offset, entry.timestamp, reached, start, unread, is_reset))
        share.start = start

    def shares(self) -> Iterator[SharePartition]:
        """Yield the share-partitions of which there is something to report."""
        for (group, topic_id, partition), share in self._shares.items():
            acquired = [
                SharedOffsets(each.first, each.last, each.deliveries)
                for each in share.ranges
                if each.state == _ACQUIRED
            ]
            if share.archived or acquired or share.jumps:
                yield SharePartition(
                    group,
                    topic_id,
                    partition,
                    share.archived,
                    share.rejected,
                    share.exhausted,
                    share.first_record,
                    share.last_record,
                    share.last_timestamp,
                    acquired[:MOST_RANGES],
                    share.changed_ms,
                    share.jumps,
                    share.jump_count,
                )


def _reached(start: int, known: Iterable[_Range]) -> int:
    """Return the first offset from `start` on that is neither acknowledged nor archived, of ascending ranges."""
    for each in known:
        if each.last >= start:
            if each.first > start or each.state not in _DONE:
                break
            start = each.last + 1
    return start


def _length(found: _Range, start: int, stop: int) -> int:
    """How many offsets of a range lie from `start` to before `stop`."""
    return max(min(found.last, stop - 1) - max(found.first, start) + 1, 0)


def _overlaid(known: Iterable[_Range], written: Sequence[_Range]) -> Iterator[_Range]:
    """Yield ascending ranges: those of `written`, and what is left of `known` around them (PersisterStateBatchCombiner)."""
    gaps = list(_without(known, written))
    end = NO_OFFSET
    for each in sorted([*gaps, *written]):
        first = max(each.first, end + 1)  # of what overlaps in itself the first part counts
        if first <= each.last:
            yield each._replace(first=first)
            end = each.last


def _without(found: Iterable[_Range], known: Sequence[_Range]) -> Iterator[_Range]:
    """Yield what of ascending ranges is in none of other ascending ranges."""
    others = iter(known)
    other = next(others, None)
    for each in found:
        first = each.first
        while other is not None and other.last < first:
            other = next(others, None)
        while other is not None and other.first <= each.last:
            if other.first > first:
                yield each._replace(first=first, last=other.first - 1)
            first = max(first, other.last + 1)
            if other.last > each.last:
                break
            other = next(others, None)
        if first <= each.last:
            yield each._replace(first=first)
