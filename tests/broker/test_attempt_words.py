"""What attempts can say: several partitions in one request, offsets in a transaction, producers that expired."""

import msgspec
import pytest

from tests.attempts import attempt_of
from tests.broker.client import PartitionClient
from tests.logs import data


class TestSeveralPartitions:
    """One produce request: each partition by itself, unless the request as a whole is refused."""

    @staticmethod
    def also(partition, sequence, **fields):
        """The same request's batch for another partition."""
        batch = {"producer_id": 900001, "producer_epoch": 0, "base_sequence": sequence, "record_count": 1}
        return {"partition": partition, **batch, **fields}

    def ask(self, client, sequence, others, **fields):
        """The answer for each partition: its offset or error."""
        answer = client.ask(
            "produce", producer_id=900001, producer_epoch=0, base_sequence=sequence, record_count=1, timestamp=client.at,
            other_partitions=others, **({"api_version": 7} | fields),
        )  # fmt: skip
        if "other_partitions" not in answer:
            return answer["outcome"]
        return [each.get("base_offset", each.get("error_code")) for each in (answer, *answer["other_partitions"])]

    def test_each_partition_has_its_own_state_and_answer(self):
        client = PartitionClient("3.9.1")
        assert self.ask(client, 0, [self.also(1, 0), self.also(0, 0, topic="u")]) == [0, 0, 0]
        assert self.ask(client, 1, [self.also(1, 2), self.also(0, 1, topic="u")]) == [1, 45, 1]

    def test_answers_name_their_partitions(self):
        client = PartitionClient("3.9.1")
        answer = client.ask("produce", **self.also(0, 0), other_partitions=[self.also(4, 0, topic="u")])
        (other,) = answer["other_partitions"]
        assert (other["topic"], other["partition"], other["outcome"]) == ("u", 4, "appended")

    def test_with_acks_0_one_refusal_closes_the_connection_and_the_rest_is_written(self):
        """KafkaApis.handleProduceRequest answers when all partitions have been appended to."""
        client = PartitionClient("3.9.1")
        assert self.ask(client, 0, [self.also(1, 0)], acks=0) == "no-response"
        assert self.ask(client, 1, [self.also(1, 7)], acks=0) == "connection-closed"
        assert client.describe()["high_watermark"] == 2

    def test_what_closes_the_connection_leaves_every_partition_alone(self):
        """ProduceRequest is parsed as a whole before any log is involved."""
        client = PartitionClient("1.1.1")
        two = [{"producer_id": 900001, "producer_epoch": 0, "base_sequence": n, "record_count": 1} for n in (0, 1)]
        assert self.ask(client, 0, [{"partition": 1, "batches": two}]) == "connection-closed"
        assert client.describe()["high_watermark"] == 0

    def test_a_first_batch_nobody_can_read_refuses_the_request(self):
        """RequestUtils.flag reads the first batch of each partition before any log is involved; recorded on 4.4.0."""
        client = PartitionClient("4.4.0")
        magic_3 = bytearray(bytes(61))
        magic_3[8:12], magic_3[16] = (49).to_bytes(4, "big"), 3
        unreadable = {"partition": 1, "records_hex": magic_3.hex()}
        assert self.ask(client, 0, [unreadable]) == [2, 2]
        transactional = {"is_transactional": True, "transactional_id": "x", "api_version": 10}
        granted = client.ask("init_producer_id", transactional_id="x", granted_producer_id=900001)
        assert granted["error_code"] == 0
        client.code("add_partitions", transactional_id="x", producer_id=900001, producer_epoch=0)
        assert self.ask(client, 0, [unreadable], **transactional) == [0, 2]

    def test_with_acks_0_a_refused_request_closes_the_connection(self):
        """KafkaApis.sendNoOpResponseExemptThrottle: there is no answer that could bear the error."""
        magic_3 = bytearray(bytes(61))
        magic_3[8:12], magic_3[16] = (49).to_bytes(4, "big"), 3
        client = PartitionClient("4.4.0")
        unreadable = {"partition": 1, "records_hex": magic_3.hex()}
        assert self.ask(client, 0, [unreadable], acks=0) == "connection-closed"
        assert client.describe()["high_watermark"] == 0

    def test_what_is_wrong_behind_a_good_first_batch_is_wrong_with_its_partition_only(self):
        """RequestUtils.flag looks at first batches; ProduceRequest.validateRecords at each partition's record set."""
        good = data(900001, 0, 0).encode()
        magic_3 = bytearray(good)
        magic_3[16] = 3
        client = PartitionClient("4.4.0")
        assert self.ask(client, 0, [{"partition": 1, "records_hex": (good + magic_3).hex()}], api_version=10) == [0, 2]

    @pytest.mark.parametrize(("version", "codes"), [("3.9.1", [49, 49]), ("3.5.2", [0, 0])])
    def test_transactional_batches_of_two_producers_are_refused_from_3_6_on(self, version, codes):
        """ReplicaManager.handleProduceAppend: transactional records contained more than one producer id."""
        client = PartitionClient(version)
        others = [self.also(1, 0, is_transactional=True, producer_id=900002)]
        answered = self.ask(client, 0, others, is_transactional=True, transactional_id="x")
        assert answered == codes


