"""JSON: exact numbers, RFC 3339 times, sorted keys, nothing of the run with --reproducible."""

import json
import math

import numpy as np
import pytest

from kaudit.report.render_options import RenderOptions
from tests import scan_results as results
from tests.html.page_reader import Page
from tests.rendered import producers_text, scan_text, timeline_text

RUN = {"host": "h", "started_at": "2026-11-21T03:00:00.000Z"}


def document(result, run=None):
    return json.loads(scan_text("json", result, RenderOptions(run=run)))


def evidence_of(**evidence):
    return document(results.scan_result(results.old_duplicate(evidence=evidence)))["findings"][0]["evidence"]


def test_every_field_of_the_contract_is_there():
    scan = document(results.many(), RUN)
    assert set(scan) == {
        "schema", "tool", "broker_version", "inputs", "incomplete", "not_audited", "summary", "partitions", "findings",
        "incidents", "run", "verdict",
    }  # fmt: skip
    assert set(scan["summary"]) >= {
        "partitions", "segments", "bytes", "batches", "records", "producers", "runs", "findings"
    }  # fmt: skip
    assert set(scan["summary"]["findings"]) == {"error", "warning", "note"}
    assert set(scan["broker_version"]) == {"requested", "profile", "at_least", "at_most", "because"}
    assert set(scan["partitions"][0]) >= {
        "topic", "partition", "replica", "log_start_offset", "log_end_offset", "last_stable_offset", "compacted"
    }  # fmt: skip


def test_reproducible_leaves_the_run_out():
    assert "run" not in document(results.many())


def test_keys_are_sorted_at_every_depth():
    def check(pairs):
        assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
        return dict(pairs)

    json.loads(scan_text("json", results.many(), RenderOptions(run=RUN)), object_pairs_hook=check)
    for line in scan_text("jsonl", results.many(), RenderOptions(run=RUN)).splitlines():
        json.loads(line, object_pairs_hook=check)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1])
def test_int64_is_exact(number):
    assert evidence_of(value=number)["value"] == number


def test_numpy_integers_count_as_integers():
    assert evidence_of(value=np.int64(2**62))["value"] == 2**62


def test_not_a_number_is_refused_rather_than_written_as_broken_json():
    with pytest.raises(ValueError, match="Out of range"):
        evidence_of(value=math.nan)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (-2, "1969-12-31T23:59:59.998Z"),
        (-1, None),
        (2**63 - 1, 2**63 - 1),  # beyond every calendar: the number itself
        (None, None),
    ],
)
def test_milliseconds_under_timestamp_become_times_at_any_depth(milliseconds, text):
    evidence = evidence_of(max_timestamp=milliseconds, next={"timestamp": milliseconds}, timestamps=[5])
    assert (evidence["max_timestamp"], evidence["next"]["timestamp"]) == (text, text)
    assert evidence["timestamps"] == [5]


def test_jsonl_ends_with_the_summary_and_only_then():
    lines = [json.loads(line) for line in scan_text("jsonl", results.many(), RenderOptions()).splitlines()]
    assert [line["type"] for line in lines] == ["finding"] * 4 + ["summary"]
    assert "findings" not in lines[-1]
    assert lines[-1]["summary"]["findings"] == {"error": 2, "warning": 1, "note": 1}


def test_timeline_entries_and_state_have_times_too():
    timelines = json.loads(timeline_text("json", results.timeline_result(), RenderOptions()))
    first = timelines["timelines"][0]
    assert timelines["schema"] == "kaudit.timeline/1"
    assert first["entries"][0]["min_timestamp"] == "2023-11-14T22:13:20.000Z"
    assert first["state"]["last_timestamp"] == "2023-11-15T23:13:20.900Z"


def test_producer_ids_that_an_engine_only_counted():
    result = results.producers_result(omitted=1000)
    assert json.loads(producers_text("json", result, RenderOptions()))["producers_omitted"] == 1000
    assert json.loads(producers_text("jsonl", result, RenderOptions()).splitlines()[-1])["producers_omitted"] == 1000
    assert "... the first 3 of 1,003; --limit 1003 lists all" in producers_text("table", result, RenderOptions())
    assert "producers_omitted" not in producers_text("json", results.producers_result(), RenderOptions())
    (note,) = _left_out(result)
    assert (note["what"], note["count"]) == ("producer ids of the listing", 1000)
    assert note["how_to_see"].startswith("kaudit producers --output-format parquet")


def _left_out(result):
    page = Page(producers_text("html", result, RenderOptions()))
    return [entry for entry in page.model["overview"]["left_out"] if entry["what"].startswith("producer ids")]
