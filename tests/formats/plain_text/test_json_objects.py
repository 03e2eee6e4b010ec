"""Objects of JSON that take several rows: as Python's json prints them with indents, and as rows of a width hold them."""

import json

import pytest

from kaudit.formats.plain_text.json_objects import ObjectRows, columns, object_rows

ENTRIES = [{"ts": 1, "message": "first line"}, {"a": {"b": [1, {}]}, "message": "second"}, {"message": "third"}]


def worth(line):
    return line.count(b'"message"')


def printed(value, indent=2, lead=""):
    return [(lead + line).encode() for line in json.dumps(value, indent=indent).split("\n")]


def rows_of(line, width):
    return [line[at : at + width] for at in range(0, len(line), width)]


def parsed(lines):
    return [json.loads(line) for line in lines if line.startswith(b"{")]


@pytest.mark.parametrize("indent", [1, 2, 4])
def test_printed_objects_become_one_line_each_in_the_place_of_their_first(indent):
    lines = [line for entry in ENTRIES for line in printed(entry, indent)]
    form = object_rows(lines, worth)
    assert form == ObjectRows(b"")
    joined = form.joined(lines)
    assert len(joined) == len(lines)
    assert parsed(joined) == ENTRIES
    starts = [sum(len(printed(entry, indent)) for entry in ENTRIES[:number]) for number in range(3)]
    assert [at for at, line in enumerate(joined) if line] == starts
    assert joined[starts[2]] == b'{"message": "third"}'
    assert joined[starts[0]] == b'{"ts": 1, "message": "first line"}'


@pytest.mark.parametrize("indent", [2, 4])
def test_objects_of_an_array(indent):
    lines = printed(ENTRIES, indent)
    form = object_rows(lines, worth)
    assert form == ObjectRows(b" " * indent)
    joined = form.joined(lines)
    assert (len(joined), parsed(joined)) == (len(lines), ENTRIES)
    assert (joined[0], joined[-1]) == (b"[", b"]")


@pytest.mark.parametrize("comma", [b"},{", b"} , {", b"}, {"])
def test_objects_whose_braces_share_a_line(comma):
    lines = [b"[{", b'  "message": "a"', comma, b'  "message": "b"', b"}]"]
    form = object_rows(lines, worth)
    assert form == ObjectRows(b"")
    assert form.joined(lines) == [b'{"message": "a"}', b"", b'{"message": "b"}', b"", b""]


def test_an_object_in_a_named_array():
    lines = [b'"hits": [{', b'  "message": "a"', b"}]", b"text"]
    assert ObjectRows(b"").joined(lines) == [b'{"message": "a"}', b"", b"", b"text"]


@pytest.mark.parametrize(
    ("last", "joined"),
    [
        # what lacks its last brace is one that was not given
        ([b'"message": "a"'], [b'{"message": "a"}', b""]),
        ([b'"message": "a",'], [b"{", b'"message": "a",']),
        ([b'"b": {'], [b"{", b'"b": {']),
        ([b'"b": ['], [b"{", b'"b": [']),
        ([b'"b":'], [b"{", b'"b":']),
    ],
)
def test_an_object_at_the_end_of_what_was_given(last, joined):
    assert ObjectRows(b"").joined([b"{", *last]) == joined


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ([b'"a": [', b"1,", b"2", b"]"], b'{"a": [1, 2]}'),
        ([b'"a": {', b'"b": {}', b"  },", b'"c": 1'], b'{"a": {"b": {}}, "c": 1}'),
        ([b"", b'"a": 1', b""], b'{"a": 1}'),
    ],
)
def test_how_a_line_is_written(parts, line):
    assert ObjectRows(b"").joined([b"{", *parts, b"}"])[0] == line


def test_lines_that_are_no_objects_stay():
    lines = [b"text", b"{", b'  "message": "a"', b"}", b"", b"  {", b"    more", b"  }"]
    assert ObjectRows(b"").joined(lines) == [b"text", b'{"message": "a"}', b"", b"", b"", b"  {", b"    more", b"  }"]
    assert ObjectRows(b"  ").joined(lines)[5:] == [b"{more}", b"", b""]
    assert object_rows([b"text", b"{", b'  "other": 1', b"}"], worth) is None
    assert object_rows([], worth) is None


LONG = [
    json.dumps({"ts": number, "message": "wrapped " * 12, "x": ["{", {"y": "}"}]}, separators=(",", ":")).encode()
    for number in range(4)
]


@pytest.mark.parametrize("width", [40, 61, 100])
@pytest.mark.parametrize("strip", [False, True])
def test_wrapped_objects_become_one_line_each(width, strip):
    rows = [row.rstrip() if strip else row for line in LONG for row in rows_of(line, width)]
    form = object_rows(rows, worth)
    assert form is not None
    assert form.indent == b""
    joined = form.joined(rows)
    assert len(joined) == len(rows)
    assert parsed(joined) == [json.loads(line) for line in LONG]
    assert form.width == width


def test_rows_of_a_line_broken_at_blanks_get_these_back():
    rows = [row for line in LONG for row in line.replace(b"wrapped ", b"wrapped\n").rstrip(b"\n").split(b"\n")]
    form = object_rows(rows, worth)
    assert form == ObjectRows(width=0)
    assert parsed(form.joined(rows)) == [json.loads(line) for line in LONG]


@pytest.mark.parametrize(("row", "count"), [(b"", 0), (b"abc", 3), ("\u00e9\u20ac".encode(), 2), (b"\xff", 1)])
def test_columns_of_a_row(row, count):
    assert columns(row) == count


@pytest.mark.parametrize(("count", "is_one"), [(8, True), (9, False)])
def test_an_object_is_looked_for_at_eight_of_its_braces(count, is_one):
    rows = [b'{"message":["', *[b"}"] * (count - 1), b'"]}']
    form = ObjectRows(width=1)
    assert (b"".join(row.strip() for row in form.joined(rows)).count(b"}") == count, len(form.joined(rows))) == (
        True,
        len(rows),
    )
    assert form.joined(rows)[1:] == ([b""] * (len(rows) - 1) if is_one else rows[1:])


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b"", 0),
        (b"{\n 1\n}\n", 7),
        (b"{\n 1\n}\n{\n 2\n", 7),
        (b"[{\n 1\n},{\n 2\n", 6),
        (b"text\n", 0),
        (b"{\n 1\n},\nx\n", 8),
        (b"\n}\n" + b"x" * (1 << 20), 3),
        (b"\n}\n" + b"x" * ((1 << 20) + 1), 0),
    ],
)
def test_where_the_last_printed_object_ends(text, end):
    assert ObjectRows(b"").end_of(text) == end


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b"", 0),
        (b'{"a":1}\n{"b":2}\n', 8),
        (b'{"a":1}\n{"b":2}\n[{"c":3}\n', 16),
        (b'{"a":\n{"b":2}}\n', 0),
        (b'{"a":[ \n{"b":2}]}\n', 0),
        (b'{"a":[1, \n{"b":2}]}\n', 0),
        (b'{"a":{}, \n{"b":2}\n', 10),
        (b'{"a":1}\nnext\n', 0),
    ],
)
def test_where_the_last_wrapped_object_begins(text, end):
    assert ObjectRows(width=80).end_of(text) == end
