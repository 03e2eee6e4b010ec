from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.dump_text import lines as dump_lines
from kaudit.formats.dump_text import other_lines
from kaudit.formats.dump_text import text as dump_text
from kaudit.formats.dump_text.layout import learn
from kaudit.formats.dump_text.partial_rows import looks_like_dump
from kaudit.formats.dump_text.rows import (
    DumpAbortedTransaction,
    DumpBatch,
    DumpFile,
    DumpNote,
    DumpOffsetIndexEntry,
    DumpRecord,
    DumpRow,
    DumpSnapshotEntry,
    DumpStart,
    DumpTimeIndexEntry,
    NoteKind,
)
from kaudit.formats.dump_text.text import read_dump
from kaudit.formats.log.control import read_control_records
from kaudit.formats.log.legacy import parse_message, read_legacy_records
from kaudit.formats.log.records import read_records
from kaudit.formats.sidefiles.indexes import parse_offset_index, parse_time_index, parse_transaction_index
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot
from tests.formats.archives import CAPTURES, ORACLES
from tests.formats.fuzz import damaged, quick
from tests.formats.segment_rows import batch_rows

Row = TypeVar("Row")


def rows_of(kind: type[Row], *pieces: bytes) -> list[Row]:
    """The rows of a dump, all of one kind."""
    rows: list[Row] = []
    for row in read_dump(pieces):
        assert isinstance(row, kind)
        rows.append(row)
    return rows


def by_file(path: Path) -> dict[str, list[DumpRow]]:
    """The rows of a dump under the path each `Dumping` line names."""
    files: dict[str, list[DumpRow]] = {}
    rows: list[DumpRow] = []
    with path.open("rb") as dump:
        for row in read_dump(dump):
            if isinstance(row, DumpFile):
                rows = files.setdefault(row.path, [])
            else:
                rows.append(row)
    return files


def records_of(raw):
    if raw[16] < 2:
        for old in read_legacy_records(parse_message(raw)):
            yield old.offset, old.timestamp, None, old.key, old.value, ()
        return
    for r in read_records(raw):
        yield r.offset, r.timestamp, r.sequence, r.key, r.value, r.headers


def same_batch(row, expected):
    printed = {name: getattr(row, name) for name in row.fields if name in expected}
    assert printed == {name: expected[name] for name in printed}
    assert {"last_offset", "position", "timestamp_type", "max_timestamp", "magic", "codec", "crc"} <= row.fields
    if expected["magic"] == 2:
        assert {"base_sequence", "last_sequence", "producer_id", "producer_epoch", "leader_epoch"} <= row.fields


def same_record(row, expected, internal):
    offset, timestamp, sequence, key, value, headers = expected
    assert row.offset == offset
    assert row.timestamp == (-1 if timestamp is None else timestamp)
    assert row.key_size == (-1 if key is None else len(key))
    assert row.value_size == (-1 if value is None else len(value))
    if "sequence" in row.fields:
        assert row.sequence == (-1 if sequence is None else sequence)
        assert row.header_keys == b",".join(header.key for header in headers)
    for printed, real in ((row.key, key), (row.payload, value)):
        if printed is not None and not internal and row.end_marker is None:
            assert printed == real or b"\xef\xbf\xbd" in printed


def compare_segment(rows, data, internal=False):
    """Every batch and record row against the bytes; returns how many of each were compared."""
    batches = [row for row in rows if isinstance(row, DumpBatch)]
    records = [row for row in rows if isinstance(row, DumpRecord)]
    real = list(batch_rows(data))
    if not records:  # a tool that died early printed fewer: what it printed must be the beginning
        assert len(batches) <= len(real)
    for row, (expected, _) in zip(batches, real, strict=False):
        same_batch(row, expected)
    if records:
        expected_records = (record for _, raw in real for record in records_of(raw))
        for record in records:
            same_record(record, next(expected_records), internal)
    return len(batches), len(records), len(real)


@pytest.mark.parametrize("capture", CAPTURES)
def test_text_and_binary_of_every_segment_agree(evidence, capture):
    root = evidence.capture(capture)
    dumps = batches = records = 0
    for path in sorted((root / "dumps").glob("*.txt")):
        for name, rows in by_file(path).items():
            segment = root / name
            if not segment.exists():
                continue
            shown_batches, shown_records, real = compare_segment(rows, segment.read_bytes(), "/__" in name)
            if capture != "torn-writes" and path.name.endswith(".batches.txt"):
                assert shown_batches == real
            assert not [row for row in rows if isinstance(row, DumpNote) and row.kind is NoteKind.TOO_LONG]
            dumps, batches, records = dumps + 1, batches + shown_batches, records + shown_records
    assert dumps > 5
    assert batches > 30
    assert records > 100


