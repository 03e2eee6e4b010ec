"""Options that several commands share as one parameter of a command; typer itself knows single options only."""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, get_args

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from kaudit.scanning.options import DECLARED, ScanOptions, scan_options
from kaudit.source.option import DeclaredField, declared_fields


class OptionGroup(Struct, frozen=True, kw_only=True):
    """Options that belong together: fields are options of typer, groups, structs of declared options, or `Annotated[ScanOptions, Takes(...)]`."""

    heading: ClassVar[str | None] = None
    """What its options stand under in --help, and those of groups in it that have none."""


class Takes(Struct, frozen=True):
    """The options, by name, that a command takes as `struct`. `help` replaces the help text of some."""

    names: tuple[str, ...]
    help: Mapping[str, str] = {}
    struct: type[Struct] = ScanOptions

    @classmethod
    def whole(cls, struct: type[Struct]) -> "Takes":
        """Take all options of a struct."""
        return cls(tuple(field.option.name for field in declared_fields(struct)), struct=struct)

    def options(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters that typer reads the options off."""
        heading = getattr(self.struct, "heading", None)
        for field, keyword in self.keywords():
            name = field.option.name
            option = field.option
            text = self.help.get(name, option.help)
            typed: Any = typer.Option(f"--{name}", metavar=option.metavar, min=option.least, help=text)
            kind: Any = field.typed_as
            annotation = Annotated[kind, _under(option.heading or heading, typed)]
            yield inspect.Parameter(
                keyword, inspect.Parameter.KEYWORD_ONLY, default=field.typed_default, annotation=annotation
            )

    def keywords(self) -> list[tuple[DeclaredField, str]]:
        """Return each option, and the name of its parameter."""
        declared = DECLARED.values() if self.struct is ScanOptions else declared_fields(self.struct)
        return [(field, field.option.name.replace("-", "_")) for field in declared if field.option.name in self.names]

    def made(self, values: Mapping[str, Any]) -> Struct:
        """Return the struct of what was typed, by parameter. Raises UsageError for a value that means nothing."""
        typed = [(field, values[keyword]) for field, keyword in self.keywords()]
        if self.struct is ScanOptions:
            return scan_options({field.option.name: value for field, value in typed})
        return self.struct(**{field.path[-1]: field.parsed(value) for field, value in typed if value is not None})


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
    taken = _taken(group)
    if taken is not None:
        yield from taken.options()
    elif _is_group(group):
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is NODEFAULT else field.default
            option = inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=field.type)
            yield from _options(option, group.heading or heading)
    elif heading is None:
        yield parameter
    else:
        value, option = get_args(group)
        yield parameter.replace(annotation=Annotated[value, _under(heading, option)])


def _under(heading: str | None, option: Any) -> Any:  # noqa: ANN401 - typer's own class is not exported
    """Return a copy of the option under a heading: other groups may have the same option under another."""
    option = copy.copy(option)
    option.rich_help_panel = heading  # typer's own name for it, whether rich shows it or not
    return option


def _assemble(annotation: Any, name: str, values: dict[str, Any]) -> Any:  # noqa: ANN401 - an option's value, or a group
    taken = _taken(annotation)
    if taken is not None:
        return taken.made(values)
    if not _is_group(annotation):
        return values[name]
    return annotation(**{field.name: _assemble(field.type, field.name, values) for field in fields(annotation)})


def _taken(annotation: object) -> Takes | None:
    if isinstance(annotation, type) and issubclass(annotation, Struct) and not _is_group(annotation):
        return Takes.whole(annotation)
    return next((item for item in get_args(annotation) if isinstance(item, Takes)), None)


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)
