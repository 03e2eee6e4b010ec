"""A page of a large log keeps its budget, says what it leaves out, and loses nothing that findings are about."""

import numpy as np
import pytest
from msgspec.structs import replace

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.model.timeline import RUN, HistoryRow
from kaudit.report.html import report_page
from kaudit.report.html.report_page import render_scan
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from tests.html.page_reader import Page
from tests.logs import Log, data, marker

_PRODUCERS, _TURNS = 40, 200


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Transactions of many producers in turn; one of them misses a sequence, one leaves its last transaction open."""
    directory = tmp_path_factory.mktemp("logs") / "orders-0"
    log = Log()
    random = np.random.default_rng(3)
    sequences = [0] * _PRODUCERS
    for turn in range(_TURNS):
        for producer in random.permutation(_PRODUCERS).tolist():
            sequence = sequences[producer] + (5 if (producer, turn) == (7, 30) else 0)
            count = int(random.integers(1, 4))
            log.append(data(producer, 0, sequence, count, transactional=True))
            sequences[producer] = sequence + count
            if (producer, turn) != (8, _TURNS - 1):
                log.append(marker(producer, 0, commit=turn % 20 != 0))
    log.write(directory)
    return directory.parent


def rendered(logs, budget, monkeypatch):
    monkeypatch.setattr(report_page, "BUDGET", budget)
    with local.record(ScanOptions([str(logs)]), SilentProgress()) as recorded:
        return render_scan(recorded.result, RenderOptions(recorded={None: recorded}))


def test_a_page_over_its_budget_draws_coarser_bars(logs, monkeypatch):
    whole = rendered(logs, 5_000_000, monkeypatch)
    without = len(whole.encode()) - Page(whole).model["partitions"][0]["columns"]["bytes"] * 4 // 3
    budget = without + 12_000 + 1_500 + (len(whole.encode()) - without) // 2
    text = rendered(logs, budget, monkeypatch)
    page, full = Page(text), Page(whole)
    tables, every = page.columns(0), full.columns(0)
    packed = page.model["partitions"][0]["columns"]

    assert len(text.encode()) <= budget < len(whole.encode())
    assert len(every["runs"]["lane"]) == _PRODUCERS * _TURNS  # each is a transaction
    assert sum(tables["runs"]["records"]) == sum(every["runs"]["records"])
    coarse = [
        records for records, flags in zip(tables["runs"]["batches"], tables["runs"]["flags"], strict=True) if flags & 2
    ]
    assert sum(coarse) == packed["runs_merged"]
    assert len(tables["runs"]["lane"]) - len(coarse) + packed["runs_merged"] == len(every["runs"]["lane"])
    left_out = {entry["what"]: entry["count"] for entry in page.model["overview"]["left_out"]}
    assert left_out["runs that are only part of a coarser bar"] == packed["runs_merged"]
    for name in ("transactions", "markers"):
        assert len(tables[name]["lane"]) + packed[f"{name}_left_out"] == len(every[name]["lane"])


def test_what_findings_are_about_is_never_merged(logs, monkeypatch):
    whole = rendered(logs, 5_000_000, monkeypatch)
    page = Page(rendered(logs, len(whole.encode()) - 4_000, monkeypatch))
    runs = page.columns(0)["runs"]
    fine = {first for first, flags in zip(runs["first_offset"], runs["flags"], strict=True) if not flags & 2}
    gap = next(found for found in page.model["findings"] if found["code"] == "KA104")

    assert any(flags & 2 for flags in runs["flags"])
    assert int(gap["evidence"]["rows"][1][1].split("..")[0]) in fine


def test_aborted_and_open_transactions_stay_longest(logs, monkeypatch):
    whole = rendered(logs, 5_000_000, monkeypatch)
    every = Page(whole).columns(0)["transactions"]["outcome"]
    page = Page(rendered(logs, len(whole.encode()) - 4_000, monkeypatch))
    kept = page.columns(0)["transactions"]["outcome"]

    assert len(kept) < len(every)
    assert [sum(outcome == other for outcome in kept) for other in (0, 2)] == [
        sum(outcome == other for outcome in every) for other in (0, 2)
    ]


def test_with_no_room_lanes_go_those_without_findings_first(logs, monkeypatch):
    whole = rendered(logs, 5_000_000, monkeypatch)
    packed = Page(whole).model["partitions"][0]["columns"]["bytes"]
    page = Page(rendered(logs, len(whole.encode()) - packed * 4 // 3 + 12_000, monkeypatch))
    columns = page.model["partitions"][0]["columns"]
    lanes = page.columns(0)["lanes"]["producer_id"]

    assert 0 < len(lanes) == _PRODUCERS - columns["lanes_left_out"] < _PRODUCERS
    assert {7, 8} <= set(lanes)


def test_findings_are_cut_the_most_severe_stay(logs, monkeypatch):
    monkeypatch.setattr(report_page, "_FOR_FINDINGS", 40_000)
    with local.record(ScanOptions([str(logs)]), SilentProgress()) as recorded:
        result = recorded.result
        errors = [found for found in result.findings if found.severity.value == "error"]
        many = [replace(found, anchor=str(number)) for number in range(50) for found in result.findings]
        text = render_scan(replace(result, findings=many), RenderOptions(recorded={None: recorded}))
    page = Page(text).model

    assert 0 < len(page["findings"]) < len(many)
    left_out = next(entry for entry in page["overview"]["left_out"] if entry["what"] == "findings")
    assert left_out["count"] == len(many) - len(page["findings"])
    assert left_out["how_to_see"] == f"kaudit scan --output-format json {logs}"
    assert {found["severity"] for found in page["findings"]} == {"error"}
    assert len(errors) * 50 > len(page["findings"])


def test_activity_adds_up_to_what_was_written(logs, monkeypatch):
    model = Page(rendered(logs, 5_000_000, monkeypatch)).model
    with local.record(ScanOptions([str(logs)]), SilentProgress()) as recorded:
        made = local.timeline(ScanOptions([str(logs)]), SilentProgress()).histories
        entries = [entry for histories in made for entry in histories.entries() if isinstance(entry, HistoryRow)]
        assert recorded.result.summary.producers == _PRODUCERS

    assert sum(model["overview"]["series"]["bytes"]) == sum(entry.bytes for entry in entries if entry.row == RUN)
    assert max(model["overview"]["series"]["producers"]) <= _PRODUCERS
