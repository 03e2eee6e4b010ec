"""What is at a path of a JSON value, and which values are the same: RFC 8259, and for numbers decimal arithmetic."""

from decimal import Decimal
from itertools import combinations

import pytest

from kaudit.formats.payloads.json_values import MISSING, PayloadError, canonical, decode_json, value_at

TREE = {"a": {"b": [0, {"c": None}, "x"]}, "1": "named", "": 5}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ([], TREE),
        (["a", "b", "0"], 0),
        (["a", "b", "1"], {"c": None}),
        (["a", "b", "1", "c"], None),
        (["a", "b", "2"], "x"),
        (["a", "b", "00000002"], "x"),
        (["1"], "named"),
        ([""], 5),
        (["a", "b", "3"], MISSING),
        (["a", "b", "-1"], MISSING),
        (["a", "b", "1.0"], MISSING),
        (["a", "b", ""], MISSING),
        (["a", "b", "000000002"], "x"),
        (["a", "b", "0000000002"], MISSING),
        (["a", "b", "2", "0"], MISSING),
        (["a", "no"], MISSING),
        (["no", "b"], MISSING),
    ],
)
def test_what_lies_at_a_path(path, value):
    found = value_at(TREE, path)
    assert found is value if value is MISSING else found == value


NUMBERS = ["0", "1", "-1", "10", "-10", "11", "100", "110", "0.1", "0.01", "0.11", "1.1", "1e20", "1.1e20", "12e-7", "-12e-7",
           "1e999999999", "1e-999999999", "18446744073709551616", "18446744073709551617", "9" * 4300]  # fmt: skip
DISTINCT = [
    *(decode_json(text.encode()) for text in NUMBERS),
    *(None, True, False, "", "0", "n", "é", b"", b"0", b"\xc3\xa9"),
    *([], [[]], [[], []], [1], [1, 0], [0, 1], [[1], 0], ["ab"], ["a", "b"], [None]),
    *({}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": {"b": 1}}, {"a": 1, "b": 1}, {"a": [1]}),
    *(float("nan"), float("inf"), float("-inf"), "NaN", "Infinity"),
]


def test_values_that_differ_are_spelled_differently():
    for one, other in combinations(DISTINCT, 2):
        assert canonical(one) != canonical(other), (one, other)
    assert canonical([DISTINCT]) == canonical([list(DISTINCT)])


@pytest.mark.parametrize("text", NUMBERS[:-1])
def test_numbers_are_spelled_by_their_value(text):
    value = Decimal(text)
    shifted = value.as_tuple()
    assert isinstance(shifted.exponent, int)
    same = [Decimal((shifted.sign, (0, *shifted.digits, *[0] * more), shifted.exponent - more)) for more in (0, 1, 7)]
    assert {canonical(each) for each in [*same, decode_json(text.encode())]} == {canonical(value)}


def test_floats_are_the_numbers_that_they_hold():
    assert canonical(0.5) == canonical(Decimal("0.5"))
    assert canonical(1e3) == canonical(1000)
    assert canonical(0.1) != canonical(Decimal("0.1"))
    assert canonical(-0.0) == canonical(0)


def test_a_text_that_is_no_unicode_is_spelled_too():
    assert canonical("\ud800") != canonical("\ud801")


def test_what_is_nested_too_deeply_is_refused():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(PayloadError, match="nested too deeply"):
        canonical(value)
