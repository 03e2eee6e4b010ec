"""Reads configuration: files, then the environment; every mistake names its origin. `kaudit.cli.settings` says which files."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperOption

from kaudit.cli.settings import PREFIX, SHARED_FILE, Settings, Value, key_of
from kaudit.errors import UsageError, suggestion
from kaudit.formats.toml import parse_toml
from kaudit.policy.policy import Accepted, TopicRule
from kaudit.results.selection import parse_codes
from kaudit.scanning.options import DECLARED
from kaudit.source.file_kinds import (
    META_PROPERTIES,
    OFFSET_CHECKPOINT_NAMES,
    parse_partition_name,
    segment_base_offset,
)
from kaudit.source.local import read_document

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_PATHS = frozenset({"baseline", *(name for name, field in DECLARED.items() if field.option.is_path)})
"""Options that name a file or directory: a relative path in a configuration file is relative to that file."""
_TOPIC_KEYS = ("compacted", "expected-producers", "ignore")
_IGNORE_KEYS = ("codes", "reason")


def load(
    context: typer.Context,
    own: Mapping[str, TyperOption],
    all_options: Callable[[], Mapping[str, TyperOption]],
    variables: Mapping[str, str],
    files: Sequence[Path],
) -> Settings:
    """Read all layers, the weakest first: the files, then the environment's KAUDIT_* variables.

    `own` are the configurable options, by key, of the command that runs, `all_options` those of every command. The latter
    imports every command, and is called only where something is configured that is not among the former.
    """
    values: dict[str, Value] = {}
    topics: Sequence[TopicRule] = ()
    topics_origin = ""
    for file in files:
        table = _read_table(file)
        if "topics" in table:
            topics, topics_origin = _parse_topics(table["topics"], file), str(file)
        for key, raw in table.items():
            if key != "topics":
                option = own.get(key) or _option(key, all_options(), file)
                values[key] = Value(_from_toml(key, raw, option, file), str(file))
                _check(context, option, values[key].value, str(file))
    known = own if variables.keys() <= set(map(variable_of, own)) else {**all_options(), **own}
    for key, option in known.items():
        name = variable_of(key)
        if name in variables:
            values[key] = Value(_from_environment(name, variables[name], option), name)
            _check(context, option, values[key].value, name)
    return Settings(values, topics, topics_origin, sorted(variables.keys() - set(map(variable_of, known))))


def is_of_log(directory: Path, inputs: Sequence[Path]) -> bool:
    """Return whether a directory is a log directory, by its own files, or the partition of an input that is a segment."""
    if any((directory / name).exists() for name in (META_PROPERTIES, *OFFSET_CHECKPOINT_NAMES)):
        return True
    is_partition = parse_partition_name(directory.name) is not None
    return is_partition and any(
        place.parent == directory and segment_base_offset(place.name) is not None for place in inputs
    )


def variable_of(key: str) -> str:
    """Return the environment variable that sets an option."""
    return PREFIX + key.upper().replace("-", "_")


def _option(key: str, options: Mapping[str, TyperOption], file: Path) -> TyperOption:
    if key not in options:
        hint = suggestion(key, [*options, "topics"]) or " ('kaudit config show' lists them)"
        raise UsageError(f"configuration {file}: there is no key {key}{hint}")
    return options[key]


def _from_toml(key: str, value: object, option: TyperOption, file: Path) -> object:
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
    text = str(value)
    return str(file.parent / text) if key in _PATHS and "://" not in text else text


def _from_environment(name: str, value: str, option: TyperOption) -> object:
    """Return the text of an environment variable as the option wants it; white space separates many."""
    if option.is_flag:
        if value.lower() not in (*_TRUE, *_FALSE):
            raise UsageError(f"{name}={value}: is neither of {', '.join(_TRUE)} nor of {', '.join(_FALSE[:-1])}")
        return value.lower() in _TRUE
    return value.split() if option.multiple else value


def _check(context: typer.Context, option: TyperOption, value: object, origin: str) -> None:
    """Refuse a value the option would refuse, with the place it came from."""
    try:
        option.process_value(context, value)
    except typer.BadParameter as error:
        raise UsageError(f"{origin}: {key_of(option)}: {error.format_message().split(': ', 1)[-1]}") from None


def _read_table(file: Path) -> Mapping[str, Any]:
    """Return kaudit's table of a configuration file."""
    try:
        document = parse_toml(read_document(str(file)))
    except OSError as error:
        raise UsageError(f"configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"configuration {file}: not TOML: {error}") from error
    if file.name != SHARED_FILE:
        return document
    table: Mapping[str, Any] = document.get("tool", {}).get("kaudit", {})
    return table


def _parse_topics(tables: object, file: Path) -> Sequence[TopicRule]:
    """Read the tables in the order they are written."""
    if not isinstance(tables, Mapping):
        raise UsageError(f"{file}: topics: write a table per topic, [topics.NAME]")
    return [_rule(name, table, f"{file}: topics.{name}") for name, table in tables.items()]


def _rule(name: str, table: object, where: str) -> TopicRule:
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: is not a table")
    _known(table, _TOPIC_KEYS, where)
    compacted, producers = table.get("compacted", False), table.get("expected-producers")
    if not isinstance(compacted, bool):
        raise UsageError(f"{where}.compacted: is true or false, not {compacted!r}")
    if producers is not None and (isinstance(producers, bool) or not isinstance(producers, int) or producers < 0):
        raise UsageError(f"{where}.expected-producers: {producers!r} is not a number of producer ids")
    ignored = table.get("ignore", [])
    if not isinstance(ignored, list):
        raise UsageError(f"{where}.ignore: write [[topics.{name}.ignore]] with codes and a reason")
    return TopicRule(name, compacted, producers, [_accepted(item, f"{where}.ignore") for item in ignored])


def _accepted(table: object, where: str) -> Accepted:
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: write a table with codes and a reason")
    _known(table, _IGNORE_KEYS, where)
    codes, reason = table.get("codes"), table.get("reason")
    if not isinstance(codes, list) or not codes or not all(isinstance(code, str) for code in codes):
        raise UsageError(f"{where}.codes: write a list of codes or prefixes, such as ['KA302']")
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError(f"{where}.reason: say why, for whoever reads it next year")
    return Accepted(parse_codes(codes, f"{where}.codes:"), reason)


def _known(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            hint = suggestion(key, keys) or f"; there are {', '.join(keys)}"
            raise UsageError(f"{where}: there is no key {key}{hint}")
