"""Keys and values as text: what is cut, and where a cut may go."""

import pytest

from kaudit.inspect.rows import BytesForm, BytesFormatter

AUTO, HEX, UTF8 = BytesForm.AUTO, BytesForm.HEX, BytesForm.UTF8
SMILE = "\N{SLIGHTLY SMILING FACE}".encode()


@pytest.mark.parametrize(
    ("form", "limit", "data", "text", "encoding", "truncated"),
    [
        (AUTO, None, b"abc", "abc", "utf8", False),
        (AUTO, 3, b"abc", "abc", "utf8", False),
        (AUTO, 2, b"abc", "ab", "utf8", True),
        (AUTO, 0, b"a", "", "utf8", True),
        (AUTO, 0, b"", "", "utf8", False),
        (AUTO, None, b"a\xff", "61ff", "hex", False),
        # a cut through a character leaves out the character; bytes that end in one are no text
        (AUTO, 4, b"ab" + SMILE, "ab", "utf8", True),
        (AUTO, None, b"ab" + SMILE[:2], "6162f09f", "hex", False),
        (AUTO, 4, b"ab" + SMILE[:2], "6162f09f", "hex", False),
        (AUTO, 2, b"\xffabc", "ff61", "hex", True),
        (HEX, 2, b"abc", "6162", "hex", True),
        (HEX, None, b"abc", "616263", "hex", False),
        (UTF8, None, b"a\xff", "a\ufffd", "utf8", False),
        (UTF8, 1, b"a\xff", "a", "utf8", True),
    ],
)
def test_how_bytes_are_shown(form, limit, data, text, encoding, truncated):
    shown = BytesFormatter(form, limit).show(data)
    assert shown == {"text": text, "encoding": encoding, "size": len(data), "truncated": truncated}


def test_no_bytes_are_no_text():
    assert BytesFormatter(limit=0).show(None) is None
