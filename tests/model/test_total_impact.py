"""What findings of one cause cost together."""

import pytest
from msgspec.structs import replace

from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Finding
from kaudit.model.impact import Impact
from kaudit.model.severity import Confidence, Severity
from kaudit.model.total_impact import total_impact

NOON = 1_700_000_000_000


class LeaderEpochEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    leader_epoch: int


def found(first, last, *, partition=0, replica="1", producer_id=None, code="KA007", **impact):
    return Finding(
        code=code,
        name="any",
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message="",
        topic="orders",
        partition=partition,
        replica=replica,
        log_dir=f"/data/{replica}",
        offset=first,
        last_offset=last,
        producer_id=producer_id,
        impact=Impact(**impact),
    )


def lost(first, last, least, most, **place):
    return found(first, last, records_lost_at_least=least, records_lost_at_most=most, **place)


def bounds(*findings):
    total = total_impact(findings)
    assert total == total_impact(reversed(findings))
    return total.records_lost_at_least, total.records_lost_at_most


def test_nothing_costs_nothing():
    assert total_impact([]) == Impact()
    assert total_impact([found(1, 2)]) == Impact()


def test_one_finding_is_its_own_total():
    impact = Impact(1, 2, 3, 4, 5, 6, NOON, 7)
    fields = {name: getattr(impact, name) for name in Impact.__struct_fields__}
    assert total_impact([found(5, 9, **fields)]) == impact


def test_missing_offsets_that_two_checks_report_are_lost_once():
    assert bounds(lost(10, 14, 0, 5), lost(10, 14, 2, 5, code="KA001")) == (2, 5)
    assert bounds(lost(10, 14, 0, 5), lost(12, 19, 0, 8)) == (0, 10)  # offsets 10..19
    assert bounds(lost(10, 14, 0, 5), lost(15, 19, 3, 5)) == (3, 10)


@pytest.mark.parametrize("earlier", [0, 1])
def test_what_was_cut_off_when_two_leader_epochs_began_are_different_records_at_the_same_offsets(earlier):
    first, second = (
        replace(lost(*offsets, least, most, code="KA612"), evidence=LeaderEpochEvidence(leader_epoch=epoch))
        for epoch, offsets, least, most in ((earlier, (180, 249), 50, 70), (2, (230, 274), 25, 45))
    )
    assert bounds(first, second) == (75, 115)
    # one that is not about a leader epoch may be about either
    assert bounds(first, second, lost(230, 274, 30, 30)) == (75, 145)
    assert bounds(first, lost(180, 249, 60, 70)) == (60, 70)


def test_a_range_that_lost_more_records_than_its_offsets_is_not_capped_by_them():
    assert bounds(lost(10, 10, 0, 7), lost(10, 10, 0, 7, code="KA601")) == (0, 14)


def test_records_of_two_producers_are_different_records():
    assert bounds(lost(10, 14, 3, 3, producer_id=1), lost(10, 14, 4, 4, producer_id=2)) == (7, 7)
    assert bounds(lost(10, 14, 3, 3, producer_id=1), lost(10, 14, 0, 9, producer_id=1)) == (3, 9)


def test_missing_offsets_may_have_held_the_missing_sequences_or_other_records():
    assert bounds(lost(10, 14, 0, 5), lost(10, 14, 8, 8, producer_id=1)) == (8, 13)


def test_an_unknown_number_makes_the_total_unknown():
    assert bounds(lost(10, 14, 0, None), lost(20, 24, 5, 5)) == (5, None)
    assert bounds(lost(None, None, 0, 3), lost(None, None, 1, 1, code="KA003")) == (1, 4)


def test_replicas_lose_a_record_once_and_partitions_each_their_own():
    assert bounds(lost(10, 14, 5, 5), lost(10, 14, 5, 5, replica="2")) == (5, 5)
    assert bounds(lost(10, 14, 5, 5), lost(10, 14, 5, 5, partition=1)) == (10, 10)


