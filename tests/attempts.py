"""Attempts from the dictionaries that lines of attempts are."""

from msgspec import Struct, convert

from kaudit.broker.attempts import Attempt


class _Line(Struct):
    """msgspec keeps what it knows of a struct, not of a union: that would be made again for each attempt."""

    attempt: Attempt


def attempt_of(fields):
    """The attempt of a line's fields."""
    return convert({"attempt": fields}, _Line).attempt
