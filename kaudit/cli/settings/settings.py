"""The values of all layers, and where each came from."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from msgspec import Struct, field
from typer.core import TyperOption

from kaudit.cli.settings.files import project_file, read_table, user_file
from kaudit.cli.settings.values import check, from_environment, from_toml
from kaudit.errors import UsageError, suggestion
from kaudit.policy.topics import TopicRule

PREFIX = "KAUDIT_"
_NO_KEYS = ("config", "force", "help", "isolated", "version")
"""Options that say where configuration is, only print, or must be meant each time."""
_OTHER_VARIABLES = tuple(
    f"{PREFIX}{name}" for name in ("CONFIG", "CONNECT_SECONDS", "DEBUG", "ISOLATED", "PAGER", "PYTHON")
)


class Value(Struct, frozen=True):
    """A configured value, and where it stands."""

    value: object
    origin: str


class Settings(Struct, frozen=True):
    """What configuration says, by key; flags come on top. `unknown`: KAUDIT_* variables that are no option."""

    values: Mapping[str, Value] = field(default_factory=dict)
    topics: Sequence[TopicRule] = ()
    topics_origin: str = ""
    unknown: Sequence[str] = ()

    @property
    def compacted_topics(self) -> tuple[str, ...]:
        """Return the topics, names or patterns, that the configuration calls compacted."""
        return tuple(rule.pattern for rule in self.topics if rule.compacted)

    def texts(self, key: str) -> Sequence[str]:
        """Return the configured value of an option that takes many."""
        found = self.values.get(key)
        return [str(item) for item in found.value] if found is not None and isinstance(found.value, list) else ()


def is_configurable(key: str) -> bool:
    """Return whether configuration may set the option of this name."""
    return key not in _NO_KEYS


def load(
    context: typer.Context,
    all_options: Callable[[], Mapping[str, TyperOption]],
    environ: Mapping[str, str],
    *,
    config: str | None,
    isolated: bool,
) -> Settings:
    """Read all layers, the weakest first: the user's file, the project's or --config, the environment.

    `all_options` of every command that configuration may set, by key, are asked for only where something is configured.
    """
    files = _files(environ, config=config, isolated=isolated)
    if not files and not any(name.startswith(PREFIX) for name in environ):
        return Settings()
    options = all_options()
    values: dict[str, Value] = {}
    topics: Sequence[TopicRule] = ()
    topics_origin = ""
    for file in files:
        table = read_table(file)
        if "topics" in table:
            from kaudit.cli.settings.topics import parse_topics

            topics, topics_origin = parse_topics(table["topics"], file), str(file)
        for key, raw in table.items():
            if key != "topics":
                option = _option(key, options, file)
                values[key] = Value(from_toml(key, raw, option, file), str(file))
                check(context, option, values[key].value, str(file))
    for key, option in options.items():
        name = PREFIX + key.upper().replace("-", "_")
        if name in environ:
            values[key] = Value(from_environment(name, environ[name], option), name)
            check(context, option, values[key].value, name)
    return Settings(values, topics, topics_origin, _unknown(environ, options))


def _files(environ: Mapping[str, str], *, config: str | None, isolated: bool) -> list[Path]:
    config = config or environ.get("KAUDIT_CONFIG") or None
    if config is not None:
        if isolated:
            raise UsageError(f"--isolated reads no configuration, --config {config} is one: give only one of them")
        if not Path(config).is_file():
            raise UsageError(f"--config {config}: no such file")
        return [Path(config)]
    if isolated:
        return []
    try:
        project = project_file(Path.cwd())
    except OSError as error:
        raise UsageError(f"configuration cannot be looked for: {error.strerror}; --isolated looks for none") from error
    return [file for file in (user_file(environ), project) if file is not None]


def _option(key: str, options: Mapping[str, TyperOption], file: Path) -> TyperOption:
    if key not in options:
        hint = suggestion(key, [*options, "topics"]) or " ('kaudit config show' lists them)"
        raise UsageError(f"configuration {file}: there is no key {key}{hint}")
    return options[key]


def _unknown(environ: Mapping[str, str], options: Mapping[str, Any]) -> list[str]:
    known = {PREFIX + key.upper().replace("-", "_") for key in options} | set(_OTHER_VARIABLES)
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
