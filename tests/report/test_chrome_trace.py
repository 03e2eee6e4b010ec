"""chrome-trace: what the Trace Event format asks for, and everything that the timeline's own JSON has."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kaudit.cli.app import run
from kaudit.model.result import TimelineResult
from kaudit.report.machine.chrome_trace import Slice, arranged
from kaudit.report.render_options import RenderOptions
from tests import scan_results as results
from tests.rendered import timeline_text
from tests.timelines import histories, timelines_of

SAMPLES = ("open-transaction", "compacted", "zombie", "crafted", "side-files", "damaged", "truncated-head")
CAPTURES = ("legacy-formats", "txn-mix-2.8.2")
_ALWAYS = {"ph", "name", "pid", "args"}
_FIELDS = {"X": {*_ALWAYS, "cat", "tid", "ts", "dur"}, "i": {*_ALWAYS, "cat", "tid", "ts", "s"}}
_METADATA = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a trace that keeps the format's rules.

    They are those of "Trace Event Format" (Google, 2016): the object form; complete events with ts and dur in microseconds,
    instants with a scope, metadata by their names; slices of one thread nested or one after the other. Numbers are such
    that a viewer in a browser reads them as written.
    """
    document = json.loads(text)
    assert document["displayTimeUnit"] == "ms"
    named = set()
    slices: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            assert set(event["args"]) == {_METADATA[event["name"]]}
            named.add((event["pid"], event.get("tid")))
            continue
        assert set(event) == _FIELDS[event["ph"]]
        assert {(event["pid"], None), (event["pid"], event["tid"])} <= named
        assert 0 <= event["ts"] < 2**53
        if event["ph"] == "X":
            assert 0 < event["dur"] < 2**53
            slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        assert event.get("s", "t") == "t"
    assert set(Counter(number for _, number in named if number is not None).values()) <= {1}
    assert not {pid for pid, _ in named} & {tid for _, tid in named}
    for own in slices.values():
        assert_nested(own)
    return list(document["traceEvents"])


def assert_nested(slices):
    """By start, the longest first: each lies in the one before or behind it."""
    open_until: list[int] = []
    for start, end in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_until and open_until[-1] <= start:
            open_until.pop()
        assert not open_until or end <= open_until[-1]
        open_until.append(end)


def trace_and_document(log, target):
    """One audit's timeline as a trace, and as a document."""
    trace, document = target / "trace.json", target / "timeline.json"
    outputs = ["--output-format", f"chrome-trace:{trace}", "--output-format", f"json:{document}"]
    run(["timeline", str(log), "--exit-zero", "-q", *outputs])
    return trace.read_text(), json.loads(document.read_text())


