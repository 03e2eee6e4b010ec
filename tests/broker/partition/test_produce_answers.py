"""Answers to produce requests in which releases differ, as nineteen of them gave them live or as their source says."""

import gzip
import random
from dataclasses import replace

import pytest

from kaudit.model.sequence import MAX_SEQUENCE
from tests.broker.client import PartitionClient
from tests.logs import Batch, data, record, sealed_records

SERVER_ERROR = -1
UNKNOWN_PRODUCER, OUT_OF_ORDER, OLD_DUPLICATE, FENCED, NOT_TRANSACTIONAL, TIMED_OUT = 59, 45, 46, 47, 48, 7


class TestAcks0:
    """acks=0: nothing is sent back, but a refusal closes the connection (KafkaApis.handleProduceRequest)."""

    @pytest.mark.parametrize("version", ["0.11.0.0", "1.1.1", "2.8.2", "4.3.1"])
    def test_a_refusal_closes_the_connection(self, version):
        client = PartitionClient(version)
        assert client.produce(0, acks=0) == "no-response"
        assert client.produce(2, acks=0) == "connection-closed"
        assert client.produce(1, acks=0) == "no-response"

    @pytest.mark.parametrize("acks", [-1, 0, 1])
    def test_a_batch_sent_again_is_a_duplicate_like_any_other(self, acks):
        client = PartitionClient("3.9.1")
        client.produce(0, acks=0)
        assert client.produce(0, acks=acks) == ("no-response" if acks == 0 else (0,))
        assert client.produce(1) == 1


@pytest.mark.parametrize(
    ("version", "answer"), [("2.1.0", "connection-closed"), ("2.1.1", 2), ("2.2.0", 2), ("2.4.0", 87)]
)
def test_two_batches_in_one_request_are_answered_from_2_1_1_on(version, answer):
    """KAFKA-7549; recorded on 2.1.1."""
    client = PartitionClient(version)
    batch = {"producer_id": 900001, "producer_epoch": 0, "record_count": 1}
    assert client.produce(None, batches=[batch | {"base_sequence": 0}, batch | {"base_sequence": 1}]) == answer


@pytest.mark.parametrize(("version", "answer"), [("1.0.0", OLD_DUPLICATE), ("1.0.1", OLD_DUPLICATE), ("1.0.2", 4)])
def test_until_1_0_1_an_old_duplicate_is_looked_for_before_the_next_sequence(version, answer):
    """After a wrap the remembered first sequence is above every new one (ProducerAppendInfo.checkSequence of 1.0.0)."""
    client = PartitionClient(version)
    found = {"base_offset": 0, "producer_id": 900001, "producer_epoch": 0, "base_sequence": MAX_SEQUENCE - 2}
    client.kill(found_on_disk=[found])
    sequences = (MAX_SEQUENCE - 1, MAX_SEQUENCE, 0)
    assert [client.produce(sequence) for sequence in sequences] == [1, 2, 3]  # a last sequence of 0 is not looked at
    assert client.produce(1) == answer


def test_a_window_that_begins_at_the_last_sequence_of_all_is_not_looked_at():
    """ProducerAppendInfo.isDuplicate of 1.0.0 leaves it out."""
    client = PartitionClient("1.0.0")
    found = {"base_offset": 0, "producer_id": 900001, "producer_epoch": 0, "base_sequence": MAX_SEQUENCE}
    client.kill(found_on_disk=[found])
    assert [client.produce(sequence) for sequence in (0, 1, 2)] == [1, 2, 3]


@pytest.mark.parametrize("transactional", [{"transactional_id": "x"}, {}])
@pytest.mark.parametrize("version", ["1.0.0", "1.0.1", "1.0.2"])
def test_1_0_remembers_a_batch_it_refused_in_a_transaction(version, transactional):
    """ProducerAppendInfo.append of 1.0.0 adds the batch, then throws: its retry waits for an offset that is not there."""
    client = PartitionClient(version)
    transactional = {"is_transactional": True, **transactional}
    assert client.produce(0, **transactional) == 0
    assert client.produce(1) == NOT_TRANSACTIONAL
    remembers = version in ("1.0.0", "1.0.1")
    assert client.produce(1, **transactional) == (TIMED_OUT if remembers else 1)
    assert client.produce(1, acks=1, **transactional) == (1,)
    assert client.produce(2, **transactional) == (1 if remembers else 2)
    assert client.produce(1, **transactional) == (1,)  # by now the offset is there


@pytest.mark.parametrize("version", ["0.11.0.0", "0.11.0.1"])
def test_an_epoch_of_minus_one_skips_all_checks_at_first(version):
    """Recorded on 0.11.0.0; ProducerAppendInfo.append of 0.11.0.1."""
    client = PartitionClient(version)
    assert [client.produce(0), client.produce(1, epoch=-1), client.produce(7, epoch=-1)] == [0, 1, 2]


