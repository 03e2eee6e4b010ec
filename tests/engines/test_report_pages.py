"""--output-format html: the same page from both engines, and in it what the timelines say."""

from collections.abc import Mapping
from typing import Any

import pytest

from kaudit.engines.progress import SilentProgress
from kaudit.report.html.report_page import render_scan
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from tests.engines.faulty_logs import FAULTS
from tests.html.page_reader import Page
from tests.timelines import timelines_of

_OUTCOMES = ("open", "committed", "aborted", "unknown")
_TYPES = {0: "ABORT", 1: "COMMIT", -1: None}


@pytest.fixture
def logs(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    return tmp_path / "logs"


def page_of(engine, *paths, **options):
    """The text of a scan's page, with the histories that the engine recorded."""
    asked = ScanOptions([str(path) for path in paths], **options)
    with engine.module.record(asked, SilentProgress()) as recorded:
        return render_scan(recorded.result, RenderOptions(recorded={None: recorded}))


def test_the_lanes_are_what_the_timelines_say(logs, local):
    page = Page(page_of(local, logs))
    timelines = timelines_of(local.timeline(logs).histories)
    expected: dict[tuple[str, int, str], list[tuple[int, Mapping[str, Any]]]] = {}
    for timeline in timelines:
        held = expected.setdefault((timeline.topic, timeline.partition, timeline.replica), [])
        held += [(timeline.producer_id, entry.to_dict()) for entry in timeline.entries]

    seen = {}
    for index, row in enumerate(page.model["partitions"]):
        if row["columns"] is not None:
            seen[row["topic"], row["partition"], row["replica"]] = page.columns(index)
    assert seen.keys() == expected.keys()
    assert sum(len(tables["runs"]["lane"]) for tables in seen.values()) > 50
    for place, entries in expected.items():
        tables = seen[place]
        assert _runs(tables) == sorted(
            (
                producer_id,
                *(
                    entry[name]
                    for name in (
                        "producer_epoch",
                        "first_offset",
                        "last_offset",
                        "first_sequence",
                        "last_sequence",
                        "batches",
                        "records",
                        "min_timestamp",
                        "max_timestamp",
                        "is_transactional",
                    )
                ),
            )
            for producer_id, entry in entries
            if entry["kind"] == "run"
        )
        assert _markers(tables) == sorted(
            (producer_id, entry["producer_epoch"], entry["offset"], str(entry["type"]), entry["timestamp"])
            for producer_id, entry in entries
            if entry["kind"] == "marker"
        )
        assert _transactions(tables) == sorted(
            {
                (producer_id, entry["transaction"]["first_offset"], entry["transaction"]["outcome"])
                for producer_id, entry in entries
                if entry["kind"] == "run" and entry["transaction"] is not None
            }
        )


def _lane(tables, row):
    return tables["lanes"]["producer_id"][row], tables["lanes"]["producer_epoch"][row]


def _rows(columns):
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _runs(tables):
    return sorted(
        (
            *_lane(tables, run["lane"]),
            run["first_offset"],
            run["last_offset"],
            run["first_sequence"],
            run["last_sequence"],
            run["batches"],
            run["records"],
            run["min_timestamp"],
            run["max_timestamp"],
            run["flags"] == 1,
        )
        for run in _rows(tables["runs"])
    )


def _markers(tables):
    return sorted(
        (*_lane(tables, row["lane"]), row["offset"], str(_TYPES[row["type"]]), row["timestamp"])
        for row in _rows(tables["markers"])
    )


def _transactions(tables):
    return sorted(
        (_lane(tables, row["lane"])[0], row["first_offset"], _OUTCOMES[row["outcome"]])
        for row in _rows(tables["transactions"])
    )


def test_where_chunks_are_cut_changes_nothing(logs, local):
    assert page_of(local, logs, chunk_bytes=500) == page_of(local, logs)


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.jvm)], indirect=True)
def test_both_engines_make_the_same_page(logs, local, engine):
    assert page_of(engine, logs) == page_of(local, logs)
