"""What is compared of the records of a stored batch: equal where they say the same, whatever their place and time."""

import pytest

from kaudit.audits.repeats.duplicates import stored_records
from kaudit.formats.log.record_spans import BatchBytes
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from tests.formats.encoders import GZIP, batch, message, record

T = 1_700_000_000_000
RECORDS = [record(0, 0, b"k", b"v"), record(1, 5, b"k", b"w"), record(2, 7, None, b"v")]
PRODUCER = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 40}


def stored(raw):
    """The records of a batch by offset."""
    reader = IdentityReader(parse_identity("key,value,headers"))
    return stored_records(BatchBytes.of([raw]), reader, [range(1000)])[0]


@pytest.mark.parametrize(("offset", "sequence", "time"), [(100, 40, T), (101, 41, T + 5), (102, 42, T + 7)])
def test_a_record_of_a_batch(offset, sequence, time):
    raw = batch(RECORDS, 100, base_timestamp=T, max_timestamp=T + 7, **PRODUCER)
    own = stored(raw)
    assert own.keys() == {100, 101, 102}
    assert own[offset].timestamp == time
    assert own[offset].sender == (7, 2, sequence)
    assert own[offset].place == (offset - 100, 3)


def test_what_records_say():
    own = stored(batch([*RECORDS, record(3, 99, b"k", b"v")], 100, codec=GZIP))
    first, other, keyless, again = (own[offset].identity for offset in range(100, 104))
    assert first == again
    assert len({first, other, keyless}) == 3
    assert stored(batch(RECORDS, 555, base_timestamp=T + 9))[555].identity == first
    assert [own[offset].content.key for offset in range(100, 104)] == [b"k", b"k", None, b"k"]


def test_no_producer_and_no_time():
    own = stored(batch(RECORDS, 100, base_timestamp=-1, max_timestamp=-1))
    assert own[100][2:4] == (None, (None, None, None))
    for magic, time in ((0, None), (1, T)):
        own = stored(message(100, magic, key=b"k", value=b"v", timestamp=T))
        assert (own[100].timestamp, own[100].content.key) == (time, b"k")
        assert own[100].sender == (None, None, None)
