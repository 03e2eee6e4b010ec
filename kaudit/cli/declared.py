"""Options and arguments as they are declared: what typer is told of each, and the groups that commands share.

Without typer, whose import takes as long as reading a small log: `kaudit.cli.typed` hands declarations to it, and
`kaudit.cli.plain_way` reads a command line that has no need of it.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields


class Option:
    """An option in an annotation, `Annotated[int, Option("--jobs", min=1)]`; `told` is what typer.Option takes."""

    def __init__(self, *names: str, **told: Any) -> None:  # noqa: ANN401 - typer's affair
        self.names = names
        self.told = told


class Argument:
    """An argument in an annotation; `told` is what typer.Argument takes."""

    def __init__(self, **told: Any) -> None:  # noqa: ANN401 - typer's affair
        self.told = told


class Group(Struct, frozen=True, kw_only=True):
    """Options that go together. Every field is an option with a default, or a group again."""


def parameters_of(command: Callable[..., int | None]) -> list[inspect.Parameter]:
    """Return the parameters of a command; where one is a group, its options stand, in the group's order."""
    return [each for parameter in inspect.signature(command).parameters.values() for each in _spell_out(parameter)]


def gather(command: Callable[..., int | None], typed: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command, its groups put together from values by the names of `parameters_of`."""
    return {
        name: _gather(parameter.annotation, typed) if _is_group(parameter.annotation) else typed[name]
        for name, parameter in inspect.signature(command).parameters.items()
    }


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Group)


def _spell_out(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not _is_group(parameter.annotation):
        yield parameter
        return
    for field in fields(parameter.annotation):
        default = inspect.Parameter.empty if field.default is NODEFAULT else field.default
        yield from _spell_out(
            inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=field.type)
        )


def _gather(group: type[Group], typed: dict[str, Any]) -> Group:
    return group(
        **{
            field.name: _gather(field.type, typed) if _is_group(field.type) else typed[field.name]
            for field in fields(group)
        }
    )
