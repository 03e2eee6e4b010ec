"""Option values that need no conversion to speak of: text, an exact value of an enum, plain decimal numbers."""

import enum
from typing import Any, Final

LEAVE: Final = object()
"""Not a simple value."""
_MAX_DIGITS = 18


def plain_value(value: object, annotation: object, least: Any, most: Any) -> object:  # noqa: ANN401 - as typer has them
    """Return a value as an option of this type takes it, LEAVE where it is not simple or not within the bounds."""
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return next((member for member in annotation if value is member or value == member.value), LEAVE)
    if type(value) is not str:
        return LEAVE
    if annotation is str:
        return value
    if annotation is int and len(value) <= _MAX_DIGITS and value.isascii() and value.isdecimal():
        number = int(value)
        if (least is None or number >= least) and (most is None or number <= most):
            return number
    return LEAVE
