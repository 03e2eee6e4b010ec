"""Merging runs and markers, and following transactions through them: against sorting and a diary."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.transactions import transaction_spans as transactions
from kaudit.audits.transactions.transaction_spans import TransactionSpans
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER
from kaudit.model.columns import Columns
from kaudit.reading.producer_grouping import group, merge, with_records
from kaudit.reading.rows import BOUNDARY_BATCH, GAP, MARKER, RUN, assemble, pick, put

IDS = st.one_of(st.integers(0, 5), st.sampled_from([0, 1 << 40, (1 << 63) - 1]))
RUN_KIND, OTHER_MARKER = 2, 5
KINDS = st.sampled_from([ABORT_MARKER, COMMIT_MARKER, RUN_KIND, RUN_KIND, OTHER_MARKER])
EVENTS = st.lists(st.tuples(IDS, KINDS, st.booleans(), st.integers(1, 4)), max_size=60)


def rows_of(events, first_offset=0, stretch=1):
    """Runs and markers of (producer id, kind, transactional, offsets), by producer id and offset."""
    offset = first_offset
    runs: list[tuple[int, ...]] = []
    markers: list[tuple[int, ...]] = []
    for producer, kind, transactional, offsets in events:
        (runs if kind == RUN_KIND else markers).append((producer, offset, kind, transactional))
        offset += offsets * stretch
    run_rows, marker_rows = np.zeros(len(runs), dtype=RUN), np.zeros(len(markers), dtype=MARKER)
    for index, (producer, at, _, transactional) in enumerate(sorted(runs)):
        run_rows[index]["producer_id"], run_rows[index]["first_offset"] = producer, at
        run_rows[index]["is_transactional"] = transactional
    for index, (producer, at, kind, transactional) in enumerate(sorted(markers)):
        marker_rows[index]["producer_id"], marker_rows[index]["offset"] = producer, at
        marker_rows[index]["type"], marker_rows[index]["record_count"] = kind, transactional
    return columns_of(run_rows), columns_of(marker_rows), offset


def columns_of(rows):
    return Columns(rows.dtype, len(rows), {name: rows[name] for name in rows.dtype.names})


@settings(max_examples=300, deadline=None)
@given(EVENTS, st.sampled_from([1, 1 << 50]), st.integers(1, 20))
def test_merging_sorts_by_producer_and_offset_and_parts_are_whole_producers(events, stretch, size):
    runs, markers, _ = rows_of(events, stretch=stretch)
    merged = merge(runs, markers)
    both = in_turn(merged)
    assert both == sorted(both)
    assert len(both) == len(runs) + len(markers)
    assert merged.ids.tolist() == [producer for producer, _ in both]
    assert merged.producer_ids.tolist() == sorted({producer for producer, _ in both})
    seen, groups = [], []
    for part, members in merged.parts(size):
        seen += in_turn(part)
        assert part.ids.tolist() == [producer for producer, _ in in_turn(part)]
        assert part.producer_ids.tolist() == merged.producer_ids[members].tolist()
        assert part.ends.tolist()[-1] == len(part.ids) - 1
        groups += list(range(members.start, members.stop))
    assert seen == both
    assert groups == list(range(len(merged.starts)))


def in_turn(merged):
    """Producer id and offset of each run or marker in the order that `is_run` gives."""
    runs = iter([(int(row["producer_id"]), int(row["first_offset"])) for row in merged.runs])
    markers = iter([(int(row["producer_id"]), int(row["offset"])) for row in merged.markers])
    both = [next(runs) if is_run else next(markers) for is_run in merged.is_run.tolist()]
    assert [*runs, *markers] == []
    return both


def diary(events):
    """Markers as (offset, kind, first offset, oldest other open transaction), one event after the other."""
    opened: dict[int, int] = {}
    found, offset = [], 0
    for producer, kind, transactional, offsets in events:
        if kind == RUN_KIND:
            if transactional:
                opened.setdefault(producer, offset)
        elif kind in (ABORT_MARKER, COMMIT_MARKER) and transactional:
            first = opened.pop(producer, -1)
            found.append((offset, kind, first, min(opened.values(), default=-1) if kind == ABORT_MARKER else -1))
        offset += offsets
    return found


def spans_of(events, cuts):
    spans, offset = TransactionSpans(), 0
    bounds = [0, *sorted(cut for cut in cuts if cut <= len(events)), len(events)]
    for first, last in itertools.pairwise(bounds):
        runs, markers, offset = rows_of(events[first:last], offset)
        spans.feed(merge(runs, with_records(markers)))
    return spans


def ended_transactions(spans):
    names = ("marker_offset", "type", "first_offset", "stable_offset")
    return [tuple(int(row[name]) for name in names) for row in spans.ended()]


@settings(max_examples=300, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 60), max_size=5))
def test_transactions_are_those_of_a_diary_wherever_the_log_is_cut(events, cuts):
    assert ended_transactions(spans_of(events, cuts)) == diary(events)


@settings(max_examples=100, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 60), max_size=5), st.integers(0, 6), st.integers(0, 6))
def test_with_too_many_markers_none_is_half_reported(events, cuts, aborts, commits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "MAX_ABORTS", aborts)
        patch.setattr(transactions, "MAX_COMMITS", commits)
        spans = spans_of(events, cuts)
        whole = diary(events)
        kinds = [kind for _, kind, *_ in whole]
        assert spans.has_all_aborts == (kinds.count(ABORT_MARKER) <= aborts)
        assert spans.has_all_commits == (kinds.count(COMMIT_MARKER) <= commits)
        if spans.has_all_aborts:
            wanted = (ABORT_MARKER, COMMIT_MARKER) if spans.has_all_commits else (ABORT_MARKER,)
            assert ended_transactions(spans) == [row for row in whole if row[1] in wanted]


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), max_size=150), st.integers(0, 100))
def test_rows_picked_and_put_whole_are_those_indexed(indexes, seed):
    random = np.random.default_rng(seed)
    rows = random.integers(0, 256, (100, BOUNDARY_BATCH.itemsize), dtype=np.uint8).view(BOUNDARY_BATCH)[:, 0]
    chosen = np.array(indexes, dtype=np.intp)
    assert pick(rows, chosen).tolist() == rows[chosen].tolist()
    mask = random.random(100) < 0.5
    assert pick(rows, mask).tolist() == rows[mask].tolist()
    columns = {name: rows[name] for name in BOUNDARY_BATCH.names or ()}
    places = np.unique(chosen)
    expected, written = rows.copy(), rows.copy()
    expected[places] = rows[::-1][places]
    put(written, places, pick(rows[::-1], places))
    assert written.tolist() == expected.tolist()
    assert assemble(BOUNDARY_BATCH, 100, columns).tolist() == rows.tolist()


GROUPED_IDS = st.one_of(st.integers(0, 5), st.integers(0, 2**63 - 1), st.integers(2**40, 2**40 + 9))


@given(st.lists(GROUPED_IDS, max_size=200))
def test_grouping_is_a_stable_sort_of_the_ids(values):
    column = np.asarray(values, dtype=np.int64)
    order, ordered = group(column)
    expected = np.argsort(column, kind="stable")
    assert order.tolist() == expected.tolist()
    assert ordered.tolist() == column[expected].tolist()


def test_rows_are_assembled_whatever_their_number():
    for count in (0, 1, 2048, 5000):
        column = np.arange(count, dtype=np.int64)
        rows = assemble(GAP, count, {"first_missing": column, "last_missing": column + 1, "position": 7, "segment": 3})
        assert rows["last_missing"].tolist() == list(range(1, count + 1))
        assert rows["position"].tolist() == [7] * count


@pytest.mark.parametrize("id_bits", [1, 30, 62])
@pytest.mark.parametrize("bits", [61, 62, 63])
def test_ids_and_offsets_that_just_fit_into_a_key_and_those_that_do_not(id_bits, bits):
    """Ids that differ in `id_bits` bits, and offsets in so many more that there are `bits` of both."""
    high_id, last = 2**id_bits - 1, max(2 ** (bits - id_bits) - 1, 1)
    events = [(high_id, 0), (0, 1), (high_id, last - 1), (0, last)]
    runs, markers = np.zeros(2, dtype=RUN), np.zeros(2, dtype=MARKER)
    runs["producer_id"], runs["first_offset"] = [0, high_id], [1, 0]
    markers["producer_id"], markers["offset"] = [0, high_id], [last, last - 1]
    merged = merge(columns_of(runs), columns_of(markers))
    assert in_turn(merged) == sorted(events)
    assert merged.ids.tolist() == [0, 0, high_id, high_id]
    assert merged.is_run.tolist() == [True, False, True, False]


@pytest.mark.parametrize("span_bits", [59, 60, 61, 62, 63])
def test_ids_whose_places_just_fit_into_a_key_and_those_whose_do_not(span_bits):
    """Four ids, whose number takes three bits."""
    high = 2**span_bits - 1
    order, ids = group(np.array([high, 0, high, 0], dtype=np.int64))
    assert (order.tolist(), ids.tolist()) == ([1, 3, 0, 2], [0, 0, high, high])
