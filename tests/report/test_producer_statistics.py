"""Statistics of producer ids in words: each figure where it is known, and nothing where it is not."""

import pytest
from msgspec.structs import replace

from kaudit.report.console import Console
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.producers import statistics_lines
from tests import scan_results as results
from tests.rendered import producers_text

T = results.MORNING  # 2023-11-14 22:13:20
HOUR = 3_600_000
IDS = {"found": 5, "chosen": 5, "transactional": 0, "batches": 12, "records": 1}


def lines_of(ids=None, listed=0, found=5, **summary):
    result = results.producers_result(
        found=found, listed=listed, producers=(), summary={"ids": {**IDS, **(ids or {})}, **summary}
    )
    return statistics_lines(result, Console())


@pytest.mark.parametrize(
    ("ids", "headline"),
    [
        ({}, "5 producer ids: 12 batches, 1 record"),
        ({"chosen": 1, "batches": 1, "records": 2}, "1 producer id of 5: 1 batch, 2 records"),
        ({"found": 12_345}, "5 producer ids of 12,345: 12 batches, 1 record"),
        ({"transactional": 1234}, "5 producer ids, 1,234 transactional: 12 batches, 1 record"),
        ({"first_timestamp": T}, "5 producer ids: 12 batches, 1 record"),
        (
            {"first_timestamp": T, "last_timestamp": T + 1000},
            "5 producer ids: 12 batches, 1 record, 2023-11-14 22:13:20 to 2023-11-14 22:13:21 UTC",
        ),
    ],
)
def test_how_many(ids, headline):
    assert lines_of(ids) == [headline]


BUSY = {"per_hour": 1234.56, "busiest_hour": {"start_timestamp": T - T % HOUR, "ids": 3000}}


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (BUSY, ["  new ids: 1,234.6 an hour; most in the hour from 2023-11-14 22:00: 3,000"]),
        ({**BUSY, "busiest_hour": {"ids": 3}}, ["  new ids: 1,234.6 an hour; most in the hour from -: 3"]),
        ({**BUSY, "busiest_hour": None}, []),
        ({**BUSY, "per_hour": None}, []),
        ({"batches_per_id": {"least": 1000, "most": 1000}}, ["  batches per id: 1,000"]),
        (
            {"batches_per_id": {"least": 1, "most": 4000, "median": 1500.5, "mean": 1666.66}},
            ["  batches per id: 1 to 4,000, median 1,500, mean 1,666.7"],
        ),
        ({"alive": {"1d": 3, "7d": 4000}}, ["  still remembered by brokers: 3 (1-day expiry), 4,000 (7-day expiry)"]),
    ],
)
def test_how_fast_how_much_and_how_many_are_remembered(ids, said):
    assert lines_of(ids)[1:] == said


@pytest.mark.parametrize(("last", "within"), [(T + HOUR - 1, True), (T + HOUR, False)])
def test_a_rate_needs_an_hour(last, within):
    found = lines_of({**BUSY, "first_timestamp": T, "last_timestamp": last})
    assert (found[1] == "  new ids: all within an hour") is within


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"complete": True, "granted": 1}, "  complete allocation history: 1 block (zk)"),
        ({"granted": 3000}, "  incomplete allocation history: 3,000 blocks (zk)"),
        ({"granted": 3, "per_day": 48.0}, "  incomplete allocation history: 3 blocks (zk)"),
        ({"granted": 3, "days_left": 48.0}, "  incomplete allocation history: 3 blocks (zk)"),
        *(
            (
                {"granted": 3, "per_day": 1048.0, "days_left": days},
                f"  incomplete allocation history: 3 blocks, 1,048.0 a day, {left} left at that rate (zk)",
            )
            for days, left in (
                (730.4, "730.4 days"),
                (730.5, "2 years"),
                (36_525, "100 years"),
                (365.25e6 - 365.25, "999,999 years"),
                (365.25e6, "over a million years"),
            )
        ),
        (
            {"granted": 3, "next": {"start": 2000, "end": 2999}},
            "  incomplete allocation history: 3 blocks; next 2000..2999 (zk)",
        ),
    ],
)
def test_how_long_the_blocks_last(figures, said):
    assert lines_of(blocks=[{"source": "zk", **figures}])[1:] == [said]


def test_which_clients_open_them():
    creator = {"pattern": "one batch and gone", "transactional_id": False, "topics": ["a", "b"], "topic_count": 2}
    creators = [
        {**creator, "producers": 1200, "batches_per_producer": 1234.56},
        {**creator, "pattern": "pay-#", "transactional_id": True, "topic_count": 3, "producers": 7, "batches_per_producer": 1.0},
        {**creator, "topic_count": 9, "producers": 7, "batches_per_producer": 1.0},
    ]  # fmt: skip
    assert lines_of(creators=creators)[1:] == [
        "  client patterns, most ids first:",
        "    1,200  one batch and gone, 1,234.6 batches each, in a, b",
        "        7  transactional ids like pay-#, 1.0 batches each, in a, b and 1 more topic",
        "        7  one batch and gone, 1.0 batches each, in a, b and 7 more topics",
    ]


def test_histograms_stand_where_no_ids_are_listed():
    histograms = {"histograms": results.producers_result().summary["ids"]["histograms"]}
    assert len(lines_of(histograms)) > 1
    assert len(lines_of(histograms, listed=3)) == 1


def test_without_ids_there_is_nothing_to_say():
    assert lines_of(found=0) == []
    assert statistics_lines(results.producers_result(summary={}), Console()) == []


def test_ids_of_patterns_that_are_not_listed_are_counted():
    creators = results.producers_result().summary["creators"]
    known = sum(creator["producers"] for creator in creators)
    assert lines_of({"chosen": known + 1200}, creators=creators)[-1] == "    1,200  of other patterns"
    assert not [line for line in lines_of({"chosen": known}, creators=creators) if "other patterns" in line]


@pytest.mark.parametrize("width", [80, 100])
def test_a_list_fits_the_terminal_whatever_the_ids(width):
    one, *others = results.producers_result().producers
    long = replace(one, transactional_id="payments-" * 9 + "17", findings=["KA101", "KA104", "KA301", "KA701"])
    result = results.producers_result(producers=[long, *others])
    text = producers_text("table", result, RenderOptions(Console(width=width)))
    row = next(line for line in text.splitlines() if "-17" in line)
    assert len(row) <= width
    assert "..." in row
    assert text.startswith("3 producer ids of 12,345")