def test_replicas_that_lost_other_offsets_lost_other_records():
    assert bounds(lost(10, 14, 5, 5), lost(20, 21, 0, 2, replica="2")) == (5, 7)


def test_copies():
    copies = [found(10, 12, records_duplicated=3), found(13, 13, records_duplicated=1)]
    assert total_impact(copies).records_duplicated == 4
    assert total_impact([*copies, found(10, 13, code="KA704", records_duplicated=4)]).records_duplicated == 4
    assert total_impact([*copies, found(10, 12, replica="2", records_duplicated=3)]).records_duplicated == 4


def copied(*bounds):
    total = total_impact(
        [
            found(10 * at, 10 * at + 5, code=code, records_duplicated=least, records_duplicated_at_most=most)
            for at, code, least, most in bounds
        ]
    )
    return total.records_duplicated, total.records_duplicated_at_most


def test_bounds_of_copies_add_up_and_an_unknown_one_stays_unknown():
    assert copied((1, "KA101", 3, 3), (2, "KA101", 0, 4)) == (3, 7)
    assert copied((1, "KA101", 3, 3), (2, "KA702", 2, None)) == (5, None)
    assert copied((1, "KA101", 3, 3), (1, "KA102", 2, 6)) == (3, 6)
    assert copied() == (None, None)


def test_what_consumers_cannot_see():
    first = found(2, 2, offsets_invisible=98, last_stable_offset=2, invisible_since_timestamp=NOON)
    again = found(2, 2, code="KA304", offsets_invisible=98, last_stable_offset=2, invisible_since_timestamp=NOON)
    behind = found(2, 2, replica="2", offsets_invisible=90, last_stable_offset=2, invisible_since_timestamp=NOON)
    other = found(7, 7, partition=1, offsets_invisible=3, last_stable_offset=7, invisible_since_timestamp=NOON - 5)
    assert total_impact([first, again, behind]) == first.impact
    total = total_impact([first, again, behind, other])
    assert total == Impact(offsets_invisible=101, invisible_since_timestamp=NOON - 5)


def test_bytes_cut_off():
    damages = [found(5, 5, bytes_truncated=900), found(9, 9, bytes_truncated=100)]
    assert total_impact(damages).bytes_truncated == 900
    assert total_impact([*damages, found(5, 5, replica="2", bytes_truncated=50)]).bytes_truncated == 950


def test_the_last_stable_offset_is_that_of_the_only_partition_that_has_one():
    open_here = found(1, 2, offsets_invisible=5, last_stable_offset=1, invisible_since_timestamp=NOON)
    elsewhere = found(1, 2, partition=1, records_duplicated=3)
    total = total_impact([open_here, elsewhere])
    assert (total.last_stable_offset, total.offsets_invisible, total.invisible_since_timestamp) == (1, 5, NOON)
    both = found(7, 8, partition=1, offsets_invisible=2, last_stable_offset=7, invisible_since_timestamp=NOON - 1)
    total = total_impact([open_here, both])
    assert (total.last_stable_offset, total.offsets_invisible, total.invisible_since_timestamp) == (None, 7, NOON - 1)
    # of one partition the earliest, and the most
    total = total_impact(
        [open_here, found(0, 9, offsets_invisible=9, last_stable_offset=0, invisible_since_timestamp=NOON + 1)]
    )
    assert (total.last_stable_offset, total.offsets_invisible, total.invisible_since_timestamp) == (0, 9, NOON)


def test_bytes_are_cut_off_each_log_once():
    same_log = [found(1, 1, bytes_truncated=70), found(9, 9, bytes_truncated=30)]
    assert total_impact(same_log).bytes_truncated == 70
    assert total_impact([*same_log, found(1, 1, replica="2", bytes_truncated=5)]).bytes_truncated == 75
    assert total_impact([*same_log, found(1, 1, partition=2, bytes_truncated=5)]).bytes_truncated == 75
