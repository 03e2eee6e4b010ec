"""Attempts from the dictionaries that lines of attempts are."""

import msgspec

from kaudit.broker.attempts import Attempt


def attempt_of(fields):
    """The attempt of a line's fields."""
    return msgspec.convert(fields, Attempt)
