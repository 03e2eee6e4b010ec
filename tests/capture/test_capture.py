"""Captures of a broker that answers what a test scripts; real ones are in tests/cluster."""

import gc
import json
import multiprocessing
import os
import struct
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

import hdfs_native
import pytest
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest

from kaudit.capture.account import Account, Missing, PartitionAccount, Run, parse_account
from kaudit.capture.capture import Capture, CaptureRequest, require_there
from kaudit.capture.directory import CaptureDirectory, OccupiedError
from kaudit.capture.partition import LeaderEpochs, epochs_of_leader
from kaudit.formats.sidefiles.checkpoints import parse_leader_epoch_checkpoint, parse_offset_checkpoint
from kaudit.model.leader_epochs import EpochEntry
from kaudit.source.kafka.answers import TopicPartition
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.failures import UnknownTopicError
from tests.logs import data
from tests.source.kafka.fake_broker import FETCH, OFFSET_FOR_LEADER_EPOCH, FakeBroker
from tests.source.test_stores import NameNode

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ORDERS = ("orders", 0)
TOPIC_AUTHORIZATION_FAILED = 29


@pytest.fixture(autouse=True)
def _collected():
    gc.freeze()  # what other tests have left is not searched
    yield
    gc.collect()


def batches(count, first=0, *, leader_epoch=0):
    """Batches of two records of one producer, from a sequence that is their offset."""
    offsets = range(first, first + 2 * count, 2)
    return [data(7, 0, offset, 2, leader_epoch=leader_epoch).at(offset).encode() for offset in offsets]


SIZE = len(batches(1)[0])


@pytest.fixture
def broker():
    with FakeBroker({ORDERS: batches(10)}) as running:
        running.configs["orders"] = {"segment.bytes": str(4 * SIZE)}
        yield running


class Progress:
    """Keeps what it is given, and asks to stop after so many fetches with records."""

    def __init__(self, stop_after=None):
        self.stop = threading.Event()
        self.stop_after = stop_after
        self.problems = []
        self.offsets = self.total = self.bytes = 0

    def start(self, offsets):
        self.total += offsets

    def advance(self, offsets, size_in_bytes):
        self.offsets += offsets
        self.bytes += size_in_bytes
        if self.stop_after is not None and size_in_bytes:
            self.stop_after -= 1
            if self.stop_after <= 0:
                self.stop.set()

    def problem(self, partition, reason):
        self.problems.append((partition, reason))


def capture(broker, target, request=None, progress=None, *, retry_seconds=0.5):
    """One run; returns the account."""
    progress, request = progress or Progress(), request or CaptureRequest({"orders": None})
    with KafkaClient(broker.address, retry_seconds=retry_seconds) as client:
        topics = require_there(client, request)
        directory = CaptureDirectory(str(target))
        try:
            work = Capture(client, directory, request, topics, progress)
            work.run(progress.stop)
        finally:
            directory.close()
    return work.account


def in_pieces(broker, size):
    """Let the broker send no more than `size` bytes at a time."""

    def fetched(request):
        request.topics[0].partitions[0].partition_max_bytes = size
        return broker.fetched(request)

    broker.scripts[FETCH] = fetched


def segments(target, partition="orders-0"):
    return {path.name: path.read_bytes() for path in sorted((target / partition).glob("*.log"))}


def offsets_of(target, name):
    rows = parse_offset_checkpoint((target / name).read_bytes()).rows
    return {(row.topic, row.partition): row.offset for row in rows}


def epochs_of(target, partition="orders-0"):
    rows = parse_leader_epoch_checkpoint((target / partition / "leader-epoch-checkpoint").read_bytes()).rows
    return [(row.epoch, row.start_offset) for row in rows]


def test_segments_roll_where_the_brokers_would(broker, tmp_path):
    account = capture(broker, tmp_path)
    whole = broker.logs[ORDERS]
    assert segments(tmp_path) == {
        f"{0:020}.log": b"".join(whole[:4]), f"{8:020}.log": b"".join(whole[4:8]), f"{16:020}.log": b"".join(whole[8:]),
    }  # fmt: skip
    (part,) = account.partitions
    assert (part.first_offset, part.next_offset, part.bytes, part.brokers, part.missing) == (0, 20, 10 * SIZE, [1], [])
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert offsets_of(tmp_path, name) == {ORDERS: 20}
    assert (
        offsets_of(tmp_path, "log-start-offset-checkpoint") == offsets_of(tmp_path, "cleaner-offset-checkpoint") == {}
    )
    assert not (tmp_path / ".capturing").exists()


