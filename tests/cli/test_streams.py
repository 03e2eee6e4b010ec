"""How pieces of a result become system calls."""

import pytest

from kaudit.cli import streams


@pytest.mark.parametrize(("pieces", "blocks"), [
    ([], [""]),
    (["ab"], ["ab"]),
    (["ab", "c"], ["abc"]),
    (["ab", "cd"], ["abcd", ""]),
    (["ab", "cde", "f"], ["abcde", "f"]),
    (["abcdefghi", "", "j"], ["abcdefghi", "j"]),
    (["abc", "d", "efg", "hi", "j"], ["abcd", "efghi", "j"]),
])  # fmt: skip
def test_pieces_are_joined_until_they_are_worth_a_system_call(pieces, blocks, monkeypatch):
    monkeypatch.setattr(streams, "_BLOCK", 4)
    assert list(streams._blocks(pieces)) == blocks


def test_a_block_is_handed_on_as_soon_as_it_is_full(monkeypatch):
    monkeypatch.setattr(streams, "_BLOCK", 4)
    taken = []

    def pieces():
        for piece in ("abc", "def", "ghi"):
            taken.append(piece)
            yield piece

    assert next(streams._blocks(pieces())) == "abcdef"
    assert taken == ["abc", "def"]
