"""Documents of TOML are bounded in size and depth."""

import tomllib

import pytest

from kaudit.formats.toml import MAX_CHARACTERS, parse_toml


def test_a_document_of_the_most_characters_is_read_and_of_one_more_refused():
    assert MAX_CHARACTERS == 1_048_576
    longest = 'a = "' + "x" * (MAX_CHARACTERS - 6) + '"'
    assert parse_toml(longest) == {"a": "x" * (MAX_CHARACTERS - 6)}
    with pytest.raises(tomllib.TOMLDecodeError, match="longer than 1,048,576 characters"):
        parse_toml(longest + "\n")


def test_what_is_nested_too_deeply_is_refused():
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        parse_toml("a = " + "[" * 100_000)
