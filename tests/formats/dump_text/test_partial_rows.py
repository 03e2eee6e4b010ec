"""Rows that a terminal cut, or wrapped, and payloads that look like either."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kaudit.formats.dump_text import lines as dump_lines
from kaudit.formats.dump_text.columns import DumpBatchColumns
from kaudit.formats.dump_text.layout import learn
from kaudit.formats.dump_text.lines import DumpLines
from kaudit.formats.dump_text.partial_rows import (
    cut_row,
    expects_batch,
    fits_sizes,
    is_whole,
    joined,
    looks_like_dump,
    says_more,
)
from kaudit.formats.dump_text.rows import DumpBatch, DumpCut, DumpFile, DumpNote, DumpRecord, DumpRow, NoteKind
from kaudit.formats.dump_text.text import read_dump, read_dump_batches
from tests.formats.archives import ORACLES
from tests.formats.fuzz import quick
from tests.formats.text_forms import cut, mailed, wrapped, wrapped_without_trailing_blanks

BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: {0} lastSequence: {0} producerId: 42 producerEpoch: 3 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {1} "
    "CreateTime: 1700000000000 size: 70 magic: 2 compresscodec: none crc: 1234567 isvalid: true\n"
)


def record(offset, payload):
    size = len(payload.encode())
    start = (
        f"| offset: {offset} CreateTime: 1700000000000 keySize: -1 valueSize: {size} sequence: {offset} headerKeys: []"
    )
    return f"{start} payload: {payload}\n"


def dump(payloads):
    lines = ["Dumping /data/orders-0/00000000000000000000.log\nLog starting offset: 0\n"]
    lines += [BATCH.format(number, 70 * number) + record(number, payload) for number, payload in enumerate(payloads)]
    return "".join(lines).encode()


def without_lines(rows):
    return [(type(row), row[1:]) for row in rows]


TEXTS = ["segments-plain", "segments-deep", "segments-print", "segments-print-deep", "txnstate"]


@pytest.mark.parametrize("version", ORACLES)
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("columns", [80, 211])
def test_wrapped_rows_of_five_versions_are_put_together_again(evidence, version, kind, columns):
    """Up to 2.0 a decoder's text is all that is wrapped, and has no size: its lines are not joined."""
    if kind == "txnstate" and version < "2.8":
        kind = "segments-deep"
    text = (evidence.oracle(version, "dumps") / f"{kind}.txt").read_bytes()
    whole = without_lines(read_dump([text]))
    assert without_lines(read_dump([wrapped(columns)(text)])) == whole
    assert without_lines(read_dump([wrapped_without_trailing_blanks(columns)(text)])) == whole


@pytest.mark.parametrize("version", ORACLES)
@pytest.mark.parametrize("kind", ["segments-plain", "segments-deep"])
@pytest.mark.parametrize("columns", [72, 100])
def test_rows_wrapped_at_blanks_are_put_together_again(evidence, version, kind, columns):
    text = (evidence.oracle(version, "dumps") / f"{kind}.txt").read_bytes()
    assert without_lines(read_dump([mailed(columns)(text)])) == without_lines(read_dump([text]))


@pytest.mark.parametrize("version", ORACLES)
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("columns", [60, 180, 250])
@pytest.mark.parametrize("mark", ["", "..."])
def test_what_stands_before_a_cut_is_what_the_whole_row_says(evidence, version, kind, columns, mark):
    text = (evidence.oracle(version, "dumps") / f"{kind}.txt").read_bytes()
    whole: dict[int, Any] = {row.line: row for row in read_dump([text])}
    count = 0
    for row in read_dump([cut(columns, mark)(text)]):
        if isinstance(row, DumpCut):
            own = whole[row.line]._asdict()
            assert {name: own[name] for name in row.known} == row.known
            assert isinstance(whole[row.line], row.kind)
            count += row.kind is DumpBatch
        elif isinstance(row, DumpBatch):
            assert row._replace(crc=0) == whole[row.line]._replace(crc=0)
            # 1.1 prints the CRC last: nothing shows that digits of it are missing
            assert row.crc == whole[row.line].crc or version == "1.1.1"
    lines = text.split(b"\n")
    batches = [row for row in whole.values() if isinstance(row, DumpBatch)]
    # what is missing may be blanks alone, or of 1.1 the last digits of the CRC
    cuts = [lines[row.line - 1].rstrip() for row in batches if len(lines[row.line - 1].rstrip()) > columns]
    in_crc = sum(version == "1.1.1" and not mark and b" crc: " in line[: columns + 1] for line in cuts)
    assert len(cuts) - in_crc <= count <= len(cuts)


