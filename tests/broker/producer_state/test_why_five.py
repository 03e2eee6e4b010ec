"""The thought experiments of docs/why-five.md, run."""

import pytest

from kaudit.model.sequence import MAX_SEQUENCE
from tests.broker.producer_state.story import Story

OUT_OF_ORDER = 45
WINDOWED = ("1.0.2", "2.0.1", "2.8.2", "3.9.1", "4.2.0")


@pytest.mark.parametrize("version", WINDOWED)
def test_five_in_flight_and_the_retry_of_any_of_them_is_recognised(version):
    story = Story(version)
    for sequence in range(5):
        story.sends(sequence)
    assert [story.sends(sequence) for sequence in range(5)] == [("duplicate", sequence) for sequence in range(5)]


@pytest.mark.parametrize("version", WINDOWED)
def test_six_in_flight_and_the_retry_of_the_first_is_an_error_though_it_is_in_the_log(version):
    story = Story(version)
    for sequence in range(6):
        story.sends(sequence)
    assert story.sends(0) == OUT_OF_ORDER
    assert story.sends(1) == ("duplicate", 1)


def test_with_a_window_of_one_only_the_last_is_recognised():
    story = Story("0.11.0.3")
    for sequence in range(5):
        story.sends(sequence)
    assert [story.sends(sequence) for sequence in range(5)] == [OUT_OF_ORDER] * 4 + [("duplicate", 4)]


@pytest.mark.parametrize("version", WINDOWED)
def test_after_a_gap_the_retries_in_order_close_it_and_nothing_is_lost_or_swapped(version):
    story = Story(version)
    story.sends(0)
    assert [story.sends(2), story.sends(3), story.sends(4)] == [OUT_OF_ORDER] * 3  # 1 was lost on the way
    assert [story.sends(sequence) for sequence in (1, 2, 3, 4)] == [("appended", offset) for offset in (1, 2, 3, 4)]


def test_behind_the_window_and_ahead_of_it_look_the_same_to_the_client():
    story = Story("3.9.1")
    for sequence in range(8):
        story.sends(sequence)
    behind, ahead = story.sends(1), story.sends(9)
    assert behind == ahead == OUT_OF_ORDER


@pytest.mark.parametrize(("version", "code"), [("1.0.0", 46), ("1.0.1", 46), ("1.0.2", 45), ("1.1.0", 45)])
def test_for_two_releases_behind_the_window_had_an_error_of_its_own(version, code):
    story = Story(version)
    for sequence in range(8):
        story.sends(sequence)
    assert story.sends(1) == code


@pytest.mark.parametrize("clean", [True, False])
def test_the_window_is_gone_after_a_restart_but_the_last_batch_is_not(clean):
    story = Story("3.9.1")
    for sequence in range(5):
        story.sends(sequence)
    story.restarts(clean=clean)
    assert [story.sends(sequence) for sequence in range(5)] == [OUT_OF_ORDER] * 4 + [("duplicate", 4)]


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.11.0.3", 45), ("1.0.0", 59), ("2.4.1", 59), ("2.5.0", ("appended", 5)), ("4.2.0", ("appended", 5))],
)
def test_lost_state_turns_a_duplicate_into_an_error_or_into_a_second_copy(version, said):
    story = Story(version, expiration_ms=1000, sweep_ms=100)
    for sequence in range(5):
        story.sends(sequence)
    story.passes(2000)
    assert story.sends(4) == said


def test_an_overlapping_batch_is_never_cut_to_size():
    story = Story("3.9.1")
    story.sends(0, count=4)
    assert [story.sends(0, count=2), story.sends(2, count=2), story.sends(2, count=4), story.sends(0, count=6)] == [
        OUT_OF_ORDER
    ] * 4
    assert story.sends(0, count=4) == ("duplicate", 0)


def test_a_new_epoch_makes_every_old_batch_a_stranger():
    story = Story("3.9.1")
    story.sends(0)
    story.sends(0, epoch=1)
    assert story.sends(0, epoch=0) == 47
    assert story.sends(0, epoch=1) == ("duplicate", 1)


@pytest.mark.parametrize(("version", "offset"), [("2.0.1", 2**31 + 1), ("2.1.1", 1)])
def test_where_sequences_wrap_old_brokers_misplace_the_duplicate(version, offset):
    story = Story(version)
    story.replicates(MAX_SEQUENCE - 2)
    assert story.sends(MAX_SEQUENCE - 1, count=4) == ("appended", 1)
    assert story.sends(MAX_SEQUENCE - 1, count=4) == ("duplicate", offset)
