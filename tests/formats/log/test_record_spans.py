"""Records of many batches at once against the same records read one by one."""

import random

import pytest

from kaudit.formats.errors import WireError
from kaudit.formats.log.record_spans import BatchBytes, record_spans
from kaudit.formats.log.records import read_records
from tests.formats import encoders


def _batch(rng, base_offset):
    count = rng.randint(1, 20)
    deltas = sorted(rng.sample(range(count * 2), count))
    records = [
        encoders.record(
            delta,
            rng.choice((0, 63, 64, -5, 10**9)),
            rng.choice((None, b"", b"k", bytes(rng.choice((63, 64, 200))))),
            rng.choice((None, b"", bytes(rng.choice((1, 63, 64, 8191, 8192))))),
            [(b"h", rng.choice((None, b"v", b"\xff" * 3, bytes(100)))) for _ in range(rng.choice((0, 0, 1, 3)))],
        )
        for delta in deltas
    ]
    flags = rng.choice((0, encoders.LOG_APPEND_TIME, encoders.TRANSACTIONAL))
    return encoders.batch(records, base_offset, rng.choice((0, 1, 2, 3, 4)), flags, last_offset_delta=deltas[-1])


def _by_one(batches):
    for number, batch in enumerate(batches):
        for record in read_records(batch):
            content = encoders.varint_bytes(record.key), encoders.varint_bytes(record.value)
            headers = b"".join(map(encoders.varint_bytes, (part for each in record.headers for part in each)))
            yield record.offset, record.timestamp, *content, encoders.varint(len(record.headers)) + headers, number


def _at_once(batches):
    spans, bad = record_spans(BatchBytes.of(batches))
    data = spans.data
    places = zip(*(column.tolist() for column in spans[1:]), strict=True)
    found = [
        (offset, time, data[key:value], data[value:headers], data[headers:end], number)
        for offset, time, key, value, headers, end, *_, number in places
    ]
    return found, bad


@pytest.mark.parametrize("seed", range(20))
def test_records_of_many_batches_are_those_read_one_by_one(seed):
    rng = random.Random(seed)
    batches = [_batch(rng, 1000 * number) for number in range(rng.randint(1, 12))]
    found, bad = _at_once(batches)
    assert found == list(_by_one(batches))
    assert not bad


def test_nulls_are_told_from_empty_texts():
    batch = encoders.batch([encoders.record(0, 0, None, b""), encoders.record(1, 0, b"", None)])
    spans, _ = record_spans(BatchBytes.of([batch]))
    assert spans.null_keys.tolist() == [True, False]
    assert spans.null_values.tolist() == [False, True]


@pytest.mark.parametrize("seed", range(20))
def test_damaged_batches_are_left_out_and_never_raise(seed):
    rng = random.Random(seed)
    batches = [_batch(rng, 1000 * number) for number in range(6)]
    damaged = bytearray(batches[3])
    for _ in range(rng.randint(1, 6)):
        damaged[rng.randrange(61, len(damaged))] = rng.randrange(256)
    batches[3] = bytes(damaged)
    found, bad = _at_once(batches)
    assert set(bad) <= {3}
    behind = [(*row[:-1], row[-1] + 4) for row in _by_one(batches[4:])]
    assert [row for row in found if row[-1] != 3] == [*_by_one(batches[:3]), *behind]
    if bad:
        with pytest.raises(WireError):
            list(read_records(batches[3]))
