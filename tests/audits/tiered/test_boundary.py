"""What brokers look up by their records of remote segments, and what records say that no broker writes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.coordinator.group_log import GroupRecord
from kaudit.audits.tiered.boundary import LocalLog, by_newest_epoch, findings_of, looked_up, parts_in_lineage, tiers_of
from kaudit.audits.tiered.remote_log import RemoteLogHistory
from kaudit.formats.internal_topics.record_schemas import parse_framed_record
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.remote_segments import NotCopied, RemoteHole, RemoteLog, RemoteSegment
from tests.remote_log import DELETED, DELETING, FINISHED, STARTED, begun, named, segment_id, updated

LAW = settings(deadline=None)
"""The first example reads the schemas of records."""
OFFSETS = st.integers(0, 40)
ANY_OFFSETS = st.one_of(OFFSETS, st.sampled_from([-1, -(1 << 63), (1 << 63) - 1]))
Event = tuple[int, int, tuple[int, int], tuple[tuple[int, int], ...]]
"""Segment, its new state, and for a first record its bounds and leader epochs."""
NEXT = {STARTED: (FINISHED, DELETING), FINISHED: (DELETING,), DELETING: (DELETED,)}
"""RemoteLogSegmentState.isValidTransition; the same state again is valid too."""


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Records about up to six segments, in any order, also such as brokers drop."""
    segments = []
    for _ in range(draw(st.integers(0, 6))):
        starts = sorted(draw(st.sets(OFFSETS, min_size=1, max_size=3)))
        first = draw(st.integers(0, 2))
        epochs = tuple((first + number, start) for number, start in enumerate(starts))
        segments.append(((starts[0], draw(st.integers(starts[-1], 45))), epochs))
    states = st.sampled_from([STARTED, FINISHED, FINISHED, DELETING, DELETED])
    more = draw(st.lists(st.tuples(st.integers(0, max(len(segments) - 1, 0)), states), max_size=8 * bool(segments)))
    order = [(number, STARTED) for number in range(len(segments))] + [
        (number, FINISHED) for number in range(len(segments))
    ]
    return [(number, state, *segments[number]) for number, state in draw(st.permutations(order)) + more]


def remote_log(found: Sequence[Event]) -> RemoteLog:
    """What kaudit reads of these records."""
    history = RemoteLogHistory()
    for offset, (number, state, bounds, epochs) in enumerate(found):
        own = segment_id(number)
        record = begun(own, bounds, dict(epochs)) if state == STARTED else updated(own, state)
        history.take(GroupRecord(offset, 0, 0, parse_framed_record(REMOTE_LOG, record)))
    return next(history.logs(), RemoteLog("orders", "", 0, []))


class Cache:
    """A broker's cache of the records: RemoteLogMetadataCache and RemoteLogLeaderEpochState, for lookups alone."""

    def __init__(self, found: Sequence[Event]) -> None:
        self.states: dict[int, int] = {}
        self.trees: dict[int, dict[int, int]] = {}
        self.highest: dict[int, int] = {}
        self.bounds: dict[int, tuple[tuple[int, int], tuple[tuple[int, int], ...]]] = {}
        for event in found:
            self._take(*event)

    def _take(self, number: int, state: int, bounds: tuple[int, int], epochs: tuple[tuple[int, int], ...]) -> None:
        known = self.states.get(number)
        if state not in ((STARTED,) if known is None else (known, *NEXT[known])):
            return
        self.bounds[number] = bounds, epochs
        self.states[number] = state
        for epoch, start in epochs:
            tree = self.trees.setdefault(epoch, {})
            if state == FINISHED:
                end = self._end(number, epoch)
                while tree and max(tree) >= start and self.highest[epoch] <= end:
                    del tree[max(tree)]
                tree[start] = number
                self.highest[epoch] = max(self.highest.get(epoch, end), end)
            elif state == DELETING and tree.get(start) == number:
                del tree[start]
        if state == DELETED:
            del self.states[number]

    def _end(self, number: int, epoch: int) -> int:
        (_, end), epochs = self.bounds[number]
        return min((start - 1 for other, start in epochs if other > epoch), default=end)

    def segment(self, epoch: int, offset: int) -> int | None:
        """remoteLogSegmentMetadata: in which segment an offset of a leader epoch is looked up."""
        starts = [start for start in self.trees.get(epoch, {}) if start <= offset]
        if not starts:
            return None
        number = self.trees[epoch][max(starts)]
        return None if offset > self._end(number, epoch) else number


@st.composite
def logs(draw: st.DrawFn) -> LocalLog:
    """A log of up to four leader epochs."""
    starts = sorted(draw(st.sets(OFFSETS, max_size=4)))
    lineage = [EpochEntry(epoch, start) for epoch, start in enumerate(starts)]
    start = draw(OFFSETS)
    stated = draw(st.one_of(st.none(), st.integers(0, start)))
    end = start + draw(st.integers(0, 20))
    return LocalLog("b1", stated, start, start, end, lineage, draw(st.booleans()), draw(st.booleans()))