class TestTxnOffsetCommit:
    """The group coordinator's append to __consumer_offsets: epochs are checked, sequences do not exist."""

    @staticmethod
    def client(version, **config):
        client = PartitionClient(version, config)
        client.ask("init_producer_id", transactional_id="x", api_version=3)
        return client

    def commit(self, client, epoch=0, **fields):
        """The error's code."""
        return client.code("txn_offset_commit", transactional_id="x", producer_id=0, producer_epoch=epoch, **fields)

    def add(self, client):
        """AddOffsetsToTxn adds the partition that holds the group."""
        return client.code("add_partitions", transactional_id="x", producer_id=0, producer_epoch=0)

    @pytest.mark.parametrize("version", ["0.11.0.3", "1.1.1", "2.8.2", "3.6.2", "3.9.1"])
    def test_offsets_open_a_transaction_and_its_end_closes_it(self, version):
        client = self.client(version)
        self.add(client)
        assert [self.commit(client, record_count=3), self.commit(client)] == [0, 0]
        assert (client.describe()["high_watermark"], client.describe()["last_stable_offset"] < 4) == (4, True)
        client.ask("end_txn", transactional_id="x", producer_id=0, producer_epoch=0, commit=True)
        assert client.describe()["last_stable_offset"] == 5

    @pytest.mark.parametrize(
        ("version", "code"),
        [("0.11.0.1", 47), ("0.11.0.2", 0), ("1.1.1", 0), ("2.4.0", 0), ("2.4.1", 47), ("3.9.1", 47)],
    )
    def test_a_fenced_epoch_is_refused_where_epochs_of_commits_are_checked(self, version, code):
        """ProducerStateManager.prepareUpdate: ValidationType.None for what is not a client's; recorded on 1.0.0, 4.4.0."""
        client = self.client(version)
        client.mark(3, pid=0)
        assert self.commit(client, epoch=2) == code

    def test_its_batches_have_sequences_from_0_on(self):
        """GroupMetadataManager.storeOffsets; recorded on 4.4.0."""
        client = self.client("3.9.1")
        self.add(client)
        for _ in range(2):
            self.commit(client, record_count=3)
        assert [producer["last_sequence"] for producer in client.describe()["producers"]] == [2]

    @pytest.mark.parametrize("version", ["1.0.0", "3.9.1"])
    def test_a_commit_of_several_offsets_opens_the_transaction_at_the_first(self, version):
        client = self.client(version)
        self.add(client)
        self.commit(client, record_count=3)
        assert client.describe()["last_stable_offset"] == 0

    @pytest.mark.parametrize(
        ("version", "api_version", "code"), [("3.6.2", 3, 0), ("3.7.2", 3, 48), ("3.8.1", 3, 48), ("3.8.1", 4, 120)]
    )
    def test_a_partition_nobody_added_is_refused_from_3_7_on(self, version, api_version, code):
        """KIP-890 part 1: VerificationGuard for coordinator appends; TxnOffsetCommit 4 knows TRANSACTION_ABORTABLE."""
        client = self.client(version)
        assert self.commit(client, api_version=api_version) == code

    @pytest.mark.parametrize(("version", "api_version", "code"), [("3.9.1", 4, 0), ("4.2.0", 4, 0), ("4.2.0", 5, 0)])
    def test_nor_where_verification_is_switched_off(self, version, api_version, code):
        """transaction.partition.verification.enable; a commit that adds its partition asks the coordinator all the same."""
        client = self.client(version, **{"transaction.partition.verification.enable": "false"})
        assert self.commit(client, api_version=api_version) == code

    def test_under_transaction_version_2_it_adds_the_partition_itself(self):
        client = self.client("4.2.0")
        assert self.commit(client, api_version=5) == 0
        assert client.describe()["last_stable_offset"] == 0

    @pytest.mark.parametrize("config", [{}, {"transaction.partition.verification.enable": "false"}])
    def test_what_adds_the_partition_is_refused_to_strangers(self, config):
        """KIP-890 part 2: AddPartitionsToTxn on the client's behalf, 49 where the id is not this producer's."""
        client = self.client("4.2.0", **config)
        stranger = {"transactional_id": "nobody", "producer_id": 0, "producer_epoch": 0, "api_version": 5}
        assert client.code("txn_offset_commit", **stranger) == 49


