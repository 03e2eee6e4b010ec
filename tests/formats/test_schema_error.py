"""Where and how a document does not fit its schema, in words a person who wrote it by hand understands."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct, field

from kaudit.formats.schema_error import describe_misfit, shown


class Crash(Struct, tag="crash", tag_field="kind", forbid_unknown_fields=True):
    at: Annotated[int, Meta(ge=0, le=9)]
    share: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.5


class Delay(Struct, tag="delay", tag_field="kind", forbid_unknown_fields=True, rename={"between": "range"}):
    between: tuple[Annotated[int, Meta(ge=1, le=5)], Annotated[int, Meta(ge=1, le=5)]]


class Document(Struct, forbid_unknown_fields=True):
    name: str
    faults: list[Crash | Delay] = field(default_factory=list)
    mode: Literal["fast", "slow"] = "fast"
    quiet: bool = False
    inner: Delay | None = None
    words: tuple[str, ...] = ()


NAMED = {"name": "x"}


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        ({}, "name", "a string, not nothing"),
        ({"name": 5}, "name", "a string, not 5"),
        ([], "", "an object, not []"),
        (NAMED | {"modes": 1}, "modes", "no such key, mode is one; known are faults, inner, mode, name, quiet, words"),
        (NAMED | {"zzz": 1}, "zzz", "no such key; known are faults, inner, mode, name, quiet, words"),
        (NAMED | {"mode": "medium"}, "mode", 'one of fast, slow, not "medium"'),
        (NAMED | {"quiet": 1}, "quiet", "true or false, not 1"),
        (NAMED | {"words": "all"}, "words", 'a list, each item a string, not "all"'),
        (NAMED | {"words": ["a", 5]}, "words[1]", "a string, not 5"),
        (NAMED | {"faults": {}}, "faults", "a list, each item an object, not {}"),
        (NAMED | {"faults": [{"kind": "crash", "at": 10}]}, "faults[0].at", "an integer from 0 to 9, not 10"),
        (NAMED | {"faults": [{"kind": "crash"}]}, "faults[0].at", "an integer from 0 to 9, not nothing"),
        (
            NAMED | {"faults": [{"kind": "crash", "at": 1, "share": 2}]},
            "faults[0].share",
            "a number from 0 to 1, not 2",
        ),
        (
            NAMED | {"faults": [{"kind": "crash", "at": 1}, {"kind": "delay", "range": [1, 9]}]},
            "faults[1].range[1]",
            "an integer from 1 to 5, not 9",
        ),
        (
            NAMED | {"faults": [{"kind": "delay", "range": 3}]},
            "faults[0].range",
            "[low, high], each an integer from 1 to 5, not 3",
        ),
        (
            NAMED | {"faults": [{"kind": "delay", "rang": [1, 2]}]},
            "faults[0].rang",
            "no such key, range is one; known are range",
        ),
        (NAMED | {"faults": [{"kind": "storm"}]}, "faults[0].kind", 'one of crash, delay, not "storm"'),
        (NAMED | {"faults": [{"at": 1}]}, "faults[0].kind", "one of crash, delay, not nothing"),
        (NAMED | {"inner": {"kind": "delay", "range": [0, 1]}}, "inner.range[0]", "an integer from 1 to 5, not 0"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place_and_what_is_expected_there(document, path, expected):
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(document, Document)
    assert describe_misfit(caught.value, document, Document) == (path, expected)


def test_a_member_of_a_union_is_known_by_its_tag():
    document = {"kind": "delay", "range": [9, 1]}
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(document, Crash | Delay)
    assert describe_misfit(caught.value, document, Crash | Delay) == ("range[0]", "an integer from 1 to 5, not 9")


def test_sixty_characters_of_a_value_are_shown():
    assert shown("x" * 58) == '"' + "x" * 58 + '"'
    assert shown("x" * 59) == '"' + "x" * 59 + "..."
