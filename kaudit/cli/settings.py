"""The configuration a command runs with. typer runs the callback of --config and --isolated before it looks at other options."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, field
from msgspec.structs import replace
from typer.core import TyperCommand, TyperGroup, TyperOption

from kaudit.cli.loading import loaded
from kaudit.errors import UsageError
from kaudit.installation import version_text
from kaudit.report.console import visible
from kaudit.source.uri import Uri, UrlError

if TYPE_CHECKING:  # every check comes with it
    from kaudit.policy.policy import TopicRule

PREFIX = "KAUDIT_"
_NOT_CONFIGURABLE = ("config", "force", "help", "isolated", "version")
"""Options that say where configuration is, only print, or must be meant each time."""
_FILE = "kaudit.toml"
SHARED_FILE = "pyproject.toml"
"""A file with tables of other tools too: kaudit's is [tool.kaudit]."""
_OTHER_VARIABLES = tuple(
    f"{PREFIX}{name}" for name in ("CONFIG", "CONNECT_SECONDS", "DEBUG", "ISOLATED", "PAGER", "PYTHON")
)


INPUTS = "kaudit.inputs"
"""Where a command's context keeps the arguments that it was given, before options are processed."""


class Value(Struct, frozen=True):
    """A configured value, and where it stands."""

    value: object
    origin: str


class Settings(Struct, frozen=True):
    """What the configuration says, by key; the command line wins over it. `unknown`: KAUDIT_* variables that set no option."""

    values: Mapping[str, Value] = field(default_factory=dict)
    topics: "Sequence[TopicRule]" = ()
    topics_origin: str = ""
    unknown: Sequence[str] = ()
    not_used: Sequence[str] = ()
    """Configuration files that lie in an input: they are evidence."""

    @property
    def compacted_topics(self) -> tuple[str, ...]:
        """Return the topics, names or patterns, that the configuration calls compacted."""
        return tuple(rule.pattern for rule in self.topics if rule.compacted)

    def texts(self, key: str) -> Sequence[str]:
        """Return the configured value of an option that takes many."""
        found = self.values.get(key)
        return [str(item) for item in found.value] if found is not None and isinstance(found.value, list) else ()


def configure(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:  # noqa: ANN401 - text or flag
    """Read the configuration as soon as both options are known, and set the defaults of the command's other options."""
    given = {**context.params, str(parameter.name): value}
    if {"config", "isolated"} <= given.keys() and not context.resilient_parsing:
        # `config show` lists the settings of the other commands: its own options are not configured
        own = {} if context.command.name == "show" else configurable_options(context.command)
        files, not_used = _files(
            os.environ,
            config=given["config"],
            isolated=given["isolated"] or os.environ.get("KAUDIT_ISOLATED") == "1",
            inputs=context.meta.get(INPUTS, ()),
        )
        variables = {
            name: text for name, text in os.environ.items() if name.startswith(PREFIX) and name not in _OTHER_VARIABLES
        }
        settings = Settings()
        if files or variables:
            settings = loaded("configuration", "load")(context, own, lambda: all_options(context), variables, files)
        settings = replace(settings, not_used=not_used)
        context.default_map = {
            str(own[key].name): setting.value for key, setting in settings.values.items() if key in own
        }
        context.obj = settings
    return value


def all_options(context: typer.Context) -> Mapping[str, TyperOption]:
    """Return the options that configuration may set, of all commands, by key: the root's callback knows them."""
    options: Mapping[str, TyperOption] = context.find_root().obj()
    return options


def settings_of(context: typer.Context) -> Settings:
    """Return the configuration the command was started with."""
    assert isinstance(context.obj, Settings)
    return context.obj


def configurable_options(command: object) -> Mapping[str, TyperOption]:
    """Return the options, by key, that configuration may set: of a command with --config, or of all those of a group."""
    if isinstance(command, TyperGroup):
        found: dict[str, TyperOption] = {}
        for child in command.commands.values():
            found = {**configurable_options(child), **found}
        return found
    assert isinstance(command, TyperCommand)
    options = {key_of(param): param for param in command.params if isinstance(param, TyperOption)}
    return (
        {key: option for key, option in options.items() if key not in _NOT_CONFIGURABLE} if "config" in options else {}
    )


def key_of(option: TyperOption) -> str:
    """Return the key of an option: its long name without the dashes."""
    return max(option.opts, key=len).lstrip("-")


def _files(
    environ: Mapping[str, str], *, config: str | None, isolated: bool, inputs: Sequence[str]
) -> tuple[list[Path], list[str]]:
    """Return the files to read, the weakest first: the user's and the project's, or the one of --config; and those not used.

    What lies in an input is evidence: it could silence the audit of itself.
    """
    config = config or environ.get("KAUDIT_CONFIG") or None
    if config is not None:
        if isolated:
            raise UsageError(f"--isolated reads no configuration, --config {config} is one: give only one of them")
        if not Path(config).is_file():
            raise UsageError(f"--config {config}: no such file")
        return [Path(config)], []
    if isolated:
        return [], []
    not_used: list[str] = []
    try:
        project = _project_file(Path.cwd(), [place for text in inputs for place in _place_of(text)], not_used)
    except OSError as error:
        raise UsageError(f"configuration cannot be looked for: {error.strerror}; --isolated looks for none") from error
    return [file for file in (_user_file(environ), project) if file is not None], not_used


def _place_of(text: str) -> list[Path]:
    """Return the local directory or file that an input names by path or URL, links resolved; none where it names something else."""
    try:
        place = Uri.parse(text)
    except UrlError:
        return []  # refused where the inputs are read
    return [Path(place.path).resolve()] if place.is_local and os.path.exists(place.path) else []  # noqa: PTH110 - it may hold what no path holds


def _project_file(start: Path, inputs: Sequence[Path], not_used: list[str]) -> Path | None:
    """Return the nearest configuration at or above a directory and outside the inputs. Only the nearest counts: nothing is merged.

    Those in an input, or in the log directory of one, are added to `not_used`.

    Raises:
        OSError: a directory may not be read.

    """
    for directory in (start, *start.parents):
        found, place = [*_configurations(directory / _FILE, directory / SHARED_FILE)], directory.resolve()
        if not found:
            continue
        if not any(place.is_relative_to(given) for given in inputs) and not _is_log_of(place, inputs):
            return found[0]
        for file in found:
            not_used.append(str(file))
            name = visible(str(file))
            typer.echo(f"kaudit: {name} lies in an input: it is evidence and was not used as configuration", err=True)
    return None


def _is_log_of(directory: Path, inputs: Sequence[Path]) -> bool:
    """Return whether a directory that holds an input, or the partition of one, is a log directory or that partition itself."""
    near = [place for place in inputs if directory in (place.parent, place.parent.parent)]
    return bool(near) and bool(loaded("configuration", "is_of_log")(directory, near))


def _configurations(own: Path, shared: Path) -> Iterator[Path]:
    """Yield those of a directory's two files that are configuration, the stronger first."""
    if own.is_file():
        yield own
    if shared.is_file() and b"[tool.kaudit" in shared.read_bytes():
        yield shared


def _user_file(environ: Mapping[str, str]) -> Path | None:
    """Return the user's own configuration, if there is one."""
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    file = Path(home, "kaudit", _FILE)
    return file if home and file.is_file() else None


def _show_version(value: bool) -> None:
    if value:
        typer.echo(version_text())
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version and exit."),
]
