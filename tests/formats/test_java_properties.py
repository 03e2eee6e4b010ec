import pytest

from kaudit.formats.errors import WireError
from kaudit.formats.java_properties import parse_properties


# the rules are those of java.util.Properties.load
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb: 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("# no\n! no\n\n  a = 1\n", {"a": "1"}),
        ("a=one\\\n   two", {"a": "onetwo"}),
        ("a\\=b=c\\\\d", {"a=b": "c\\d"}),
        ("a=\\u00e9\\t\\n", {"a": "é\t\n"}),
        ("a=1\na=2", {"a": "2"}),
        ("alone", {"alone": ""}),
        ("path=C:\\\\x", {"path": "C:\\x"}),
        ("a=x\\", {"a": "x"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text, expected):
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "\\u=1", "a=\\ud83d", "a=\\ude00\\ud83d"])
def test_escapes_that_are_no_character(text):
    with pytest.raises(WireError):
        parse_properties(text)


def test_a_pair_of_surrogates_is_one_character():
    assert parse_properties("a=\\ud83d\\ude00") == {"a": "\U0001f600"}