@pytest.mark.parametrize("version", ORACLES)
@pytest.mark.parametrize(
    "kind", ["segments-plain", "segments-deep", "segments-print", "segments-print-deep", "txnstate"]
)
def test_dumps_of_five_versions_agree_with_their_logs(evidence, version, kind):
    root = evidence.oracle(version, "logdir") / "main"
    compared = 0
    for name, rows in by_file(evidence.oracle(version, "dumps") / f"{kind}.txt").items():
        data = (root / name).read_bytes()
        batches, records, real = compare_segment(rows, data, internal=kind == "txnstate")
        assert max(batches, records) >= real or not real
        markers = [(r.end_marker, r.coordinator_epoch) for r in rows if isinstance(r, DumpRecord) and r.end_marker]
        controls = [
            (control.type.name, control.coordinator_epoch)
            for expected, raw in batch_rows(data)
            if expected.get("is_control")
            for _, control in read_control_records(raw)
        ]
        # Without --print-data-log, versions before 2.3 print no markers.
        assert markers == (controls if markers else markers)
        compared += batches + records
    assert compared > 80


@pytest.mark.parametrize("version", ORACLES)
def test_dumps_of_side_files_agree_with_them(evidence, version):
    root, dumps = evidence.oracle(version, "logdir") / "main", evidence.oracle(version, "dumps")
    compared = 0
    for name, rows in by_file(dumps / "snapshots.txt").items():
        if (root / name).exists():
            entries = list(parse_producer_snapshot((root / name).read_bytes()).entries())
            assert len(rows) == len(entries)
            for row, entry in zip(rows, entries, strict=True):
                assert isinstance(row, DumpSnapshotEntry)
                assert (row.producer_id, row.producer_epoch) == (entry.producer_id, entry.producer_epoch)
                assert row.coordinator_epoch == entry.coordinator_epoch
                assert row.current_txn_first_offset in (entry.current_txn_first_offset, None)
                assert (row.current_txn_first_offset is None) == (entry.current_txn_first_offset == -1)
                assert row.last_offset in (entry.last_offset, None)
                assert row.last_sequence in (entry.last_sequence, None)
                compared += 1
    for name, rows in by_file(dumps / "txnindex.txt").items():
        if (root / name).exists():
            aborted = parse_transaction_index((root / name).read_bytes()).rows
            assert [tuple(row)[2:6] for row in rows] == [
                tuple(getattr(entry, f) for f in entry.__struct_fields__)[:4] for entry in aborted
            ]
            assert all(isinstance(row, DumpAbortedTransaction) and row.version == 0 for row in rows)
            compared += len(aborted)
    assert compared > 20
    index = [row for rows in by_file(dumps / "index-plain.txt").values() for row in rows]
    assert {type(row) for row in index} == {DumpOffsetIndexEntry, DumpTimeIndexEntry}
    passed = [row for rows in by_file(dumps / "index.txt").values() for row in rows]
    assert all(isinstance(row, DumpNote) and row.kind is NoteKind.SANITY_PASSED for row in passed)
    assert passed


def test_what_an_index_dump_would_say_of_our_index_rows():
    data = (5).to_bytes(4, "big") + (400).to_bytes(4, "big")
    (row,) = rows_of(DumpOffsetIndexEntry, b"offset: 105 position: 400\n")
    index = parse_offset_index(data)
    assert (row.offset, row.position) == (100 + index.relative_offsets[0], index.positions[0])
    (time_row,) = rows_of(DumpTimeIndexEntry, b"timestamp: 7 offset: 105")
    times = parse_time_index((7).to_bytes(8, "big") + (5).to_bytes(4, "big"))
    assert (time_row.timestamp, time_row.offset) == (times.timestamps[0], 100 + times.relative_offsets[0])


RECORD = b"| offset: 0 CreateTime: 5 keySize: %d valueSize: %d sequence: 0 headerKeys: [%s]"


def _record(key, value, header_keys=b""):
    text = RECORD % (-1 if key is None else len(key), -1 if value is None else len(value), header_keys)
    text += b"" if key is None else b" key: " + key
    return text + (b"" if value is None else b" payload: " + value)


printable = st.binary(max_size=30).filter(
    lambda raw: b"\r" not in raw and not any(map(raw.__contains__, (b"offset", b"Dump")))
)


