"""Ends of logs that brokers cut off, by the lines of each release."""

import pytest

from kaudit.audits.log_events.leader_history import Shown, leader_histories
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.record_loss import CutBy
from tests.checks.broker_state.lines import line

LOG = "[UnifiedLog partition=t-0, dir=/data]"
FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0]"
FOLLOWER_2_6 = "[Partition t-0 broker=1] Follower t-0 starts at leader epoch 1 from offset 9 with high watermark 5. Previous leader epoch was 0."
FOLLOWER = (
    "[Broker id=1] Follower t-0 starts at leader epoch 1 from offset 9 with partition epoch 3 and high watermark 5. "
    "Current leader is 2. Previous leader Some(2) and previous leader epoch was 1."
)
LOADED = (
    "Completed load of Log(dir=/data/t-0, topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, "
    "logEndOffset=9) with 1 segments in 32ms (1/1 loaded in /data)"
)
SNAPSHOT = "[ProducerStateManager partition=t-0] Wrote producer snapshot at offset 9 with 1 producer ids in 4 ms."
CUT = f"{LOG} Truncating to offset 6"
BY_EPOCH = (
    f"{FETCHER} Truncating partition t-0 with TruncationState(offset=6, completed=true) due to leader epoch and offset "
    "EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, endOffset=6)"
)
BY_MARK = (
    f"{FETCHER} Truncating partition t-0 with TruncationState(offset=6, completed=true) due to local high watermark 6"
)


def history(*texts):
    """What the lines of one broker say of t-0."""
    lines = (line(text, second, logger="kafka.Any") for second, text in enumerate(texts))
    events = read_events(
        ["\n".join(lines).encode() + b"\n"],
        "server",
        path="server.log",
        counts=LogCounts(),
        year_before_ms=1_800_000_000_000,
        partitions=[b"t-0"],
    )
    shown = Shown(lambda event: EventEvidence(line=event.line), lambda event: event.timestamp_ms)
    return leader_histories(events, shown).get(("t", 0))


def cut(*texts):
    """The end before the cut, its offset, the high watermark before, and the lines, of the only cut; None without one."""
    found = history(*texts)
    if found is None or not found.cuts:
        return None
    (only,) = found.cuts
    return only.end_offset, only.offset, only.at_least, [event.line for event in only.events]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param([FOLLOWER, BY_EPOCH, CUT], (9, 6, None, [1, 2, 3]), id="follower"),
        pytest.param([FOLLOWER_2_6, CUT], (9, 6, None, [1, 2]), id="follower-2.6"),
        pytest.param([LOADED, CUT], (9, 6, None, [1, 2]), id="loaded"),
        pytest.param([BY_EPOCH, CUT], (None, 6, None, [2]), id="no-end"),
        pytest.param([SNAPSHOT, CUT], (None, 6, None, [2]), id="end-not-exact"),
        pytest.param(
            [FOLLOWER, f"{FETCHER} Truncating t-0 to offset 6 below high watermark 8", CUT],
            (9, 6, 8, [1, 2, 3]),
            id="below-mark",
        ),
        pytest.param(
            [FOLLOWER, CUT, f"{LOG} Non-monotonic update of high watermark from (offset=8, segment=[0:665]) to (offset=6, segment=[0:582])"],
            (9, 6, 8, [1, 2, 3]),
            id="mark-went-back",
        ),
        pytest.param(
            [f"{FETCHER} Reset fetch offset for partition t-0 from 9 to current leader's latest offset 6"],
            (9, 6, None, [1]),
            id="reset-to-end",
        ),
        pytest.param([BY_MARK, f"{LOG} Truncating to 6 has no effect as the largest offset in the log is 5"], None, id="no-effect"),
        pytest.param([FOLLOWER, f"{LOG} Truncating to offset 9"], None, id="nothing-cut"),
        pytest.param(
            [f"{FETCHER} Truncate fully and reset fetch offset for partition t-0 from 7 to the current leader's start offset 90"],
            None,
            id="begun-anew",
        ),
    ],
)  # fmt: skip
def test_what_was_cut_off(texts, found):
    assert cut(*texts) == found