def test_the_account_names_the_cluster_and_what_it_can_do(broker, tmp_path):
    broker.features = {"metadata.version": 25, "transaction.version": 2}
    capture(broker, tmp_path)
    document = json.loads((tmp_path / "capture.json").read_text())
    assert document["schema"] == "kaudit.capture/1"
    assert document["origin"] == {
        "cluster_id": "fake", "features": broker.features, "from_replica": None, "kraft": True,
    }  # fmt: skip
    assert (tmp_path / "meta.properties").read_text().splitlines()[1:] == ["version=1", "node.id=1", "cluster.id=fake"]


def test_the_account_keeps_what_decides_about_segments_and_of_each_run_when_it_was_and_what_it_took(broker, tmp_path):
    broker.configs["orders"] |= {"retention.ms": "5000", "max.message.bytes": "7"}
    began = datetime.now(UTC)
    progress, after = Progress(), Progress()
    capture(broker, tmp_path, progress=progress)
    broker.logs[ORDERS] += batches(1, 20)
    account = capture(broker, tmp_path, progress=after)
    broker_default = {"cleanup.policy": "delete"}
    assert account.topics == {"orders": {**broker_default, "segment.bytes": str(4 * SIZE), "retention.ms": "5000"}}
    assert [(run.servers, run.outcome, run.bytes) for run in account.runs] == [
        (broker.address, "complete", 10 * SIZE), (broker.address, "complete", SIZE),
    ]  # fmt: skip
    times = [datetime.fromisoformat(time) for run in account.runs for time in (run.started_at, str(run.ended_at))]
    assert sorted(times) == times
    assert began - timedelta(milliseconds=1) <= times[0] <= times[-1] <= datetime.now(UTC)
    for counted, offsets in ((progress, 20), (after, 2)):
        assert (counted.total, counted.offsets, counted.bytes) == (offsets, offsets, offsets // 2 * SIZE)


def test_partition_metadata_is_written_where_the_cluster_gives_topics_ids(broker, tmp_path):
    broker.topic_ids["orders"] = UUID("01234567-89ab-cdef-0123-456789abcdef")
    for target in (tmp_path / "ids", tmp_path / "none"):
        capture(broker, target)
        broker.topic_ids["orders"] = UUID(int=0)
    # Kafka's Uuid.toString: base64url without padding
    text = "version: 0\ntopic_id: ASNFZ4mrze8BI0VniavN7w"
    assert (tmp_path / "ids" / "orders-0" / "partition.metadata").read_text() == text
    assert not (tmp_path / "none" / "orders-0" / "partition.metadata").exists()
    broker.topic_ids["orders"] = UUID(int=7)  # since an upgrade to 2.8
    assert capture(broker, tmp_path / "none").partitions[0].problem is None


def test_a_topic_that_was_made_anew_is_another_one(broker, tmp_path):
    broker.topic_ids["orders"] = UUID(int=7)
    capture(broker, tmp_path)
    broker.topic_ids["orders"] = UUID(int=8)
    assert "the topic was deleted and created again" in str(capture(broker, tmp_path).partitions[0].problem)


def test_a_replica_is_asked_for_what_it_holds(tmp_path):
    with FakeBroker({ORDERS: batches(3), ("orders", 1): batches(3)}) as broker:
        broker.replicas = {ORDERS: [1, 2], ("orders", 1): [1]}
        request = CaptureRequest({"orders": None}, from_replica=2)
        for _ in range(2):
            held, other = capture(broker, tmp_path, request).partitions
        assert not broker.asked(OffsetForLeaderEpochRequest)  # a follower does not answer it
        with pytest.raises(OccupiedError, match="from replica 2"):
            capture(broker, tmp_path)
    assert (held.brokers, held.next_offset, held.problem) == ([2], 6, None)
    assert (other.next_offset, other.problem) == (-1, "broker 2 holds no replica of it: [1] do")


def test_an_empty_partition_has_an_empty_segment(tmp_path):
    with FakeBroker({ORDERS: []}) as broker:
        broker.log_start[ORDERS] = 40
        capture(broker, tmp_path)
        assert segments(tmp_path) == {f"{40:020}.log": b""}
        broker.logs[ORDERS] = batches(2, 40)
        capture(broker, tmp_path)
    assert segments(tmp_path) == {f"{40:020}.log": b"".join(batches(2, 40))}


def test_a_log_start_inside_a_batch_is_in_its_checkpoint(broker, tmp_path):
    broker.log_start[ORDERS] = 5
    account = capture(broker, tmp_path)
    assert b"".join(segments(tmp_path).values()) == b"".join(broker.logs[ORDERS][2:])
    assert min(segments(tmp_path)) == f"{4:020}.log"
    assert offsets_of(tmp_path, "log-start-offset-checkpoint") == {ORDERS: 5}
    assert account.partitions[0].first_offset == 5


@pytest.mark.parametrize("size", [SIZE, 3 * SIZE + 5])
def test_runs_that_are_stopped_and_taken_up_make_the_same_files(broker, tmp_path, size):
    capture(broker, tmp_path / "at-once")
    in_pieces(broker, size)
    for run in range(1, 12):
        account = capture(broker, tmp_path / "pieces", progress=Progress(stop_after=1))
        assert account.partitions[0].next_offset == min(run * (size // SIZE) * 2, 20)
        last = max(path.name for path in (tmp_path / "pieces" / "orders-0").glob("*.log"))
        assert account.partitions[0].next_offset >= int(last[:20])
    capture(broker, tmp_path / "pieces")
    assert segments(tmp_path / "pieces") == segments(tmp_path / "at-once")
    for name in ("recovery-point-offset-checkpoint", "orders-0/leader-epoch-checkpoint"):
        assert (tmp_path / "pieces" / name).read_text() == (tmp_path / "at-once" / name).read_text()


def test_a_run_that_is_stopped_asks_about_no_further_partition(broker, tmp_path):
    broker.logs["orders", 1] = batches(1)
    account = capture(broker, tmp_path, progress=Progress(stop_after=1))
    assert {own.partition for each in broker.asked(FetchRequest) for own in each.topics[0].partitions} == {0}
    assert [part.next_offset for part in account.partitions] == [20, -1]
    assert offsets_of(tmp_path, "recovery-point-offset-checkpoint") == {ORDERS: 20}
    assert account.runs[0].outcome == "interrupted"


@pytest.mark.parametrize(("seconds", "saved"), [(0, [0, 2, 4]), (60, [0, 0, 0])])
def test_the_account_is_written_now_and_then_while_a_run_lasts(broker, tmp_path, monkeypatch, seconds, saved):
    monkeypatch.setattr("kaudit.capture.capture._SAVE_SECONDS", seconds)
    in_pieces(broker, SIZE)
    found = []

    class Reader(Progress):
        def advance(self, offsets, size_in_bytes):
            super().advance(offsets, size_in_bytes)
            found.append(json.loads((tmp_path / "capture.json").read_text())["partitions"][0]["next_offset"])

    capture(broker, tmp_path, progress=Reader(stop_after=3))
    assert found == saved


@pytest.mark.parametrize("whole", [3, 4])
def test_a_killed_run_is_taken_up_where_its_last_whole_batch_ends(broker, tmp_path, whole):
    """Four batches fill a segment."""
    capture(broker, tmp_path / "at-once")
    in_pieces(broker, whole * SIZE)

    class Killer(Progress):
        def advance(self, offsets, size_in_bytes):
            super().advance(offsets, size_in_bytes)
            placed = sum(len(content) // SIZE * 2 for content in segments(target).values())
            if offsets_of(target, "recovery-point-offset-checkpoint")[ORDERS] > placed:
                os._exit(8)
            if self.stop.is_set():
                os._exit(9)

    target = tmp_path / "killed"
    for torn in (b"", batches(1)[0][:30], b"\0" * 7):
        run = multiprocessing.get_context("fork").Process(target=capture, args=(broker, target, None, Killer(1)))
        run.start()
        run.join(30)
        assert run.exitcode == 9
        (growing,) = (target / ".capturing").iterdir()
        with growing.open("ab") as out:
            out.write(torn)
        for content in segments(target).values():
            assert len(content) % SIZE == 0
    account = capture(broker, target)
    assert segments(target) == segments(tmp_path / "at-once")
    (part,) = account.partitions
    assert (part.first_offset, part.next_offset, part.first_segment, part.bytes) == (0, 20, 0, 10 * SIZE)
    assert epochs_of(target) == [(0, 0)]


@pytest.mark.parametrize("torn", [b"", b"\0", batches(1)[0][:30]])
def test_a_segment_that_was_only_begun_is_begun_again(broker, tmp_path, torn):
    capture(broker, tmp_path)
    (tmp_path / ".capturing").mkdir()
    (tmp_path / ".capturing" / f"orders-0.{20:020}").write_bytes(torn)
    broker.logs[ORDERS] += batches(3, 20)
    capture(broker, tmp_path)
    assert segments(tmp_path)[f"{24:020}.log"] == batches(1, 24)[0]
    assert b"".join(segments(tmp_path).values()) == b"".join(broker.logs[ORDERS])


def test_a_segment_is_named_after_the_end_of_the_one_before_it(tmp_path):
    """Batches larger than a segment have one each, and what compaction removed looks like no missing file."""
    logs = {ORDERS: [], ("orders", 1): [*batches(4), *batches(2, 10)]}
    with FakeBroker(logs) as broker:
        capture(broker, tmp_path)
        broker.logs[ORDERS] = batches(2)
        broker.configs["orders"] = {"segment.bytes": str(SIZE - 1), "cleanup.policy": "compact"}
        capture(broker, tmp_path / "larger")
        capture(broker, tmp_path)
        broker.configs["orders"]["segment.bytes"] = str(4 * SIZE)
        capture(broker, tmp_path / "gap")
    for target in (tmp_path, tmp_path / "larger"):
        assert segments(target) == {f"{0:020}.log": batches(1)[0], f"{2:020}.log": batches(1, 2)[0]}
    assert list(segments(tmp_path / "gap", "orders-1")) == [f"{0:020}.log", f"{8:020}.log"]


def test_no_segment_holds_an_offset_that_an_index_cannot(tmp_path):
    """Indexes hold offsets relative to the segment's first, as int32 (LogSegment.canConvertToRelativeOffset)."""
    with FakeBroker({ORDERS: [*batches(1), *batches(2, 2**31 - 2)]}) as broker:
        capture(broker, tmp_path)
    assert {name: len(content) // SIZE for name, content in segments(tmp_path).items()} == {
        f"{0:020}.log": 2, f"{2**31:020}.log": 1,
    }  # fmt: skip


def test_what_a_broker_sends_again_is_not_captured_again(broker, tmp_path):
    capture(broker, tmp_path / "at-once")
    in_pieces(broker, 3 * SIZE)
    capture(broker, tmp_path / "again", progress=Progress(stop_after=1))
    broker.scripts[FETCH] = lambda request: broker.fetched(request, records=b"".join(broker.logs[ORDERS]))
    progress = Progress()
    capture(broker, tmp_path / "again", progress=progress)
    assert segments(tmp_path / "again") == segments(tmp_path / "at-once")
    assert progress.bytes == 7 * SIZE


def test_ranges_that_are_missing_are_listed_up_to_a_thousand():
    account = PartitionAccount("orders", 0)
    account.miss(5, 6, "retention")
    account.miss(5, 9, "retention")  # the run that noted it first was killed before it could go on
    for number in range(1, 1002):
        account.miss(10 * number, 10 * number, "not in the log")
    assert account.missing[:2] == [Missing(5, 9, "retention"), Missing(10, 10, "not in the log")]
    assert (len(account.missing), account.missing_unlisted) == (1000, 2)


def test_retention_that_overtakes_is_in_the_account_and_moves_the_log_start(broker, tmp_path):
    capture(broker, tmp_path)
    broker.logs[ORDERS] = batches(2, 30)
    broker.log_start[ORDERS] = 31
    progress = Progress()
    (part,) = capture(broker, tmp_path, progress=progress).partitions
    assert progress.bytes == 2 * SIZE
    assert [(each.first_offset, each.last_offset) for each in part.missing] == [(20, 30)]
    assert (part.first_offset, part.next_offset) == (0, 34)
    assert offsets_of(tmp_path, "log-start-offset-checkpoint") == {ORDERS: 31}
    assert max(segments(tmp_path)) == f"{30:020}.log"


def test_gaps_are_compactions_in_a_compacted_topic_and_missing_in_another(tmp_path):
    logs = {("orders", 0): [*batches(2), *batches(2, 10)], ("users", 0): [*batches(2), *batches(2, 10)]}
    with FakeBroker(logs) as broker:
        broker.configs["users"] = {"cleanup.policy": "compact,delete"}
        orders, users = capture(broker, tmp_path, CaptureRequest({"orders": None, "users": [0]})).partitions
    assert (users.compacted_offsets, users.missing) == (6, [])
    assert orders.compacted_offsets == 0
    assert [(each.first_offset, each.last_offset) for each in orders.missing] == [(4, 9)]
    # the cleaner has passed the last gap; whether it has been at what follows is not known
    assert offsets_of(tmp_path, "cleaner-offset-checkpoint") == {("users", 0): 10}
    assert offsets_of(tmp_path, "log-start-offset-checkpoint") == {}


def test_epochs_are_the_leaders_those_without_batches_too(tmp_path):
    logs = {ORDERS: [*batches(2), *batches(3, 4, leader_epoch=5)], ("orders", 1): [], ("orders", 2): []}
    logs["orders", 3] = [*batches(2, leader_epoch=-1)]
    with FakeBroker(logs) as broker:
        broker.epochs |= {ORDERS: [(0, 0), (4, 3), (5, 4), (7, 10)], ("orders", 1): [(3, 0)], ("orders", 3): [(-1, 0)]}
        broker.log_start["orders", 2] = 5
        capture(broker, tmp_path / "asked")
        del broker.versions[OFFSET_FOR_LEADER_EPOCH]
        capture(broker, tmp_path / "not-asked")
    assert epochs_of(tmp_path / "asked") == [(0, 0), (4, 3), (5, 4), (7, 10)]
    assert [epochs_of(tmp_path / "asked", f"orders-{number}") for number in (1, 2, 3)] == [[(3, 0)], [(0, 5)], []]
    assert epochs_of(tmp_path / "not-asked") == [(0, 0), (5, 4)]


def test_epochs_that_the_leader_has_forgotten_since_stay(tmp_path):
    with FakeBroker({ORDERS: [*batches(2, leader_epoch=2), *batches(3, 4, leader_epoch=5)]}) as broker:
        broker.epochs[ORDERS] = [(2, 0), (5, 4)]
        capture(broker, tmp_path)
        broker.log_start[ORDERS], broker.epochs[ORDERS] = 6, [(5, 6), (8, 10)]
        capture(broker, tmp_path)
    assert epochs_of(tmp_path) == [(2, 0), (5, 4), (8, 10)]


def test_a_log_that_was_truncated_since_is_another_one(broker, tmp_path):
    capture(broker, tmp_path)
    before = segments(tmp_path)
    broker.logs[ORDERS] = batches(6)
    progress = Progress()
    account = capture(broker, tmp_path, progress=progress)
    assert "truncated to 12, and this capture holds offsets up to 19" in str(account.partitions[0].problem)
    assert progress.problems == [("orders-0", account.partitions[0].problem)]
    broker.logs[ORDERS] += batches(10, 12, leader_epoch=1)
    broker.epochs[ORDERS] = [(0, 0), (1, 12)]
    assert "truncated to 12" in str(capture(broker, tmp_path).partitions[0].problem)
    del broker.versions[OFFSET_FOR_LEADER_EPOCH]
    broker.logs[ORDERS] = batches(7)
    assert "truncated to 14" in str(capture(broker, tmp_path).partitions[0].problem)
    assert account.runs[-1].outcome == "incomplete"
    assert segments(tmp_path) == before


def test_a_high_watermark_that_is_behind_for_a_while_is_no_truncation(broker, tmp_path):
    capture(broker, tmp_path)
    broker.high_watermark[ORDERS] = 16
    progress = Progress()
    (part,) = capture(broker, tmp_path, progress=progress).partitions
    assert (part.problem, part.next_offset, part.high_watermark, progress.total) == (None, 20, 16, 0)


def test_a_directory_of_something_else_is_left_alone(broker, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(OccupiedError, match="holds notes"):
        capture(broker, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    file = tmp_path / "notes"
    with pytest.raises(OccupiedError, match="is not a directory"):
        capture(broker, file)


@pytest.mark.parametrize(
    "text", ['{"schema": "kaudit.scan/1"}', "{", "[]", '{"partitions": [{"topic": "../x", "partition": 0}]}']
)
def test_an_account_of_something_else_is_left_alone(broker, tmp_path, text):
    (tmp_path / "capture.json").write_text(text)
    with pytest.raises(OccupiedError, match=r"capture\.json"):
        capture(broker, tmp_path)
    assert (tmp_path / "capture.json").read_text() == text


def test_a_capture_is_of_one_cluster_and_of_one_replica(broker, tmp_path):
    capture(broker, tmp_path)
    for request in (CaptureRequest({"orders": None}, from_replica=1),):
        with pytest.raises(OccupiedError, match="from the leaders: another one needs a directory of its own"):
            capture(broker, tmp_path, request)
    text = (tmp_path / "capture.json").read_text()
    (tmp_path / "capture.json").write_text(text.replace('"fake"', '"another"'))
    with pytest.raises(OccupiedError, match="a capture of cluster another"):
        capture(broker, tmp_path)


def test_nobody_else_writes_at_the_same_time(broker, tmp_path):
    directory = CaptureDirectory(str(tmp_path))
    directory.write("{}", "capture.json")
    try:
        with pytest.raises(OccupiedError, match="another kaudit capture"):
            capture(broker, tmp_path)
    finally:
        directory.close()


def test_what_is_not_there_is_said(broker, tmp_path):
    with pytest.raises(UnknownTopicError):
        capture(broker, tmp_path / "topic", CaptureRequest({"nothing": None}))
    with pytest.raises(UnknownTopicError, match="the topic has 1 partitions") as caught:
        capture(broker, tmp_path / "partition", CaptureRequest({"orders": [3]}))
    assert caught.value.filename == "orders-3"
    with pytest.raises(OccupiedError, match=r"--from-replica 9: the cluster's brokers are \[1\]"):
        capture(broker, tmp_path / "replica", CaptureRequest({"orders": None}, from_replica=9))
    assert capture(broker, tmp_path / "replica").runs[0].outcome == "complete"


@pytest.mark.parametrize(
    ("sent", "kept", "said"),
    [
        (b"".join(batches(2)) + b"\xff" * 70, 2, "what is not a batch (magic -1"),
        (b"".join(batches(2)) + struct.pack(">qi", 4, 200) + b"\0" * 4 + b"\2" + b"\xff" * 300, 2, "not a batch (offsets 4 to 3)"),
        (b"".join(batches(2)) + struct.pack(">qi", 2**63 - 1, 200) + b"\0" * 4 + b"\2" + b"\0" * 9 + b"\1" + b"\0" * 300, 2, "(offsets 9223372036854775807 to 9223372036854775808)"),
        (b"".join(batches(2)) + b"\xff" * 17, 2, "what is not a batch (magic -1"),
        (batches(1)[0][:40], 0, "no whole batch"),
        (b"\0" * 100, 0, "what is not a batch"),
    ],
)  # fmt: skip
def test_what_is_not_a_batch_ends_the_partition_behind_the_last_that_is(broker, tmp_path, sent, kept, said):
    broker.scripts[FETCH] = lambda request: broker.fetched(
        request, records=sent[request.topics[0].partitions[0].fetch_offset // 2 * SIZE :]
    )
    (part,) = capture(broker, tmp_path).partitions
    assert said in str(part.problem)
    assert b"".join(segments(tmp_path).values()) == b"".join(batches(kept))


@pytest.mark.timeout(60)
def test_a_broker_that_sends_nothing_does_not_hold_the_run_for_ever(broker, tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.capture.capture._LAG_SECONDS", 0.2)
    broker.scripts[FETCH] = lambda request: broker.fetched(request, records=b"")
    (part,) = capture(broker, tmp_path).partitions
    assert "nothing came for" in str(part.problem)


def test_a_broker_that_sometimes_sends_nothing_is_waited_for(broker, tmp_path):
    in_pieces(broker, 6 * SIZE)
    whole, asked = broker.scripts[FETCH], []

    def fetched(request):
        asked.append(request)
        return whole(request) if len(asked) % 2 == 0 else broker.fetched(request, records=b"")

    broker.scripts[FETCH] = fetched
    (part,) = capture(broker, tmp_path).partitions
    assert (part.problem, part.next_offset, len(asked)) == (None, 20, 4)


def test_one_partition_that_cannot_be_read_does_not_stop_the_others(tmp_path):
    with FakeBroker({ORDERS: batches(3), ("orders", 1): batches(3)}) as broker:
        broker.scripts[FETCH] = lambda request: broker.fetched(
            request, error_code=0 if request.topics[0].partitions[0].partition else TOPIC_AUTHORIZATION_FAILED
        )
        progress = Progress()
        account = capture(broker, tmp_path, progress=progress)
    assert [each.problem is None for each in account.partitions] == [False, True]
    assert [name for name, _ in progress.problems] == ["orders-0"]
    assert b"".join(segments(tmp_path, "orders-1").values()) == b"".join(batches(3))
    assert account.runs[0].outcome == "incomplete"
    assert offsets_of(tmp_path, "replication-offset-checkpoint") == {ORDERS: 0, ("orders", 1): 6}


class Followed(threading.Event):
    """Set after so many waits for more, each of which begins with a call."""

    def __init__(self, *waited):
        super().__init__()
        self.waited = list(waited)

    def wait(self, timeout=None):
        assert timeout is not None
        self.waited.pop(0)()
        if not self.waited:
            self.set()
        return super().wait(0)


def test_following_waits_when_nothing_came_and_all_there_is_is_in_its_place_then(broker, tmp_path):
    in_pieces(broker, 2 * SIZE)
    expected = []

    def in_place():
        expected.append(b"".join(broker.logs[ORDERS]))
        assert b"".join(segments(tmp_path).values()) == expected[-1]
        assert not list((tmp_path / ".capturing").iterdir())
        broker.logs[ORDERS] += batches(3, 2 * len(broker.logs[ORDERS]))

    progress = Progress()
    progress.stop = Followed(in_place, in_place, in_place)
    account = capture(broker, tmp_path, CaptureRequest({"orders": None}, follow=True), progress)
    assert [len(content) for content in expected] == [10 * SIZE, 13 * SIZE, 16 * SIZE]
    assert account.runs[0].outcome == "complete"


def test_a_store_gets_the_same_files_and_gives_a_segment_back_to_a_later_run_only(broker, tmp_path, monkeypatch):
    read = []

    class Store(NameNode):
        def read(self, path):
            read.append(path)
            return super().read(path)

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(hdfs_native, "Client", lambda _: Store(tmp_path))
    broker.configs["orders"] = {"segment.bytes": str(6 * SIZE)}
    in_store, last = f"hdfs://{tmp_path.name}/store", f"/store/orders-0/{12:020}.log"

    def more():
        assert b"".join(segments(tmp_path / "store").values()) == b"".join(broker.logs[ORDERS])
        # what may grow on is kept, what is full is not
        assert [path.name for path in (tmp_path / "temporary").glob("*/.capturing/*")] == [f"orders-0.{12:020}"]
        broker.logs[ORDERS] += batches(1, 2 * len(broker.logs[ORDERS]))

    progress = Progress()
    progress.stop = Followed(more, more)  # what comes after the second call is for the next run
    capture(broker, in_store, CaptureRequest({"orders": None}, follow=True), progress)
    assert last not in read
    capture(broker, in_store)
    assert read.count(last) == 1
    broker.logs[ORDERS] += batches(1, 24)
    capture(broker, in_store)
    assert read.count(last) == 1  # it is full
    capture(broker, tmp_path / "at-once")
    for path in ("*/*.log", "*/leader-epoch-checkpoint", "*-checkpoint"):
        assert {
            file.relative_to(tmp_path / "store"): file.read_bytes() for file in (tmp_path / "store").glob(path)
        } == {file.relative_to(tmp_path / "at-once"): file.read_bytes() for file in (tmp_path / "at-once").glob(path)}
    assert not list((tmp_path / "temporary").iterdir())


def test_following_leaves_what_cannot_be_captured_and_takes_up_again_what_can(tmp_path, monkeypatch):
    """Partition 0 is damaged, 1 cannot be read at first; 2 is silent for longer than a follower may lag behind."""
    monkeypatch.setattr("kaudit.capture.capture._LAG_SECONDS", -1)
    progress, answers = Progress(), []
    with FakeBroker({("orders", partition): batches(3) for partition in range(3)}) as broker:

        def fetched(request):
            answers.append(request.topics[0].partitions[0].partition)
            changes = {0: {"records": b"\0" * 99}, 2: {"records": b""} if answers.count(2) == 1 else {}}
            return broker.fetched(request, **changes.get(answers[-1], {}))

        broker.scripts[FETCH] = fetched
        broker.errors["orders", 1] = TOPIC_AUTHORIZATION_FAILED
        progress.stop = Followed(broker.errors.clear, lambda: None)
        account = capture(broker, tmp_path, CaptureRequest({"orders": None}, follow=True), progress)
    assert [part.next_offset for part in account.partitions] == [0, 6, 6]
    assert [part.problem is None for part in account.partitions] == [False, True, True]
    assert answers.count(0) == 1
    assert [name for name, _ in progress.problems] == ["orders-0", "orders-1"]


def test_following_waits_only_where_no_partition_had_more(tmp_path):
    with FakeBroker({ORDERS: batches(1), ("orders", 1): batches(1)}) as broker:
        in_pieces(broker, SIZE)

        def in_place():
            assert b"".join(segments(tmp_path).values()) == b"".join(broker.logs[ORDERS])
            broker.logs[ORDERS] += batches(3, 2 * len(broker.logs[ORDERS]))

        progress = Progress()
        progress.stop = Followed(in_place, in_place, in_place)
        capture(broker, tmp_path, CaptureRequest({"orders": None}, follow=True), progress)


def test_following_that_is_stopped_asks_about_no_further_partition(tmp_path):
    with FakeBroker({ORDERS: batches(1), ("orders", 1): batches(1)}) as broker:
        progress = Progress(stop_after=3)  # one of each partition, and the one that comes below
        progress.stop = Followed(lambda: broker.logs[ORDERS].extend(batches(1, 2)), lambda: None)
        account = capture(broker, tmp_path, CaptureRequest({"orders": None}, follow=True), progress)
        asked = [own.partition for each in broker.asked(FetchRequest) for own in each.topics[0].partitions]
    assert asked == [0, 1, 0, 1, 0]
    assert [part.next_offset for part in account.partitions] == [4, 2]
    assert account.runs[0].outcome == "complete"  # to be stopped is how following ends


def test_an_empty_partition_at_offset_0_was_captured_up_to_there(tmp_path):
    with FakeBroker({ORDERS: []}) as broker:
        capture(broker, tmp_path)
        broker.logs[ORDERS], broker.log_start[ORDERS] = batches(2, 10), 10
        (part,) = capture(broker, tmp_path).partitions
    reason = "the broker deleted them before they were fetched (retention, or kafka-delete-records)"
    assert (part.first_offset, part.next_offset, part.missing) == (0, 14, [Missing(0, 9, reason)])
    assert segments(tmp_path) == {f"{0:020}.log": b"", f"{10:020}.log": b"".join(batches(2, 10))}


def test_a_leader_that_does_not_know_the_epoch_is_not_behind(tmp_path):
    """It answers -1 twice where it has no epoch up to the one asked for (LeaderEpochFileCache.endOffsetFor)."""
    with FakeBroker({ORDERS: batches(3, leader_epoch=4)}) as broker:
        broker.epochs[ORDERS] = [(4, 0)]
        capture(broker, tmp_path)
        broker.epochs[ORDERS] = [(3, 0)]
        (part,) = capture(broker, tmp_path).partitions
    assert (part.problem, part.next_offset, epochs_of(tmp_path)) == (None, 6, [(4, 0)])


class Leader:
    """Answers where epochs ended as LeaderEpochFileCache.endOffsetFor does; `starts` are those it knows, by epoch."""

    def __init__(self, starts):
        self.starts = starts
        self.asked = []

    def epoch_end_offset(self, _partition, epoch):
        self.asked.append(epoch)
        if not self.starts:
            return -1, -1
        later = [start for other, start in sorted(self.starts.items()) if other > epoch]
        known = [other for other in self.starts if other <= epoch]
        return max(known, default=epoch), later[0] if later else 100


@pytest.mark.parametrize(
    ("starts", "current", "found"),
    [
        ({}, 5, []),
        ({5: 0}, 5, [(5, 0)]),
        ({0: 0}, 0, [(0, 7)]),
        ({0: 0, 1: 20, 4: 30}, 4, [(4, 30), (1, 20), (0, 7)]),
        ({0: 0, 1: 20, 4: 30}, 9, [(4, 30), (1, 20), (0, 7)]),
        ({3: 10, 4: 30}, 4, [(4, 30), (3, 10)]),
    ],
)
def test_epochs_are_asked_for_from_the_newest_on(starts, current, found):
    """The first offset of epoch 0 is the log start."""
    leader = Leader(starts)
    asked = epochs_of_leader(cast("KafkaClient", leader), TopicPartition(*ORDERS), current, 7)
    assert [(entry.epoch, entry.start_offset) for entry in asked] == found
    assert min(leader.asked) >= 0


def test_no_more_than_some_epochs_are_asked_for(monkeypatch):
    monkeypatch.setattr("kaudit.capture.partition.MOST_ASKED", 2)
    leader = Leader({epoch: 10 * epoch for epoch in range(5)})
    asked = epochs_of_leader(cast("KafkaClient", leader), TopicPartition(*ORDERS), 4, 0)
    assert [(entry.epoch, entry.start_offset) for entry in asked] == [(4, 40), (3, 30)]


def test_epochs_are_written_up_to_an_offset_and_those_of_earlier_runs_stay(tmp_path):
    directory = CaptureDirectory(str(tmp_path))
    directory.make_partition("orders-0")
    epochs = LeaderEpochs(directory, "orders-0")
    assert epochs.latest == -1
    for epoch, offset in ((0, 0), (2, 10), (2, 12), (1, 13), (5, 20)):
        epochs.add(epoch, offset)
    assert epochs.latest == 5
    for end, written in ((9, [(0, 0)]), (10, [(0, 0), (2, 10)]), (20, [(0, 0), (2, 10), (5, 20)])):
        epochs.write(end)
        assert epochs_of(tmp_path) == written
    later = LeaderEpochs(directory, "orders-0")
    later.merge([EpochEntry(2, 11), EpochEntry(3, 15)])
    later.write(20)
    assert epochs_of(tmp_path) == [(0, 0), (2, 10), (3, 15), (5, 20)]
    directory.close()


def test_what_an_account_says_of_a_partition_that_nobody_has_asked_about():
    account = Account(partitions=[PartitionAccount("orders", 3)], runs=[Run("2024-01-01T00:00:00Z", "h:1")])
    document = json.loads(account.text())
    unknown = ("first_offset", "next_offset", "first_segment", "log_start_offset", "high_watermark", "last_stable_offset", "leader_epoch")  # fmt: skip
    none = ("bytes", "missing_unlisted", "compacted_offsets", "compacted_to", "recovery_point")
    assert document["partitions"] == [
        {"topic": "orders", "partition": 3, "topic_id": None, "brokers": [], "missing": [], "problem": None}
        | dict.fromkeys(unknown, -1)
        | dict.fromkeys(none, 0)
    ]
    assert document["runs"] == [
        {"started_at": "2024-01-01T00:00:00Z", "servers": "h:1", "ended_at": None, "bytes": 0, "outcome": "running"}
    ]
    assert document["origin"] == {"cluster_id": None, "from_replica": None, "features": {}, "kraft": None}
    assert parse_account(account.text().encode(), "x") == account


def test_an_account_nested_without_end_is_refused():
    with pytest.raises(OccupiedError, match="is not an account"):
        parse_account(b'{"schema": ' + b"[" * 100_000, "x")


def test_no_more_bytes_come_than_asked_for(broker, tmp_path):
    in_pieces(broker, SIZE)
    began = time.monotonic()
    capture(broker, tmp_path, CaptureRequest({"orders": None}, max_bytes_per_second=7 * SIZE))
    assert time.monotonic() - began > 0.3  # ten batches, seven of them in the first burst