@given(st.none() | printable, st.none() | printable)
@quick
def test_keys_and_payloads_keep_their_bytes(key, value):
    rows = list(read_dump([_record(key, value), b"\nLog starting offset: 9\n"]))
    assert [(row.key, row.payload) for row in rows[:1] if isinstance(row, DumpRecord)] == [(key, value)]
    assert rows[-1][1:] == (9,)


def test_a_key_may_look_like_a_payload():
    (row,) = rows_of(DumpRecord, _record(b"a payload: b", b"c key: d", b"h1,],h2"))
    assert (row.key, row.payload, row.header_keys) == (b"a payload: b", b"c key: d", b"h1,],h2")
    (row,) = rows_of(DumpRecord, _record(b" payload: ", None))
    assert (row.key, row.payload) == (b" payload: ", None)


def test_a_key_that_a_decoder_printed_in_other_words_ends_at_the_payload():
    """keySize counts the key's bytes, not the characters of what the decoder made of them."""
    for key_size in (3, -1, 300):
        start = RECORD % (key_size, 1, b"")
        (row,) = rows_of(DumpRecord, start + b" key: group::orders payload: x")
        assert (row.key, row.payload) == (b"group::orders", b"x")
        (row,) = rows_of(DumpRecord, start + b" key: group::orders")
        assert (row.key, row.payload) == (b"group::orders", None)


@pytest.mark.parametrize("start", ["Starting offset: ", "Log starting offset: "])
@pytest.mark.parametrize("end", ["", "\r"])
def test_where_a_file_starts(start, end):
    for offset in (0, 5, 2**63 - 1):
        assert list(read_dump([f"{start}{offset}{end}\n".encode()])) == [DumpStart(1, offset)]
    (note,) = rows_of(DumpNote, f"{start}{2**63}\n".encode())
    assert note.kind is NoteKind.OTHER


def test_line_breaks_inside_a_payload():
    text = (
        b"Dumping x.log\n"
        + _record(b"k", b"one\n\ntwo\n")
        + b"\n"
        + _record(None, b"z")
        + b"\nFound 7 invalid bytes at the end of x.log\n"
    )
    file, first, second, note = read_dump([text])
    assert isinstance(first, DumpRecord)
    assert isinstance(second, DumpRecord)
    assert isinstance(note, DumpNote)
    assert (first.payload, second.payload) == (b"one\n\ntwo\n", b"z")
    assert (file.line, first.line, second.line, note.line) == (1, 2, 6, 7)
    assert (note.kind, note.byte_count) == (NoteKind.INVALID_BYTES, 7)


BATCH = (
    b"baseOffset: %d lastOffset: 7 count: 8 baseSequence: 0 lastSequence: 7 producerId: %d producerEpoch: 0 "
    b"partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: %b position: 0 "
    b"CreateTime: 1795240108273 size: 694 magic: 2 compresscodec: lz4 crc: 2611787814 isvalid: true"
)


def test_a_batch_line_field_by_field():
    (row,) = rows_of(DumpBatch, BATCH % (0, 2**63 - 1, b"OptionalLong[55]"))
    assert row == DumpBatch(
        1,
        0,
        7,
        8,
        0,
        7,
        2**63 - 1,
        0,
        0,
        False,
        False,
        55,
        0,
        "CreateTime",
        1795240108273,
        694,
        2,
        "lz4",
        2611787814,
        True,
        row.fields,
    )
    assert row.fields == set(DumpBatch._fields) - {"line", "fields"}


@pytest.mark.parametrize(
    "line",
    [
        BATCH % (2**63, 1, b"OptionalLong.empty"),
        (BATCH % (1, 1, b"OptionalLong.empty")).replace(b"isControl: false", b"isControl: maybe"),
        BATCH % (1, 1, b"soon"),
        b"offset: one position: 2",
        b"Starting offset: 9223372036854775808",
        b"Starting offset: soon",
    ],
)
def test_lines_that_only_look_like_rows_are_notes(line):
    (note,) = rows_of(DumpNote, line + b"\n")
    assert (note.kind, note.text) == (NoteKind.OTHER, line.decode())


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"Non-consecutive offsets in :/logs/orders-0/00000000000000000000.log", NoteKind.NON_CONSECUTIVE),
        (b"  3 is followed by 7", NoteKind.NON_CONSECUTIVE),
        (b"Mismatches in :/logs/orders-0/00000000000000000000.index", NoteKind.MISMATCH),
        (b"  Index offset: 3, log offset: 4", NoteKind.NON_CONSECUTIVE),
        (b"Found timestamp mismatch in :/logs/x.timeindex", NoteKind.MISMATCH),
        (b"Found out of order timestamp in :/logs/x.timeindex", NoteKind.MISMATCH),
        (b"Exception in thread main", NoteKind.OTHER),
        (b"x.index passed sanity check.", NoteKind.SANITY_PASSED),
        (b"Found 17 invalid bytes at the end of x.log", NoteKind.INVALID_BYTES),
    ],
)
def test_what_the_tool_says_of_a_file_is_a_note_behind_whatever_record(line, kind):
    for text in (line + b"\n", _record(b"k", b"v") + b"\n" + line + b"\n"):
        notes = [row for row in read_dump([text]) if isinstance(row, DumpNote)]
        if not line.startswith(b"  ") or text.startswith(line):  # an indented line may go on with the payload
            assert [(note.kind, note.text) for note in notes] == [(kind, line.decode())]


