"""The declaration of an option at the field that it sets: the command line, kaudit.toml and kaudit.scan derive theirs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from kaudit.errors import UsageError

_INT64_MAX, _INT64_DIGITS = 2**63 - 1, 19


class Option(Struct, frozen=True):
    """What --help says of a field, and how a typed value becomes the field's.

    `name` is the option without dashes, which is its key in kaudit.toml too; `heading` is where --help lists it. A number is at
    least `least`. `parse` takes the value and what to call the option in a message; it raises UsageError. An option with
    `is_path` names a file or directory: in kaudit.toml a relative one is relative to that file. Options with `decides`
    change what is found, so the commands that findings suggest repeat them.
    """

    name: str
    help: str
    metavar: str | None = None
    heading: str | None = None
    least: int | None = None
    parse: Callable[[Any, str], Any] | None = None
    is_path: bool = False
    decides: bool = False


class DeclaredField(Struct, frozen=True):
    """A field of a struct that is annotated with an option, and the fields that lead to it from the outermost struct."""

    option: Option
    path: Sequence[str]
    type: Any
    default: Any

    @property
    def keyword(self) -> str:
        """Return the option's name as a keyword of Python: the field's, of a time without its unit."""
        name = self.path[-1]
        return name.replace("_ms", "_time") if self.option.name.endswith("-time") else name.removesuffix("_ms")

    @property
    def typed_as(self) -> Any:  # noqa: ANN401 - a type
        """Return the type of what is typed: a flag, a choice, a number or a text; or a list of them."""
        many = get_origin(self.type) is Sequence
        inner = get_args(self.type)[0] if get_args(self.type) else self.type
        if inner is bool or (isinstance(inner, type) and issubclass(inner, Enum)):
            return inner
        one = str if self.option.least is None else int
        return list[one] | None if many else one if self.default is not None else one | None  # type: ignore[valid-type]

    @property
    def typed_default(self) -> Any:  # noqa: ANN401 - a value of that type
        """Return the default, as if it had been typed."""
        return self.default or None if get_origin(self.type) is Sequence else self.default

    def parsed(self, value: object) -> object:
        """Return what the field holds for a typed value. Raises UsageError for a value that means nothing."""
        parse = self.option.parse
        return value if parse is None else parse(value, f"--{self.option.name}")


def declared_fields(struct: type[Struct], path: Sequence[str] = ()) -> Iterator[DeclaredField]:
    """Yield the declared options of a struct and of the structs in its fields, in order."""
    for field in fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from declared_fields(field.type, (*path, field.name))
            continue
        own, *annotations = get_args(field.type) or (field.type,)
        for option in annotations:
            if isinstance(option, Option):
                default = None if field.default is NODEFAULT else field.default
                yield DeclaredField(option, (*path, field.name), own, default)


def parse_int64(text: str, option: str) -> int:
    """Parse decimal digits to an offset or a time, which have 64 bits."""
    if len(text) > _INT64_DIGITS or int(text) > _INT64_MAX:
        raise UsageError(f"{option} {text[: _INT64_DIGITS + 1]}: larger than any there can be ({_INT64_MAX})")
    return int(text)


def check_int64(numbers: Iterable[int | None], option: str) -> None:
    """Refuse ids, epochs and offsets that are larger than 64 bits; None was not given."""
    for number in numbers:
        if number is not None and number > _INT64_MAX:
            raise UsageError(f"{option} {number}: larger than any there can be ({_INT64_MAX})")


def parse_int64s(numbers: Any, option: str) -> Any:  # noqa: ANN401 - one number, or a list of them, as it came
    """Return one number, or a list of them, that `check_int64` accepts."""
    check_int64(numbers if isinstance(numbers, list) else [numbers], option)
    return numbers


def parse_time(text: str | None, option: str) -> int | None:
    """Parse a time to ms since 1970: RFC 3339 (UTC where no zone is given), a date, or milliseconds."""
    if text is None:
        return None
    if text.isdecimal() and len(text) > 8:
        return parse_int64(text, option)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} {text}: not a time; write 2026-11-21T03:00:00Z, 2026-11-21 or milliseconds since 1970"
        raise UsageError(message) from None
    return milliseconds(time)


def parse_duration(text: str | None, option: str) -> int | None:
    """Parse a span of time such as `90s`, `30m`, `12h`, `7d` to milliseconds."""
    if text is None:
        return None
    units = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdecimal() and len(number) <= 9 and unit in units):
        raise UsageError(f"{option} {text}: not a span of time; write 90s, 30m, 12h or 7d")
    return int(number) * units[unit]


def milliseconds(time: datetime) -> int:
    """Return a time as ms since 1970; without a zone it is UTC."""
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return round(time.timestamp() * 1000)
