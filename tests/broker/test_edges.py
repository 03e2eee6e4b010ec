"""Answers at the edges of the protocol, as brokers of the releases named were recorded to give them (2026-11-26)."""

import gzip
import struct
import zlib

import pytest

from kaudit.broker.attempts import StartBroker
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from tests.attempts import attempt_of
from tests.broker.client import PartitionClient
from tests.logs import Batch, record, sealed_records

UNKNOWN_SERVER_ERROR, INVALID_REQUIRED_ACKS, INVALID_PRODUCER_EPOCH, TRANSACTION_ABORTABLE = -1, 21, 47, 120
UNSUPPORTED_VERSION, CONCURRENT_TRANSACTIONS = 35, 51


def message(value, magic=0, attributes=0):
    """One entry of a message set of magic 0 or 1, offset 0."""
    time = struct.pack(">q", 5) if magic else b""
    body = struct.pack(">bb", magic, attributes) + time + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


class TestAcks:
    """An invalid number of acks is refused after the transaction was looked at (ReplicaManager.handleProduceAppend)."""

    def producer(self, version):
        client = PartitionClient(version)
        granted = client.ask("init_producer_id", transactional_id="x", api_version=4)
        sent = {"pid": granted["producer_id"], "is_transactional": True, "transactional_id": "x", "acks": 2}
        return client, sent

    def test_the_transaction_has_begun(self):
        client, sent = self.producer("4.4.0")
        assert client.produce(0, api_version=12, **sent) == INVALID_REQUIRED_ACKS
        owner = {"transactional_id": "x", "producer_id": sent["pid"], "producer_epoch": 0}
        assert client.code("end_txn", commit=True, api_version=5, **owner) == 0

    @pytest.mark.parametrize("version", ["3.6.2", "3.7.2"])
    def test_until_3_7_it_is_not_verified(self, version):
        """Recorded on both; KAFKA-15987."""
        client, sent = self.producer(version)
        assert client.produce(0, api_version=9, **sent) == INVALID_REQUIRED_ACKS
        assert client.describe()["producers"] == []

    @pytest.mark.parametrize("version", ["3.8.1", "3.9.2", "4.1.2"])
    def test_the_transaction_is_verified_first(self, version):
        client, sent = self.producer(version)
        assert client.produce(0, api_version=11, **sent) == TRANSACTION_ABORTABLE

    def test_without_a_transaction(self):
        assert PartitionClient("2.5.0").produce(0, acks=2) == INVALID_REQUIRED_ACKS


@pytest.mark.parametrize("version", ["0.11.0.3", "2.3.0", "2.5.0", "3.6.1"])
@pytest.mark.parametrize("magic", [0, 1])
class TestMessageSets:
    def test_the_answer_names_the_first_message(self, version, magic):
        client = PartitionClient(version)
        two = (message(b"x0", magic) + message(b"x1", magic)).hex()
        assert client.produce(0, records_hex=two, api_version=1) == 0
        assert client.produce(0, records_hex=two, api_version=1) == 2

    def test_a_wrapper_counts_its_messages(self, version, magic):
        client = PartitionClient(version)
        wrapper = message(gzip.compress(message(b"a", magic) * 3), magic, attributes=1).hex()
        assert client.produce(0, records_hex=wrapper, api_version=1) == 0
        assert client.produce(0, records_hex=wrapper, api_version=1) == 3


def message_set(magic, *entries):
    return b"".join(message(value, magic, attributes) for value, attributes in entries).hex()


