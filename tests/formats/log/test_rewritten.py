"""Batches with other contents in their records: all else of them stays, and they are valid again."""

import pytest

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import HEADER_SIZE
from kaudit.formats.log.legacy import parse_message, read_legacy_records, rewritten_legacy
from kaudit.formats.log.record_batch import batch_crc_holds
from kaudit.formats.log.records import Header, read_records, resealed, rewritten
from tests.formats.encoders import COMPRESS, batch, message, record

CONTENTS = [(b"key", b"value", ((b"h", b"x"), (b"i", None))), (None, b"", ()), (b"", None, ()), (b"k", b"v" * 300, ())]
RECORDS = [record(at, at * 70, *each) for at, each in enumerate(CONTENTS)]
KEPT = slice(21, HEADER_SIZE)  # attributes to record count


def upper(key, value, headers):
    """As long as before."""
    changed = tuple(Header(each.key.upper(), each.value and each.value.upper()) for each in headers)
    return key and key.upper(), value and value.upper(), changed


def longer(key, value, headers):
    return *(each and each * 3 for each in (key, value)), ()


def made(codec, **more):
    return batch(RECORDS, 70, codec, 0x10, producer_id=7, producer_epoch=3, base_sequence=9, leader_epoch=5, **more)


@pytest.mark.parametrize("change", [upper, longer])
@pytest.mark.parametrize("codec", COMPRESS)
def test_contents_change_and_nothing_else(codec, change):
    before = made(codec)
    after = rewritten(before, change)
    assert batch_crc_holds(memoryview(after), 0, len(after))
    assert (after[:8], after[12:17], after[KEPT]) == (before[:8], before[12:17], before[KEPT])
    assert len(after) == len(before) or codec or change is longer
    for old, new in zip(read_records(before), read_records(after), strict=True):
        assert (new.key, new.value, new.headers) == change(old.key, old.value, old.headers)
        assert (new.offset, new.timestamp, new.sequence) == (old.offset, old.timestamp, old.sequence)


@pytest.mark.parametrize("codec", COMPRESS)
def test_equal_records_are_equal_bytes(codec):
    one, other = rewritten(made(codec), upper), rewritten(made(codec, max_timestamp=1_800_000_000_000), upper)
    assert one[HEADER_SIZE:] == other[HEADER_SIZE:]


def test_a_batch_that_was_emptied_stays_empty():
    empty = batch([], 70, codec=1, last_offset_delta=3)[:HEADER_SIZE]
    whole = resealed(empty, b"")
    assert rewritten(whole, upper) == whole


@pytest.mark.parametrize(
    "damaged", [made(0)[:-1], made(0, count=9), batch([b"\x7f" * 9], 1), batch(RECORDS, 1, codec=6)]
)
def test_what_cannot_be_read_is_refused(damaged):
    with pytest.raises(WireError):
        rewritten(damaged, upper)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_legacy_messages(magic, codec):
    def change(content):
        return content and content * 2

    inner = b"".join(message(at if magic else 40 + at, magic, b"k%d" % at, b"value", timestamp=7) for at in range(3))
    before = (
        message(42, magic, None, COMPRESS[codec](inner), codec, 9) if codec else message(42, magic, b"k0", None, 0, 9)
    )
    after = rewritten_legacy(before, change)
    old, new = parse_message(before), parse_message(after)
    assert new.crc_valid
    assert (new.offset, new.attributes, new.timestamp) == (old.offset, old.attributes, old.timestamp)
    for was, now in zip(read_legacy_records(old), read_legacy_records(new), strict=True):
        assert now.crc_valid
        assert (now.key, now.value, now.offset) == (change(was.key), change(was.value), was.offset)