@pytest.mark.parametrize("size", [90, 1000, 4096])
def test_long_texts_are_read_in_pieces_of_whole_lines(monkeypatch, size):
    lines = [BATCH % (number, number, b"None") if number % 3 else _record(b"k", b"a\nb") for number in range(200)]
    text = b"Dumping a\nStarting offset: 0\n" + b"\n".join(lines)
    whole = list(read_dump([text]))
    monkeypatch.setattr(dump_text, "_PIECE_BYTES", size)
    for step in (size // 2, size, 3 * size + 1, len(text)):
        assert list(read_dump([text[at : at + step] for at in range(0, len(text), step)])) == whole


def test_fields_of_future_releases_are_skipped():
    line = (BATCH % (4, 1, b"OptionalLong.empty")).replace(b"count: 8", b"count: 8 novelty: x9")
    (row,) = rows_of(DumpBatch, line)
    assert (row.base_offset, row.record_count, row.crc) == (4, 8, 2611787814)


def test_carriage_returns_of_copied_dumps():
    text = b"Dumping a.log\r\nLog starting offset: 3\r\n" + BATCH % (1, 1, b"OptionalLong.empty") + b"\r\n"
    assert [type(row) for row in read_dump([text])] == [DumpFile, DumpStart, DumpBatch]


@given(st.data())
@quick
def test_pieces_of_any_size_give_the_same_rows(data):
    text = b"Dumping a\nStarting offset: 0\n" + (BATCH % (0, 5, b"None") + b"\n") * 3 + _record(b"k", b"a\nb") + b"\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=9)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert list(read_dump(pieces)) == list(read_dump([text]))


def test_lines_longer_than_we_hold_are_reported_and_passed_over(monkeypatch):
    monkeypatch.setattr(dump_text, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(dump_lines, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(other_lines, "MAX_LINE_BYTES", 1000)
    pieces = [_record(b"k", b"v") + b"\n", *[b"x" * 300] * 50, b"\n", _record(None, b"z") + b"\n"]
    first, note, second = read_dump(pieces)
    assert isinstance(first, DumpRecord)
    assert isinstance(note, DumpNote)
    assert isinstance(second, DumpRecord)
    assert (first.payload, second.payload) == (b"v", b"z")
    assert (note.kind, note.line, len(note.text)) == (NoteKind.TOO_LONG, 2, 200)
    # A record that goes on for ever is closed at the limit, and what follows are notes.
    record, *rest = read_dump([_record(b"k", b"v") + b"\n" + (b"y" * 99 + b"\n") * 20])
    assert isinstance(record, DumpRecord)
    assert record.payload is not None
    assert len(record.payload) < 1000
    assert {(row.kind, row.text) for row in rest if isinstance(row, DumpNote)} == {(NoteKind.OTHER, "y" * 99)}
    assert all(isinstance(row, DumpNote) for row in rest)
    assert len(record.payload.split(b"\n")) + len(rest) == 21


def test_what_looks_like_a_dump(evidence):
    assert looks_like_dump(b"Dumping x\n")
    assert looks_like_dump(b"[INFO] log4j\n" + BATCH % (1, 1, b"None"))
    assert not looks_like_dump(b"offset: none of this\n")
    for lines, is_dump in ((19, True), (20, False)):
        assert looks_like_dump(b"[INFO] log4j\n" * lines + BATCH % (1, 1, b"None")) is is_dump
    for path in evidence.oracle("2.0.1", "dumps").glob("*.txt"):
        assert looks_like_dump(path.read_bytes())
    for path in evidence.capture("txn-mix-2.8.2").rglob("*.log"):
        assert not looks_like_dump(path.read_bytes())


SNAPSHOT = (
    b"producerId: 1 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: None firstSequence: 7 lastSequence: 7 "
    b"lastOffset: 7 offsetDelta: 0 timestamp: 9\n"
)
ABORTED = b"version: 0 producerId: 1 firstOffset: 4 lastOffset: 6 lastStableOffset: 7\n"
SAMPLES = [
    (BATCH % (0, 5, b"OptionalLong.empty") + b"\n") * 2 + _record(b"key", b"value", b"h") + b"\n",
    SNAPSHOT + ABORTED,
]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    rows = list(read_dump([data]))
    assert [row.line for row in rows] == sorted(row.line for row in rows)
    assert all(row.line <= data.count(b"\n") + 1 for row in rows)


@pytest.mark.parametrize("number", ["9999999999999999999", "-9223372036854775809", "9223372036854775808"])
def test_a_number_of_more_than_64_bits_behind_a_usual_line_is_no_row(number):
    line = (
        "producerId: 1 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: {} firstSequence: 7 lastSequence: 7 "
        "lastOffset: 7 offsetDelta: 0 timestamp: 9\n"
    )
    text = "".join(map(line.format, ("None", "Some(5)", f"Some({number})", "Some(-1)")))
    rows = [row for row in read_dump([text.encode()]) if isinstance(row, DumpSnapshotEntry)]
    assert [row.line for row in rows] == [1, 2, 4]


BATCH_LINE = (
    b"baseOffset: %d lastOffset: %d count: 1 baseSequence: 0 lastSequence: 0 producerId: 4 producerEpoch: 0 position: %d CreateTime: 5 "
    b"size: 70 magic: 2 compresscodec: none crc: 7 isvalid: true"
)


def row(offset, kind="record", last=None):
    line = (
        b"| offset: %d CreateTime: 5 keySize: -1 valueSize: 1 sequence: 0 headerKeys: [] payload: x" % offset
        if kind == "record"
        else BATCH_LINE % (offset, offset if last is None else last, 0)
    )
    layout = learn(line)
    assert layout is not None
    found = layout.read(line, 1)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rows", "stray"),
    [
        ([], False),
        ([row(5)], False),
        ([row(5), row(6)], False),
        ([row(5), row(5)], True),
        ([row(5), row(4)], True),
        ([row(3, "batch", 5), row(5)], False),
        ([row(3, "batch", 5), row(6)], True),
        ([row(3, "batch", 5), row(4), row(4)], True),
        ([row(3, "batch", 5), row(4), row(6, "batch"), row(6)], False),
        ([row(3, "batch", 5), row(5), row(6, "batch"), row(5)], False),
    ],
)
def test_records_whose_offsets_do_not_fit(rows, stray):
    assert dump_text._any_stray(rows) is stray


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("content", [b"", b"a", b"a\n", b"a\nbb\nccc", b"\n\n", b"x" * 50 + b"\n" + b"y" * 9])
def test_whole_lines(monkeypatch, size, content):
    monkeypatch.setattr(dump_text, "_PIECE_BYTES", 8)
    pieces = list(dump_text._whole_lines(content[at : at + size] for at in range(0, len(content), size)))
    assert b"".join(pieces) == content + (b"\n" if content and not content.endswith(b"\n") else b"")
    assert all(piece.endswith(b"\n") for piece in pieces)
    # as much as is asked for, and as whole lines are longer
    assert all(len(piece) >= 8 for piece in pieces[:-1])


@pytest.mark.parametrize("size", [1, 4, 8])
def test_lines_come_together_until_they_are_as_many_bytes_as_a_piece(monkeypatch, size):
    monkeypatch.setattr(dump_text, "_PIECE_BYTES", 8)
    content = b"abc\n" * 5
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert list(dump_text._whole_lines(pieces)) == [b"abc\nabc\n", b"abc\nabc\n", b"abc\n"]


@pytest.mark.parametrize("text", [b"no row at all\n", BATCH_LINE % (1, 1, 0) + b"\n", b"| offset: 1 and text\n", b""])
def test_texts_without_records_have_none_to_take_at_once(text):
    assert dump_text.take_records(text, 1) is None
    assert dump_text._without_data_records(text, 3) == (text, range(3, 3 + text.count(b"\n")))


def test_a_line_that_is_too_long_comes_cut_off(monkeypatch):
    monkeypatch.setattr(dump_text, "_PIECE_BYTES", 8)
    monkeypatch.setattr(dump_text, "MAX_LINE_BYTES", 20)
    for length in (19, 20, 24):
        assert list(dump_text._whole_lines([b"x" * length + b"\n"])) == [b"x" * length + b"\n"]
    assert list(dump_text._whole_lines([b"x" * 100 + b"\nend\n"])) == [b"x" * 24 + b"xxxx\n", b"end\n"]
