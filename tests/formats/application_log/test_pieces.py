"""A log's bytes as whole lines: wherever they are cut, in any encoding, without what is not text."""

import pytest

from kaudit.formats.application_log import pieces
from kaudit.formats.application_log.pieces import MAX_LINE_BYTES, LogCounts, line_blocks

ENTRY = b"[2026-11-22 19:45:04,073] INFO x (kafka.server.Y)"


def lines_of(data, size=1 << 20, counts=None):
    given = [data[at : at + size] for at in range(0, len(data), size)]
    blocks = list(line_blocks(given, counts or LogCounts()))
    return [line for plain, _ in blocks for line in plain], [line for _, raw in blocks for line in raw]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("sizes", [[], [1], [5, 5, 5], [100], [3, 0, 8, 1]])
def test_pieces_of_one_size(length, sizes):
    content = bytes(range(sum(sizes)))
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    given = [content[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    found = list(pieces._regular(given, length))
    assert b"".join(found) == content
    assert [len(each) for each in found[:-1]] == [length] * (len(content) // length)
    assert len(found[-1]) == len(content) % length


@pytest.mark.parametrize(
    ("data", "cleaned"),
    [
        (b"a\nb", b"a\nb"),
        (b"a\r\nb\r", b"a\nb"),
        (b"a\rb", b"a\rb"),
        (b"\x1b[36mINFO\x1b[0;39m x\x1b[?25l", b"INFO x"),
        (b"\x1b]x", b"\x1b]x"),
        (b"a\0b\0", b"ab"),
        (b"\x1b[1m\0\r\n", b"\n"),
    ],
)
def test_what_is_no_text_is_left_out(data, cleaned):
    assert pieces._cleaned(data) == cleaned


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(monkeypatch, size, encoding):
    text = "".join(f"[2026-11-22 19:45:04,{number:03}] INFO \u00e9 x (kafka.server.Y)\n" for number in range(30))
    expected = text.encode().rstrip(b"\n").split(b"\n")
    assert lines_of(text.encode(encoding), size) == (expected, expected)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends(end, last):
    data = end.join([ENTRY] * 4) + (end if last else b"")
    assert lines_of(data) == ([ENTRY] * 4, [ENTRY] * 4)


def test_a_carriage_return_in_a_text_with_line_feeds_ends_no_line():
    assert lines_of(b"a\rb\nc\n")[0] == [b"a\rb", b"c"]


@pytest.mark.parametrize("more", [0, 1, 5, 1 << 20])
def test_a_line_is_kept_up_to_its_most_bytes(monkeypatch, more):
    monkeypatch.setattr(pieces, "_PIECE_BYTES", 1 << 12)
    counts = LogCounts()
    long = b"x" * (MAX_LINE_BYTES + more)
    plain, _ = lines_of(ENTRY + b"\n" + long + b"\n" + ENTRY + b"\n", 1 << 16, counts)
    assert plain[0] == plain[-1] == ENTRY
    assert len(plain) == 3
    assert set(plain[1]) == {ord("x")}
    assert len(plain[1]) <= len(long)
    assert len(plain[1]) >= MAX_LINE_BYTES
    assert counts.long_lines <= 1
    if more > 1 << 13:
        assert (len(plain[1]), counts.long_lines) == (MAX_LINE_BYTES, 1)
    if not more:
        assert (plain[1], counts.long_lines) == (long, 0)


@pytest.mark.parametrize(
    ("prefix", "taken"),
    [(b"> ", True), (b"kafka-1-log: ", True), (b"    ", True), (b"", False)],
)
def test_what_stands_before_each_line_is_taken_away(prefix, taken):
    data = b"".join(prefix + ENTRY + b"\n" for _ in range(9))
    plain, raw = lines_of(data)
    assert plain == [ENTRY] * 9
    assert raw == [prefix + ENTRY] * 9


@pytest.mark.parametrize(("fixed", "plain"), [(3, 1), (2, 2), (1, 3)])
def test_blanks_that_do_not_break_are_blanks_where_they_are_most(fixed, plain):
    line = b"\xc2\xa0".join([b"w"] * (fixed + 1)) + b" x" * plain
    found = lines_of(line)[0]
    assert found == [line.replace(b"\xc2\xa0", b" ") if fixed > plain else line]


def test_the_time_that_a_log_covers():
    counts = LogCounts()
    counts.saw(None)
    assert (counts.first_ms, counts.last_ms) == (None, None)
    for time in (5, 9, 3, 7, 0):
        counts.saw(time)
    assert (counts.first_ms, counts.last_ms) == (0, 9)
