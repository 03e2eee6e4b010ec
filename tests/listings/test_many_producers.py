"""A timeline for each of many producers looks at what the partition has of that producer only."""

import json
import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kaudit.engines.local import timeline
from kaudit.engines.progress import SilentProgress
from kaudit.listings import timeline as timelines
from kaudit.listings.timeline import LISTED
from kaudit.model import timeline as model
from kaudit.model.damage import MissingCause
from kaudit.model.timeline import HistoryRow, MissingEntry
from kaudit.report.machine.json import render_timeline
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data, marker
from tests.timelines import Timeline, histories, run, timelines_of

PRODUCERS = 300
HOLE = 3


@pytest.fixture
def looked_at(monkeypatch):
    """What was looked at of the open transactions and missing offsets of a partition, each time it was."""
    seen = []

    class Counted(list[object]):
        def __iter__(self):
            for item in super().__iter__():
                seen.append(item)
                yield item

        def __getitem__(self, key):
            found = super().__getitem__(key)
            seen.extend(found if isinstance(key, slice) else [found])
            return found

    original = timelines.partition_histories

    def counting(partition, *arguments):
        own = replace(partition, opened=Counted(partition.opened), missing=Counted(partition.missing))
        return original(own, *arguments)

    monkeypatch.setattr(timelines, "partition_histories", counting)
    return seen


def test_open_transactions_and_holes_are_looked_at_once_not_for_each_producer(tmp_path, looked_at):
    log = Log()
    for producer_id in range(PRODUCERS):
        log.append(data(producer_id, 0, 0, transactional=True, payload=b"x"))
        log.skip(HOLE)
        log.append(data(producer_id, 0, 1, transactional=True, payload=b"x"))
    log.write(tmp_path / "t-0")
    result = timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    found = [
        (
            own.producer_id,
            own.state[-1],
            [(entry.first_offset, entry.offsets) for entry in own.entries if isinstance(entry, MissingEntry)],
        )
        for own in timelines_of(result.histories)
    ]
    length = 2 + HOLE
    assert found == [(number, number * length, [(number * length + 1, HOLE)]) for number in range(PRODUCERS)]
    assert 0 < len(looked_at) < 20 * PRODUCERS


def test_of_many_missing_ranges_a_timeline_names_the_first_and_the_sum_of_the_rest(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, payload=b"x"))
    for number in range(30):
        log.skip(1 + number % 2)
        log.append(data(2, 0, number, payload=b"x"))
    log.append(data(1, 0, 1, payload=b"x"))
    log.write(tmp_path / "t-0")
    holes = [(after, before) for after, before in pairwise(batch.base_offset for batch in log.batches[:-1])]
    first, second = timelines_of(timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress()).histories)
    found = [entry for entry in first.entries if isinstance(entry, MissingEntry)]
    assert [(entry.first_offset, entry.last_offset) for entry in found[:-1]] == [
        (after + 1, before - 1) for after, before in holes[:LISTED]
    ]
    rest = found[-1]
    assert (rest.first_offset, rest.last_offset) == (holes[LISTED][0] + 1, holes[-1][1] - 1)
    assert rest.offsets == sum(before - after - 1 for after, before in holes[LISTED:])
    assert {entry.cause for entry in found} == {MissingCause.UNKNOWN}
    kinds = Counter(entry.kind for entry in second.entries)
    assert kinds["missing"] <= (LISTED + 1) * kinds["run"]
    counted = (entry.offsets for entry in second.entries if isinstance(entry, MissingEntry))
    assert sum(counted) == sum(before - after - 1 for after, before in holes[1:])


def test_entries_do_not_grow_with_producers_times_missing_ranges(tmp_path):
    log = Log()
    for sequence in range(2):
        for producer_id in range(PRODUCERS):
            log.append(data(producer_id, 0, sequence, payload=b"x"))
            log.skip(1)
    log.write(tmp_path / "t-0")
    result = timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    missing = sum(Counter(entry.kind for entry in own.entries)["missing"] for own in timelines_of(result.histories))
    assert missing <= PRODUCERS * 2 * (LISTED + 1)


def test_a_long_timeline_is_in_order_and_written_an_entry_at_a_time(tmp_path):
    """Each of these batches leaves out more sequences than the one before: it is a run of its own, a finding behind it."""
    log = Log()
    for number in range(100):
        log.append(data(1, 0, number * (number + 9), payload=b"x"))
    log.write(tmp_path / "t-0")
    result = timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    (only,) = timelines_of(result.histories)
    expected = [("run", 0), *((kind, offset) for offset in range(1, 100) for kind in ("run", "finding"))]
    offsets = (
        (entry.kind, entry.first_offset if isinstance(entry, HistoryRow) else entry.to_dict()["offset"])
        for entry in only.entries
    )
    assert list(offsets) == expected
    assert only.entries[-1].to_dict()["code"] == "KA104"
    assert len(only.entries) == len(expected)
    assert timelines_of(pickle.loads(pickle.dumps(list(result.histories)))) == [only]
    text = "".join(render_timeline(result, RenderOptions()))
    written = json.loads(text)
    assert text == json.dumps(written, indent=2, sort_keys=True) + "\n"
    assert len(written["timelines"][0]["entries"]) == len(expected)


def test_entries_made_some_at_a_time_are_those_made_at_once(tmp_path, monkeypatch):
    log = Log()
    for number in range(300):
        log.append(data(1, 0, 0 if number % 7 == 0 else number, transactional=True, payload=b"x"))
        log.append(marker(1, 0, commit=number % 2 == 0))
        log.skip(number % 3)
    log.write(tmp_path / "t-0")
    options = ScanOptions([str(tmp_path)], jobs=1)
    (at_once,) = timelines_of(timeline(options, SilentProgress()).histories)
    monkeypatch.setattr(model, "AT_ONCE", 64)
    monkeypatch.setattr(timelines, "AT_ONCE", 64)
    result = timeline(options, SilentProgress())
    (in_parts,) = timelines_of(result.histories)
    assert {entry.kind for entry in in_parts.entries} == {"run", "marker", "missing", "finding"}
    assert in_parts == at_once
    written = json.loads("".join(render_timeline(result, RenderOptions())))["timelines"][0]["entries"]
    assert [entry["kind"] for entry in written] == [entry.kind for entry in at_once.entries]


@given(st.data())
def test_rows_that_are_chosen_are_those_that_stay(data_of):
    made = histories(*(
        Timeline("t", 0, "", producer_id, f"app-{producer_id}", [run(number, number) for number in range(count)], [producer_id] * 6)
        for producer_id, count in enumerate(data_of.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    ))  # fmt: skip
    chosen = data_of.draw(st.lists(st.booleans(), min_size=len(made.rows), max_size=len(made.rows)))
    left = iter(chosen)
    expected = [replace(own, entries=[entry for entry in own.entries if next(left)]) for own in timelines_of([made])]
    assert timelines_of([made.where(np.array(chosen))]) == [own for own in expected if own.entries]


def test_timelines_are_the_same_each_time_they_are_made(tmp_path):
    log = Log()
    for producer_id in (7, 3, 5):
        log.append(data(producer_id, 0, 0, transactional=producer_id == 5, payload=b"x"))
    log.append(marker(5, 0))
    log.write(tmp_path / "t-0")
    made = timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress()).histories
    first, again = timelines_of(made), timelines_of(made)
    assert [own.producer_id for own in first] == [3, 5, 7]
    assert first == again
    assert [entry.kind for entry in first[1].entries] == ["run", "marker"]