def has(segment: RemoteSegment, local: LocalLog, offset: int) -> bool:
    """Whether a segment has an offset under the leader epoch that the log has there."""
    if not segment.start_offset <= offset <= segment.end_offset:
        return False
    own = [epoch for epoch, first in segment.leader_epochs if first <= offset]
    before = [row.epoch for row in local.lineage if row.start_offset <= offset]
    if before:
        return own[-1:] == before[-1:]
    return bool(own) and (not local.lineage or own[-1] <= local.lineage[0].epoch)


@LAW
@given(events(), logs())
def test_the_offsets_of_a_segment_are_those_of_the_logs_leader_epochs(found, local):
    for segment in remote_log(found).segments:
        parts = {offset for low, high in parts_in_lineage(segment, local) for offset in range(low, high + 1)}
        assert parts == {offset for offset in range(46) if has(segment, local, offset)}


@LAW
@given(events(), logs())
def test_each_offset_is_looked_up_in_the_segment_that_a_broker_reads(found, local):
    """By the leader epoch that the log has there; what its first epoch has below its first offset no broker looks up."""
    cache = Cache(found)
    numbers = {named(segment_id(number)): number for number in range(6)}
    read = {
        offset: numbers[segment.segment_id]
        for (low, high), segment in looked_up(remote_log(found), local)
        for offset in range(low, high + 1)
    }
    for offset in range(46):
        before = [row.epoch for row in local.lineage if row.start_offset <= offset]
        if before:
            assert read.get(offset) == cache.segment(before[-1], offset)
        elif offset in read:
            epochs = [epoch for epoch in range(6) if cache.segment(epoch, offset) == read[offset]]
            assert epochs
            assert not local.lineage or min(epochs) <= local.lineage[0].epoch


@LAW
@given(events(), logs())
def test_each_offset_below_the_log_is_remote_retained_or_in_a_hole(found, local):
    log = remote_log(found)
    tiers = tiers_of(log, local)
    remote = {offset for low, high in tiers.remote_ranges for offset in range(low, high + 1)}
    holes = [offset for low, high in tiers.holes for offset in range(low, high + 1)]
    below = range(tiers.retained_from, local.start_offset)
    assert set(holes) == set(below) - remote
    assert len(holes) == len(set(holes))
    assert tiers.remote_offsets(0, 60) == len(remote)
    reported = [each for each in findings_of(log, [local], complete=True) if isinstance(each, RemoteHole)]
    assert sorted(offset for each in reported for offset in range(each.first_offset, each.last_offset + 1)) == holes


ANY_SEGMENT = st.tuples(
    st.integers(0, 5),
    st.integers(STARTED, DELETED),
    st.tuples(ANY_OFFSETS, ANY_OFFSETS),
    st.dictionaries(st.integers(0, 3), ANY_OFFSETS, max_size=3).map(lambda epochs: tuple(epochs.items())),
)


@LAW
@given(st.lists(ANY_SEGMENT, max_size=12), st.lists(logs(), min_size=1, max_size=3), st.booleans())
def test_records_that_no_broker_writes_give_findings_or_none(found, locals_, complete):
    log = remote_log(found)
    for each in findings_of(log, by_newest_epoch(locals_), complete=complete):
        assert each.first_offset <= each.last_offset or not isinstance(each, RemoteHole | NotCopied)


def test_a_shorter_copy_that_finishes_later_hides_the_longer_one():
    """Two leaders copied the same segment; brokers look up all its offsets in the later copy, which has fewer."""
    epochs = ((0, 0),)
    log = remote_log(
        [
            (1, STARTED, (0, 40), epochs),
            (1, FINISHED, (0, 40), epochs),
            (2, STARTED, (0, 20), epochs),
            (2, FINISHED, (0, 20), epochs),
        ]
    )
    local = LocalLog("b1", 0, 41, 41, 50, [EpochEntry(0, 0)])
    assert [(part, each.end_offset) for part, each in looked_up(log, local)] == [((0, 20), 20)]
    (hole,) = [each for each in findings_of(log, [local], complete=True) if isinstance(each, RemoteHole)]
    assert (hole.first_offset, hole.last_offset, hole.cause.name) == (21, 40, "REPLACED")


ROWS = [EpochEntry(2, 10), EpochEntry(4, 30), EpochEntry(5, 50)]
LAST_OFFSET = (1 << 63) - 1


@pytest.mark.parametrize(
    ("lineage", "epoch", "offsets"),
    [
        # those of the first epoch begin at 0, those of the last never end
        (ROWS, 2, (0, 29)),
        (ROWS, 4, (30, 49)),
        (ROWS, 5, (50, LAST_OFFSET)),
        (ROWS[:1], 2, (0, LAST_OFFSET)),
        # before the first known one any older epoch may have them; newer ones, and such as were passed over, have none
        (ROWS, 1, (0, 9)),
        (ROWS, 0, (0, 9)),
        (ROWS, 3, (0, -1)),
        (ROWS, 6, (0, -1)),
        # without a lineage all may have all
        ([], 0, (0, LAST_OFFSET)),
    ],
)
def test_the_offsets_of_a_leader_epoch(lineage, epoch, offsets):
    local = LocalLog("b1", None, 0, 0, 60, lineage)
    assert local.range_of(epoch) == offsets
    assert local.newest_epoch == max((row.epoch for row in lineage), default=-1)
    assert local.epoch_ranges.keys() == {row.epoch for row in lineage}
