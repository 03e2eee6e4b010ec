"""Options that several commands share as one parameter of a command; typer itself knows single options only."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields


class OptionGroup(Struct, frozen=True, kw_only=True):
    """Options that belong together. Every field is an option with a default, annotated as typer wants it, or a group."""


def with_option_groups(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return the command with the signature typer reads: the options of a group in place of the group, in its order."""
    signature = inspect.signature(command)

    @functools.wraps(command)
    def flat(**values: Any) -> int | None:  # noqa: ANN401 - typer has converted them
        groups = signature.parameters.values()
        return command(**{each.name: _assemble(each.annotation, each.name, values) for each in groups})

    parameters = [option for parameter in signature.parameters.values() for option in _options(parameter)]
    flat.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what inspect reads
    return flat


def _options(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not _is_group(parameter.annotation):
        yield parameter
        return
    for field in fields(parameter.annotation):
        default = inspect.Parameter.empty if field.default is NODEFAULT else field.default
        yield from _options(
            inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=field.type)
        )


def _assemble(annotation: Any, name: str, values: dict[str, Any]) -> Any:  # noqa: ANN401 - an option's value, or a group
    if not _is_group(annotation):
        return values[name]
    return annotation(**{field.name: _assemble(field.type, field.name, values) for field in fields(annotation)})


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)