def test_the_snapshot_that_a_truncation_writes_is_no_second_end():
    found = history(FOLLOWER, CUT, SNAPSHOT.replace("offset 9", "offset 6"), CUT.replace("6", "4"))
    assert [(own.offset, own.end_offset) for own in found.cuts] == [(6, 9), (4, 6)]


SHUT_DOWN = "[BrokerServer id=1] shut down completed"
MARK = "[Partition t-0 broker=1] Log loaded for partition t-0 with initial high watermark 6"
STOPPED = "[BrokerLifecycleManager id=1] Beginning controlled shutdown."
RECOVERED = "[LogLoader partition=t-0, dir=/data] Recovering unflushed segment 0. 0 recovered for t-0."


def test_the_high_watermark_a_log_is_opened_with_is_not_its_end():
    assert cut(LOADED, MARK, BY_EPOCH, CUT) == (9, 6, None, [1, 3, 4])


@pytest.mark.parametrize(
    ("end", "found"),
    [("logEndOffset=5", (9, 5, CutBy.LOADED)), ("logEndOffset=9", None), ("logEndOffset=12", None)],
    ids=["shorter", "same", "longer"],
)
def test_a_log_that_is_shorter_when_its_broker_starts_lost_its_end(end, found):
    (*cuts,) = history(SNAPSHOT, SHUT_DOWN, LOADED.replace("logEndOffset=9", end)).cuts
    assert [(each.end_offset, each.offset, each.by) for each in cuts] == ([] if found is None else [found])


@pytest.mark.parametrize("suffix", ["future", "delete", "stray"])
def test_directories_beside_the_partitions_own_say_nothing_of_its_end(suffix):
    aside = LOADED.replace("/data/t-0,", f"/data/t-0.5f2b8f5f9c5d4a4f9f2c3a1d7e6b5c4d-{suffix},")
    assert history(SNAPSHOT, aside.replace("logEndOffset=9", "logEndOffset=1")).cuts == []


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([SNAPSHOT, STOPPED, LOADED, MARK, CUT], True),
        ([SNAPSHOT, STOPPED, LOADED, MARK.replace("mark 6", "mark 7"), CUT], False),
        ([SNAPSHOT, LOADED, MARK, CUT], False),
        ([SNAPSHOT, STOPPED, RECOVERED, LOADED, MARK, CUT], False),
        ([SNAPSHOT, STOPPED, LOADED, MARK, *["another line"] * 11, CUT], False),
    ],
    ids=["beyond", "below", "killed", "stop-cut-short", "later"],
)
def test_what_lies_beyond_the_high_watermark_of_a_clean_stop_was_not_committed(texts, found):
    (only,) = history(*texts).cuts
    assert only.nothing_committed is found


CREATED = "Created log for partition t-0 in /data/t-0 with properties {}"
GONE = "Log for partition t-0 is renamed to /data/t-0.16-delete and is scheduled for deletion"
FETCHER_4 = (
    "[ReplicaFetcherManager on broker 1] Added fetcher to broker 2 for partitions HashMap(t-0 -> InitialFetchState(Some(a),"
    "BrokerEndPoint[id=2, host=127.0.0.1, port=9092],1,9))"
)
FETCHER_3 = FETCHER_4.replace("[id=2, host=127.0.0.1, port=9092]", "(id=2, host=127.0.0.1:9092)")


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param([SNAPSHOT, SHUT_DOWN, CREATED], (9, 0, 9, [1, 3]), id="lost"),
        pytest.param([SNAPSHOT, CREATED], (None, 0, 9, [1, 2]), id="lost-after-a-kill"),
        pytest.param([SNAPSHOT, SHUT_DOWN, LOADED.replace("=9)", "=4)")], (9, 4, 9, [1, 3]), id="restored"),
        pytest.param([SNAPSHOT, SHUT_DOWN, LOADED], None, id="whole"),
        pytest.param([SNAPSHOT, GONE, CREATED], None, id="deleted"),
        pytest.param([FETCHER_4, CUT], (9, 6, None, [1, 2]), id="fetcher-4"),
        pytest.param([FETCHER_3, CUT], (9, 6, None, [1, 2]), id="fetcher-3"),
    ],
)
def test_a_broker_that_starts_with_less_has_lost_it(texts, found):
    assert cut(*texts) == found


