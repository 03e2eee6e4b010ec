"""Lines that a terminal cut or wrapped, and lines that a collector joined: at each width and each joint."""

import pytest

from kaudit.formats.application_log import entry_lines
from kaudit.formats.application_log.entry_lines import is_cut, is_joined, rejoined, separated, width_of
from kaudit.formats.application_log.layouts import Lines


@pytest.mark.parametrize(
    ("lengths", "width"),
    [
        ([], None),
        ([40, 40, 40], 40),
        ([39, 39, 39], None),
        ([40, 40], None),
        ([40, 40, 40, 41], None),
        ([60, 60, 60, 3, 41], 60),
    ],
)
def test_the_width_that_several_lines_have_and_none_exceeds(lengths, width):
    assert width_of([b"x" * length for length in lengths]) == width


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        (b"x" * 50, True),
        (b"x" * 49, False),
        (b"x" * 51, False),
        *((b"x" * 49 + bytes([end]), False) for end in b").]}:;\"'>"),
        (b"x" * 49 + b",", True),
        (b"x" * 47 + b"...", True),
        (b"x" * 47 + "\u2026".encode(), True),
    ],
)
def test_lines_that_end_where_others_were_cut(line, cut):
    assert is_cut(line, 50) is cut


HEAD = b"[2026-11-22 19:45:04,073] ERROR "


def wrapped(texts, width, lost=b""):
    """Each text in rows of a width; of a blank at the end of a row `lost` is what is left out."""
    rows: list[bytes] = []
    heads: list[int] = []
    for text in texts:
        heads.append(len(rows))
        rows += [
            text[at : at + width].rstrip(lost) if lost else text[at : at + width] for at in range(0, len(text), width)
        ]
    return rows, heads


def unwrapped(rows, heads, understood=len, also=None):
    lines = Lines(list(rows), list(range(11, 11 + len(rows))), list(heads), {0: b"time"})
    unknown = [index for index in range(len(rows)) if index not in heads]
    return rejoined(lines, unknown, [rows, *([] if also is None else [also])], understood)


TEXTS = [HEAD + b"one two three four five six seven eight nine ten eleven twelve (kafka.server)", HEAD + b"short (k)",
         HEAD + b"another entry whose words are of many lengths and fill more than two rows of it (kafka.server.Partition)"]  # fmt: skip


@pytest.mark.parametrize("width", [40, 41, 55, 60, 72])
def test_rows_of_a_terminal_are_put_together(width):
    rows, heads = wrapped(TEXTS, width)
    found = unwrapped(rows, heads, lambda text: 100 * (text in TEXTS))
    assert found.texts == TEXTS
    assert (found.numbers, found.heads, found.times) == ([11 + at for at in heads], [0, 1, 2], {0: b"time"})


def broken(text, width):
    """A text in rows of whole words, as mail programs break it."""
    rows = [b""]
    for word in text.split(b" "):
        if rows[-1] and len(rows[-1]) + 1 + len(word) > width:
            rows.append(word)
        else:
            rows[-1] = rows[-1] + b" " + word if rows[-1] else word
    return rows


@pytest.mark.parametrize("width", [50, 60])
def test_rows_that_were_broken_at_blanks_get_these_back(width):
    rows: list[bytes] = []
    heads: list[int] = []
    for text in [*TEXTS, HEAD + b"w" * (width - len(HEAD))]:
        heads.append(len(rows))
        rows += broken(text, width)
    found = unwrapped(rows, heads, lambda text: 100 * (text in TEXTS))
    assert found.texts[:3] == TEXTS


@pytest.mark.parametrize("width", [39, 401])
def test_rows_that_no_terminal_has_stay(width):
    texts = [HEAD + b"word " * (3 * width // 5)] * 3
    rows, heads = wrapped(texts, width)
    assert unwrapped(rows, heads).texts == rows


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_one_line_is_none_that_was_wrapped(pieces):
    rows, heads = wrapped([HEAD + b"word " * 8] * 3, 200)
    long = HEAD + b"another " * 30
    for _ in range(pieces):
        heads.append(len(rows))
        rows += wrapped([long], 200)[0]
    assert len(rows) == 3 + 2 * pieces
    found = unwrapped(rows, heads, lambda text: int(text == long))
    assert found.texts == (rows if pieces < 2 else [*rows[:3], long, long])


def test_lines_in_no_layout_that_had_room_before_them_are_not_pieces():
    rows = [HEAD + b"a" * 28, b"more", b"more", b"more", b"more", HEAD + b"a" * 28, b"rest", HEAD + b"b" * 28, b"rest"]
    assert unwrapped(rows, [0, 5, 7]).texts == rows


@pytest.mark.parametrize(
    ("length", "text", "full", "glue"),
    [
        (60, b"rest", b"", b""),
        (61, b"rest", b"", b""),
        (60, b"rest", b" ", b" "),
        (59, b"rest", b"", b" "),
        (55, b"rest", b"", None),
        (56, b"rest", b"", b" "),
        (56, b" rest of", b"", b" "),
        (55, b" rest of", b"", None),
        (4, b"x" * 60, b"", b" "),
        (3, b"x" * 60, b"", None),
        (56, "\u00e9\u00e9\u00e9\u00e9".encode(), b"", b" "),
        (55, "\u00e9\u00e9\u00e9\u00e9".encode(), b"", None),
    ],
)
def test_what_was_between_a_line_and_its_next_piece(length, text, full, glue):
    assert entry_lines._glue(length, text, entry_lines._Way(60, full, True)) == glue


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (b" x", True),
        (b"x", False),
        (b"  x", False),
        (b" ", False),
        (b"", False),
        (b" at x", False),
        (b"  at x", False),
        (b" ... 5 more", False),
    ],
)
def test_rows_that_begin_with_one_blank(text, begins):
    assert entry_lines._begins_with_blank(text) is begins


@pytest.mark.parametrize(
    ("line", "joined"),
    [(b"plain", False), (b"a\\nb", True), (b"a#012b", True), (b"an Exception", True), (b"exception", False)],
)
def test_lines_that_may_be_several(line, joined):
    assert is_joined(line) is joined


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (b"plain", [b"plain"]),
        (b"a\\nb", [b"a", b"b"]),
        (b"a\\r\\nb", [b"a", b"b"]),
        (b"a#012b", [b"a", b"b"]),
        (b"a#015#012b", [b"a", b"b"]),
        (b"a\\n\\tat x", [b"a", b"\tat x"]),
        (b"a#012#011at x", [b"a", b"\tat x"]),
        (b"text org.apache.kafka.common.errors.TimeoutException: late", [b"text", b"org.apache.kafka.common.errors.TimeoutException: late"]),
        (b"text kafka.TimeoutException: late", [b"text kafka.TimeoutException: late"]),
        (b"a at kafka.log.Log.append(Log.scala:12) at java.lang.Thread.run(Thread.java:1)", [b"a", b"at kafka.log.Log.append(Log.scala:12)", b"at java.lang.Thread.run(Thread.java:1)"]),
        (b"a at noon", [b"a at noon"]),
        (b"a Caused by: b", [b"a", b"Caused by: b"]),
        (b"a\tSuppressed: b", [b"a", b"Suppressed: b"]),
    ],
)  # fmt: skip
def test_lines_that_a_collector_joined(line, pieces):
    assert separated([line]) == pieces
    assert separated([b"first", line]) == [b"first", *pieces]