@pytest.mark.parametrize("columns", range(30, 330, 7))
def test_a_row_is_cut_anywhere(columns):
    text = dump(["v0", "v1", "v2"])
    cuts = [row for row in read_dump([cut(columns)(text)]) if isinstance(row, DumpCut) and row.kind is DumpBatch]
    lines = [BATCH.format(number, 70 * number).rstrip() for number in range(3)]
    assert [row.line for row in cuts] == [2 * number + 3 for number in range(3) if len(lines[number]) > columns]
    for row in cuts:
        shown = lines[0][:columns]
        assert ("producer_epoch" in row.known) == ("producerEpoch: 3 " in shown)
        assert ("is_control" in row.known) == ("isControl: false " in shown)


def rows_of(text):
    """The rows by both readers, which must agree on batches and cuts."""
    rows = list(read_dump([text]))
    together: list[DumpRow] = []
    for row in read_dump_batches([text]):
        together += row.rows() if isinstance(row, DumpBatchColumns) else [row]
    kinds = (DumpBatch, DumpCut)
    assert [row for row in rows if isinstance(row, kinds)] == [row for row in together if isinstance(row, kinds)]
    return rows


IMITATIONS = [
    BATCH.format(9, 630).strip(),
    BATCH.format(1, 5).strip(),
    BATCH.format(2, 140).strip()[:180],
    BATCH.format(0, 0).strip()[:100],
    record(7, "x").strip(),
    record(7, "x").strip()[:40],
    "baseOffset: 5",
    "| offset: 3 CreateTime: 1",
    "Found 9 invalid words",
    "two words",
    "",
]
payloads = st.lists(st.sampled_from(IMITATIONS), max_size=4).map(lambda lines: "\n".join(["a", *lines]))


@given(st.lists(payloads, min_size=1, max_size=6))
@quick
def test_payloads_that_look_like_rows_are_payloads(texts):
    """Their size says so, whatever they look like: a row that follows from those before it is the one exception."""
    rows = rows_of(dump(texts))
    assert not [row for row in rows if isinstance(row, DumpCut | DumpNote)]
    assert [row.base_offset for row in rows if isinstance(row, DumpBatch)] == list(range(len(texts)))
    assert [row.payload for row in rows if isinstance(row, DumpRecord)] == [text.encode() for text in texts]


@given(st.lists(st.sampled_from([0, 1, 3, 4, 6, 8, 9, 10]), max_size=5), st.integers(0, 20))
@example([6, 6, 6, 8, 8], 7)  # the size ends by chance where a line does, after the next batch
@quick
def test_a_payload_printed_in_other_words_gives_no_batch_of_its_own(imitations, more):
    """A decoder prints what it likes: nothing shows where it ends, but cut rows in it are said to be doubtful, not taken."""
    payload = "\n".join(["a", *(IMITATIONS[number] for number in imitations)])
    text = dump([payload] * 3).replace(b"valueSize: ", b"valueSize: %d" % (more + 1))
    rows = rows_of(text)
    assert [row.base_offset for row in rows if isinstance(row, DumpBatch)] == [0, 1, 2]
    assert not [row for row in rows if isinstance(row, DumpCut)]
    doubtful = [row for row in rows if isinstance(row, DumpNote)]
    assert len(doubtful) == 3 * sum(number in (0, 1, 3, 4, 6) for number in imitations)
    assert all(row.kind is NoteKind.DOUBTFUL for row in doubtful)


def test_what_is_in_the_text_after_a_whole_record_is_no_text_of_it():
    rows = rows_of(dump(["v0"]) + b"```\nthat is all\n")
    assert [row.text for row in rows if isinstance(row, DumpNote)] == ["```", "that is all"]
    assert [row.payload for row in rows if isinstance(row, DumpRecord)] == [b"v0"]


def test_reading_ahead_in_vain_takes_no_more_than_linear_time(monkeypatch):
    """Each record says that it has two gigabytes more: where its text ends is looked for a few times only, over a few lines."""
    line = b"| offset: 5 CreateTime: 1 keySize: -1 valueSize: 2000000000 sequence: 0 headerKeys: [] payload: x\n"
    monkeypatch.setattr(dump_lines, "_MAX_DOUBT_BYTES", 100 * len(line))
    row, parsed = DumpLines._row, Counter[int]()

    def counted(lines, line, number):
        parsed[total] += 1
        return row(lines, line, number)

    monkeypatch.setattr(DumpLines, "_row", counted)
    for total in (4_000, 8_000):
        text = BATCH.format(0, 0).encode() + line * total
        lines = DumpLines()
        count = sum(1 for _ in lines.feed(text[:-1].split(b"\n"))) + sum(1 for _ in lines.finish())
        assert count == total + 1
    assert parsed[8_000] - parsed[4_000] == 4_000  # each further line once


