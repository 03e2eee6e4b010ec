"""Bytes the model writes, against encoders that share nothing with it and against kaudit's own parsers."""

import numpy as np
import pytest

from kaudit.formats.byte_reader import varint
from kaudit.formats.internal_topics.transaction_state import parse_transaction_record
from kaudit.formats.log.control import parse_marker
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot, producer_snapshot
from kaudit.model.side_files import SnapshotEntry
from kaudit.simulate import encoding
from tests import logs
from tests.formats import encoders


@pytest.mark.parametrize("value", [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31), 2**62])
def test_varints_are_zigzag(value):
    assert varint(value) == encoders.varint(value)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 300])
def test_a_batch_is_the_one_an_independent_encoder_writes(count):
    records = [encoding.record(delta, delta * 7, b"%d" % delta, b"v" * (delta % 90)) for delta in range(count)]
    other = [encoders.record(delta, delta * 7, b"%d" % delta, b"v" * (delta % 90)) for delta in range(count)]
    assert records == other
    sent = encoding.batch(records, (7, 3, 2**31 - 5), (1000, 1000 + 7 * count), transactional=True)
    expected = encoders.batch(
        other,
        base_offset=912,
        flags=encoders.TRANSACTIONAL,
        base_timestamp=1000,
        max_timestamp=1000 + 7 * count,
        producer_id=7,
        producer_epoch=3,
        base_sequence=2**31 - 5,
        leader_epoch=4,
    )
    assert encoding.placed(sent, 912, 4) == expected


@pytest.mark.parametrize("size", [4079, 4080, 4095, 4096, 4097])
def test_a_record_of_thousands_of_bytes(size):
    assert encoding.record(size, size, None, b"v" * size) == encoders.record(size, size, None, b"v" * size)


def test_records_without_key_or_value():
    assert encoding.record(0, 0, None, None) == encoders.record(0, 0, None, None)


@pytest.mark.parametrize("commit", [True, False])
def test_markers(commit):
    written = encoding.marker(9, 2, 5, 1234, commit=commit)
    assert written == logs.marker(9, 2, commit=commit, coordinator_epoch=5, timestamp=1234, leader_epoch=-1).encode()
    parsed = parse_marker(written)
    assert parsed is not None
    assert (parsed.type.name, parsed.coordinator_epoch) == ("COMMIT" if commit else "ABORT", 5)


def test_snapshots_are_read_back():
    entries = [SnapshotEntry(1, 2, 3, 4, 5, 6, 7, -1), SnapshotEntry(2**40, 32767, -1, -1, 0, -1, -1, 99)]
    parsed = parse_producer_snapshot(producer_snapshot(entries))
    assert list(parsed.entries()) == entries
    assert isinstance(parsed.rows, np.ndarray)


@pytest.mark.parametrize("flexible", [True, False])
@pytest.mark.parametrize("partitions", [(), (("a", 0),), (("a", 3), ("b", 0), ("a", 1))])
def test_coordinator_records_are_read_back(flexible, partitions):
    value = encoding.TransactionValue(7, 3, 60000, 1, partitions, 1000, 900, 2)
    body = encoding.flexible_value(value) if flexible else encoding.fixed_value(value)
    parsed = parse_transaction_record(encoding.key("täx"), body)
    assert parsed.transactional_id == "täx"
    read = parsed.value
    assert read is not None
    assert (read.producer_id, read.producer_epoch, read.timeout_ms, read.status_id) == (7, 3, 60000, 1)
    assert (read.last_update_timestamp, read.start_timestamp) == (1000, 900)
    found = {(group.topic, number) for group in read.partitions or () for number in group.partitions}
    assert found == set(partitions)
    assert read.client_transaction_version == (2 if flexible else None)