@pytest.mark.parametrize("version", ["0.11.0.2", "1.1.1", "3.9.1"])
def test_later_it_is_an_epoch_below_the_current_one(version):
    client = PartitionClient(version)
    assert [client.produce(0), client.produce(1, epoch=-1)] == [0, FENCED]


@pytest.mark.parametrize(("version", "answers"), [("0.11.0.0", [0, 0]), ("0.11.0.1", [2, 0]), ("2.4.0", [87, 0])])
def test_a_batch_without_records_is_appended_by_0_11_0_0_alone(version, answers):
    """It takes no offset (LogValidator.validateBatch of 0.11.0.0 and 0.11.0.1; recorded on 0.11.0.0)."""
    client = PartitionClient(version)
    assert [client.produce(0, count=0), client.produce(0, pid=900002)] == answers
    client = PartitionClient(version)
    raw = sealed_records(data(900001, 0, 0, 0), [])
    assert [client.produce(0, records_hex=raw.hex()), client.produce(0, pid=900002)] == answers
    assert list(client.broker.remembered(("t", 0))) == ([900001, 900002] if answers[0] == 0 else [900002])


@pytest.mark.parametrize("version", ["1.0.0", "1.1.1", "2.3.1", "2.4.0"])
def test_a_marker_of_a_new_epoch_leaves_no_timestamp_until_2_4_0(version):
    """ProducerStateEntry.lastTimestamp is the newest batch's, and there is none (KAFKA-9144): gone with the restart."""
    client = PartitionClient(version)
    assert [client.produce(0), client.mark(5)] == [0, 0]
    assert client.produce(0, epoch=4) == FENCED
    client.restart()
    assert client.produce(1, epoch=4) == UNKNOWN_PRODUCER
    assert client.produce(0, epoch=4) == 2


@pytest.mark.parametrize("version", ["1.0.0", "2.4.0"])
def test_such_a_producer_is_gone_with_the_next_expiry_check_too(version):
    client = PartitionClient(version)
    client.produce(0)
    client.mark(5)
    client.wait(601_000)
    assert client.produce(1, epoch=4) == UNKNOWN_PRODUCER


@pytest.mark.parametrize("version", ["0.11.0.3", "2.4.1", "3.9.1"])
def test_other_releases_take_the_markers_own_time(version):
    client = PartitionClient(version)
    client.produce(0)
    client.mark(5)
    client.restart()
    client.wait(601_000)
    assert client.produce(1, epoch=4) == FENCED


@pytest.mark.parametrize("version", ["1.0.0", "1.0.1"])
def test_a_batch_that_wraps_counts_as_above_the_next_sequence_too(version):
    """Recorded on 1.0.0: its first sequence is remembered, and every new one is below it."""
    client = PartitionClient(version)
    found = {
        "base_offset": 0,
        "producer_id": 900001,
        "producer_epoch": 0,
        "base_sequence": MAX_SEQUENCE - 1,
        "record_count": 3,
    }
    client.kill(found_on_disk=[found])
    assert client.produce(1) == OLD_DUPLICATE


