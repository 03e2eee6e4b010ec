"""What records say as numbers: equal where they are equal, apart from where they lie."""

import pytest

from kaudit.reading.batch_content import data_batches
from kaudit.reading.content_rows import read_batch
from kaudit.reading.identity.contents import record_contents
from kaudit.reading.identity.grammar import parse_identity
from tests.logs import Batch, Log, data, marker
from tests.properties.test_law import decode


class Bytes:
    """A log as a source of bytes."""

    def __init__(self, content):
        self.content = bytes(content)

    def size(self):
        return len(self.content)

    def read_into(self, position, buffer):
        part = self.content[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def close(self):
        pass


def log_of(*batches):
    log = Log()
    for batch in batches:
        log.append(batch)
    return log


SAID = parse_identity("key,value,headers")


def column(found, name):
    return found[name].tolist()


def test_the_first_producer_id_and_the_first_sequence_tell_a_batch_apart():
    """Ids and sequences begin at 0; without either of them a broker cannot know a batch."""
    sent = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 0), (0, 0, -1), (-1, -1, -1), (-1, 0, 0)]
    log = log_of(*(Batch(*each) for each in sent))
    found = record_contents(decode(log), 0, Bytes(log.encode()), SAID)[0]
    identities = column(found, "identity")
    assert [identities.index(identity) for identity in identities] == [0, 1, 2, 3, 0, 5, 5, 5]
    assert [identity == 0 for identity in identities] == [False] * 5 + [True] * 3


def test_of_control_batches_alone_there_are_no_rows():
    batches = decode(log_of(marker(8, 0)))
    assert (
        len(record_contents(batches, 0, Bytes(b""), SAID)[0]),
        record_contents(batches, 0, Bytes(b""), SAID)[1],
    ) == (0, 0)


def test_records_are_equal_that_have_the_same_key_and_value():
    sent = [data(7, 0, 0, 2, payload=b"a"), data(7, 0, 2, 1, payload=b"a", key=b"k"), marker(7, 0),
            data(-1, -1, -1, 1, payload=b"a", key=b"l"), data(9, 2, 4, 2, payload=b"b", key=b"k", transactional=True)]  # fmt: skip
    log = log_of(*sent)
    found, undecoded = record_contents(decode(log), 1, Bytes(log.encode()), SAID)
    assert undecoded == 0
    assert column(found, "offset") == [0, 1, 2, 4, 5, 6]
    assert column(found, "records") == [1] * 6
    assert column(found, "transaction_of") == [-1, -1, -1, -1, 9, 9]
    assert column(found, "segment") == [1] * 6
    contents, keys, identities = (column(found, name) for name in ("content", "key", "identity"))
    assert [contents.index(content) for content in contents] == [0, 0, 2, 3, 4, 4]
    assert [keys.index(key) for key in keys] == [0, 0, 2, 3, 2, 2]
    assert [key == 0 for key in keys] == [True, True, False, False, False, False]
    # the sequence of each record is its own
    assert [identities.index(identity) for identity in identities] == [0, 1, 2, 3, 4, 5]
    assert [identity == 0 for identity in identities] == [False, False, False, True, False, False]
    sizes = [len(batch.encode()) for batch in log.batches]
    assert column(found, "size") == [sizes[0]] * 2 + [sizes[1], sizes[3]] + [sizes[4]] * 2
    assert column(found, "position") == [0, 0, sizes[0], sum(sizes[:3]), *[sum(sizes[:4])] * 2]


def test_batches_that_cannot_be_decoded_are_counted_and_give_no_records():
    log = log_of(*(data(7, 0, number, 3, payload=b"abc") for number in (0, 3, 6, 9)))
    batches, raw = decode(log), bytearray(log.encode())
    size = len(log.batches[0].encode())
    raw[2 * size - 1] = 1  # a record counts a header more than it has: it is compared as it is stored
    raw[2 * size + 61] = 0x7F  # the first one of the third is longer than the batch
    found, undecoded = record_contents(batches, 0, Bytes(raw), SAID)
    assert (column(found, "offset"), undecoded) == ([0, 1, 2, 3, 4, 5, 9, 10, 11], 1)
    # the last one was cut off since it was found
    found, undecoded = record_contents(batches, 0, Bytes(raw[:-1]), SAID)
    assert (column(found, "offset"), undecoded) == ([0, 1, 2, 3, 4, 5], 2)


def test_a_batch_is_read_whole_or_not_at_all():
    assert bytes(read_batch(Bytes(b"0123456789"), 3, 7)) == b"3456789"
    with pytest.raises(ValueError, match="truncated since it was found"):
        read_batch(Bytes(b"0123456789"), 3, 8)
    with pytest.raises(ValueError, match="more than is read into memory"):
        read_batch(Bytes(b""), 0, 1 << 40)


def test_the_bytes_of_batches_of_data_no_longer_than_a_limit():
    log = log_of(data(7, 0, 0, payload=b"a"), marker(7, 0), data(7, 0, 1, payload=b"ab"), data(7, 0, 2, payload=b"abc"))
    raw = [batch.encode() for batch in log.batches]
    for limit, expected in ((len(raw[3]), [0, 2, 3]), (len(raw[2]), [0, 2]), (len(raw[0]), [0]), (len(raw[0]) - 1, [])):
        found = [bytes(one) for one in data_batches(decode(log), Bytes(log.encode()), limit)]
        assert found == [raw[number] for number in expected]
