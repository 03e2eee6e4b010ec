"""Batches and records that are read again."""

import pytest

from kaudit.reading.batch_content import batches_with, data_of, whole_batches
from kaudit.reading.content_rows import read_batch, read_batches
from tests.logs import Log, data, marker
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


def test_batches_are_read_some_at_once_and_those_that_are_gone_left_out(monkeypatch):
    log = log_of(*(data(7, 0, number, 3, payload=b"abc") for number in (0, 3, 6, 9)))
    batches, raw, size = decode(log), log.encode(), len(log.batches[0].encode())
    for room, groups in ((1 << 20, [[0, 1, 2]]), (2 * size, [[0, 1], [2]]), (1, [[0], [1], [2]])):
        monkeypatch.setattr("kaudit.reading.content_rows._AT_ONCE", room)
        found = list(
            read_batches(Bytes(raw[:-1]), batches["position"], batches["size"])
        )  # the last one was cut off since it was found
        assert [numbers.tolist() for numbers, _ in found] == groups
        read = [bytes(some[at]) for _, some in found for at in range(len(some.sizes))]
        assert read == [batch.encode() for batch in log.batches[:3]]


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
        chosen = data_of(decode(log), limit)
        found = [bytes(one) for one in whole_batches(chosen["position"], chosen["size"], Bytes(log.encode()))]
        assert found == [raw[number] for number in expected]


@pytest.mark.parametrize("room", [1, 300, 1 << 16])
def test_of_batches_without_compression_those_are_chosen_that_have_both_numbers_of_a_record(monkeypatch, room):
    monkeypatch.setattr("kaudit.reading.batch_content._AT_ONCE", room)
    payloads = [
        b"\1\x0f\0",
        b"\1\x0e\0",
        b"\1\x8f\0\0",
        b"\1\x0f\x80\0",
        b"\x0f\x05",
        b"\0",
        b"\x0f\0" * 9,
        b"\1\x0f\1",
    ]
    # in the header of the last one both stand in a row: that is no record's
    log = log_of(*(data(0x0F00, 0, number, payload=payload) for number, payload in enumerate(payloads)))
    batches = decode(log)
    found = list(batches_with(15, 0, batches, Bytes(log.encode())))
    positions = batches["position"].tolist()
    assert [positions.index(position) for position, _ in found] == [0, 2, 3, 6]
    assert [bytes(content) for _, content in found] == [log.batches[number].encode() for number in (0, 2, 3, 6)]
