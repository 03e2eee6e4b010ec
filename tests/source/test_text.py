"""Texts of kafka-dump-log: which lines show which segment, where a batch's line is, and which partitions they are of."""

from itertools import islice

import pytest

from kaudit.source import text as module
from kaudit.source import text_partitions
from kaudit.source.bytes import LocalFile
from kaudit.source.discover import discover
from kaudit.source.layout import TextRange, Unreadable
from kaudit.source.local import LocalFileSystem
from kaudit.source.text import SegmentText
from kaudit.source.text_partitions import Section, find_sections, first_offset

BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false position: {1} CreateTime: 1700000000000 size: 70 "
    "magic: 2 compresscodec: none crc: 1 isvalid: true\n"
)


def dumping(path, start=0):
    return f"Dumping {path}\nStarting offset: {start}\n"


def batches(*offsets):
    return "".join(BATCH.format(offset, 70 * number) for number, offset in enumerate(offsets))


@pytest.fixture(params=[1 << 20, 97, 31])
def piece_bytes(request, monkeypatch):
    """How much is read at a time."""
    monkeypatch.setattr(module, "PIECE_BYTES", request.param)


def lines_of(text, start, end):
    return TextRange(start, end, text[:start].count("\n"))


def source_of(tmp_path, text):
    path = tmp_path / "text"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return LocalFile(path)


@pytest.mark.usefixtures("piece_bytes")
@pytest.mark.parametrize("before", ["", "x\n", "no line end before it: "])
@pytest.mark.parametrize("last", ["\n", ""])
def test_sections_lie_between_headers(tmp_path, before, last):
    first, second = "Dumping /a/orders-0/0.log\n", "Dumping /b c/x-1/00.log\r\n"
    body, end = "line\n\nDumpingg\n Dumping x\n", "y Dumping z" + last
    joined = before.endswith("\n") or not before
    text = before + first + body + second + end
    source = source_of(tmp_path, text)
    at = len(before)
    expected = [Section(None, TextRange(0, at))] if before else []
    if joined:
        expected.append(Section("/a/orders-0/0.log", lines_of(text, at + len(first), at + len(first + body))))
    else:
        expected = [Section(None, TextRange(0, at + len(first + body)))]
    expected.append(Section("/b c/x-1/00.log", lines_of(text, at + len(first + body + second), len(text))))
    assert find_sections(source) == expected
    source.close()


@pytest.mark.usefixtures("piece_bytes")
@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("", []),
        ("only lines\n", [(None, 0, 11)]),
        ("Dumping a\nDumping b\n", [("a", 10, 10), ("b", 20, 20)]),
        ("Dumping a", [("a", 9, 9)]),
    ],
)
def test_texts_with_few_lines(tmp_path, text, ranges):
    source = source_of(tmp_path, text)
    assert [(each.path, each.range.start, each.range.end) for each in find_sections(source)] == ranges
    source.close()


def test_a_line_of_megabytes_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 50)
    monkeypatch.setattr(text_partitions, "_LONGEST_HEADER_BYTES", 50)
    text = "x" * 500 + "Dumping no\n" + "Dumping yes\n" + "z" * 200
    source = source_of(tmp_path, text)
    assert [(each.path, each.range.start, each.range.end) for each in find_sections(source)] == [
        (None, 0, 511), ("yes", 523, 723),
    ]  # fmt: skip
    source.close()


def test_a_text_that_became_shorter_ends_where_it_does(tmp_path):
    own = SegmentText(source_of(tmp_path, "0123456789"), TextRange(2, 25))
    assert list(islice(own.pieces(), 3)) == [b"23456789"]
    own.close()


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (batches(7, 8), 7),
        ("Starting offset: 5\n" + batches(7), 5),
        ("Starting offset: 5\n", None),
        (
            "offset: 3 position: 0 CreateTime: 1 isvalid: true keysize: -1 valuesize: 1 magic: 2 compresscodec: NONE\n",
            3,
        ),
        ("nothing\n", None),
        ("producerId: 1 producerEpoch: 0\n", None),
    ],
)
def test_the_first_offset_a_section_shows(tmp_path, text, offset):
    source = source_of(tmp_path, "skipped\n" + text)
    section = Section(None, TextRange(8, 8 + len(text)))
    assert first_offset(source, section) == offset
    source.close()


@pytest.mark.parametrize("probe_bytes", [1 << 16, 2000, 300])
@pytest.mark.parametrize("before", ["", "Starting offset: 0\n" * 30])
def test_the_line_in_front_of_a_position(tmp_path, monkeypatch, probe_bytes, before):
    """Reading from there on, no batch at or behind the position is missed, and little before it is read."""
    monkeypatch.setattr(module, "PROBE_BYTES", probe_bytes)
    text = "elsewhere\n" + before + batches(*range(200))
    own = SegmentText(source_of(tmp_path, text), TextRange(10, len(text)))
    assert own.size() == len(text) - 10
    whole = text[10:]
    assert b"".join(own.pieces()).decode() == whole
    assert b"".join(own.pieces(1)).decode() == whole[1:]
    assert own.read_into(0, memoryview(bytearray(5))) == 0
    for number in (0, 1, 2, 57, 100, 198, 199, 300):
        line = own.line_before(70 * number)
        assert b"".join(own.pieces(line)).decode() == whole[line:]
        own_line = whole.find(f" position: {70 * number} ")
        begins = whole.rfind("\n", 0, own_line) + 1 if own_line >= 0 else len(whole)
        assert line <= begins
        if probe_bytes < 1 << 16:
            assert line == 0 or whole.startswith("baseOffset: ", line)
            assert begins - line <= 2 * probe_bytes + len(before) * (number < 5)
        else:
            assert line == 0
    own.close()


