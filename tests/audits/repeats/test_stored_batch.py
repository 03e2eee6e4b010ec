"""What is compared of a stored batch and of its records: equal where they say the same, whatever their place and time."""

import pytest

from kaudit.audits.repeats.duplicates import Keys, StoredBatch
from tests.formats.encoders import GZIP, batch, message, record

T = 1_700_000_000_000
RECORDS = [record(0, 0, b"k", b"v"), record(1, 5, b"k", b"w"), record(2, 7, None, b"v")]
PRODUCER = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 40}


def stored(raw):
    return StoredBatch(memoryview(raw))


def test_a_batch():
    unit = stored(batch(RECORDS, 100, base_timestamp=T, max_timestamp=T + 7, **PRODUCER)).unit(None)
    assert (unit.offset, unit.last_offset, unit.record_count, unit.timestamp) == (100, 102, 3, T + 7)
    assert (unit.producer_id, unit.producer_epoch, unit.sequence) == (7, 2, 40)


def test_a_batch_of_no_producer_and_no_time():
    unit = stored(batch(RECORDS, 100, max_timestamp=-1)).unit(None)
    assert (unit.timestamp, unit.producer_id, unit.producer_epoch, unit.sequence) == (None, None, None, None)
    assert stored(batch(RECORDS, 0, producer_id=0, producer_epoch=0, base_sequence=0)).unit(None).sequence == 0


def test_a_batch_that_claims_to_end_before_it_begins():
    unit = stored(batch(RECORDS, 100, last_offset_delta=-5)).unit(None)
    assert (unit.offset, unit.last_offset) == (100, 100)


def test_a_digest_is_of_the_records_and_their_codec():
    own = stored(batch(RECORDS, 100, **PRODUCER)).unit(None).digest
    assert stored(batch(RECORDS, 555, base_timestamp=T + 9)).unit(None).digest == own
    assert stored(batch(RECORDS[:2], 100)).unit(None).digest != own
    assert stored(batch(RECORDS, 100, codec=GZIP)).unit(None).digest != own


@pytest.mark.parametrize(("offset", "sequence", "time"), [(100, 40, T), (101, 41, T + 5), (102, 42, T + 7)])
def test_a_record_of_a_batch(offset, sequence, time):
    raw = batch(RECORDS, 100, base_timestamp=T, max_timestamp=T + 7, **PRODUCER)
    unit = stored(raw).unit(offset)
    assert (unit.offset, unit.last_offset, unit.record_count, unit.timestamp) == (offset, offset, 1, time)
    assert (unit.producer_id, unit.producer_epoch, unit.sequence) == (7, 2, sequence)
    with pytest.raises(KeyError):
        stored(raw).unit(103)


def test_what_records_say():
    own = stored(batch([*RECORDS, record(3, 99, b"k", b"v")], 100))
    first, other, keyless, again = own.contents(None)
    assert own.contents(103) == [again]
    assert first == again
    assert len({first, other, keyless}) == 3
    assert (own.unit(100).digest == own.unit(103).digest, own.unit(100).digest == own.unit(101).digest) == (True, False)


@pytest.mark.parametrize(
    ("records", "offset", "keys"),
    [
        (RECORDS, None, Keys(False, None)),
        (RECORDS[:2], None, Keys(True, b"k")),
        (RECORDS, 100, Keys(True, b"k")),
        (RECORDS, 102, Keys(False, None)),
        ([record(0, key=b"a"), record(1, key=b"b")], None, Keys(True, None)),
    ],
)
def test_what_keys_records_have(records, offset, keys):
    assert stored(batch(records, 100)).keys(offset) == keys


def test_old_messages_have_times_but_no_producer():
    for magic, time in ((0, None), (1, T)):
        unit = stored(message(100, magic, key=b"k", value=b"v", timestamp=T)).unit(None)
        assert (unit.offset, unit.last_offset, unit.record_count, unit.timestamp) == (100, 100, 1, time)
        assert (unit.producer_id, unit.producer_epoch, unit.sequence) == (None, None, None)


def test_a_batch_that_compaction_emptied():
    with pytest.raises(ValueError, match="empty"):
        stored(batch([], 100)).contents(None)
