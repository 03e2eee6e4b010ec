"""kafka:// as an input: what brokers send is audited as what lies on their disks."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kafka.protocol.consumer import FetchRequest

from kaudit.engines.local import scan, timeline
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.result import ScanResult
from kaudit.model.timeline import HistoryRow
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import discover
from kaudit.source.kafka.client import EARLIEST, LATEST, READ_COMMITTED
from kaudit.source.kafka.fetched_segment import Throttle
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import PartitionDirectory
from tests.logs import Log, data, marker
from tests.source.kafka.fake_broker import DESCRIBE_ACLS, FETCH, LIST_OFFSETS, LIST_TRANSACTIONS, FakeBroker
from tests.timelines import timelines_of
from tests.wire_findings import comparable_findings

SAMPLES = Path(__file__).parents[2] / "samples"
SEEN_ALIKE = (
    "clean", "compacted", "crafted", "duplicates", "hanging-transaction", "malformed", "open-transaction", "retries",
    "truncated-head", "zombie",
)  # fmt: skip
"""Damage apart: brokers serve what their own walk through a log reaches."""
KEY = ("orders", 0)
NO_AUTHORIZER = 54


def partitions() -> Iterator[object]:
    for sample in SEEN_ALIKE:
        for directory in discover([str(SAMPLES / sample)]).partitions:
            if not directory.topic.startswith("__") and directory.bytes and directory.segments[0].text is None:
                yield pytest.param(directory, id=f"{sample}:{directory.relative}")


def batches_of(directory: PartitionDirectory) -> list[bytes]:
    found = []
    for segment in directory.segments:
        content, at = Path(segment.path).read_bytes(), 0
        while at + 17 <= len(content):
            size = int.from_bytes(content[at + 8 : at + 12]) + 12
            found.append(content[at : at + size])
            at += size
    return found


def serving(directory: PartitionDirectory) -> FakeBroker:
    batches = batches_of(directory)
    key = (directory.topic, directory.partition)
    broker = FakeBroker({key: batches})
    first = int.from_bytes(batches[0][:8]) if batches[0][16] == 2 else 0
    broker.log_start[key] = max(directory.log_start_offset or 0, first)
    # what is asked of coordinators is for other tests: the files say nothing of it
    del broker.versions[LIST_TRANSACTIONS]
    if directory.first_dirty_offset is not None:
        broker.configs[directory.topic] = {"cleanup.policy": "compact,delete"}
    return broker


def wire_scan(broker: FakeBroker, path: str = "orders", **cluster: object) -> ScanResult:
    options = ClusterOptions(**cluster)  # type: ignore[arg-type]
    paths = [f"kafka://{broker.address}/{path}"]
    return scan(ScanOptions(paths, jobs=1, broker_version="3.9", cluster=options), SilentProgress())


@pytest.mark.parametrize("chunk_bytes", [None, 700])
@pytest.mark.parametrize("directory", list(partitions()))
def test_the_same_findings_as_from_the_directory(directory, chunk_bytes):
    with serving(directory) as broker:
        start = broker.log_start[directory.topic, directory.partition]
        of_files = scan(
            ScanOptions(
                [segment.path for segment in directory.segments],
                jobs=1,
                topics=[directory.topic],
                partitions=[directory.partition],
                broker_version="3.9",
                log_start_offset=start,
                compacted=directory.first_dirty_offset is not None,
            ),
            SilentProgress(),
        )
        url = f"kafka://{broker.address}/{directory.topic}/{directory.partition}"
        fetched = scan(ScanOptions([url], jobs=1, broker_version="3.9", chunk_bytes=chunk_bytes), SilentProgress())
    assert comparable_findings(fetched) == comparable_findings(of_files)
    (one,), (other,) = fetched.partitions, of_files.partitions
    assert (one.log_end_offset, one.last_stable_offset) == (other.log_end_offset, other.last_stable_offset)
    assert not fetched.incomplete


def test_no_place_in_files_is_named():
    directory = next(iter(discover([str(SAMPLES / "crafted")]).partitions))
    with serving(directory) as broker:
        result = wire_scan(broker, f"{directory.topic}/{directory.partition}")
    for found in result.findings:
        shown = found.to_dict()
        assert (shown["file"], shown["segment"], shown["position"]) == (None, None, None)
        assert "brokers sent the batches" in str(shown["absent"])
        assert not any("--at " in command or "kafka-dump-log" in command for command in found.next)
    assert result.findings
    assert (result.summary.segments, result.summary.partitions) == (0, 1)


def log(count: int) -> list[bytes]:
    """So many batches of two records of one producer."""
    return [data(7, 0, number * 2, 2).at(number * 2).encode() for number in range(count)]


def test_a_healthy_partition():
    with FakeBroker({KEY: log(500)}) as broker:
        result = wire_scan(broker)
    assert not result.findings
    (partition,) = result.partitions
    assert (partition.log_start_offset, partition.log_end_offset, partition.batches) == (0, 1000, 500)


def test_only_what_is_below_the_high_watermark_is_read():
    with FakeBroker({KEY: log(10)}) as broker:
        broker.high_watermark[KEY] = 12
        (partition,) = wire_scan(broker).partitions
    assert (partition.log_end_offset, partition.batches) == (12, 6)


@pytest.mark.parametrize(
    ("options", "batches"),
    [({"from_offset": 100}, 450), ({"to_offset": 100}, 50), ({"from_offset": 100, "to_offset": 201}, 51)],
)
def test_a_range_of_offsets(options, batches):
    with FakeBroker({KEY: log(500)}) as broker:
        result = wire_scan(broker, **options)
    assert not [found for found in result.findings if found.code != "KA106"]
    assert result.partitions[0].batches == batches


def test_a_log_start_inside_a_batch():
    with FakeBroker({KEY: log(10)[2:]}) as broker:
        broker.log_start[KEY] = 5
        result = wire_scan(broker)
    assert result.partitions[0].log_start_offset == 5
    assert not result.incomplete
    assert [found.code for found in result.findings if found.severity.value == "error"] == []


def test_retention_that_overtakes_the_reader():
    with FakeBroker({KEY: log(500)}) as broker:

        def moved(request: object) -> object:
            if len(broker.asked(FetchRequest)) == 4:
                broker.log_start[KEY] = 600
            return broker.fetched(request)

        broker.scripts[FETCH] = moved
        options = ScanOptions([f"kafka://{broker.address}/orders"], jobs=1, chunk_bytes=4 << 10)
        result = scan(options, SilentProgress())
    assert result.incomplete
    (unread,) = [entry for entry in result.not_audited if entry.unreadable]
    assert "removed by retention" in unread.reason
    assert unread.path.endswith("..599")
    assert result.partitions[0].log_end_offset == 1000
    assert not [found for found in result.findings if found.severity.value == "error"]


def test_a_log_that_becomes_shorter_is_an_incomplete_audit():
    with FakeBroker({KEY: log(500)}) as broker:

        def shorter(request: object) -> object:
            if len(broker.asked(FetchRequest)) == 4:
                del broker.logs[KEY][300:]
            return broker.fetched(request)

        broker.scripts[FETCH] = shorter
        result = scan(ScanOptions([f"kafka://{broker.address}/orders"], jobs=1, chunk_bytes=4 << 10), SilentProgress())
    assert result.incomplete
    assert any("became shorter" in entry.reason for entry in result.not_audited)


def test_a_topic_or_a_partition_that_is_not_there():
    with FakeBroker({KEY: log(1)}) as broker:
        with pytest.raises(UsageError, match="no such topic"):
            wire_scan(broker, "payments")
        with pytest.raises(UsageError, match="no such partition; there: 0 to 0"):
            wire_scan(broker, "orders/3")


@pytest.mark.parametrize("path", ["", "/", "/orders/x", "/orders/0/1"])
def test_urls_that_name_no_partition(path):
    with pytest.raises(UsageError, match="kafka://HOST:PORT/TOPIC"):
        scan(ScanOptions([f"kafka://127.0.0.1:1{path}"]), SilentProgress())


def test_nobody_listens():
    with pytest.raises(NothingToAuditError, match="connection refused"):
        scan(ScanOptions(["kafka://127.0.0.1:1/orders"]), SilentProgress())


@pytest.mark.parametrize("offsets", [(0, 2**62), (2**62, 2**63 - 1), (-7, 5)])
def test_offsets_that_no_log_has(offsets):
    def listed(request: object) -> object:
        timestamp = request.topics[0].partitions[0].timestamp  # type: ignore[attr-defined]
        answer = original(request)
        answer.topics[0].partitions[0].offset = offsets[{EARLIEST: 0, LATEST: 1}[timestamp]]
        return answer

    with FakeBroker({KEY: log(3)}) as broker:
        original = broker.scripts[LIST_OFFSETS]
        broker.scripts[LIST_OFFSETS] = listed
        with pytest.raises(NothingToAuditError, match="kafka://"):
            wire_scan(broker)


def test_a_broker_that_sends_the_same_batches_again_and_again():
    with FakeBroker({KEY: log(3)}) as broker:
        broker.scripts[FETCH] = lambda request: broker.fetched(request, records=log(1)[0], error_code=0)
        result = wire_scan(broker)
    assert result.incomplete
    assert any("no valid batch" in entry.reason for entry in result.not_audited)


def test_a_partition_that_could_not_be_read_is_tried_again_by_the_next_scan():
    corrupt_message = 2
    with FakeBroker({KEY: log(500)}) as broker:
        refused = [False, False, True]  # the probes are answered

        def fetched(request: object) -> object:
            return broker.fetched(request, error_code=corrupt_message if refused.pop(0) else 0)

        broker.scripts[FETCH] = fetched
        first = wire_scan(broker)
        broker.scripts[FETCH] = broker.fetched
        second = wire_scan(broker)
    (unread,) = [entry for entry in first.not_audited if entry.unreadable]
    assert unread.path.endswith("/orders/0 offsets 0..999")
    assert (second.incomplete, second.summary.records) == (False, 1000)


def open_transaction() -> Log:
    written = Log()
    written.append(data(7, 3, 0, 2, transactional=True))
    written.append(marker(7, 3))
    written.append(data(7, 3, 2, 2, transactional=True))
    return written


def serving_transactions(states: Sequence[dict[str, object]], producers: Sequence[dict[str, int]]) -> FakeBroker:
    broker = FakeBroker({KEY: [batch.encode() for batch in open_transaction().batches]})
    broker.transactions = list(states)
    broker.producers[KEY] = list(producers)
    broker.acls_error = NO_AUTHORIZER
    return broker


OPEN = {
    "producer_id": 7, "producer_epoch": 3, "last_sequence": 3, "last_timestamp": 5, "coordinator_epoch": 0,
    "current_txn_start_offset": 3,
}  # fmt: skip


def state(name: str) -> dict[str, object]:
    return {
        "transactional_id": "t", "producer_id": 7, "producer_epoch": 3, "transaction_state": name,
        "transaction_timeout_ms": 60_000, "transaction_start_time_ms": 5,
        "partitions": [KEY] if name == "Ongoing" else [],
    }  # fmt: skip


def test_a_transaction_that_no_coordinator_will_end_hangs_for_certain():
    with serving_transactions([state("CompleteCommit")], [OPEN]) as broker:
        result = wire_scan(broker)
        (found,) = [found for found in result.findings if found.code == "KA301"]
    assert found.confidence.value == "certain"
    assert found.next[:2] == (
        "# CAREFUL: destroys 2 records from offset 3 on (Kafka 3.0 or later)",
        f"kafka-transactions.sh --bootstrap-server {broker.address} abort --topic orders --partition 0 --start-offset 3",
    )


def aborted_twice() -> list[bytes]:
    written = Log()
    for sequence in (0, 2):
        written.append(data(7, 3, sequence, 2, transactional=True))
        written.append(marker(7, 3, commit=False))
    return [batch.encode() for batch in written.batches]


def test_aborted_transactions_are_those_the_broker_lists():
    with FakeBroker({KEY: aborted_twice()}) as broker:
        assert [found.code for found in wire_scan(broker).findings] == []
        assert broker.asked(FetchRequest)[-1].isolation_level == READ_COMMITTED


def test_a_broker_that_does_not_list_an_aborted_transaction():
    with FakeBroker({KEY: aborted_twice()}) as broker:
        broker.scripts[FETCH] = lambda request: broker.fetched(request, aborted_transactions=broker.aborted_of(KEY)[1:])
        (found,) = wire_scan(broker).findings
    assert (found.code, found.offset, found.last_offset, found.producer_id) == ("KA305", 0, 2, 7)


def test_a_transactional_id_that_nobody_knows():
    with serving_transactions([], [OPEN]) as broker:
        assert [found.code for found in wire_scan(broker).findings if found.code.startswith("KA3")] == [
            "KA301",
            "KA304",
        ]


def test_where_acls_may_hide_transactional_ids_nothing_is_certain():
    with serving_transactions([], [OPEN]) as broker:
        broker.acls_error = 0
        (found,) = [found for found in wire_scan(broker).findings if found.code.startswith("KA3")]
    assert found.code == "KA302"
    assert "may not see all of them" in str(found.evidence["coordinator_says"])


def test_an_ongoing_transaction_is_a_note():
    with serving_transactions([state("Ongoing")], [OPEN]) as broker:
        found = {found.code: found for found in wire_scan(broker).findings}
    assert found["KA302"].evidence["coordinator"] == "ongoing"


def test_a_transaction_that_has_ended_since_is_not_reported():
    with serving_transactions([state("CompleteCommit")], [{**OPEN, "current_txn_start_offset": -1}]) as broker:
        assert [found.code for found in wire_scan(broker).findings if found.code.startswith("KA3")] == []


def test_brokers_that_cannot_be_asked_for_transactions():
    with serving_transactions([], [OPEN]) as broker:
        broker.versions.pop(DESCRIBE_ACLS)
        assert [found.code for found in wire_scan(broker).findings if found.code.startswith("KA3")] == ["KA302"]


def test_the_brokers_release_is_known():
    with FakeBroker({KEY: log(3)}) as broker:
        paths = [f"kafka://{broker.address}/orders"]
        result = scan(ScanOptions(paths, jobs=1), SilentProgress())
    assert (result.broker_version.at_least, result.broker_version.at_most) == ("3.0.0", "3.0.2")
    assert "requests" in result.broker_version.because[0]


def test_a_timeline():
    with FakeBroker({KEY: log(20)}) as broker:
        paths = [f"kafka://{broker.address}/orders"]
        result = timeline(ScanOptions(paths, jobs=1, producer_ids=[7]), SilentProgress())
    ((entry,),) = (timeline.entries for timeline in timelines_of(result.histories))
    assert isinstance(entry, HistoryRow)
    assert entry.kind == "run"
    assert (entry.first_offset, entry.last_offset, entry.batches) == (0, 39, 20)


def test_a_limit_of_bytes_a_second_is_kept(monkeypatch):
    clock = _Clock()
    monkeypatch.setattr(time, "sleep", clock.step)
    monkeypatch.setattr(time, "monotonic", clock)
    throttle = Throttle(1000)
    for _ in range(10):
        throttle.spend(500)
    assert clock.now == pytest.approx(5, abs=0.1)


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def step(self, seconds: float) -> None:
        self.now += seconds


def test_a_replica_on_disk_and_the_leader(tmp_path):
    from kaudit.engines.replicas import diff, name_replicas

    written = Log()
    for number in range(20):
        written.append(data(7, 0, number * 2, 2))
    copy = written.write(tmp_path / "copy" / "orders-0")
    with FakeBroker({KEY: [batch.encode() for batch in written.batches[:15]]}) as broker:
        paths = [f"kafka://{broker.address}/orders", str(copy)]
        result = diff(ScanOptions(paths, jobs=1), name_replicas(paths, {}), SilentProgress())
    (partition,) = result.partitions
    assert (partition.relation.value, partition.common_end_offset) == ("behind", 30)
    assert "KA602" in [found.code for found in result.scan.findings]


def test_what_was_read_is_named_without_segments():
    from kaudit.results.scope import extent, size

    with FakeBroker({KEY: log(20)}) as broker:
        assert extent(wire_scan(broker)) == f"in 1 partition, {size(sum(map(len, broker.logs[KEY])))}"


@pytest.mark.jvm
def test_spark_finds_the_same(local, spark):
    batches = log(40)
    del batches[20]
    with FakeBroker({KEY: batches}) as broker:
        url = f"kafka://{broker.address}/orders"
        expected = local.documents(url, jobs=1)
        assert spark.documents(url, chunk_bytes=900) == expected
    assert [found["code"] for found in expected[0]["findings"]] == ["KA007"]
