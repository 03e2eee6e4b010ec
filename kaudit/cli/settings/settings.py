"""The values of all layers - files, environment - and where each came from; every mistake names its origin."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

import typer
from msgspec import Struct, field
from typer.core import TyperOption

from kaudit.errors import UsageError, suggestion
from kaudit.policy.topics import TopicRule

PREFIX = "KAUDIT_"
_NO_KEYS = ("config", "force", "help", "isolated", "version")
"""Options that say where configuration is, only print, or must be meant each time."""
_FILE = "kaudit.toml"
_SHARED_FILE = "pyproject.toml"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_PATHS = ("baseline", "blocks", "zookeeper")
"""Options that name a file: in a configuration file relative to that file, not to where kaudit runs."""
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
    own: Mapping[str, TyperOption],
    all_options: Callable[[], Mapping[str, TyperOption]],
    environ: Mapping[str, str],
    files: Sequence[Path],
) -> Settings:
    """Read all layers, the weakest first: the files, then the environment.

    `own` are the options of the command that runs which configuration may set, by key; `all_options` those of every command.
    The latter import every command, and are asked for only where something is configured that is not among the former.
    """
    values: dict[str, Value] = {}
    topics: Sequence[TopicRule] = ()
    topics_origin = ""
    for file in files:
        from kaudit.cli.settings.files import (  # most runs are not configured: no TOML, no checks
            parse_topics,
            read_table,
        )

        table = read_table(file)
        if "topics" in table:
            topics, topics_origin = parse_topics(table["topics"], file), str(file)
        for key, raw in table.items():
            if key != "topics":
                option = own.get(key) or _option(key, all_options(), file)
                values[key] = Value(_from_toml(key, raw, option, file), str(file))
                _check(context, option, values[key].value, str(file))
    variables = {name for name in environ if name.startswith(PREFIX) and name not in _OTHER_VARIABLES}
    known = own if variables <= set(map(variable_of, own)) else {**all_options(), **own}
    for key, option in known.items():
        name = variable_of(key)
        if name in variables:
            values[key] = Value(_from_environment(name, environ[name], option), name)
            _check(context, option, values[key].value, name)
    return Settings(values, topics, topics_origin, sorted(variables - set(map(variable_of, known))))


def variable_of(key: str) -> str:
    """Return the environment variable that sets an option."""
    return PREFIX + key.upper().replace("-", "_")


def files_of(environ: Mapping[str, str], *, config: str | None, isolated: bool) -> list[Path]:
    """Return the files to read, the weakest first: the user's and the project's, or the one of --config."""
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
        project = _project_file(Path.cwd())
    except OSError as error:
        raise UsageError(f"configuration cannot be looked for: {error.strerror}; --isolated looks for none") from error
    return [file for file in (_user_file(environ), project) if file is not None]


def _option(key: str, options: Mapping[str, TyperOption], file: Path) -> TyperOption:
    if key not in options:
        hint = suggestion(key, [*options, "topics"]) or " ('kaudit config show' lists them)"
        raise UsageError(f"configuration {file}: there is no key {key}{hint}")
    return options[key]


def _project_file(start: Path) -> Path | None:
    """Return the nearest configuration at or above a directory. Only the nearest counts: nothing is merged.

    Raises:
        OSError: a directory may not be read.

    """
    for directory in (start, *start.parents):
        own, shared = directory / _FILE, directory / _SHARED_FILE
        if own.is_file():
            return own
        if shared.is_file() and b"[tool.kaudit" in shared.read_bytes():
            return shared
    return None


def _user_file(environ: Mapping[str, str]) -> Path | None:
    """Return the user's own configuration, if there is one."""
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    file = Path(home, "kaudit", _FILE)
    return file if home and file.is_file() else None


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
    return str(file.parent / str(value)) if key in _PATHS else str(value)


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


def key_of(option: TyperOption) -> str:
    """Return the key of an option: its long name without the dashes."""
    return max(option.opts, key=len).lstrip("-")