class TestOneRefusedMessageRefusesItsSet:
    """LogValidator's and the log's checks of magic 0 and 1; a null key was recorded on 0.11.0.3."""

    @pytest.mark.parametrize(("version", "code"), [("0.11.0.3", 2), ("2.3.1", 2), ("2.4.0", -1), ("2.5.0", 87)])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_without_a_key_on_a_compacted_topic(self, version, code, magic):
        client = PartitionClient(version, topic_config={"cleanup.policy": "compact"})
        wrapper = message(gzip.compress(message(b"a", magic)), magic, attributes=1).hex()
        for sent in (message_set(magic, (b"a", 0)), message_set(magic, (b"a", 0), (b"b", 0)), wrapper):
            assert client.produce(0, records_hex=sent, api_version=2) == code
        assert client.describe()["high_watermark"] == 0

    @pytest.mark.parametrize("version", ["0.11.0.3", "2.5.0"])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_a_damaged_one(self, version, magic):
        client = PartitionClient(version)
        damaged = message(b"x1", magic)[:-1] + b"?"
        wrapper = message(gzip.compress(damaged), magic, attributes=1)
        for sent in (damaged, message(b"x0", magic) + damaged, wrapper):
            assert client.produce(0, records_hex=sent.hex(), api_version=1) == 2

    @pytest.mark.parametrize(("version", "code"), [("2.3.1", 2), ("2.4.0", 87)])
    @pytest.mark.parametrize(
        ("value", "attributes"),
        [(b"", 1), (gzip.compress(b""), 1), (b"not gzip", 1), (gzip.compress(message(b"a", 0, 1)), 1), (b"", 5)],
    )
    def test_a_wrapper_that_cannot_be_read(self, version, code, value, attributes):
        unpacked = attributes == 1 and value not in (b"", b"not gzip")
        answer = PartitionClient(version).produce(0, records_hex=message(value, 0, attributes).hex(), api_version=1)
        assert answer == (code if unpacked else UNKNOWN_SERVER_ERROR)

    def test_a_larger_one_than_the_topic_allows(self):
        client = PartitionClient("2.3.0", topic_config={"max.message.bytes": "100"})
        assert client.produce(0, records_hex=message_set(0, (b"a", 0), (b"b" * 100, 0)), api_version=1) == 10

    @pytest.mark.parametrize(("version", "code"), [("2.3.1", 0), ("2.4.0", 87), ("3.6.1", 87)])
    def test_sets_of_one_kind(self, version, code):
        """KAFKA-8106 and KAFKA-8428: LogValidator.getFirstBatchAndMaybeValidateNoMoreBatches, validateBatch."""
        wrapper = message(gzip.compress(message(b"a")), attributes=1)
        for sent in (message(b"a", 0) + message(b"a", 1), wrapper + message(b"b"), wrapper * 2):
            assert PartitionClient(version).produce(0, records_hex=sent.hex(), api_version=2) == code
        two = (
            Batch(producer_id=900001, epoch=0, sequence=0).encode()
            + Batch(producer_id=900001, epoch=0, sequence=1).encode()
        )
        assert PartitionClient(version).produce(0, records_hex=two.hex(), api_version=2) == code


MIN_2 = {"min.insync.replicas": "2"}


class TestMinInSyncReplicas:
    """One replica is too few for min.insync.replicas 2: recorded on 2.3.0 and 2.8.1; from 3.7.0 on it counts as 1 (KAFKA-15583)."""

    @pytest.mark.parametrize("settings", [{"topic_config": MIN_2}, {"config": MIN_2}])
    @pytest.mark.parametrize(
        ("version", "code"), [("2.3.0", 19), ("2.8.1", 19), ("3.6.2", 19), ("3.7.0", 0), ("4.1.2", 0)]
    )
    def test_only_acks_all_is_refused(self, version, code, settings):
        client = PartitionClient(version, **settings)
        assert client.produce(0, acks=-1) == code
        assert client.produce(0 if code else 1, acks=1) == (0 if code else 1)
        assert client.produce(0, pid=3, acks=0) == "no-response"

    @pytest.mark.parametrize(
        ("version", "replicas", "in_sync", "code"),
        [("2.8.1", 2, None, 0), ("2.8.1", 3, 2, 0), ("2.8.1", 3, 1, 19), ("3.9.1", 3, 1, 19), ("3.9.1", 1, 1, 0)],
    )
    def test_the_replicas_that_are_in_sync(self, version, replicas, in_sync, code):
        client = PartitionClient(version)
        client.ask("topic", config=MIN_2, replicas=replicas, in_sync_replicas=in_sync)
        assert client.produce(0) == code

    @pytest.mark.parametrize("version", ["2.3.0", "2.8.1"])
    def test_markers_wait_for_replicas(self, version):
        client = PartitionClient(version)
        granted = client.ask("init_producer_id", transactional_id="x")
        owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 0}
        client.ask("add_partitions", **owner)
        sent = {"is_transactional": True, "transactional_id": "x", "pid": granted["producer_id"]}
        assert client.produce(0, **sent) == 0
        client.ask("topic", config=MIN_2)
        assert client.produce(1, **sent) == 19
        assert client.mark(0, pid=7) == 19
        assert client.code("end_txn", commit=True, **owner) == 0
        for _ in range(2):
            assert client.code("add_partitions", **owner) == CONCURRENT_TRANSACTIONS
            assert client.code("init_producer_id", transactional_id="x") == CONCURRENT_TRANSACTIONS
        assert client.describe()["last_stable_offset"] == 0
        client.ask("topic", config={})
        assert client.describe()["last_stable_offset"] == client.describe()["high_watermark"] == 2
        assert client.code("add_partitions", **owner) == 0

    def test_offsets_are_not_committed(self):
        client = PartitionClient("2.8.1", config=MIN_2)
        granted = client.ask("init_producer_id", transactional_id="x")
        owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 0}
        assert client.code("txn_offset_commit", **owner) == 15


