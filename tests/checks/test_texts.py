"""Numbers and lists as findings say them."""

import pytest

from kaudit.checks.texts import counted, duration, first_of, listed, time_text


@pytest.mark.parametrize(
    ("names", "all_of_them", "first"),
    [
        (["b1"], "b1", "b1"),
        (["b1", "b2"], "b1 and b2", "b1 and 1 more"),
        (["b1", "b2", "b3"], "b1, b2 and b3", "b1 and 2 more"),
    ],
)
def test_names(names, all_of_them, first):
    assert (listed(names), first_of(names)) == (all_of_them, first)


def test_numbers_from_a_thousand_on_have_commas():
    assert first_of(["b"] * 1001) == "b and 1,000 more"
    assert [counted(number, "record") for number in (0, 1, 2, 1234)] == [
        "0 records",
        "1 record",
        "2 records",
        "1,234 records",
    ]
    assert counted(2, "batch", "batches") == "2 batches"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0.0 s"), (1500, "1.5 s"), (119_999, "120.0 s"), (120_000, "2 min"), (7_199_000, "120 min"), (7_200_000, "2 h"),
        (172_799_000, "48 h"), (172_800_000, "2 days"), (259_200_000, "3 days"),
    ],
)  # fmt: skip
def test_a_duration_is_in_the_largest_unit_of_which_there_are_two(milliseconds, text):
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [(0, "1970-01-01 00:00:00 UTC"), (1_700_000_000_999, "2023-11-14 22:13:20 UTC"), (2**62, f"{2**62} ms UTC")],
)
def test_a_time_is_to_the_second(timestamp, text):
    assert time_text(timestamp) == text
