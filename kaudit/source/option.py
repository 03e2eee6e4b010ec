"""The declaration of an option, where the field lies that it sets: the command line, kaudit.toml and kaudit.scan derive from it."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from kaudit.errors import UsageError

_INT64_MAX, _INT64_DIGITS = 2**63 - 1, 19


class Option(Struct, frozen=True):
    """What --help says of a field, and how a typed value becomes the field's.

    `name` is the option without dashes, which is the key in kaudit.toml too; `least` the least number it takes. `parse` takes the
    value and what to call the option in a message; it raises UsageError.
    """

    name: str
    help: str
    metavar: str | None = None
    least: int | None = None
    parse: Callable[[Any, str], Any] | None = None


def options_of(*structs: type[Struct]) -> dict[str, tuple[str, Option]]:
    """Return the fields of structs that are annotated with an option, and the options, by the option's name."""
    found: dict[str, tuple[str, Option]] = {}
    for struct in structs:
        for field in fields(struct):
            for option in get_args(field.type)[1:]:
                if isinstance(option, Option):
                    found[option.name] = (field.name, option)
    return found


def parse_int64(text: str, option: str) -> int:
    """Parse decimal digits to an offset or a time, which have 64 bits."""
    if len(text) > _INT64_DIGITS or int(text) > _INT64_MAX:
        raise UsageError(f"{option} {text[: _INT64_DIGITS + 1]}: larger than any there can be ({_INT64_MAX})")
    return int(text)


def check_int64(numbers: Iterable[int | None], option: str) -> None:
    """Refuse ids, epochs and offsets that no log can hold, and no column either; None was not given."""
    for number in numbers:
        if number is not None and number > _INT64_MAX:
            raise UsageError(f"{option} {number}: larger than any there can be ({_INT64_MAX})")


def parse_int64s(numbers: Any, option: str) -> Any:  # noqa: ANN401 - one number, or a list of them, as it came
    """Return what `check_int64` lets pass."""
    check_int64(numbers if isinstance(numbers, list) else [numbers], option)
    return numbers


def parse_time(text: str | None, option: str) -> int | None:
    """Parse a time: RFC 3339 (UTC where no zone is given), a date, or milliseconds since the epoch."""
    if text is None:
        return None
    if text.isdecimal() and len(text) > 8:
        return parse_int64(text, option)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} {text}: not a time; write 2026-11-21T03:00:00Z, 2026-11-21 or milliseconds since 1970"
        raise UsageError(message) from None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return round(time.timestamp() * 1000)
