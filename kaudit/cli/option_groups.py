"""Options that several commands share as one parameter of a command; typer itself knows single options only."""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, get_args, get_origin

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from kaudit.scanning.options import ScanOptions
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.option import Option, options_of

DECLARED = options_of(ScanOptions, ClusterOptions)
"""The options that are declared with the field they set. A parameter or a field of a group with such a name is that option."""


class OptionGroup(Struct, frozen=True, kw_only=True):
    """Options that belong together. Every field is an option with a default, or a group.

    An option is annotated as typer wants it, or has the name of one of DECLARED.
    """

    heading: ClassVar[str | None] = None
    """What its options stand under in --help, and those of groups in it that have none."""

    def check(self) -> None:
        """Raise UsageError for options that contradict each other."""


def with_option_groups(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return the command with the signature typer reads: the options of a group in place of the group, in its order."""
    signature = inspect.signature(command)

    @functools.wraps(command)
    def flat(**values: Any) -> int | None:  # noqa: ANN401 - typer has converted them
        groups = signature.parameters.values()
        return command(**{each.name: _assemble(each.annotation, each.name, values) for each in groups})

    parameters = [option for parameter in signature.parameters.values() for option in _options(parameter, None)]
    flat.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what inspect reads
    return flat


def _options(parameter: inspect.Parameter, heading: str | None) -> Iterator[inspect.Parameter]:
    group = parameter.annotation
    if not _is_group(group):
        declared = DECLARED.get(_option_name(parameter.name))
        if declared is not None and get_origin(group) is not Annotated:
            group = Annotated[group, _typed(declared[1])]
        yield parameter.replace(annotation=group if heading is None else _under(heading, group))
        return
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is NODEFAULT else field.default
        option = inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=field.type)
        yield from _options(option, group.heading or heading)


def _option_name(parameter: str) -> str:
    return parameter.strip("_").replace("_", "-")


def _typed(option: Option) -> Any:  # noqa: ANN401 - typer's own class is not exported
    """Return what typer reads an option off."""
    return typer.Option(f"--{option.name}", metavar=option.metavar, min=option.least, help=option.help)


def declared_values(group: OptionGroup) -> dict[str, Any]:
    """Return what was typed for fields of ScanOptions and ClusterOptions, by the fields' names, as they hold it.

    Raises UsageError for a value that means nothing.
    """
    group.check()
    values: dict[str, Any] = {}
    for field in fields(group):
        value, declared = getattr(group, field.name), DECLARED.get(_option_name(field.name))
        if isinstance(value, OptionGroup):
            values |= declared_values(value)
        elif declared is not None and value is not None:
            name, option = declared
            values[name] = value if option.parse is None else option.parse(value, f"--{option.name}")
    return values


def _under(heading: str, annotation: Any) -> Any:  # noqa: ANN401 - what typer reads an option off
    """Return the annotation of the option under a heading; other groups may have the same option under another."""
    value, option = get_args(annotation)
    option = copy.copy(option)
    option.rich_help_panel = heading  # typer's own name for it, whether rich shows it or not
    return Annotated[value, option]


def _assemble(annotation: Any, name: str, values: dict[str, Any]) -> Any:  # noqa: ANN401 - an option's value, or a group
    if not _is_group(annotation):
        return values[name]
    return annotation(**{field.name: _assemble(field.type, field.name, values) for field in fields(annotation)})


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)
