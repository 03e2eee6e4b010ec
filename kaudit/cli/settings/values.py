"""From a value in TOML or in the environment to what an option takes; every mistake names its origin."""

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

import typer
from typer.core import TyperOption

from kaudit.errors import UsageError

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_PATHS = ("baseline", "blocks", "zookeeper")
"""Options that name a file: in a configuration file relative to that file, not to where kaudit runs."""


def from_toml(key: str, value: object, option: TyperOption, file: Path) -> object:
    """Return a TOML value as the option wants it."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{file}: {key}: is true or false, not {value!r}")
        return value
    if option.multiple:
        if isinstance(value, Mapping) and "=" in (option.metavar or ""):
            return [f"{name}={item}" for name, item in value.items()]
        items = value if isinstance(value, list) else [value]
        return [_scalar(key, item, file) for item in items]
    return _scalar(key, value, file)


def _scalar(key: str, value: object, file: Path) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | datetime | date):
        raise UsageError(f"{file}: {key}: {value!r} is neither a string nor a number")
    if isinstance(value, date):
        return value.isoformat()
    return str(file.parent / str(value)) if key in _PATHS else str(value)


def from_environment(name: str, value: str, option: TyperOption) -> object:
    """Return the text of an environment variable as the option wants it; white space separates many."""
    if option.is_flag:
        if value.lower() not in (*_TRUE, *_FALSE):
            raise UsageError(f"{name}={value}: is neither of {', '.join(_TRUE)} nor of {', '.join(_FALSE[:-1])}")
        return value.lower() in _TRUE
    return value.split() if option.multiple else value


def check(context: typer.Context, option: TyperOption, value: object, origin: str) -> None:
    """Refuse a value the option would refuse, with the place it came from."""
    try:
        option.process_value(context, value)
    except typer.BadParameter as error:
        raise UsageError(f"{origin}: {key_of(option)}: {error.format_message().split(': ', 1)[-1]}") from None


def key_of(option: TyperOption) -> str:
    """Return the key of an option: its long name without the dashes."""
    return max(option.opts, key=len).lstrip("-")
