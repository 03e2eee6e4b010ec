import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kaudit.formats.dump_text import text as dump_text
from kaudit.formats.dump_text.columns import DumpBatchColumns, parse_block, shapes
from kaudit.formats.dump_text.lines import DumpLines
from kaudit.formats.dump_text.rows import DumpBatch, DumpRecord, DumpRow
from kaudit.formats.dump_text.text import read_dump, read_dump_batches, read_dump_columns, take_records
from tests.formats.fuzz import damaged, quick

LAYOUTS = {
    "1.1": (
        "baseOffset: {} lastOffset: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} "
        "partitionLeaderEpoch: {} isTransactional: true position: {} LogAppendTime: {} isvalid: true size: {} magic: {} "
        "compresscodec: LZ4 crc: {}"
    ),
    "3.9": (
        "baseOffset: {} lastOffset: {} count: 1 baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} "
        "partitionLeaderEpoch: {} isTransactional: false isControl: false deleteHorizonMs: OptionalLong[{}] position: 7 "
        "CreateTime: {} size: {} magic: {} compresscodec: none crc: {} isvalid: true"
    ),
}
numbers = st.integers(-(2**59), 2**59) | st.integers(-1, 9) | st.integers(-(2**63), 2**63 - 1)
crcs = st.integers(0, 2**32 - 1)
rows = st.lists(st.tuples(*[numbers] * 11, crcs), min_size=1, max_size=60)


def line_by_line(text):
    reader = DumpLines()
    return [*reader.feed(text.removesuffix(b"\n").split(b"\n")), *reader.finish()]


@given(rows, st.sampled_from(list(LAYOUTS)))
@quick
def test_columns_equal_lines_whatever_the_numbers(rows, layout):
    text = "".join(LAYOUTS[layout].format(*row) + "\n" for row in rows).encode()
    expected = line_by_line(text)
    assert list(read_dump([text])) == expected
    assert [(row.base_offset, row.producer_id, row.crc) for row in expected] == [
        (row[0], row[4], row[11]) for row in rows
    ]
    block = parse_block(text, range(1, len(rows) + 1))
    assert block is None or list(block.rows()) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", ["-", "7", "0", "--"])
def test_a_sign_or_a_digit_more_anywhere_in_a_line_is_read_as_line_by_line(layout, text):
    """Lines are of one shape whatever digits and signs they have, wherever these stand."""
    rows = [LAYOUTS[layout].format(*range(n, n + 9), 2, 2**20 + n, 2**32 - 1 - n) for n in range(24)]
    for place in range(len(rows[1]) + 1):
        changed = rows[1][:place] + text + rows[1][place:]
        dump = "".join(row + "\n" for row in [rows[0], changed, *rows[2:]]).encode()
        assert list(read_dump([dump])) == line_by_line(dump), changed


def _uniform(count):
    values = [
        (n, n, n % 5, n % 7, -1, -1, 0, n * 99, 1_795_240_108_273 + n, 99, 2, 2**32 - 1 - n) for n in range(count)
    ]
    return "".join(LAYOUTS["1.1"].format(*row) + "\n" for row in values).encode()


def test_a_run_of_batches_is_one_block():
    header = b"Dumping x.log\nStarting offset: 0\n"
    _, _, block = read_dump_columns([header + _uniform(500)])
    assert isinstance(block, DumpBatchColumns)
    assert (block.lines, block.count) == (range(3, 503), 500)
    assert block.columns["base_offset"].tolist() == list(range(500))
    assert block.columns["producer_id"].tolist() == [-1] * 500
    assert block.columns["max_timestamp"][-1] == 1_795_240_108_772
    assert block.constants["codec"] == "lz4"
    assert (block.constants["is_transactional"], block.constants["is_control"]) == (True, None)
    assert {*block.columns, *block.constants} == set(DumpBatch._fields) - {"line", "fields"}


def test_runs_are_cut_where_the_shape_changes():
    text = _uniform(30) + _uniform(30).replace(b"true position", b"false position") + b"note\n" + _uniform(3)
    assert [(count, is_block) for _, _, count, is_block in shapes(text)] == [
        (30, True),
        (30, True),
        (1, False),
        (3, False),
    ]
    assert list(read_dump([text])) == line_by_line(text)


