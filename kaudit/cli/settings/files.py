"""What stands in a configuration file: kaudit's table, and in it a table for each topic."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kaudit.errors import UsageError, suggestion
from kaudit.policy.topics import Accepted, TopicRule
from kaudit.results.selection import parse_codes

SHARED = "pyproject.toml"
"""A file with tables of other tools too: kaudit's is [tool.kaudit]."""
_KEYS = ("compacted", "expected-producers", "ignore")
_IGNORE_KEYS = ("codes", "reason")


def read_table(file: Path) -> Mapping[str, Any]:
    """Return kaudit's table of a configuration file."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"configuration {file}: not TOML: {error}") from error
    if file.name != SHARED:
        return document
    table: Mapping[str, Any] = document.get("tool", {}).get("kaudit", {})
    return table


def parse_topics(tables: object, file: Path) -> Sequence[TopicRule]:
    """Read the tables in the order they are written."""
    if not isinstance(tables, Mapping):
        raise UsageError(f"{file}: topics: write a table per topic, [topics.NAME]")
    return [_rule(name, table, f"{file}: topics.{name}") for name, table in tables.items()]


def _rule(name: str, table: object, where: str) -> TopicRule:
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: is not a table")
    _known(table, _KEYS, where)
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
