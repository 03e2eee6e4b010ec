"""What people see of producers and timelines, on real and made logs."""

import pytest

from tests.logs import Log, data

IDS = 60


@pytest.fixture
def many_ids(tmp_path):
    log = Log()
    for producer_id in range(IDS):
        log.append(data(producer_id, 0, 0, 1))
    return log.write(tmp_path / "orders-0").parent


def listed(text):
    return [int(line.split()[0]) for line in text.splitlines() if line[:9].strip().isdecimal()]


def test_producers_lists_fifty_ids_and_says_how_to_see_the_rest(kaudit, many_ids):
    shown = kaudit("producers", str(many_ids)).out
    assert listed(shown) == list(range(50))
    assert "the first 50 of 60; --limit 60 lists all" in shown


@pytest.mark.parametrize("asked", [["--limit", "60"], [word for n in range(IDS) for word in ("--producer-id", str(n))]])
def test_producers_lists_all_that_were_asked_for(kaudit, many_ids, asked):
    shown = kaudit("producers", str(many_ids), *asked).out
    assert listed(shown) == list(range(IDS))
    assert "the first" not in shown


def test_a_timeline_names_the_transactional_id_that_its_coordinator_knows(kaudit, evidence):
    directory = evidence.capture("txn-mix-2.8.2") / "logdirs-killed" / "b0"
    shown = kaudit("timeline", str(directory), "--topic", "tx-a", "--producer-id", "9").out
    assert "tx-a-0  producer 9  transactional id tx-confluent-z" in shown


def test_a_timeline_marks_who_is_fenced_and_when_the_leader_changed(kaudit, evidence):
    # the captures' own accounts: tx-confluent-z was fenced by a second instance; the unclean election began leader epoch 3
    directory = evidence.capture("txn-mix-2.8.2") / "logdirs-killed" / "b0"
    shown = kaudit("timeline", str(directory), "--topic", "tx-a", "--producer-id", "9").out
    assert "ABORT     1      -         06:01:30.288  fences epoch 0" in shown
    brokers = evidence.capture("failover-acks1") / "B3-recovered" / "b1"
    shown = kaudit("timeline", str(brokers), "--topic", "all-idem-unclean").out
    assert "fences epoch 0, 1,407 batches in 25 s, leader epoch 3" in shown