def test_a_block_holds_batches_alone_and_enough_of_them():
    record = (DEEP_RECORD + "\n").encode()
    counts = (23, 24, 25)
    assert [next(shapes(_uniform(count)))[2:] for count in counts] == [(count, count >= 24) for count in counts]
    assert [next(shapes(record * count))[2:] for count in counts] == [(count, False) for count in counts]
    for line in (b"no row\n", record, b"offset: 7 position: 40\n"):
        assert parse_block(line * 30, range(30)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"size: 99", b"size: 9-9"),
        (b"LZ4", b"LZ-4"),
        (b"LZ4", b"LZ5"),
        (b"lastOffset: 7", b"last7Offset: "),
        (b"lastOffset: 7", b"lastOffset: --7"),
        (b"lastOffset: 7", b"lastOffset: -"),
        (b"lastOffset: 7 ", b"lastOffset:7  "),
        (b"producerId: -1", b"producerId: -9223372036854775808"),
        (b"producerId: -1", b"producerId: 9223372036854775808"),
        (b"producerId: -1", b"producerId: -0"),
    ],
)
def test_one_odd_line_does_not_bend_its_neighbours(old, new):
    lines = _uniform(40).splitlines(keepends=True)
    assert old in lines[7]
    lines[7] = lines[7].replace(old, new)
    text = b"".join(lines)
    assert list(read_dump([text])) == line_by_line(text)


@given(damaged([_uniform(40), _uniform(30) + _uniform(30).replace(b"LZ4", b"GZIP")]))
@quick
def test_fuzz(data):
    assert list(read_dump([data])) == line_by_line(data) or not data.strip(b"\n")


DEEP_BATCH = LAYOUTS["3.9"].format(7, 7, 3, 3, 1000, 0, 0, -1, 1_795_240_108_273, 99, 2, 77)
DEEP_RECORD = "| offset: 7 CreateTime: 1795240108273 keySize: 3 valueSize: 5 sequence: 3 headerKeys: [a,b]"
deep_lines = st.lists(
    st.sampled_from(
        [
            DEEP_BATCH,
            DEEP_RECORD,
            f"{DEEP_RECORD} key: abc payload: hello",
            f"{DEEP_RECORD} key: abc payload: hello",
            f"{DEEP_RECORD} payload: ] key: [",
            DEEP_RECORD.replace("[a,b]", "[a],b]") + " payload: x",
            DEEP_RECORD.replace("offset: 7", f"offset: {2**70}"),
            f"{DEEP_RECORD} key: abc payload: two\nlines",
            f"{DEEP_RECORD} key: abc payload: like a row:\nbaseOffset: no\n| offset: 7 neither",
            f"{DEEP_RECORD} key: abc payload: hello\r",
            f"{DEEP_RECORD} endTxnMarker: COMMIT coordinatorEpoch: 4",
            f"{DEEP_RECORD} SnapshotHeader: {{}}",
            "offset: 7 position: 40",
            "Exception in thread main",
            "a line that means nothing",
            "",
            "Dumping other.log",
        ]
    ),
    min_size=1,
    max_size=60,
)


def _is_data(row):
    return isinstance(row, DumpRecord) and row.end_marker is None and row.control is None


@given(deep_lines, st.sampled_from([64, 700, 1 << 18]), st.integers(0, 2))
@example([DEEP_BATCH, DEEP_BATCH, DEEP_RECORD, DEEP_RECORD.replace("offset: 7", f"offset: {2**70}")], 700, 0)
@quick
def test_rows_of_a_deep_text_are_those_of_its_lines_and_batches_alone_those_without_data_records(lines, piece, repeat):
    text = ("\n".join(lines * 4**repeat) + "\n").encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dump_text, "_PIECE_BYTES", piece)
        rows: list[DumpRow] = []
        for row in read_dump_batches([text]):
            rows += row.rows() if isinstance(row, DumpBatchColumns) else [row]
        every = list(read_dump([text]))
    expected = line_by_line(text)
    assert every == expected or not text.strip(b"\n")
    assert [row for row in rows if not _is_data(row)] == [row for row in expected if not _is_data(row)]


def test_records_are_passed_over_only_behind_a_batch():
    record = (DEEP_RECORD + " payload: hello\n").encode()
    assert len(list(read_dump_batches([record * 50]))) == 50
    rows = list(read_dump_batches([(DEEP_BATCH + "\n").encode() + record * 50]))
    assert len(rows) < 5
    assert isinstance(rows[0], DumpBatch)


def test_records_of_a_block_are_taken_at_once():
    text = (DEEP_BATCH + "\n" + f"{DEEP_RECORD} key: abc payload: hello\n" * 30).encode()
    taken = take_records(text, 5)
    assert taken is not None
    rows, left, numbers = taken
    assert len(rows) == 29  # the text of the last one may go on
    assert rows[0] == line_by_line(text)[1]._replace(line=6)
    assert (left.count(b"\n"), numbers.tolist()) == (2, [5, 35])


@pytest.mark.parametrize("record", [f"{DEEP_RECORD} key: ab payload: x", "offset: 1 position: 3"])
def test_records_that_are_not_taken_at_once(record):
    """A key that is not of its size may hold what looks like a payload: each line is looked at."""
    text = (DEEP_BATCH + "\n" + (record + "\n") * 30).encode()
    assert take_records(text, 1) is None
    assert list(read_dump([text])) == line_by_line(text)
