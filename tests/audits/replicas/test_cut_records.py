"""How many of the records that replicas cut off nobody has any more."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from kaudit.audits.replicas.cut_records import KnownLog, changes_without_loss, cut_records
from kaudit.audits.replicas.partition_leaders import leaders_by_epoch
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.record_loss import CutBy, FollowerStart, LeaderHistory, LeaderStart, LogCut, RefusedSequence
from kaudit.source.discover import discover
from kaudit.source.layout import CLUSTER_METADATA
from kaudit.source.schemes import open_segment
from tests.live_brokers.accidents.judged import recorded
from tests.logs import BASE_TIMESTAMP, Log, data

LINE = EventEvidence(line=1)
BEGAN = BASE_TIMESTAMP + 60_000
"""When the new leader began; clocks may differ by a second."""


def leader(epoch=1, offset=10, broker="broker 2", at_ms=BEGAN):
    return LeaderStart(broker, epoch, offset, at_ms, states_recovery=True, event=LINE)


def log_cut(end=30, offset=10, mark=None, broker="broker 1", by=CutBy.LEADER_EPOCH):
    return LogCut(broker, offset, end, mark, by, BEGAN + 5, [LINE])


def histories(cuts, leaders=(), unclean=()):
    return LeaderHistory("t", 0, leaders=list(leaders), cuts=list(cuts), unclean=list(unclean))


def known(tmp_path: Path, *batches, epochs=((0, 0), (10, 1)), bumps=None, log_start=0, leaders=None):
    """A log with ten records before the change, and these (batch, made after the new leader began) after it."""
    log = Log()
    log.append(data(7, 0, 0, 10, leader_epoch=0))
    for batch, made_later in batches:
        log.clock = BEGAN + 5000 if made_later else BASE_TIMESTAMP + 10
        log.append(batch)
    log.write(tmp_path / "t-0")
    (directory,) = discover([str(tmp_path)]).partitions
    return KnownLog(
        directory,
        log_start,
        log.next_offset,
        list(epochs)[: 1 + bool(batches)],
        sum(batch.producer_id < 0 for batch in log.batches),
        bumps or {},
        leaders or {},
    )


def bounds(history, log):
    (found,) = cut_records(history, log, open_segment)
    return found.records_lost_at_least, found.records_lost_at_most


def idempotent(sequence, count, producer_id=7, epoch=0):
    return data(producer_id, epoch, sequence, count, leader_epoch=1)


def other(count):
    return data(-1, -1, -1, count, leader_epoch=1)


OLD, NEW = False, True


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        pytest.param([(idempotent(10, 4), OLD), (other(50), NEW)], (16, 20), id="one-batch-again"),
        pytest.param([(idempotent(10, 4), OLD), (idempotent(14, 4), OLD), (other(50), NEW)], (16, 20), id="one-of-each"),
        pytest.param([(idempotent(10, 4), NEW), (other(50), NEW)], (20, 20), id="made-later"),
        pytest.param([(other(3), OLD), (other(50), NEW)], (17, 20), id="others-again"),
        pytest.param([(other(50), OLD)], (0, 20), id="all-again"),
        pytest.param([], (20, 20), id="nothing-since"),
        pytest.param([(idempotent(10, 4), OLD), (idempotent(14, 9), NEW)], (0, 0), id="idempotent-alone"),
    ],
)  # fmt: skip
def test_the_bounds_follow_from_what_may_have_been_sent_again(tmp_path, batches, found):
    log = known(tmp_path, *batches)
    if not batches:
        log = known(tmp_path / "other", (other(1), NEW), epochs=((0, 0), (10, 1)))
    assert bounds(histories([log_cut()], [leader()]), log) == found


@pytest.mark.parametrize(
    ("leaders", "unclean", "bumps", "found"),
    [
        pytest.param([leader()], [1], {}, (16, 20), id="unclean"),
        pytest.param([leader()], [], {1: 1}, (16, 20), id="epoch-raised"),
        pytest.param([], [], {}, (16, 20), id="leader-not-known"),
        pytest.param([leader()], [0], {}, (0, 0), id="unclean-before"),
    ],
)
def test_idempotent_producers_lost_nothing_only_at_a_clean_election(tmp_path, leaders, unclean, bumps, found):
    log = known(tmp_path, (idempotent(10, 4), OLD), bumps=bumps)
    assert bounds(histories([log_cut()], leaders, unclean), log) == found


def test_what_idempotent_producers_sent_first_may_be_all_that_was_cut_off(tmp_path):
    log = known(tmp_path, (idempotent(10, 4), OLD))
    assert bounds(histories([log_cut(end=14)]), log) == (0, 0)
    assert bounds(histories([log_cut(end=15)]), log) == (1, 5)


@pytest.mark.parametrize(
    ("cut", "epochs"),
    [
        pytest.param(log_cut(offset=4, end=10), ((0, 0), (10, 1)), id="to-the-mark"),
        pytest.param(log_cut(offset=4, end=8), ((0, 0), (10, 1)), id="below"),
        pytest.param(log_cut(offset=10, end=10), ((0, 0), (10, 1)), id="nothing"),
        pytest.param(log_cut(offset=4, end=10), ((0, 0),), id="no-new-leader"),
    ],
)
def test_what_the_leader_has_under_the_same_leader_epoch_was_fetched_again(tmp_path, cut, epochs):
    log = known(tmp_path, (other(3), NEW), epochs=epochs)
    assert cut_records(histories([cut], [leader()]), log, open_segment) == []


def test_idempotent_producers_lost_nothing_that_was_not_committed(tmp_path):
    log = known(tmp_path, (idempotent(10, 4), OLD))
    uncommitted = replace(log_cut(), nothing_committed=True)
    assert bounds(histories([uncommitted]), log) == (0, 0)
    assert bounds(histories([uncommitted, log_cut(broker="broker 3")]), log) == (16, 20)


@pytest.mark.parametrize(
    ("epochs", "found"),
    [(((0, 0), (10, 1)), [(10, None)]), (((0, 0), (12, 1)), []), (((0, 0),), [])],
    ids=["leads", "fetched", "same-leader"],
)
def test_a_log_recovered_up_to_damaged_bytes_lost_something_only_where_its_broker_leads(tmp_path, epochs, found):
    damaged = log_cut(end=None, by=CutBy.LOADED)
    cuts = cut_records(histories([damaged]), known(tmp_path, (idempotent(10, 4), OLD), epochs=epochs), open_segment)
    assert [(each.first_offset, each.records_lost_at_most) for each in cuts] == found


def test_a_leader_that_lost_its_own_end_lacks_what_was_acknowledged(tmp_path):
    """It was in sync: else nothing of idempotent producers would be lost. One batch of ten records was sent again perhaps."""
    log = known(tmp_path, (idempotent(10, 10), OLD), epochs=((0, 0), (10, 1)))
    damaged = log_cut(end=None, by=CutBy.LOADED, broker="broker 2")
    assert bounds(histories([log_cut()], [leader()]), log) == (0, 0)
    assert bounds(histories([damaged, log_cut()], [leader()]), log) == (10, None)


def test_what_a_broker_found_less_and_then_cut_off_is_one_loss(tmp_path):
    """Broker 1 recovers its log up to 30, and then follows a leader that began at 10."""
    log = known(tmp_path, (idempotent(10, 4), NEW))
    found_less = log_cut(offset=30, end=None, by=CutBy.LOADED)
    (found,) = cut_records(histories([found_less, log_cut()], [leader(broker="broker 3")]), log, open_segment)
    assert (found.first_offset, found.leader_epoch, found.back_with_less) == (10, 1, ["broker 1"])


@pytest.mark.parametrize(
    ("sequence", "epoch", "refused", "lost"),
    [
        pytest.param(0, 1, {7: (40, 50)}, 40, id="fewest-are-missing-of-the-first-in-flight"),
        pytest.param(0, 1, {8: (40,)}, 0, id="another-producer"),
        pytest.param(10, 0, {7: (40,)}, 0, id="sent-again-in-order"),
        pytest.param(0, 1, {}, 0, id="not-refused"),
    ],
)
def test_sequences_that_a_new_leader_lacks_were_acknowledged(tmp_path, sequence, epoch, refused, lost):
    log = known(tmp_path, (idempotent(sequence, 4, epoch=epoch), NEW))
    history = histories([], [leader()], unclean=[1])
    history.refused += [
        RefusedSequence("broker 2", producer_id, missing, BEGAN + 10, LINE)
        for producer_id, counts in refused.items()
        for missing in counts
    ]
    assert bounds(history, log) == (lost, None)


@pytest.mark.parametrize(("late_ms", "lost"), [(50_000, 40), (70_000, 0)])
def test_a_producer_that_waited_for_too_long_may_have_given_them_up(tmp_path, late_ms, lost):
    """The last record before is from a minute before the new leader began; delivery.timeout.ms is two."""
    log = known(tmp_path, (idempotent(0, 4, epoch=1), NEW))
    history = histories([], [leader()], unclean=[1])
    history.refused.append(RefusedSequence("broker 2", 7, 40, BEGAN + late_ms, LINE))
    assert bounds(history, log) == (lost, None)


def test_a_cut_below_the_new_leaders_beginning_counts_from_there(tmp_path):
    log = known(tmp_path, (other(3), NEW))
    (found,) = cut_records(histories([log_cut(offset=4)], [leader()]), log, open_segment)
    assert (found.first_offset, found.end_offset, found.leader_epoch) == (10, 30, 1)


def test_replicas_that_cut_off_the_same_are_one_loss(tmp_path):
    log = known(tmp_path, (other(3), NEW))
    cuts = [log_cut(end=22, broker="broker 3"), log_cut(end=30)]
    (found,) = cut_records(histories(cuts, [leader()]), log, open_segment)
    assert (found.brokers, found.end_offset, found.records_lost_at_most) == (["broker 3", "broker 1"], 30, 20)


def test_an_end_that_no_line_says_has_no_upper_bound_and_is_named(tmp_path):
    log = known(tmp_path, (other(3), NEW))
    (found,) = cut_records(histories([log_cut(end=None, mark=15)], [leader()]), log, open_segment)
    assert (found.records_lost_at_least, found.records_lost_at_most) == (5, None)
    assert found.unknown[0].startswith("server.log of broker 1 from before: ")


@pytest.mark.parametrize(
    ("epoch", "followed", "leaders", "others"),
    [
        pytest.param(1, [], {}, None, id="next"),
        pytest.param(3, [], {}, "the broker that led under leader epoch 2", id="gap"),
        pytest.param(3, [], {0: 1, 1: -1, 2: -1}, None, id="without-leader"),
        pytest.param(3, [], {0: 1, 1: 2, 2: 1}, None, id="led-to-the-end"),
        pytest.param(3, [], {0: 1, 1: 2, 2: -1}, "broker 2 from before", id="led-by-another"),
        # who led the log that this one was fetched from had more perhaps
        pytest.param(2, [0], {0: 2, 1: -1}, "broker 2 from before", id="followed"),
        pytest.param(1, [0], {}, "the broker that led under leader epoch 0", id="followed-alone"),
    ],
)
def test_leaders_whose_logs_nobody_shows_may_have_had_more(tmp_path, epoch, followed, leaders, others):
    log = known(tmp_path, (other(50), NEW), epochs=((0, 0), (10, epoch)), leaders=leaders)
    history = histories([log_cut()], [leader(epoch)])
    history.followers += [FollowerStart("broker 1", each, 10, BEGAN - 9) for each in followed]
    (found,) = cut_records(history, log, open_segment)
    assert (found.records_lost_at_least, found.records_lost_at_most) == (20, 20 if others is None else None)
    assert [text.split(":")[0] for text in found.unknown] == ([] if others is None else [f"server.log of {others}"])
    # what a broker had that came back with less is all that there was
    history.cuts.append(log_cut(by=CutBy.LOADED))
    assert bounds(history, log) == (20, 20)


def test_the_controller_says_who_led(tmp_path):
    """A topic on brokers 1 and 2: 1 stops, 2 stops, 1 stops and starts again (what `restored_backup` does)."""
    logs = discover([str(recorded("restored-backup") / "restored")])
    metadata = [each for each in logs.everything if each.topic == CLUSTER_METADATA]
    (topic_id,) = {each.topic_id for each in logs.partitions if each.topic == "stock"}
    expected = {0: 1, 1: 2, 2: 1, 3: -1, 4: 1}
    assert leaders_by_epoch(metadata, topic_id, 0, open_segment) == expected
    # broker 2 is stopped when its directory is copied
    alone = [leaders_by_epoch([each], topic_id, 0, open_segment) for each in metadata]
    assert sorted(map(len, alone)) == [3, 5, 5]
    assert all(found.items() <= expected.items() for found in alone)
    assert (
        leaders_by_epoch(metadata, topic_id, 1, open_segment) == leaders_by_epoch(metadata, None, 0, open_segment) == {}
    )


def test_lines_alone_bound_what_was_lost_from_above():
    (found,) = cut_records(histories([log_cut()]), None, open_segment)
    assert (found.records_lost_at_least, found.records_lost_at_most, found.partition_read) == (0, 20, False)
    assert not cut_records(histories([log_cut(by=CutBy.FOLLOWING)]), None, open_segment)
    own = [leader(broker="broker 1", offset=12)]
    assert not cut_records(histories([log_cut(by=CutBy.FOLLOWING)], own), None, open_segment)


def test_coordinators_wait_for_all_replicas_in_sync():
    internal = LeaderHistory("__transaction_state", 1, leaders=[leader()], cuts=[log_cut()])
    assert bounds(internal, None) == (0, 0)
    internal.unclean.append(1)
    assert bounds(internal, None) == (0, 20)


@pytest.mark.parametrize(("end", "epochs"), [(10, [1]), (8, [1]), (11, [])], ids=["same", "less", "more"])
def test_a_change_without_loss_is_one_at_which_the_leader_before_had_no_more(end, epochs):
    history = histories([], [leader(0, 0, "broker 1"), leader()])
    history.followers.append(FollowerStart("broker 1", 1, end, None))
    assert list(changes_without_loss(history)) == epochs
