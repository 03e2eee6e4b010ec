"""When a second process is worth starting."""

import pytest

from kaudit.engines.parallelism import START_SECONDS, Trial

MIB = 1 << 20


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def pays(mib, read, take, row_bytes=0, processes=2, start="fork"):
    return Trial(4 * MIB, row_bytes, read, take).processes_pay(mib * MIB, processes, start)


def test_what_takes_less_than_starting_them_is_read_here():
    seconds = START_SECONDS["fork"]
    assert not pays(4, 2 * seconds, 0)
    assert pays(5, 2 * seconds, 0)
    assert not pays(5, 2 * seconds, 0, start="spawn")


def test_nothing_is_gained_where_passing_the_rows_on_is_as_much_work_as_reading():
    assert pays(4096, 0.010, 0.005)
    assert not pays(4096, 0.010, 0.005, row_bytes=8 * MIB)


def test_taking_the_rows_is_all_that_is_left_where_it_is_most_of_the_work():
    times = round(START_SECONDS["fork"] / 0.004)
    assert pays(4 * (times + 2), 0.004, 0.010)
    assert not pays(4 * (times - 2), 0.004, 0.010)


def test_cores_that_are_not_there_gain_nothing():
    assert pays(64, 0.010, 0.004, processes=64) == pays(64, 0.010, 0.004, processes=2)