DAMAGED = "[LogLoader partition=t-0, dir=/data] Corruption found in segment 0, truncating to offset 6"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([DAMAGED, LOADED.replace("logEndOffset=9", "logEndOffset=6")], [(None, 6)]),
        ([SNAPSHOT, DAMAGED, LOADED.replace("logEndOffset=9", "logEndOffset=6")], [(None, 6)]),
        ([MARK, "Stopping serving logs in dir /data", DAMAGED], []),
    ],
    ids=["end-not-known", "end-known", "disk-failed"],
)
def test_what_followed_damaged_bytes_is_gone(texts, found):
    cuts = history(*texts).cuts
    assert [(each.end_offset, each.offset) for each in cuts] == found
    assert all(each.by is CutBy.LOADED for each in cuts)


def test_leaders_and_followers_are_listed():
    leader = (
        "[Broker id=1] Leader t-0 with topic id Some(jlEy6dZfT9628LcQjmLQfg) starts at leader epoch 3 from offset 7 with partition "
        "epoch 3, high watermark 7, ISR [1], adding replicas [] and removing replicas []. Previous leader epoch was 2."
    )
    found = history(leader, FOLLOWER)
    assert [(own.broker, own.leader_epoch, own.offset, own.states_recovery) for own in found.leaders] == [
        ("broker 1", 3, 7, True)
    ]
    assert [(own.leader_epoch, own.end_offset) for own in found.followers] == [(1, 9)]


_CONTROLLER = "[Controller id=4 epoch=1]"


@pytest.mark.parametrize(
    ("in_sync", "leader", "unclean"),
    [("1", 2, [3]), ("1,2", 2, []), ("1", -1, []), ("21,3", 2, [3])],
    ids=["unclean", "clean", "none", "other-numbers"],
)
@pytest.mark.parametrize(
    "elected",
    [
        "Changed partition t-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr(leader={}, leaderEpoch=3, isr=List(2), zkVersion=3)",
        "Partition t-0 state changed to (Leader:{},ISR:2,LeaderEpoch:3,ZkVersion:3,ControllerEpoch:1) after removing replica 1 from the ISR as part of transition to OfflineReplica",
    ],
    ids=["elected", "after-removal"],
)
def test_a_controller_with_zookeeper_says_who_leads_and_who_had_been_in_sync(in_sync, leader, unclean, elected):
    before = f"{_CONTROLLER} Partition t-0 state changed to (Leader:-1,ISR:{in_sync},LeaderEpoch:2,ZkVersion:2,ControllerEpoch:1) after removing replica 1 from the ISR as part of transition to OfflineReplica"
    found = history(before, f"{_CONTROLLER} {elected.format(leader)}")
    assert found is not None
    assert found.elected == {2: -1, 3: leader}
    assert found.unclean == unclean


def test_sequences_in_front_of_a_refused_batch_are_counted():
    """Not those of a batch that came too early, nor of one that was written already."""
    refused = "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 7 at offset 9 in partition t-0: {} (incoming seq. number), {} (current end sequence number)"
    found = history(refused.format(280, 179), refused.format(179, 179), refused.format(0, 179))
    assert found is not None
    assert [(each.producer_id, each.missing) for each in found.refused] == [(7, 100)]
