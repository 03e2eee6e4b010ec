"""Which row follows from those before it, and which lines are the text of a record: by offsets, positions and sizes."""

import pytest

from kaudit.formats.dump_text.columns import parse_block
from kaudit.formats.dump_text.layout import learn
from kaudit.formats.dump_text.lines import DumpLines
from kaudit.formats.dump_text.rows import DumpBatch, DumpCut, DumpNote, DumpRecord, DumpStart, NoteKind


def batch_line(base, last, position=0, size=70):
    """A batch as 3.x prints it; None: left out."""
    pairs = {"baseOffset": base, "lastOffset": last, "count": 1, "baseSequence": 0, "lastSequence": 0, "producerId": 4, "producerEpoch": 0,
             "position": position, "CreateTime": 5, "size": size, "magic": 2, "compresscodec": "none", "crc": 7, "isvalid": "true"}  # fmt: skip
    return " ".join(f"{name}: {value}" for name, value in pairs.items() if value is not None).encode()


def record_line(offset, payload=b"v", size=None, key=None, key_size=None):
    keyed = b"" if key is None else b" key: " + key
    key_bytes = key_size if key_size is not None else -1 if key is None else len(key)
    text = b"" if payload is None else b" payload: " + payload
    value_bytes = size if size is not None else -1 if payload is None else len(payload)
    return b"| offset: %d CreateTime: 5 keySize: %d valueSize: %d sequence: 0 headerKeys: []%b%b" % (
        offset,
        key_bytes,
        value_bytes,
        keyed,
        text,
    )


def row_of(line):
    layout = learn(line)
    assert layout is not None
    row = layout.read(line, 9)
    assert row is not None
    return row


def state(last=None, record=None, end=None):
    lines = DumpLines()
    lines._last_offset, lines._record_offset, lines._end = last, record, end
    return lines


@pytest.mark.parametrize(
    ("last", "end", "base", "position", "follows"),
    [
        (None, None, 0, 0, True),
        (None, 70, 5, 10, True),
        (None, None, None, 0, False),
        (4, None, None, None, False),
        # by the position where the last one ended: offsets only rise
        (4, 70, 5, 70, True),
        (4, 70, 9, 70, True),
        (4, 70, 4, 70, False),
        (4, 70, 5, 71, False),
        (4, 70, 5, 69, False),
        # without positions: the next offset
        (4, None, 5, 70, True),
        (4, 70, 5, None, True),
        (4, None, 6, 70, False),
        (4, 70, 6, None, False),
        (4, None, 4, None, False),
    ],
)
def test_whether_a_batch_follows(last, end, base, position, follows):
    assert state(last, None, end)._continues(base, position) is follows
    if base is not None and position is not None:
        assert state(last, None, end)._is_next(row_of(batch_line(base, base, position))) is follows


@pytest.mark.parametrize(
    ("last", "record", "offset", "follows"),
    [
        (None, None, 0, True),
        (4, None, 4, True),
        (4, None, 5, False),
        (4, 3, 4, True),
        (4, 4, 4, False),
        (4, 3, 3, False),
        (None, 3, 3, False),
        (None, 3, 9, True),
    ],
)
def test_whether_a_record_follows(last, record, offset, follows):
    lines = state(last, record)
    assert lines._is_next(row_of(record_line(offset))) is follows
    assert lines._is_next(DumpCut(9, DumpRecord, {"offset": offset}, "")) is follows
    assert lines._is_next(DumpCut(9, DumpRecord, {}, "")) is False
    assert lines._is_next(DumpStart(9, 0)) is lines._is_next(DumpNote(9, NoteKind.OTHER, "", None)) is True


@pytest.mark.parametrize(
    ("record", "end", "known", "follows"),
    [
        # all records of the batch before were printed, or the place says so
        (None, None, {"base_offset": 5}, True),
        (4, None, {"base_offset": 5}, True),
        (3, None, {"base_offset": 5}, False),
        (3, 70, {"base_offset": 5, "position": 70}, True),
        (3, 70, {"base_offset": 5}, False),
        (3, None, {"base_offset": 5, "position": 70}, False),
        (None, None, {"last_offset": 5}, True),
        (None, None, {"last_offset": 6}, False),
        (None, None, {"base_offset": 5, "last_offset": 9}, True),
        (None, None, {}, False),
    ],
)
def test_whether_the_beginning_of_a_batch_follows(record, end, known, follows):
    assert state(4, record, end)._is_next(DumpCut(9, DumpBatch, known, "")) is follows