class TestTransactionVersion:
    """transaction.version below 2 on brokers that have it; EndTxn v5 and TxnOffsetCommit v5 at level 0 were recorded on 4.0.2.

    TransactionLog.valueToBytes: at level 0 the value has no field for the client's transaction version.
    """

    def producer(self, level, version="4.0.2"):
        client = PartitionClient(version, {"transaction.version": level})
        granted = client.ask("init_producer_id", transactional_id="x", api_version=4)
        return client, {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 0}

    def busy(self, client, owner):
        return {
            client.code("add_partitions", api_version=3, **{**owner, "topic": "other"}),
            client.code("end_txn", commit=True, api_version=4, **owner),
            client.code("end_txn", commit=True, api_version=5, **owner),
            client.code("init_producer_id", transactional_id="x", api_version=4),
        }

    @pytest.mark.parametrize("version", ["4.0.2", "4.4.0"])
    def test_ending_a_transaction_of_version_2_at_level_0(self, version):
        client, owner = self.producer(0, version)
        assert client.code("add_partitions", api_version=3, **owner) == 0
        sent = {"is_transactional": True, "transactional_id": "x", "pid": owner["producer_id"], "api_version": 11}
        assert client.produce(0, **sent) == 0
        assert client.code("end_txn", commit=True, api_version=5, **owner) == UNSUPPORTED_VERSION
        client.wait(3_600_000)
        assert self.busy(client, owner) == {CONCURRENT_TRANSACTIONS}
        client.restart()
        assert client.code("end_txn", commit=True, api_version=4, **owner) == 0

    @pytest.mark.parametrize("op", ["txn_offset_commit", "produce"])
    def test_adding_a_partition_at_level_0(self, op):
        client, owner = self.producer(0)
        fields = {"base_sequence": 0, "record_count": 1, "is_transactional": True} if op == "produce" else {}
        version = 12 if op == "produce" else 5
        assert client.code(op, api_version=version, **owner, **fields) == UNSUPPORTED_VERSION
        assert self.busy(client, owner) == {CONCURRENT_TRANSACTIONS}

    @pytest.mark.parametrize("level", [0, 1])
    def test_older_requests_end_transactions_without_another_epoch(self, level):
        client, owner = self.producer(level)
        for _ in range(2):
            assert client.code("add_partitions", api_version=3, **owner) == 0
            assert client.code("end_txn", commit=True, api_version=4, **owner) == 0
        assert client.code("add_partitions", api_version=3, **owner) == 0
        assert client.ask("init_producer_id", transactional_id="x", api_version=4)["producer_epoch"] == 2

    @pytest.mark.parametrize("level", [1, 2])
    def test_from_level_1_on_it_is_written(self, level):
        client, owner = self.producer(level)
        assert client.code("txn_offset_commit", api_version=5, **owner) == 0
        assert client.ask("end_txn", commit=True, api_version=5, **owner)["producer_epoch"] == 1