# -- partitions

NAME, LATER = "00000000000000000000.log", "00000000000000000100.log"


def found(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return discover([str(tmp_path / f"{name}.txt") for name in texts])


def shown(layout):
    return [
        (entry.name, entry.replica, entry.named, [(segment.name, segment.base_offset) for segment in entry.segments])
        for entry in layout.partitions
    ]


def test_segments_of_one_directory_are_one_partition(tmp_path):
    text = dumping(f"/data/orders-3/{LATER}", 100) + batches(100) + dumping(f"/data/orders-3/{NAME}") + batches(0)
    layout = found(tmp_path, a=text, b=dumping(f"/data/x-0/{NAME}") + batches(0))
    assert shown(layout) == [
        ("orders-3", "data", True, [(NAME, 0), (LATER, 100)]),
        ("x-0", "data", True, [(NAME, 0)]),
    ]
    first, later = layout.partitions[0].segments
    assert (first.path, later.path) == (str(tmp_path / "a.txt"),) * 2
    begin = len(dumping(f"/data/orders-3/{LATER}").split("\n")[0]) + 1
    assert later.text == lines_of(text, begin, text.index("Dumping", 5))
    modified_ms = (tmp_path / "a.txt").stat().st_mtime_ns // 1_000_000
    assert (first.modified_ms, later.modified_ms) == (modified_ms, modified_ms)
    assert first.size == first.text.end - first.text.start
    assert not layout.partitions[0].whole_directory


def test_a_segment_that_is_shown_twice_is_of_another_replica(tmp_path):
    text = dumping(f"/data/orders-3/{NAME}") + batches(0)
    again = dumping(f"/data/orders-3/{NAME}") + batches(0) + dumping(f"/data/orders-3/{LATER}", 100) + batches(100)
    layout = found(tmp_path, a=text, b=again)
    assert shown(layout) == [
        ("orders-3", "a.txt", True, [(NAME, 0), (LATER, 100)]),
        ("orders-3", "b.txt", True, [(NAME, 0)]),
    ]


def test_relative_paths_of_different_places_are_kept_apart(tmp_path):
    (tmp_path / "x").mkdir()
    text = dumping(f"orders-3/{NAME}") + batches(0)
    (tmp_path / "x" / "a.txt").write_text(text)
    (tmp_path / "a.txt").write_text(text)
    layout = discover([str(tmp_path / "a.txt"), str(tmp_path / "x" / "a.txt")])
    assert len(layout.partitions) == 2
    assert {entry.log_dir for entry in layout.partitions} == {str(tmp_path), str(tmp_path / "x")}


def test_lines_without_a_header_are_a_segment_without_a_name(tmp_path):
    layout = found(tmp_path, lines=batches(40, 41))
    (entry,) = layout.partitions
    assert (entry.partition, entry.named) == (0, False)
    (segment,) = entry.segments
    assert (segment.name, segment.base_offset) == ("lines.txt", 40)


def test_a_segment_in_the_root_has_its_own_name_for_a_topic(tmp_path):
    layout = found(tmp_path, a=dumping("/lonely.log", 3) + batches(3), b=dumping("/dir/other.log", 4) + batches(4))
    assert shown(layout) == [("dir-0", "/", False, [("other.log", 4)]), ("lonely-0", "/", False, [("lonely.log", 3)])]
    assert [entry.log_dir for entry in layout.partitions] == ["/", "/"]


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(5, "Input/output error"), "Input/output error"), (OSError(), "OSError")]
)
def test_a_text_that_cannot_be_opened_is_reported(tmp_path, monkeypatch, error, reason):
    def refuse(_self, _uri):
        raise error

    monkeypatch.setattr(LocalFileSystem, "open", refuse)
    layout = found(tmp_path, a=batches(3))
    assert not layout.partitions
    assert list(layout.unreadable) == [Unreadable(str(tmp_path / "a.txt"), reason)]


def test_side_files_are_not_segments_and_moved_partitions_are_reported(tmp_path):
    moved = f"/data/orders-3.{'0' * 32}-delete"
    text = (
        dumping(f"{moved}/{NAME}")
        + batches(0)
        + "Dumping /data/orders-3/00000000000000000000.index\noffset: 1 position: 2\n"
    )
    layout = found(tmp_path, a=text)
    assert not layout.partitions
    reason = f"is a dump of {moved}, which a broker had renamed (delete)"
    assert Unreadable(str(tmp_path / "a.txt"), reason) in layout.skipped