class TestExpireProducers:
    """The broker dropped idle producers, whatever its clock and configuration say."""

    def test_those_named_are_forgotten(self):
        client = PartitionClient("2.0.1")
        client.produce(0)
        client.produce(0, pid=900002)
        client.ask("expire_producers", producer_ids=[900001])
        assert [client.produce(1), client.produce(1, pid=900002)] == [59, 2]

    def test_without_names_those_that_are_idle_for_too_long(self):
        """The check itself comes every ten minutes."""
        client = PartitionClient("2.0.1", {"transactional.id.expiration.ms": "4000"})
        client.produce(0)
        client.wait(4_000)
        client.produce(0, pid=900002)
        client.ask("expire_producers")
        assert [client.produce(1), client.produce(1, pid=900002)] == [59, 2]

    def test_an_open_transaction_never_expires(self):
        client = PartitionClient("2.0.1")
        client.produce(0, is_transactional=True, transactional_id="x")
        client.ask("expire_producers", producer_ids=[900001])
        assert client.produce(1, is_transactional=True, transactional_id="x") == 1


@pytest.mark.parametrize("field", ["producer_id", "producer_epoch", "base_sequence", "record_count"])
def test_numbers_that_the_protocol_cannot_say_are_no_attempt(field):
    """int64, int16, int32, int32 of a record batch's header."""
    bits = {"producer_id": 63, "producer_epoch": 15, "base_sequence": 31, "record_count": 31}[field]
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "record_count": 1}
    attempt = {"index": 1, "op": "produce", "topic": "t", "partition": 0, "at": 1, "timestamp": 1, "api_version": 7}
    attempt_of(attempt | fields | {field: 2**bits - 1})
    with pytest.raises(msgspec.ValidationError):
        attempt_of(attempt | fields | {field: 2**bits})
    attempt_of(attempt | fields | {field: -(2**bits)})
    with pytest.raises(msgspec.ValidationError):
        attempt_of(attempt | fields | {field: -(2**bits) - 1})


@pytest.mark.parametrize(("count", "is_one"), [(0, False), (1, True), (2**31 - 1, True), (2**31, False)])
def test_a_batch_found_on_disk_has_records(count, is_one):
    found = {"base_offset": 0, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "record_count": count}
    attempt = {
        "index": 1,
        "op": "restart",
        "topic": "t",
        "partition": 0,
        "at": 1,
        "clean": False,
        "found_on_disk": [found],
    }
    if is_one:
        attempt_of(attempt)
    else:
        with pytest.raises(msgspec.ValidationError):
            attempt_of(attempt)
