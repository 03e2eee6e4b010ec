"""What is sent from task to task: it arrives as it was, and takes little room."""

import random
from collections import Counter, UserList
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.errors import UsageError
from kaudit.model.columns import Columns
from kaudit.reading.chunk_codec import pack_chunk, unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_reader import read_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.column_codec import decode_columns, encode_columns
from kaudit.reading.range_reader import read_planned
from kaudit.reading.rows import BOUNDARY_BATCH, MARKER, RUN
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.reading.struct_codec import FORMAT
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.layout import SegmentFile
from tests.engines.faulty_logs import FAULTS
from tests.logs import Log, data
from tests.memory import Memory

HEADER = 61
SEGFAULT = Path(__file__).parent / "data" / "column-chunk-dtype-segfault.bin"
"""A pickle whose numpy dtype dereferenced its own bytes."""


def ranges(path, chunk_bytes=None):
    options = ScanOptions([str(path)], chunk_bytes=chunk_bytes)
    return [spec for job in plan_jobs(options, find_input(options), all_needs) for spec in job.ranges()]


@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__)
def test_rows_arrive_as_they_were(tmp_path, make):
    for spec in ranges(make(tmp_path / "orders-0"), 1000):
        (sent,) = read_planned(spec)
        (received,) = unpack_chunk(pack_chunk([sent]))
        assert isinstance(sent, ChunkRows)
        assert isinstance(received, ChunkRows)
        for name in ("runs", "boundary_batches", "markers", "gaps", "leader_epochs"):
            before, after = getattr(sent, name), getattr(received, name)
            assert before.dtype == after.dtype
            assert before.tolist() == after.tolist()
        assert (received.counts, received.damages, received.ordered) == (sent.counts, sent.damages, sent.ordered)


@pytest.mark.parametrize("dtype", [RUN, BOUNDARY_BATCH, MARKER])
@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_any_values_survive(dtype, count):
    rows = np.frombuffer(random.Random(count).randbytes(dtype.itemsize * count), dtype=dtype).copy()
    for name in dtype.names:
        if dtype[name].kind == "b":
            rows[name] = rows["producer_id"] % 2
    assert unpack(pack(rows), np.ndarray).tolist() == rows.tolist()
    columns = unpack(pack(Columns(dtype, count, {name: rows[name] for name in dtype.names})), Columns)
    assert columns.dtype == dtype
    assert columns.tolist() == rows.tolist()


class Everything(Struct):
    """A field of each kind that is stored in a way of its own."""

    name: str
    by_name: dict[tuple[str, int], frozenset[int]]
    counts: Counter[int]
    any_value: Mapping[str, object]
    square: NDArray[Any]
    lines: Sequence[str]


@pytest.mark.parametrize("name", ["orders", "caf\udce9", "\0", "\0\udc80\0d800", "\ud83d alone"])
def test_a_name_that_is_no_text_arrives_too(name):
    """File names are bytes; Python has surrogates for those that are no UTF-8."""
    square = np.arange(6, dtype=np.int32).reshape(2, 3)
    evidence = MappingProxyType({"made": 8, "given": name})
    sent = Everything(name, {(name, 1): frozenset({2})}, Counter({5: 2}), evidence, square, UserList([name]))
    received = unpack(pack(sent), Everything)
    assert (received.name, received.by_name) == (name, {(name, 1): frozenset({2})})
    assert list(received.lines) == [name]
    assert (received.counts, received.any_value) == (Counter({5: 2}), {"made": 8, "given": name})
    assert received.square.dtype == square.dtype
    assert received.square.tolist() == square.tolist()


def test_what_is_sent_is_read_as_the_type_it_is_expected_to_be():
    with pytest.raises(ValueError, match="Expected `int`"):
        unpack(pack(["x"]), list[int])
    with pytest.raises(TypeError, match="tasks send no PosixPath"):
        pack([Path()])


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
    encoded = encode_columns(table)
    assert len(encoded) == size
    decoded = decode_columns(table.dtype, len(table), encoded)
    assert Columns(table.dtype, len(table), decoded).tolist() == table.tolist()


def test_the_chunk_whose_dtype_once_made_numpy_read_any_memory_is_refused():
    crafted = SEGFAULT.read_bytes()
    with pytest.raises(UsageError, match="made by another kaudit"):
        unpack_chunk(crafted)
    with pytest.raises(UsageError, match="is not what kaudit made"):
        unpack_chunk(FORMAT.to_bytes(2, "big") + crafted)


def reencoded(change):
    """Return a chunk of one log whose stored fields were changed: those of ChunkRows, in their order."""
    log = Log()
    for number in range(5):
        log.append(data(100 + number % 2, 0, number // 2))
    segment = log.encode()
    file = SegmentFile("/d/t-0/00000000000000000000.log", "00000000000000000000.log", 0, len(segment), 0)
    packed = pack_chunk(
        [read_chunk(ChunkSpec(0, file, 0, len(segment), len(segment), None, True, 1 << 62), Memory(segment))]
    )
    outcomes = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(packed[2:]))
    change(dict(zip(ChunkRows.__struct_fields__, outcomes[0][0], strict=True)), outcomes[0][0])
    content = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(outcomes))
    return FORMAT.to_bytes(2, "big") + content


def test_a_chunk_that_was_not_changed_is_read():
    assert len(unpack_chunk(reencoded(lambda fields, row: None))) == 1


def moved(name, **parts):
    """Change parts of a table: its number, its shape, its columns."""

    def change(fields, row):
        table = fields[name]
        for part, value in parts.items():
            at = ("number", "shape", "columns").index(part)
            table[at] = value(table[at])

    return change


def in_place(name, value):
    def change(fields, row):
        row[ChunkRows.__struct_fields__.index(name)] = value

    return change


NO_CHUNKS = {
    "more rows than memory holds": moved("runs", shape=lambda _: [1 << 40]),
    "more rows than a chunk has": moved("markers", shape=lambda _: [(1 << 21) + 1]),
    "a negative number of rows": moved("runs", shape=lambda _: [-1]),
    "rows of three dimensions": moved("runs", shape=lambda shape: [1, 1, *shape]),
    "more rows than columns": moved("runs", shape=lambda shape: [shape[0] + 1]),
    "columns that end early": moved("boundary_batches", columns=lambda columns: columns[:-1]),
    "bytes after the columns": moved("boundary_batches", columns=lambda columns: columns + b"\0"),
    "a table of no known kind": moved("runs", number=lambda _: 99),
    "a table in place of another": moved("gaps", number=lambda number: number + 1),
    "an array in place of Columns": moved("markers", number=lambda _: 8),
    "a column like one that is not there": moved(
        "runs", columns=lambda columns: columns[:1] + b"\x40\x07" + columns[2:]
    ),
    "differences of fifteen bytes": moved(
        "boundary_batches", columns=lambda columns: columns[:1] + b"\x0f" + columns[2:]
    ),
    "no table": in_place("runs", [1, 2]),
    "a number in place of a list": in_place("damages", 7),
    "a text in place of a number": in_place("stop", "many"),
    "runs without their boundary batches": in_place("boundary_batches", [1, [0], b""]),
    "damage without the offset expected there": in_place("expected_offsets", [1]),
}


@pytest.mark.parametrize("change", NO_CHUNKS.values(), ids=NO_CHUNKS.keys())
def test_what_is_not_a_chunk_is_refused(change):
    with pytest.raises(UsageError, match="is not what kaudit made"):
        unpack_chunk(reencoded(change))


def sent_bytes(path):
    return sum(len(pack_chunk(read_planned(spec))) for spec in ranges(path))


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