def test_what_follows_from_a_row():
    lines = state()
    for line, expected in (
        (batch_line(0, 4, 0, 70), (4, None, 70, 0)),
        (record_line(2), (4, 2, 70, 0)),
        (batch_line(5, 5, 70, 30), (5, None, 100, 1)),
        (batch_line(6, 6, 100, None), (6, None, None, 2)),
        (batch_line(9, 9, 500, 30), (9, None, 530, 0)),
    ):
        lines._follow(row_of(line))
        assert (lines._last_offset, lines._record_offset, lines._end, lines._in_line) == expected
    assert lines.saw_batch
    lines._follow(DumpCut(1, DumpBatch, {"base_offset": 10, "position": 530}, ""))
    assert (lines._last_offset, lines._end, lines._in_line) == (None, None, 1)
    lines._follow(DumpCut(1, DumpRecord, {"offset": 3}, ""))
    lines._follow(DumpCut(1, DumpRecord, {}, ""))
    assert lines._record_offset == 3
    lines = state()
    lines._follow(row_of(record_line(2)))
    assert not lines.saw_batch


@pytest.mark.parametrize(
    ("line", "more", "missing", "complete"),
    [
        (record_line(0, b"abc"), [], 0, True),
        (record_line(0, b"abc", 7), [], 4, False),
        (record_line(0, b"abc", 7), [b"abc"], 0, True),
        (record_line(0, b"abc", 7), [b"ab"], 1, False),
        (record_line(0, b"abc", 7), [b"", b"a", b""], 0, True),
        (record_line(0, b"abc", 2), [], -1, False),
        (record_line(0, None, -1, b"key", 5), [], 2, False),
        (record_line(0, None, -1, b"key", 5), [b"y"], 0, False),
        (record_line(0, None, -1, b"key"), [], 0, True),
        (record_line(0, b"v", 1, b"key", 4), [], 0, False),
        (record_line(0, None), [], 0, True),
        (batch_line(0, 0), [], 0, False),
    ],
)
def test_how_much_of_a_records_text_is_missing_by_its_size(line, more, missing, complete):
    lines = state()
    row = row_of(line)
    assert isinstance(row, DumpBatch | DumpRecord)
    lines._held, lines._held_lines = row, [line, *more]
    lines._held_bytes = len(line) + sum(len(each) + 1 for each in more)
    assert (lines._missing_bytes(), lines._is_open(), lines._is_complete()) == (missing, missing > 0, complete)


def rows(*lines):
    reader = DumpLines()
    found = [*reader.feed(lines), *reader.finish()]
    assert reader.number == len(lines)
    return found


def shown(found):
    return [(type(row).__name__, row.line, getattr(row, "payload", getattr(row, "text", None))) for row in found]


FIRST, SECOND = batch_line(0, 0, 0, 70), batch_line(1, 1, 70, 70)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [FIRST, record_line(0, b"abc"), SECOND],
            [("DumpBatch", 1, None), ("DumpRecord", 2, b"abc"), ("DumpBatch", 3, None)],
        ),
        (
            [FIRST, record_line(0, b"a", 3), b"b", SECOND],
            [("DumpBatch", 1, None), ("DumpRecord", 2, b"a\nb"), ("DumpBatch", 4, None)],
        ),
        # a text that looks like rows is text to the byte
        (
            [FIRST, record_line(0, b"a", 2 + len(record_line(7))), record_line(7), SECOND],
            [("DumpBatch", 1, None), ("DumpRecord", 2, b"a\n" + record_line(7)), ("DumpBatch", 4, None)],
        ),
        # but the batch in its place is one, whatever the size of the record before it says
        (
            [FIRST, record_line(0, b"a", 2 + len(SECOND)), SECOND],
            [("DumpBatch", 1, None), ("DumpRecord", 2, b"a"), ("DumpBatch", 3, None)],
        ),
        (
            [FIRST, record_line(0, b"a"), b"", b"text"],
            [("DumpBatch", 1, None), ("DumpRecord", 2, b"a"), ("DumpNote", 4, "text")],
        ),
        ([b"", b"text", FIRST], [("DumpNote", 2, "text"), ("DumpBatch", 3, None)]),
        ([FIRST, b"text"], [("DumpBatch", 1, None), ("DumpNote", 2, "text")]),
        (
            [FIRST, record_line(0, None), b"text"],
            [("DumpBatch", 1, None), ("DumpRecord", 2, None), ("DumpNote", 3, "text")],
        ),
        # a line in two, wherever it is broken
        ([FIRST[:100], FIRST[100:], record_line(0, b"abc")], [("DumpBatch", 1, None), ("DumpRecord", 3, b"abc")]),
        ([FIRST[:30], FIRST[30:90], FIRST[90:], SECOND], [("DumpBatch", 1, None), ("DumpBatch", 4, None)]),
    ],
)
def test_rows_and_their_lines(lines, expected):
    assert shown(rows(*lines)) == expected