class TestRequestVersions:
    """A request version that a release does not answer closes the connection: recorded for Produce v2 on 4.4.0 (KIP-896)."""

    def outcome(self, version, op, api_version, override=None):
        broker = Broker(override and profile_for(override))
        broker.answer(StartBroker(broker_version=version))
        owner: dict[str, object] = {"transactional_id": "x", "producer_id": 0, "producer_epoch": 0}
        of_op: dict[str, dict[str, object]] = {
            "produce": {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0, "record_count": 1},
            "write_marker": {"producer_id": 0, "producer_epoch": 0, "commit": True, "coordinator_epoch": 0},
            "init_producer_id": {},
            "end_txn": {"commit": True, **owner},
        }
        stated = {} if api_version is None else {"api_version": api_version}
        return broker.answer(
            attempt_of({"op": op, "topic": "t", "partition": 0, **of_op.get(op, owner), **stated})
        ).fields["outcome"]

    @pytest.mark.parametrize(
        ("version", "op", "first", "last"),
        [
            ("0.11.0.3", "produce", 0, 3),
            ("2.3.1", "produce", 0, 7),
            ("2.8.2", "produce", 0, 9),
            ("3.9.2", "produce", 0, 11),
            ("4.0.2", "produce", 3, 12),
            ("4.4.0", "produce", 3, 13),
            ("2.5.1", "init_producer_id", 0, 3),
            ("4.4.0", "init_producer_id", 0, 5),
            ("3.5.2", "add_partitions", 0, 3),
            ("3.9.2", "end_txn", 0, 4),
            ("4.0.2", "end_txn", 0, 5),
            ("2.5.1", "txn_offset_commit", 0, 3),
            ("4.4.0", "txn_offset_commit", 0, 6),
            ("3.9.2", "write_marker", 0, 1),
            ("4.1.2", "write_marker", 1, 1),
            ("4.4.0", "write_marker", 1, 2),
        ],
    )
    def test_the_first_and_the_last(self, version, op, first, last):
        """The ranges of the clients published with these releases (ApiKeys)."""
        answered = {self.outcome(version, op, api_version) for api_version in {first, last}}
        assert "connection-closed" not in answered
        for outside in {first - 1, last + 1, 99} - {-1}:
            assert self.outcome(version, op, outside) == "connection-closed"

    @pytest.mark.parametrize("version", ["0.11.0.0", "2.3.1", "4.0.0", "4.4.0"])
    @pytest.mark.parametrize("op", ["produce", "init_producer_id", "add_partitions", "end_txn", "write_marker"])
    def test_a_line_that_states_none_is_answered(self, version, op):
        assert self.outcome(version, op, None) != "connection-closed"

    def test_another_release_would_have_been_sent_another_version(self):
        assert self.outcome("4.4.0", "produce", 12, override="2.3.1") == "appended"
        assert self.outcome("2.3.1", "produce", 12, override="2.3.1") == "connection-closed"


