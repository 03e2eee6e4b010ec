"""What is sent from task to task: it arrives as it was, and takes little room."""

import random

import numpy as np
import pytest
import zstandard

from kaudit import __version__
from kaudit.errors import UsageError
from kaudit.model.columns import Columns
from kaudit.partition.assembler import read_planned
from kaudit.reading.chunk_codec import ModelUnpickler, pack_chunk, unpack_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.rows import BOUNDARY_BATCH, MARKER, RUN
from kaudit.reading.shuffle_codec import _encode_table, _to_columns, _to_rows, description, pack, unpack
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from tests.engines.faulty_logs import FAULTS
from tests.logs import Log, data

HEADER = 61


def ranges(path, chunk_bytes=None):
    options = ScanOptions([str(path)], chunk_bytes=chunk_bytes)
    return [spec for job in plan_jobs(options, find_input(options), all_needs) for spec in job.ranges()]


@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__)
def test_rows_arrive_as_they_were(tmp_path, make):
    for spec in ranges(make(tmp_path / "orders-0"), 1000):
        (sent,) = read_planned(spec)
        received = unpack(pack(sent))
        assert isinstance(sent, ChunkRows)
        assert isinstance(received, ChunkRows)
        for name in ("runs", "boundary_batches", "markers", "gaps", "leader_epochs"):
            before, after = getattr(sent, name), getattr(received, name)
            assert before.dtype == after.dtype
            assert before.tolist() == after.tolist()
        assert (received.counts, received.damages, received.ordered) == (sent.counts, sent.damages, sent.ordered)
        (stored,) = unpack_chunk(pack_chunk([sent]))
        assert isinstance(stored, ChunkRows)
        assert stored.runs.tolist() == sent.runs.tolist()


@pytest.mark.parametrize("dtype", [RUN, BOUNDARY_BATCH, MARKER])
@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_any_values_survive(dtype, count):
    rows = np.frombuffer(random.Random(count).randbytes(dtype.itemsize * count), dtype=dtype).copy()
    for name in dtype.names:
        if dtype[name].kind == "b":
            rows[name] = rows["producer_id"] % 2
    assert unpack(pack(rows)).tolist() == rows.tolist()
    columns = unpack(pack(Columns(dtype, count, {name: rows[name] for name in dtype.names})))
    assert columns.dtype == dtype
    assert columns.tolist() == rows.tolist()


def columns_of(**columns):
    dtype = np.dtype([(name, column.dtype) for name, column in columns.items()])
    return Columns(dtype, len(next(iter(columns.values()))), columns)


def int32(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    ("columns", "size"),
    [
        # one row: of each column a tag and the first value
        ({"a": int32(5)}, 1 + 9),
        ({"a": int32(5), "b": int32(-(2**31))}, 1 + 2 * 9),
        # equal values: no differences
        ({"a": int32(5, 5, 5)}, 1 + 9),
        # differences of one byte, of two, of three: zigzag, so that 127 and -128 take one
        ({"a": int32(0, 127, -1)}, 1 + 9 + 2),
        ({"a": int32(0, 128, 0)}, 1 + 9 + 2 * 2),
        ({"a": int32(0, -128, -256)}, 1 + 9 + 2),
        ({"a": int32(0, -129, -256)}, 1 + 9 + 2 * 2),
        ({"a": int32(0, 2**15, 0)}, 1 + 9 + 2 * 3),
        # longer than the values themselves: these
        ({"a": int32(2**31 - 1, -(2**31), 0)}, 1 + 1 + 3 * 4),
        # the same differences as the first: its number
        ({"a": int32(0, 1, 3), "b": int32(7, 8, 10), "c": int32(7, 8, 11)}, 1 + (9 + 2) + 10 + (9 + 2)),
        # those of another width are others
        ({"a": int32(0, 0, 0), "b": int32(1, 1, 1)}, 1 + 2 * 9),
    ],
)
def test_how_many_bytes_columns_take(columns, size):
    """By the description of `_encode`; a byte in front of all says whether the order of the log is there."""
    table = columns_of(**columns)
    encoded = _encode_table(table)
    assert len(encoded) == size
    assert _to_columns(description(table.dtype), len(table), encoded).tolist() == table.tolist()


# by the table of pickle's opcodes: PROTO 5, then what no chunk has
NO_CHUNKS = {
    "room in the memo for four billion": b"\x80\x05]r\xff\xff\xff\xff.",
    "room in the memo for 256": b"\x80\x05]q\xff.",
    "more bytes than there are": b"\x80\x05\x96\x00\x00\x00\x00\x00\x00\x00\x10abc.",
    "a number that ends early": b"\x80\x05J\x00\x00",
    "a length that ends early": b"\x80\x05X\x00\x00",
    "a negative length": b"\x80\x05\x8b\xff\xff\xff\xff.",
    "a name in text": b"\x80\x05cbuiltins\nprint\n.",
    "no end": b"\x80\x05]",
    "nothing": b"",
}


@pytest.mark.parametrize("raw", NO_CHUNKS.values(), ids=NO_CHUNKS.keys())
def test_what_states_more_than_it_has_is_refused_before_it_is_loaded(raw, monkeypatch):
    monkeypatch.setattr(ModelUnpickler, "load", lambda _: pytest.fail("loaded"))
    with pytest.raises(UsageError, match=r"opcode|missing"):
        unpack_chunk(zstandard.ZstdCompressor().compress(raw))


@pytest.mark.parametrize("described", ["name:O", "name:V8", "name", "a:<i8 a:<i8", "a:(1000000,)i8"])
def test_rows_of_anything_but_numbers_are_refused(described):
    class Other:
        def __reduce__(self):
            return _to_rows, (described, 1, b"\x00" * 100)

    with pytest.raises(UsageError):
        unpack_chunk(pack((__version__, [Other()])))


def sent_bytes(path):
    return sum(len(pack(read_planned(spec))) for spec in ranges(path))


def test_healthy_logs_send_little(tmp_path):
    log = Log()
    for number in range(4000):
        log.append(data(100 + number % 20, 0, number // 20, payload=b"x" * 60))
    small = log.write(tmp_path / "small-0")
    assert sent_bytes(small) < 0.1 * len(log.encode())
    log = Log()
    for number in range(1000):
        log.append(data(100 + number % 50, 0, number // 50 * 16, 16, payload=b"x" * 1024))
    large = log.write(tmp_path / "large-0")
    assert sent_bytes(large) < 0.01 * len(log.encode())


def test_short_runs_send_less_than_a_sixth_of_the_log(tmp_path):
    # 5,000 producers of four batches each, in no order: nearly every batch is the boundary batch of its run
    rng = random.Random(24)
    log = Log()
    sequences = [0] * 5000
    for _ in range(20_000):
        who = rng.randrange(len(sequences))
        log.clock += rng.randrange(3)
        log.append(data(1000 + who, 0, sequences[who], payload=rng.randbytes(rng.randint(40, 70))))
        sequences[who] += 1
    log.write(tmp_path / "orders-0")
    assert sent_bytes(tmp_path) < len(log.encode()) / 6


def test_the_worst_log_sends_less_than_its_headers_and_a_half(tmp_path):
    # every batch a run of its own, no two alike: no batch follows the one before it of its producer
    rng = random.Random(7)
    log = Log()
    for _ in range(20_000):
        log.clock += rng.randrange(5000)
        log.append(data(rng.randrange(2**40), rng.randrange(9), rng.randrange(2**31), rng.randint(1, 3), payload=b""))
    log.write(tmp_path / "orders-0")
    assert sent_bytes(tmp_path) < 1.5 * HEADER * len(log.batches)