def test_headers_of_files_stay_rows():
    text = dump(["v0", "v1"])
    rows = rows_of(text + text)
    assert sum(isinstance(row, DumpFile) for row in rows) == 2
    assert sum(isinstance(row, DumpBatch) for row in rows) == 4


BATCH_LINE = BATCH.format(3, 70).encode().rstrip()
RECORD_LINE = record(3, "text").encode().rstrip()


@pytest.mark.parametrize(
    ("left", "right", "blank"),
    [
        (b"baseOffset:", b"3", True),
        (b"baseOffset: ", b"3", False),
        (b"baseOffset:", b" 3", False),
        (b"|", b"offset: 3", True),
        (b"a|", b"offset: 3", False),
        (b"baseOffset: 3", b"lastOffset: 4", True),
        (b"lastOffset: 3", b"unknown: 4", False),
        (b"baseOffset: 3", b"4 lastOffset: 5", False),
        (b"baseOffset: 3 last", b"Offset: 5", False),
        (b"x" * 250 + b" baseOffset: 3", b"count: 5", True),
    ],
)
def test_the_blank_that_a_break_took_is_put_back(left, right, blank):
    assert joined([left, right]) == (left + b" " + right if blank else left + right)
    assert joined([left]) == left
    assert joined([left, right, right]).startswith(joined([left, right]))


@pytest.mark.parametrize("columns", [40, 60, 61, 100])
def test_a_line_is_whole_again_whatever_blanks_its_breaks_took(columns):
    pieces = [BATCH_LINE[at : at + columns] for at in range(0, len(BATCH_LINE), columns)]
    assert joined(pieces) == BATCH_LINE
    stripped = [piece.strip() for piece in pieces]
    words = b" ".join(BATCH_LINE.split())
    assert joined(stripped).replace(b" ", b"") == words.replace(b" ", b"")


def row_of(line):
    layout = learn(line)
    return None if layout is None else layout.read(line, 5)


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        (BATCH_LINE, True),
        (BATCH_LINE.replace(b" isvalid: true", b""), False),
        (BATCH_LINE.replace(b" crc: 1234567", b""), False),
        (RECORD_LINE, True),
        (b"offset: 5 position: 70", True),
        (b"offset: 3 position: 70 CreateTime: 5 isvalid: true keysize: 1 valuesize: 2 magic: 1 compresscodec: NONE crc: 5", True),
        (b"offset: 3 position: 70 CreateTime: 5 isvalid: true keysize: 1 valuesize: 2 magic: 2 compresscodec: NONE crc: 5", False),
        (b"offset: 3 position: 70 CreateTime: 5 isvalid: true keysize: 1 valuesize: 2 magic: 2 compresscodec: NONE crc: 5 headerKeys: []", True),
        (b"| offset: 3 CreateTime: 5 keySize: 1 valueSize: 2", True),
    ],
)  # fmt: skip
def test_whether_a_row_has_what_comes_last_in_its_line(line, whole):
    assert is_whole(row_of(line)) is whole


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"| offset: 3 isValid: true", True),
        (b"| offset: 3 isValid: true crc: 5", True),
        (b"offset: 3 isValid: true", False),
        (b"| offset: 3 isvalid: true", False),
        (b"| offset: 3 isValid: true baseOffset: 3", False),
        (b"| offset: 3 isValid: true headerKeys: []", False),
    ],
)
def test_records_that_end_before_the_fields_of_their_batch(line, expected):
    assert expects_batch(line) is expected