class TestSeveralPartitions:
    """A partition refused by itself is no other producer of the request (recorded on 4.1.2)."""

    @pytest.mark.parametrize("version", ["3.9.2", "4.1.2"])
    @pytest.mark.parametrize("refused_epoch", [0, 7])
    def test_a_refused_partition_is_not_counted(self, version, refused_epoch):
        client = PartitionClient(version)
        granted = client.ask("init_producer_id", transactional_id="x", api_version=4)
        owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 0}
        client.ask("add_partitions", api_version=3, **owner)
        attributes = {"epoch": refused_epoch, "attributes": 0x10}
        two = (
            Batch(producer_id=5, sequence=0, **attributes).encode()
            + Batch(producer_id=5, sequence=1, **attributes).encode()
        )
        answer = client.ask(
            "produce", base_sequence=0, record_count=1, is_transactional=True, api_version=11, timestamp=client.at,
            other_partitions=[{"partition": 1, "records_hex": two.hex()}], **owner,
        )  # fmt: skip
        assert answer["error_code"] == 0
        assert answer["other_partitions"][0]["error_code"] == 87

    def test_an_accepted_one_is(self):
        client = PartitionClient("4.1.2")
        client.ask("init_producer_id", transactional_id="x", api_version=4)
        other = {"partition": 1, "producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "record_count": 1}
        answer = client.ask(
            "produce", transactional_id="x", producer_id=0, producer_epoch=0, base_sequence=0, record_count=1,
            is_transactional=True, other_partitions=[{**other, "is_transactional": True}], api_version=11,
        )  # fmt: skip
        assert answer["error_code"] == answer["other_partitions"][0]["error_code"] == 49


class TestSeveralEpochs:
    """One producer id, several epochs, one request: 49 from 3.8.0 on; before, one epoch is verified for all.

    It is that of the first unverified partition in a Scala map (ReplicaManager.appendRecords of 3.7). The hashes of t-0,
    t-1 and t-2 are 1077, 1108 and 1139, modulo 16: 5, 4 and 3; so the last of them is the first.
    """

    def codes(self, version, *epochs, opened=()):
        """The errors of batches of these epochs for partitions 0, 1, ... where the coordinator's is 1.

        All were added to the transaction, and it was begun in those `opened`.
        """
        client = PartitionClient(version)
        for _ in range(2):
            granted = client.ask("init_producer_id", transactional_id="x", api_version=2)
        owner = {"transactional_id": "x", "producer_id": granted["producer_id"]}
        sent = {"record_count": 1, "is_transactional": True, "api_version": 10, **owner}
        for partition in range(len(epochs)):
            assert client.code("add_partitions", api_version=2, partition=partition, producer_epoch=1, **owner) == 0
        for partition in opened:
            assert client.code("produce", partition=partition, producer_epoch=1, base_sequence=0, **sent) == 0
        first, *others = (
            {"partition": number, "producer_epoch": epoch, "base_sequence": 1 if number in opened else 0}
            for number, epoch in enumerate(epochs)
        )
        described = {key: sent[key] for key in ("record_count", "is_transactional", "producer_id")}
        answer = client.ask("produce", other_partitions=[described | other for other in others], **sent, **first)
        return [answer["error_code"], *(other["error_code"] for other in answer["other_partitions"])]

    @pytest.mark.parametrize("version", ["3.6.0", "3.7.2"])
    @pytest.mark.parametrize(
        ("epochs", "codes"),
        [((1, 0), [47, 47]), ((0, 1), [0, 0]), ((1, 1, 0), [47] * 3), ((1, 0, 1), [0] * 3), ((0, 0, 1), [0] * 3)],
    )
    def test_all_are_verified_with_the_epoch_of_one(self, version, epochs, codes):
        assert self.codes(version, *epochs) == codes

    def test_the_reason_names_the_epoch_that_was_verified(self):
        client = PartitionClient("3.7.2")
        for _ in range(2):
            client.ask("init_producer_id", transactional_id="x", api_version=2)
        described = {"producer_id": 0, "base_sequence": 0, "record_count": 1, "is_transactional": True}
        attempt = {
            "index": 9, "op": "produce", "topic": "t", "partition": 0, "transactional_id": "x", "producer_epoch": 1,
            "other_partitions": [{"partition": 1, "producer_epoch": 0, **described}], "api_version": 10, **described,
        }  # fmt: skip
        answer = client.broker.answer(attempt_of(attempt))
        assert answer.why.startswith("verified with epoch 0, that of another partition's batch: ")

    def test_a_partition_in_an_open_transaction_is_not_verified(self):
        """So its epoch does not count; its stale batch is refused by its own log, and nothing else is."""
        assert self.codes("3.7.2", 1, 0, opened=[1]) == [0, 47]
        assert self.codes("3.7.2", 0, 1, opened=[1]) == [47, 0]

    def test_one_that_is_refused_by_itself_is_not_either(self):
        client = PartitionClient("3.7.2")
        for _ in range(2):
            granted = client.ask("init_producer_id", transactional_id="x", api_version=2)
        owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 1}
        assert client.code("add_partitions", api_version=2, **owner) == 0
        batch = Batch(producer_id=granted["producer_id"], epoch=0, sequence=0, attributes=0x10).encode()
        answer = client.ask(
            "produce", base_sequence=0, record_count=1, is_transactional=True, api_version=10,
            other_partitions=[{"partition": 1, "records_hex": (batch + batch).hex()}], **owner,
        )  # fmt: skip
        assert (answer["error_code"], answer["other_partitions"][0]["error_code"]) == (0, 87)

    @pytest.mark.parametrize("version", ["3.8.0", "3.9.2", "4.4.0"])
    def test_later_all_are_refused(self, version):
        assert self.codes(version, 0, 1) == [49, 49]
        assert self.codes(version, 1, 1) == [0, 0]

    def test_before_verification_each_is_appended_by_itself(self):
        assert self.codes("3.5.2", 1, 0) == [0, 0]


