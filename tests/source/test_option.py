"""Options declared at fields: what a typed value becomes, and numbers, times and spans at their bounds."""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import pytest
from msgspec import Struct

from kaudit.errors import UsageError
from kaudit.source.option import (
    Option,
    check_int64,
    declared_fields,
    parse_duration,
    parse_int64,
    parse_int64s,
    parse_time,
)

LARGEST = 2**63 - 1


class Colour(Enum):
    RED = "red"


class Inner(Struct, frozen=True):
    deep: Annotated[int | None, Option("deep", "", least=0)] = None


class Outer(Struct, frozen=True, kw_only=True):
    text: Annotated[str, Option("text", "")] = "x"
    needed: Annotated[str, Option("needed", "")]
    maybe: Annotated[str | None, Option("maybe", "")] = None
    flag: Annotated[bool, Option("flag", "")] = False
    colour: Annotated[Colour, Option("colour", "")] = Colour.RED
    many: Annotated[Sequence[str], Option("many", "")] = ()
    numbers: Annotated[Sequence[int], Option("numbers", "", least=0)] = ()
    count: Annotated[int, Option("count", "", least=1)] = 3
    from_ms: Annotated[int | None, Option("from-time", "", parse=parse_time)] = None
    window_ms: Annotated[int | None, Option("window", "", parse=parse_duration)] = None
    inner: Inner = Inner()
    plain: int = 5
    other: Annotated[int, "no option"] = 5


FIELDS = {each.option.name: each for each in declared_fields(Outer)}


def test_the_options_of_a_struct_and_of_those_in_it():
    assert list(FIELDS) == [
        "text",
        "needed",
        "maybe",
        "flag",
        "colour",
        "many",
        "numbers",
        "count",
        "from-time",
        "window",
        "deep",
    ]
    assert (FIELDS["deep"].path, FIELDS["text"].path) == (("inner", "deep"), ("text",))


@pytest.mark.parametrize(
    ("name", "keyword", "typed", "default"),
    [
        ("text", "text", str, "x"),
        ("needed", "needed", str | None, None),
        ("maybe", "maybe", str | None, None),
        ("flag", "flag", bool, False),
        ("colour", "colour", Colour, Colour.RED),
        ("many", "many", list[str] | None, None),
        ("numbers", "numbers", list[int] | None, None),
        ("count", "count", int, 3),
        ("from-time", "from_time", str | None, None),
        ("window", "window", str | None, None),
        ("deep", "deep", int | None, None),
    ],
)
def test_what_is_typed_for_a_field(name, keyword, typed, default):
    field = FIELDS[name]
    assert (field.keyword, field.typed_as, field.typed_default) == (keyword, typed, default)


def test_what_a_typed_value_becomes():
    assert FIELDS["window"].parsed("90s") == 90_000
    assert FIELDS["text"].parsed("90s") == "90s"
    with pytest.raises(UsageError, match=r"^--window 90: not a span of time"):
        FIELDS["window"].parsed("90")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        (str(LARGEST), LARGEST),
        (str(LARGEST + 1), None),
        ("0" * 18 + "7", 7),
        ("0" * 19 + "7", None),
        ("9" * 5000, None),
    ],
)
def test_numbers_of_64_bits(text, value):
    if value is None:
        with pytest.raises(
            UsageError, match=rf"^--x {text[:20]}: larger than any there can be \(9223372036854775807\)$"
        ):
            parse_int64(text, "--x")
    else:
        assert parse_int64(text, "--x") == value


def test_lists_of_numbers():
    check_int64([None, 0, LARGEST], "--x")
    assert parse_int64s([1, LARGEST], "--x") == [1, LARGEST]
    assert parse_int64s(LARGEST, "--x") == LARGEST
    assert parse_int64s(None, "--x") is None
    for wrong in ([1, LARGEST + 1], LARGEST + 1):
        with pytest.raises(UsageError, match=f"^--x {LARGEST + 1}: larger"):
            parse_int64s(wrong, "--x")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (None, None),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.2344", 1234),
        ("1970-01-01T00:00:01.2346", 1235),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59Z", -1000),
        ("123456789", 123_456_789),
        ("20261128", 1_795_824_000_000),
        (str(LARGEST), LARGEST),
    ],
)
def test_times(text, ms):
    assert parse_time(text, "--x") == ms


@pytest.mark.parametrize("text", ["", "noon", "1970-13-01", "12345678", str(LARGEST + 1)])
def test_what_is_no_time(text):
    with pytest.raises(UsageError, match=f"^--x {text}: "):
        parse_time(text, "--x")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (None, None),
        ("0s", 0),
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("12h", 43_200_000),
        ("7d", 604_800_000),
        ("999999999d", 999_999_999 * 86_400_000),
    ],
)
def test_spans_of_time(text, ms):
    assert parse_duration(text, "--x") == ms


@pytest.mark.parametrize("text", ["", "s", "90", "90w", "-9s", "1.5h", "9 s", "1000000000s", "\u0663s", "9ss"])
def test_what_is_no_span_of_time(text):
    with pytest.raises(UsageError, match=r"not a span of time; write 90s, 30m, 12h or 7d$"):
        parse_duration(text, "--x")
