"""What records say that no broker writes, and what brokers look up: each offset of a log is remote, on the disk, retained or in a hole."""

from hypothesis import given
from hypothesis import strategies as st

from kaudit.audits.tiered.boundary import LocalLog, by_newest_epoch, findings_of, parts_in_lineage, tiers_of
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.remote_segments import NotCopied, RemoteHole, RemoteLog, RemoteSegment, RemoteState

OFFSETS = st.integers(0, 40)
ANY_OFFSETS = st.one_of(OFFSETS, st.sampled_from([-1, -(1 << 63), (1 << 63) - 1]))


@st.composite
def segments(draw: st.DrawFn, offsets: st.SearchStrategy[int] = OFFSETS) -> list[RemoteSegment]:
    """Segments in any state, of any epochs."""
    count = draw(st.integers(0, 6))
    found = []
    for number in range(count):
        epochs = sorted(draw(st.dictionaries(st.integers(0, 3), offsets, max_size=3)).items())
        state = draw(st.sampled_from(RemoteState))
        copied = draw(st.sampled_from([None, 5])) if state is not RemoteState.COPY_FINISHED else 5
        bounds = draw(offsets), draw(offsets)
        found.append(
            RemoteSegment("orders", "A", 0, str(number), *bounds, epochs, 0, 10, state, None, 1, 9, number, 1, copied)
        )
    return found


@st.composite
def logs(draw: st.DrawFn) -> LocalLog:
    """A log of up to four leader epochs."""
    starts = sorted(draw(st.sets(OFFSETS, max_size=4)))
    lineage = [EpochEntry(epoch, start) for epoch, start in enumerate(starts)]
    start = draw(OFFSETS)
    stated = draw(st.one_of(st.none(), st.integers(0, start)))
    end = start + draw(st.integers(0, 20))
    return LocalLog("b1", stated, start, start, end, lineage, draw(st.booleans()), draw(st.booleans()))


def looked_up(segment: RemoteSegment, local: LocalLog, offset: int) -> bool:
    """Whether a broker finds the offset in the segment: by the epoch that its log has there (RemoteLogManager.read)."""
    if not segment.start_offset <= offset <= segment.end_offset:
        return False
    if not local.lineage:
        return True
    before = [row for row in local.lineage if row.start_offset <= offset]
    epochs = dict(segment.leader_epochs)
    if not before:  # the log knows no epoch there: any that is not later than its first one is taken
        own = [epoch for epoch, first in segment.leader_epochs if first <= offset]
        return bool(own) and own[-1] <= local.lineage[0].epoch
    epoch = before[-1].epoch
    following = [first for other, first in segment.leader_epochs if other > epoch]
    return epoch in epochs and epochs[epoch] <= offset and (not following or offset < min(following))


@given(segments(), logs())
def test_the_offsets_of_a_segment_are_those_that_a_broker_finds_in_it(found, local):
    for segment in found:
        starts = [first for _, first in segment.leader_epochs]
        if starts != sorted(starts) or len(set(starts)) != len(starts):
            continue  # no broker writes them so
        parts = {offset for low, high in parts_in_lineage(segment, local) for offset in range(low, high + 1)}
        assert parts == {offset for offset in range(42) if looked_up(segment, local, offset)}


@given(segments(), logs())
def test_each_offset_below_the_log_is_remote_retained_or_in_a_hole(found, local):
    log = RemoteLog("orders", "A", 0, found)
    tiers = tiers_of(log, local)
    remote = {offset for low, high in tiers.remote_ranges for offset in range(low, high + 1)}
    holes = [offset for low, high in tiers.holes for offset in range(low, high + 1)]
    below = range(tiers.retained_from, local.start_offset)
    assert set(holes) == set(below) - remote
    assert len(holes) == len(set(holes))
    assert tiers.remote_offsets(0, 60) == len(remote)
    reported = [each for each in findings_of(log, [local], complete=True) if isinstance(each, RemoteHole)]
    assert sorted(offset for each in reported for offset in range(each.first_offset, each.last_offset + 1)) == holes


@given(segments(ANY_OFFSETS), st.lists(logs(), min_size=1, max_size=3), st.booleans())
def test_records_that_no_broker_writes_give_findings_or_none(found, locals_, complete):
    log = RemoteLog("orders", "A", 0, found, newest_timestamp=10)
    for each in findings_of(log, by_newest_epoch(locals_), complete=complete):
        assert each.first_offset <= each.last_offset or not isinstance(each, RemoteHole | NotCopied)