@pytest.mark.parametrize("version", ["3.7.2", "3.8.1"])
def test_several_producer_ids_are_refused(version):
    client = PartitionClient(version)
    described = {"producer_epoch": 0, "base_sequence": 0, "record_count": 1, "is_transactional": True}
    answer = client.ask(
        "produce", transactional_id="x", producer_id=4, api_version=10,
        other_partitions=[{"partition": 1, "producer_id": 5, **described}], **described,
    )  # fmt: skip
    assert answer["error_code"] == answer["other_partitions"][0]["error_code"] == 49


@pytest.mark.parametrize("version", ["0.11.0.3", "3.6.1"])
def test_offsets_of_a_negative_epoch_cannot_be_written(version):
    client = PartitionClient(version)
    granted = client.ask("init_producer_id", transactional_id="x")
    owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": -1}
    assert client.code("txn_offset_commit", **owner) == UNKNOWN_SERVER_ERROR
    below = client.code("txn_offset_commit", **{**owner, "producer_epoch": -2})
    assert below == (
        0 if version == "0.11.0.3" else INVALID_PRODUCER_EPOCH
    )  # only -1 means none (recorded on 0.11.0.3, 3.6.2)


@pytest.mark.parametrize(
    ("version", "format_version", "code"),
    [
        ("0.11.0.3", "0.10.2", 43),
        ("2.5.0", "0.10.2", 43),
        ("2.8.2", "0.10.0", 43),
        ("2.5.0", "0.11.0", 0),
        ("2.5.0", "2.4-IV1", 0),
        ("3.0.0", "0.10.2", 0),
    ],
)
def test_an_older_message_format_has_no_producer_ids(version, format_version, code):
    """Recorded on 0.11.0.3, 2.5.0 and 2.8.2 (tests/data/recorded): LogValidator.validateBatch."""
    client = PartitionClient(version, topic_config={"message.format.version": format_version})
    assert client.produce(0) == code
    assert client.produce(-1, epoch=-1, pid=-1) == (0 if code else 1)


def test_an_older_message_format_has_no_transactions():
    """-1: the batch's builder is made before the validator looks at the batch; markers are left out (recorded on 2.8.2)."""
    client = PartitionClient("2.8.2", topic_config={"message.format.version": "0.10.0"})
    granted = client.ask("init_producer_id", transactional_id="x")
    owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 0}
    assert client.code("add_partitions", **owner) == 0
    sent = {"is_transactional": True, "transactional_id": "x", "pid": granted["producer_id"]}
    assert client.produce(0, **sent) == UNKNOWN_SERVER_ERROR
    assert client.code("end_txn", commit=True, **owner) == 0
    assert client.mark(0, pid=granted["producer_id"]) == 43
    assert client.describe()["high_watermark"] == 0
    assert client.code("add_partitions", **owner) == 0


def test_a_compressed_batch_is_unsupported_for_an_older_format():
    client = PartitionClient("2.5.0", topic_config={"message.format.version": "0.10.2"})
    batch = Batch(producer_id=900001, epoch=0, sequence=0, attributes=1)
    assert client.produce(0, records_hex=sealed_records(batch, [gzip.compress(record(0, None, b"x"))]).hex()) == 43