def test_lines_left_out_are_records_whose_text_may_go_on():
    def fed(*numbered):
        reader = DumpLines()
        reader.swallowed = False
        found = [*reader.feed_numbered(numbered), *reader.finish()]
        return shown(found), reader.swallowed

    assert fed((1, FIRST), (3, SECOND)) == ([("DumpBatch", 1, None), ("DumpBatch", 3, None)], False)
    # a line after them that is no row, or a batch that does not follow, may be text of theirs
    assert fed((1, FIRST), (3, b"text"), (4, SECOND)) == ([("DumpBatch", 1, None), ("DumpBatch", 4, None)], True)
    assert fed((1, FIRST), (3, batch_line(7, 7, 900)))[1] is True
    assert fed((1, FIRST), (2, record_line(0, b"a", 9)), (4, SECOND))[1] is True
    assert fed((1, FIRST), (2, record_line(0, b"a")), (3, SECOND)) == (
        [("DumpBatch", 1, None), ("DumpRecord", 2, b"a"), ("DumpBatch", 3, None)],
        False,
    )


def block_of(lines, numbers=None):
    found = parse_block(
        b"".join(line + b"\n" for line in lines), range(1, len(lines) + 1) if numbers is None else numbers
    )
    assert found is not None
    return found


GAPLESS = [batch_line(10 + number, 10 + number, 100 + 70 * number) for number in range(20)]


@pytest.mark.parametrize(
    ("lines", "gapless"),
    [
        (GAPLESS, True),
        (GAPLESS[:7] + GAPLESS[8:], False),
        ([*GAPLESS[:10], batch_line(10 + 10, 10 + 9, 100 + 700), *GAPLESS[11:]], False),
        ([batch_line(10 + number, 10 + number, 100 + 70 * number, 69 + number % 2) for number in range(20)], False),
    ],
)
def test_whether_the_batches_of_a_block_lie_one_after_the_other(lines, gapless):
    assert block_of(lines).is_gapless() is gapless


def test_a_block_of_a_release_that_prints_no_sizes_shows_no_ends():
    """0.11 prints neither the count nor the size of a batch."""
    lines = [line.replace(b" size: 70", b"").replace(b" count: 1", b"") for line in GAPLESS]
    block = block_of(lines)
    assert not block.is_gapless()
    assert block.place(0) == (10, 10, 100, None)
    reader = state(last=9)
    reader.skip(block)
    assert (reader._last_offset, reader._end, reader._in_line, reader.swallowed) == (29, None, 0, False)


def test_places_of_a_block():
    block = block_of(GAPLESS)
    assert [block.place(at) for at in (0, 1, 19, -1)] == [
        (10, 10, 100, 70),
        (11, 11, 170, 70),
        (29, 29, 1430, 70),
        (29, 29, 1430, 70),
    ]


@pytest.mark.parametrize(
    ("last", "end", "first_line", "passed_over", "lines", "swallowed"),
    [
        (None, None, 1, False, GAPLESS, False),
        (None, None, 1, False, GAPLESS[:7] + GAPLESS[8:], False),
        # after records that were passed over a block has to follow
        (None, None, 2, False, GAPLESS, False),
        (None, None, 2, False, GAPLESS[:7] + GAPLESS[8:], True),
        (9, 100, 2, False, GAPLESS, False),
        (9, 101, 2, False, GAPLESS, True),
        (9, 101, 1, False, GAPLESS, False),
        (9, 101, 1, True, GAPLESS, True),
        (9, 100, 1, True, GAPLESS, False),
        (10, 100, 2, False, GAPLESS, True),
        (7, None, 2, False, GAPLESS, True),
    ],
)
def test_blocks_that_were_read_elsewhere(last, end, first_line, passed_over, lines, swallowed):
    reader = state(last, 5, end)
    reader._passed_over, reader._in_line = passed_over, 3
    block = block_of(lines, range(first_line, first_line + len(lines)))
    reader.skip(block)
    assert reader.swallowed is swallowed
    assert (reader.number, reader.saw_batch, reader._record_offset, reader._passed_over) == (
        first_line + len(lines) - 1,
        True,
        None,
        False,
    )
    assert (reader._last_offset, reader._end) == (29, 1500)
    assert reader._in_line == (3 + len(lines) if block.is_gapless() else 0)


def test_a_copy_to_go_back_to_has_lines_of_its_own():
    reader = DumpLines()
    list(reader.feed([FIRST, record_line(0, b"a", 9), record_line(7)]))
    reader.swallowed = True
    before = reader.kept()
    assert (reader.swallowed, before.number) == (False, 3)
    held, doubtful = list(before._held_lines), list(before._doubtful)
    list(reader.feed([b"more", b"and more"]))
    assert (before._held_lines, before._doubtful, before.number) == (held, doubtful, 3)