def assert_the_same(trace, document):
    """Every run, marker, gap and finding of the JSON document is one event of the trace."""
    events = events_of(trace)
    entries = [(one, entry) for one in document["timelines"] for entry in one["entries"]]
    for category, kind, names in (
        ("run", "run", ("first_offset", "last_offset", "first_sequence", "producer_epoch", "records")),
        ("marker", "marker", ("offset", "producer_epoch", "coordinator_epoch", "type")),
    ):
        expected = Counter(tuple(entry[name] for name in names) for _, entry in entries if entry["kind"] == kind)
        assert expected == Counter(
            tuple(event["args"][name] for name in names) for event in events if event.get("cat") == category
        )
    threads = {
        (event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    for event in events:
        if event.get("cat") == "run":
            assert f" epoch {event['args']['producer_epoch']}" in threads[event["pid"], event["tid"]]
    found = Counter(finding["fingerprint"] for finding in document["findings"])
    assert found == Counter(event["args"]["fingerprint"] for event in events if event.get("cat") == "finding")
    transactions = {
        (one["topic"], one["partition"], one["replica"], one["producer_id"], *sorted(entry["transaction"].items()))
        for one, entry in entries
        if entry["kind"] == "run" and entry["transaction"]
    }
    assert len(transactions) == sum(event.get("cat") == "transaction" for event in events)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_samples_trace_has_what_its_timeline_has(tmp_path, sample):
    assert_the_same(*trace_and_document(f"samples/{sample}", tmp_path))


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_recorded_logs_trace_has_what_its_timeline_has(tmp_path, evidence, capture):
    assert_the_same(*trace_and_document(evidence.capture(capture), tmp_path))


def test_runs_and_markers_are_where_their_timestamps_are():
    """Batches of results.timeline_result(): a run of 900 ms, an hour between two."""
    events = events_of(timeline_text("chrome-trace", results.timeline_result(), RenderOptions()))
    runs = {event["args"]["first_offset"]: event for event in events if event.get("cat") == "run"}
    assert (runs[405]["ts"], runs[521]["ts"]) == (results.MORNING * 1000, (results.MORNING + 90_000_000) * 1000)
    [commit] = [event for event in events if event["name"] == "COMMIT"]
    [committed] = [event for event in events if event["name"] == "transaction committed"]
    assert committed["ts"] <= commit["ts"] <= committed["ts"] + committed["dur"]


@pytest.mark.parametrize("timestamp", [-1, -5, 2**62, 2**53])
def test_batches_without_a_usable_time_stand_behind_those_before(timestamp):
    result = results.timeline_result([])
    entries = [results.run(offset, offset + 9, offset, offset + 9, 1000 * offset) for offset in range(0, 50, 10)]
    entries[2] = entries[2]._replace(min_timestamp=timestamp, max_timestamp=timestamp)
    timeline = replace(timelines_of(result.histories)[0], entries=entries)
    events = events_of(
        timeline_text("chrome-trace", TimelineResult(result.scan, [histories(timeline)]), RenderOptions())
    )
    runs = [event for event in events if event.get("cat") == "run"]
    assert [event["args"]["first_offset"] for event in sorted(runs, key=lambda event: event["ts"])] == [
        0,
        10,
        20,
        30,
        40,
    ]
    timeline = replace(timeline, entries=[entry._replace(min_timestamp=-1, max_timestamp=-1) for entry in entries])
    events = events_of(
        timeline_text("chrome-trace", TimelineResult(result.scan, [histories(timeline)]), RenderOptions())
    )
    assert [event["ts"] for event in events if event.get("cat") == "run"] == [0, 1, 2, 3, 4]


def test_numbers_that_browsers_round_are_text():
    result = results.timeline_result([])
    large = 2**53 + 1
    timeline = replace(
        timelines_of(result.histories)[0], entries=[results.run(large, large + 1, 0, 1, 0)], producer_id=large
    )
    events = events_of(
        timeline_text("chrome-trace", TimelineResult(result.scan, [histories(timeline)]), RenderOptions())
    )
    [run_event] = [event for event in events if event.get("cat") == "run"]
    assert run_event["args"]["first_offset"] == str(large)
    assert f"producer {large} epoch 0" in [event["args"].get("name") for event in events]


def slices(most=8):
    times = st.tuples(st.integers(0, 60), st.integers(0, 30))
    flat = times.map(lambda pair: Slice("run", "run", pair[0], pair[0] + pair[1]))
    return st.lists(flat, max_size=most)


@settings(deadline=None)
@given(slices(), slices())
def test_slices_nest_whatever_the_clocks_were(outer, inner):
    if outer:
        outer[0].inner = inner
    drawn = list(arranged(outer))
    assert len(drawn) == len(outer) + (len(inner) if outer else 0)
    assert all(one.start < one.end for one in drawn)
    assert_nested([(one.start, one.end) for one in drawn])


@settings(deadline=None)
@given(slices())
def test_slices_that_follow_one_another_stay_as_they_are(given_slices):
    ordered = sorted(given_slices, key=lambda one: one.start)
    if all(one.start < one.end <= after.start for one, after in pairwise(ordered)) and all(
        s.start < s.end for s in ordered
    ):
        assert [(one.start, one.end) for one in arranged(given_slices)] == [(one.start, one.end) for one in ordered]


def test_an_event_holds_what_its_entry_does_and_not_its_kind():
    trace = timeline_text("chrome-trace", results.timeline_result(), RenderOptions())
    events = [event for event in json.loads(trace)["traceEvents"] if event.get("cat") in {"run", "marker", "missing"}]
    assert events
    assert not any({"kind", "transaction"} & set(event["args"]) for event in events)
    (missing,) = [event for event in events if event["cat"] == "missing"]
    assert missing["args"] == {"first_offset": 517, "last_offset": 520, "offsets": 4, "cause": "compaction"}
    (commit,) = [event for event in events if event["args"].get("type") == "COMMIT"]
    assert commit["args"]["timestamp"] == "2023-11-14T22:13:21.000Z"
    assert commit["ts"] == (results.MORNING + 1000) * 1000
