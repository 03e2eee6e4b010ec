"""What stands around the lines of a text is learned from its beginning, and taken away from all of it."""

import json
import re

import pytest
from msgspec.structs import replace

from kaudit.formats.plain_text.forms import PLAIN, TextForm, encoding_of, form_of, learn_prefix, plain_block

START = re.compile(rb"offset: [0-9]")
LINE = b"offset: 5 x"


def prefix_of(*prefixes):
    return learn_prefix([each + LINE for each in prefixes], START)


@pytest.mark.parametrize(
    ("prefixes", "alike", "others"),
    [
        ([b"> ", b"> "], [b"> "], [b"", b">> ", b"* "]),
        ([b"> > ", b"> > "], [b"> > "], [b"> "]),
        ([b"   1  ", b"  10  "], [b"   7  ", b" 123  ", b"1234  "], [b"   x  "]),
        ([b"a.txt:1:", b"a.txt:2:"], [b"a.txt:99:"], [b"b.txt:9:", b"a.txt:x:"]),
        ([b"a.txt:", b"b.txt:"], [b"zz.txt:", b"9.txt:"], [b"a-b.txt:"]),
        ([b"[pod/k-0] ", b"[pod/k-1] "], [b"[pod/k-7] "], [b"[pod/k-x] ", b"{pod/k-7} "]),
        ([b"\t", b"\t"], [b"\t"], [b""]),
        ([b"a \t", b"a  "], [b"a ", b"a\t\t"], [b"b "]),
        ([b"  a: ", b"  a: "], [b"  a: "], [b" a: ", b"   a: "]),
        ([b"  a: ", b" bb: "], [b"   c: ", b"d: "], [b"-c: "]),
        (["1\u2502".encode(), "2\u2502".encode()], ["33\u2502".encode()], [b"33|", "3\u2503".encode()]),
    ],
)
def test_what_stands_before_each_line(prefixes, alike, others):
    learned = prefix_of(*prefixes)
    assert learned is not None
    for prefix in (*prefixes, *alike):
        found = re.match(learned, prefix + LINE)
        assert found is not None, prefix
        assert found[0] == prefix or not prefix.strip(), prefix
    for prefix in others:
        found = re.match(learned, prefix + LINE)
        assert found is None or found[0] != prefix or not prefix, prefix


@pytest.mark.parametrize("prefix", [b"> ", b"12  ", b"  "])
def test_a_line_that_has_nothing_else_may_lack_the_blanks_before_it(prefix):
    learned = prefix_of(prefix, prefix)
    assert learned is not None
    assert re.sub(b"^(?:" + learned + b")", b"", prefix.rstrip(), flags=re.MULTILINE) == b""


@pytest.mark.parametrize(
    ("lines", "learned"),
    [
        ([], False),
        ([LINE] * 4, False),
        ([b"text"] * 4, False),
        ([b"> " + LINE, LINE], False),
        ([b"> " + LINE, b"> " + LINE, LINE], True),
        ([b"> " + LINE, b"no start", b"none"], True),
        # only the beginning of a line is looked at
        ([b" " * 300 + LINE], True),
        ([b" " * 301 + LINE], False),
        ([b">" * 300 + LINE], True),
        # of the lines, the first 256
        ([LINE] * 256 + [b"> " + LINE] * 1000, False),
        ([LINE] * 127 + [b"> " + LINE] * 129 + [LINE] * 1000, True),
        ([LINE] * 128 + [b"> " + LINE] * 128 + [b"> " + LINE] * 1000, False),
    ],
)
def test_what_most_lines_have_not_is_not_before_them(lines, learned):
    assert (learn_prefix(lines, START) is not None) is learned


def test_of_several_shapes_the_most_frequent_is_learned():
    assert prefix_of(b"> ", b"> ", b"* ") == prefix_of(b"> ", b"> ")
    assert prefix_of(b"* ", b"> ", b"* ") == prefix_of(b"* ", b"* ")


ASCII = b"offset: 5 of many letters\n" * 9