@pytest.mark.parametrize(
    ("line", "kind", "known"),
    [
        (b"baseOffset: 3", DumpBatch, {}),
        (b"baseOffset: 3 lastOffset: 4 cou", DumpBatch, {"base_offset": 3, "last_offset": 4}),
        (b"baseOffset: 3 lastOffset: 4 count: 2", DumpBatch, {"base_offset": 3, "last_offset": 4}),
        (b"baseOffset: 3 lastOffset: 4 ...", DumpBatch, {"base_offset": 3}),
        (b"baseOffset: 3 lastOffset: 4 count: 5$", DumpBatch, {"base_offset": 3, "last_offset": 4}),
        (b"baseOffset: 3 CreateTime: 17 cou", DumpBatch, {"base_offset": 3, "max_timestamp": 17, "timestamp_type": "CreateTime"}),
        (b"| offset: 3 CreateTime: 17 keyS", DumpRecord, {"offset": 3, "timestamp": 17, "timestamp_type": "CreateTime"}),
        (b"| offset: 3 keySize: 4 headerKeys: [a", DumpRecord, {"offset": 3, "key_size": 4}),
        (b"| offset: 3 keySize: 4 payload: x", DumpRecord, {"offset": 3, "key_size": 4}),
        (b"offset: 3 position: 70 CreateTime: 17 si", DumpRecord, {"offset": 3, "position": 70, "timestamp": 17, "timestamp_type": "CreateTime"}),
        (b"offset: 3 position: 70 CreateTime: 17 size: 5 mag", DumpBatch, {"last_offset": 3, "position": 70, "max_timestamp": 17, "timestamp_type": "CreateTime", "size": 5}),
        (b"baseOffset: 3 deleteHorizonMs: OptionalLong.empty pos", DumpBatch, {"base_offset": 3, "delete_horizon_ms": None}),
        (b"baseOffset: 3 fresh: 4 cou", DumpBatch, {"base_offset": 3}),
        (b"baseOffset: 3 payload: x", None, None),
        (b"baseOffset: 3 and text", None, None),
        (b"| offset: 3 and text", None, None),
        (b"baseOffset: 3 lastOffset: x count: 5", None, None),
        (b"baseOffset: 3 lastOffset: 9999999999999999999 cou", None, None),
        (b"baseOffset: x", None, None),
        (b"offset: 3 position: 70", None, None),
        (b"text", None, None),
    ],
)  # fmt: skip
def test_what_stands_before_the_cut_of_a_line(line, kind, known):
    assert cut_row(line, 5) == (None if kind is None else DumpCut(5, kind, known, line.decode()))


def test_of_a_cut_line_two_hundred_characters_are_shown():
    found = cut_row(b"baseOffset: 3 lastOffset: 4 " + b"fresh: 1 " * 30, 5)
    assert found is not None
    assert found.text == "baseOffset: 3 lastOffset: 4 " + ("fresh: 1 " * 30)[:172]


def test_what_another_reading_of_a_row_has_more():
    row: Any = row_of(RECORD_LINE)
    batch: Any = row_of(BATCH_LINE)
    assert not says_more(row, row)
    assert not says_more(batch, batch._replace(fields=frozenset()))
    assert says_more(batch, batch._replace(crc=5))
    assert says_more(row, batch)
    for change in ({"payload": b"x"}, {"key": b"x"}, {"control": "x"}, {"end_marker": "x"}, {"header_keys": None}):
        assert says_more(row, row._replace(**change)), change
    assert says_more(row, row._replace(fields=row.fields - {"sequence"}))
    assert not says_more(row, row._replace(fields=row.fields | {"crc"}))
    assert not says_more(row._replace(header_keys=None), row)
    assert not says_more(row, row._replace(header_keys=b"x"))


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"value_size": 5}, False),
        ({"payload": None}, True),
        ({"key": b"ab", "key_size": 2}, True),
        ({"key": b"ab", "key_size": 3}, False),
        ({"key": b"ab", "key_size": 2, "value_size": 5}, False),
    ],
)
def test_whether_a_text_is_as_long_as_its_sizes_say(change, fits):
    row: Any = row_of(RECORD_LINE)
    assert fits_sizes(row._replace(**change)) is fits
    batch: Any = row_of(BATCH_LINE)
    assert fits_sizes(batch) is False


@pytest.mark.parametrize(
    ("data", "is_dump"),
    [
        (b"", False),
        (b"text\n" * 30, False),
        (BATCH_LINE, True),
        (RECORD_LINE, True),
        (b"Dumping x", True),
        (b"Starting offset: 0", True),
        (b"text\n" * 19 + BATCH_LINE, True),
        (b"text\n" * 20 + BATCH_LINE, False),
        (b"x" * 65_535 + b"\n" + BATCH_LINE, False),
        (b"baseOffset: 3 and text", False),
    ],
)
def test_what_is_a_text_of_kafka_dump_log(data, is_dump):
    assert looks_like_dump(data) is is_dump