class TestCompressionType:
    """A topic's own compression.type: the broker encodes batches of another codec again, and checks more."""

    GZIP = {"compression.type": "gzip"}  # noqa: RUF012 - never changed

    @pytest.mark.parametrize("version", ["0.11.0.2", "1.0.0", "3.8.1"])
    def test_a_negative_epoch_is_a_server_error(self, version):
        """Recorded; MemoryRecordsBuilder.validateProducerState."""
        client = PartitionClient(version, topic_config=self.GZIP)
        assert [client.produce(0, epoch=-1), client.produce(0)] == [SERVER_ERROR, 0]

    @pytest.mark.parametrize("config", [{}, {"compression.type": "producer"}, {"compression.type": "uncompressed"}])
    def test_a_batch_that_stays_as_it_is_may_have_one(self, config):
        assert PartitionClient("3.8.1", topic_config=config).produce(0, epoch=-1) == 0

    def test_the_brokers_own_counts_where_the_topic_has_none(self):
        assert PartitionClient("3.8.1", self.GZIP).produce(0, epoch=-1) == SERVER_ERROR
        assert PartitionClient("3.8.1", self.GZIP, {"compression.type": "producer"}).produce(0, epoch=-1) == 0

    @pytest.mark.parametrize(
        ("producer_id", "epoch", "sequence", "flags", "answer"),
        [
            (-1, -1, -1, 0, 0),  # of no producer, as most batches are
            (-1, -1, -1, 0x10, SERVER_ERROR),  # but transactional
            (-2, -1, 0, 0, SERVER_ERROR),  # an id that nobody grants counts as one here alone
            (-2, 0, -1, 0, SERVER_ERROR),
            (-2, 0, 0, 0, 0),
        ],
    )
    def test_what_is_checked_when_a_batch_is_encoded_again(self, producer_id, epoch, sequence, flags, answer):
        """MemoryRecordsBuilder.validateProducerState."""
        client = PartitionClient("3.8.1", topic_config=self.GZIP)
        sent = Batch(producer_id, epoch, sequence, attributes=flags)
        of_transaction = {"transactional_id": "x"} if flags else {}
        assert client.produce(0, records_hex=sent.encode().hex(), **of_transaction) == answer
        assert PartitionClient("3.8.1").produce(0, records_hex=sent.encode().hex(), **of_transaction) == 0

    def test_a_compressed_batch_is_encoded_again_for_an_uncompressed_topic(self):
        """Recorded on 0.11.0.2."""
        client = PartitionClient("0.11.0.2", topic_config={"compression.type": "uncompressed"})
        assert client.produce(0, records_hex=compressed(epoch=-1).hex()) == SERVER_ERROR
        assert client.produce(0, records_hex=compressed(epoch=0).hex()) == 0

    @pytest.mark.parametrize(("codec", "limit", "answer"), [("gzip", 500, 0), ("producer", 500, 18), ("gzip", 80, 18)])
    def test_segment_bytes_limits_what_is_written(self, codec, limit, answer):
        """A thousand equal bytes: more than a segment holds as they come, less than it holds once compressed."""
        client = PartitionClient("3.8.1", topic_config={"compression.type": codec, "segment.bytes": str(limit)})
        sent = replace(data(900001, 0, 0), payload=b"x" * 1000)
        assert client.produce(0, records_hex=sent.encode().hex()) == answer

    @pytest.mark.parametrize(
        ("codec", "frame"),
        [
            ("gzip", 10 + 5 + 8),  # RFC 1952: header, and checksum and length behind; RFC 1951: a stored block's header
            ("snappy", 16 + 4 + 2 + 3),  # xerial's header and a block's length; the content's length, a literal's tag
            ("lz4", 7 + 4 + 4),  # header without the content's size; a block's length; the end mark
            ("zstd", 6 + 3),  # RFC 8878: header without the content's size; a block's header
        ],
    )
    def test_every_codec_is_measured(self, codec, frame):
        """Random records, which no codec makes smaller: what frames them comes on top."""
        sent = replace(data(900001, 0, 0), payload=random.Random(1).randbytes(300))
        size = len(sent.encode()) + frame
        small = replace(sent, payload=b"x" * 1000)
        for batch, limit, answer in ((sent, size - 1, 18), (sent, size, 0), (small, size, 0)):
            client = PartitionClient("3.8.1", topic_config={"compression.type": codec, "segment.bytes": str(limit)})
            assert client.produce(0, records_hex=batch.encode().hex()) == answer


@pytest.mark.parametrize(
    ("version", "api_version", "in_order", "answer"),
    [("1.1.0", 5, False, SERVER_ERROR), ("3.7.2", 3, True, SERVER_ERROR), ("3.7.2", 7, True, NOT_TRANSACTIONAL)],
)
def test_an_unknown_codec_is_looked_at_early(version, api_version, in_order, answer):
    """Recorded: 1.1.0 before the sequence, 3.7.2 with an old request before the coordinator is asked.

    ProduceRequest.validateRecords asks for the codec until Produce version 7; Log.analyzeAndValidateRecords always does.
    """
    client = PartitionClient(version)
    producer = client.ask("init_producer_id", transactional_id="x", api_version=1)
    sent = Batch(producer["producer_id"], 0, 0 if in_order else -1, attributes=0x10 | 5)
    assert client.produce(0, records_hex=sent.encode().hex(), transactional_id="x", api_version=api_version) == answer


def compressed(epoch):
    """A batch of one record, compressed with gzip."""
    batch = Batch(900001, epoch, 0, attributes=1)
    records = record(0, None, b"x")
    return sealed_records(batch, [gzip.compress(records, mtime=0)])


@pytest.mark.parametrize(
    ("version", "api_version", "answer"),
    [("2.3.1", 7, 32), ("2.4.0", 7, -1), ("2.4.0", 8, 32), ("2.4.1", 7, 32), ("2.5.0", 7, 32)],
)
def test_2_4_0_cannot_say_which_records_are_wrong_before_version_8(version, api_version, answer):
    """ProduceResponse.toStruct of 2.4.0 sets a field the older versions lack; recorded with keys missing."""
    client = PartitionClient(version, topic_config={"message.timestamp.difference.max.ms": "1000"})
    assert client.produce(0, timestamp=client.at - 2000, api_version=api_version) == answer


@pytest.mark.parametrize("version", ["0.11.0.0", "2.4.0", "4.1.0"])
def test_a_marker_without_an_epoch_cannot_be_built(version):
    """MemoryRecordsBuilder.close; recorded on 4.1.0."""
    client = PartitionClient(version)
    assert client.mark(-1) == -1
    assert client.mark(0) == 0