@pytest.mark.parametrize(
    ("head", "encoding", "mark"),
    [
        (b"", "utf-8", 0),
        (ASCII, "utf-8", 0),
        (b"\xef\xbb\xbf" + ASCII, "utf-8", 3),
        (b"\xff\xfe", "utf-16-le", 2),
        (b"\xfe\xff", "utf-16-be", 2),
        (ASCII.decode().encode("utf-16-le"), "utf-16-le", 0),
        (ASCII.decode().encode("utf-16-be"), "utf-16-be", 0),
        (ASCII.decode().encode("utf-16-le")[:-1], "utf-16-le", 0),
        (b"\0", "utf-8", 0),
        (bytes(100), "utf-8", 0),
        (b"ab\0\0" * 20, "utf-8", 0),
        # three of four second bytes have to be zeros, and no fourth of the first ones
        (b"a\0" * 12 + b"ab" * 4, "utf-8", 0),
        (b"a\0" * 13 + b"ab" * 3, "utf-16-le", 0),
        (b"\0a" * 13 + b"ab" * 3, "utf-16-be", 0),
        (b"\0a" * 12 + b"ab" * 4, "utf-8", 0),
        (b"a\0" * 13 + b"\0\0" * 2 + b"ab", "utf-16-le", 0),
        (b"a\0" * 13 + b"\0\0" * 3, "utf-8", 0),
        (b"\0a" * 13 + b"\0\0" * 2 + b"ab", "utf-16-be", 0),
        (b"\0a" * 13 + b"\0\0" * 3, "utf-8", 0),
    ],
)
def test_encodings(head, encoding, mark):
    assert encoding_of(head) == (encoding, mark)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", PLAIN),
        (LINE + b"\n", PLAIN),
        (LINE + b"\r\n", TextForm(line_end="\r\n")),
        (LINE + b"\r\n" + LINE + b"\n", PLAIN),
        (LINE + b"\r" + LINE, TextForm(line_end="\r")),
        (b"\xef\xbb\xbf" + LINE, TextForm(mark=3)),
        (LINE.replace(b" ", b"\xc2\xa0"), TextForm(fixed_blanks=True)),
        (LINE + b"\n" + LINE.replace(b" ", b"\xc2\xa0"), PLAIN),
        (b"\x1b[36m" + LINE + b"\x1b[0m", TextForm(colours=True)),
        (b"x\x1b[36m" + LINE, TextForm(prefix=b"x\x1b\\[36m")),
        (json.dumps({"message": LINE.decode()}).encode(), TextForm(member=("message",))),
        (json.dumps({"a": {"b": [0, LINE.decode()]}}).encode(), TextForm(member=("a", "b", 1))),
        (json.dumps({"log": json.dumps({"m": LINE.decode()})}).encode(), TextForm(member=("log", "", "m"))),
        (json.dumps({"m": "\x1b[1m" + LINE.decode()}).encode(), TextForm(member=("m",), colours=True)),
        (json.dumps({"m": "> " + LINE.decode()}).encode(), TextForm(member=("m",), prefix=learn_prefix([b"> " + LINE], START) or b"")),
        (b"prefix " + json.dumps({"message": LINE.decode()}).encode() + b",", TextForm(member=("message",))),
        (b"x" * 400 + json.dumps({"message": LINE.decode()}).encode(), PLAIN),
        (b"x" * 65_536 + b"\r\n" + LINE, PLAIN),
        (b"x" * 65_534 + b"\r\n" + LINE, TextForm(line_end="\r\n")),
    ],
)  # fmt: skip
def test_forms(text, expected):
    found = form_of(text, START)
    if not expected.prefix and not expected.colours:
        found = replace(found, prefix=b"")
    assert found == expected


@pytest.mark.parametrize(("depth", "found"), [(7, True), (8, False)])
def test_json_in_json_is_followed_eight_levels(depth, found):
    held: object = LINE.decode()
    for _ in range(depth + 1):
        held = {"a": held}
    assert bool(form_of(json.dumps(held).encode(), START).member) is found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_line_ends_in_the_texts_own_bytes(encoding):
    form = TextForm(encoding=encoding, line_end="\r\n")
    assert form.encoded_line_end == "\n".encode(encoding)
    assert form.unit == len(form.encoded_line_end)
    assert TextForm(encoding=encoding, line_end="\r").encoded_line_end == "\r".encode(encoding)


@pytest.mark.parametrize(
    ("form", "block", "plain"),
    [
        (PLAIN, b"a\nb\n", b"a\nb\n"),
        (PLAIN, b"\xef\xbb\xbfa\n", b"a\n"),
        (TextForm(line_end="\r\n"), b"a\r\nb\r\n", b"a\nb\n"),
        (TextForm(line_end="\r"), b"a\rb", b"a\nb"),
        (TextForm(encoding="utf-16-le"), "\u00e9\nb".encode("utf-16-le"), "\u00e9\nb".encode()),
        (TextForm(encoding="utf-16-be"), "\u00e9\r".encode("utf-16-be"), "\u00e9\r".encode()),
        (TextForm(colours=True), b"\x1b[36ma\x1b[0m \x1b]0;title\x07b", b"a b"),
        (PLAIN, b"\x1b[36ma", b"\x1b[36ma"),
        (TextForm(fixed_blanks=True), b"a\xc2\xa0b", b"a b"),
        (PLAIN, b"a\xc2\xa0b", b"a\xc2\xa0b"),
        (TextForm(prefix=rb"> "), b"> a\n>b\n> > c\n> ", b"a\n>b\n> c\n"),
        (TextForm(member=("m",)), b'{"m":"a\\r\\n"}\n{"n":"b"}\nc', b'a\n{"n":"b"}\nc'),
        (TextForm(member=("m", "", "n")), b'{"m":"{\\"n\\":\\"a\\"}"}\n{"m":"b"}\n{"m":5}', b'a\n{"m":"b"}\n{"m":5}'),
        (
            TextForm(member=("m", 1)),
            b'{"m":["a","b"]}\n{"m":["a"]}\n{"m":{"1":"c"}}',
            b'b\n{"m":["a"]}\n{"m":{"1":"c"}}',
        ),
    ],
)
def test_plain_text(form, block, plain):
    assert plain_block(block, form) == plain


def test_a_part_of_a_line_is_left_as_it_is():
    form = TextForm(prefix=rb"> ", colours=True)
    assert plain_block(b"> \x1b[1ma\n> b\n> c", form, begins_line=False) == b"> \x1b[1ma\nb\nc"
    assert plain_block(b"> a", form, begins_line=False) == b"> a"
