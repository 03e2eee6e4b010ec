"""KA901: two writers of one offset."""

from kaudit.model.impact import Impact
from tests.checks.groups.scanned import evidence_of, of_groups, scanned
from tests.commits import GroupLog


def test_a_replaced_producer_is_named_with_the_one_that_lives(tmp_path):
    log = GroupLog()
    for own in (105, 110, 118):
        log.commit("sink", own, producer=(31, 0)).commit("sink", 100, producer=(30, 0))
    (found,) = of_groups(scanned(log.write(tmp_path)))
    assert found.message == (
        "the committed offset of sink on orders-0 went back 3 times, by producer 30 while producer 31 is active; first from 105 to 100"
    )
    assert (found.producer_id, found.confidence.value) == (30, "certain")
    assert evidence_of(found)["records"] == 5 + 10 + 18
    assert found.impact == Impact(records_delivered_again=0, commits_went_back=3)


def test_programs_without_transactions_are_likely_two(tmp_path):
    (found,) = of_groups(scanned(GroupLog().commit("g", 100, 5, 110, 6, 120).write(tmp_path)))
    assert (found.code, found.confidence.value, found.producer_id) == ("KA901", "likely", None)
    assert found.message.endswith("went back 2 times, by no member: two commit in turn; first from 100 to 5")
